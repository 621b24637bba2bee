//! The bank list as VietQR publishes it, read strictly: one row that cannot be right spoils the whole list, because what a
//! transfer is routed by must not be guessed.
//!
//! Pure. A picture that is not where it is known to be is left out; that harms nobody.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::directory::BankRecord;

/// Fewer banks are no directory (features, "Directory").
const BANKS_MIN: usize = 30;
const BANKS_MAX: usize = 500;
/// The longest name, in characters.
const NAME_CHARACTERS_MAX: usize = 200;
/// Where pictures may be.
const LOGOS: [&str; 2] = ["https://cdn.vietqr.io/img/", "https://api.vietqr.io/img/"];

/// A bank of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) bin: String,
    pub(crate) code: String,
    pub(crate) short_name: String,
    pub(crate) name: String,
    pub(crate) transfer_supported: bool,
    pub(crate) logo_url: Option<String>,
}

/// Why a list is not taken. Holds nothing of it but short keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("the response is not the bank list")]
    NotTheList,
    #[error("the list must have {BANKS_MIN} to {BANKS_MAX} banks, not {0}")]
    Count(usize),
    #[error("the bin `{0}` is not six digits")]
    Bin(String),
    #[error("the code or short name `{0}` is not 2 to 64 ASCII characters")]
    Key(String),
    #[error("two banks have the code or short name `{0}`")]
    Twice(String),
    #[error("the name of the bank `{0}` is not 1 to {NAME_CHARACTERS_MAX} characters")]
    Name(String),
}

#[derive(Deserialize)]
struct Answer {
    code: String,
    data: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    bin: String,
    code: String,
    short_name: String,
    name: String,
    #[serde(default)]
    logo: Option<String>,
    #[serde(default)]
    transfer_supported: Flag,
}

/// The list writes 0 and 1.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Number(u8),
    Truth(bool),
}

impl Default for Flag {
    fn default() -> Self {
        Self::Truth(false)
    }
}

/// Reads the list.
///
/// # Errors
/// The first thing that is wrong with it.
pub(crate) fn read(body: &[u8]) -> Result<Vec<Listed>, Unusable> {
    let answer: Answer = serde_json::from_slice(body).map_err(|_| Unusable::NotTheList)?;
    if answer.code != "00" {
        return Err(Unusable::NotTheList);
    }
    if !(BANKS_MIN..=BANKS_MAX).contains(&answer.data.len()) {
        return Err(Unusable::Count(answer.data.len()));
    }
    let mut owners: HashMap<String, usize> = HashMap::new();
    let mut banks = Vec::with_capacity(answer.data.len());
    for (index, row) in answer.data.into_iter().enumerate() {
        let bank = bank(row)?;
        let keys: HashSet<String> = [&bank.bin, &bank.code, &bank.short_name]
            .into_iter()
            .map(|key| key.to_ascii_lowercase())
            .collect();
        for key in keys {
            if owners.insert(key.clone(), index).is_some() {
                return Err(Unusable::Twice(key));
            }
        }
        banks.push(bank);
    }
    Ok(banks)
}

fn bank(row: Row) -> Result<Listed, Unusable> {
    let short = |text: &str| {
        text.chars()
            .take(16)
            .flat_map(char::escape_default)
            .collect::<String>()
    };
    if row.bin.len() != 6 || !row.bin.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unusable::Bin(short(&row.bin)));
    }
    let key = |text: &str| {
        let text = text.trim();
        let is_key = (2..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        is_key
            .then(|| text.to_owned())
            .ok_or_else(|| Unusable::Key(short(text)))
    };
    let name: String = row.name.trim().nfc().collect();
    if name.is_empty()
        || name.chars().count() > NAME_CHARACTERS_MAX
        || name.contains(char::is_control)
    {
        return Err(Unusable::Name(row.bin));
    }
    Ok(Listed {
        code: key(&row.code)?,
        short_name: key(&row.short_name)?,
        name,
        transfer_supported: matches!(row.transfer_supported, Flag::Number(1) | Flag::Truth(true)),
        logo_url: row.logo.filter(|url| is_logo(url)),
        bin: row.bin,
    })
}

fn is_logo(url: &str) -> bool {
    let file = LOGOS
        .iter()
        .find_map(|place| url.strip_prefix(place))
        .and_then(|file| file.strip_suffix(".png"));
    file.is_some_and(|file| {
        (1..=64).contains(&file.len())
            && file
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    })
}

/// What is published of a bank of the directory.
pub(crate) fn listed(bank: &BankRecord) -> Listed {
    Listed {
        bin: bank.bin.to_owned(),
        code: bank.code.to_owned(),
        short_name: bank.short_name.to_owned(),
        name: bank.name.to_owned(),
        transfer_supported: bank.transfer_supported,
        logo_url: bank.logo_url.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(number: usize) -> Value {
        json!({
            "id": number,
            "name": format!("Nga\u{302}n ha\u{300}ng {number}"),
            "code": format!("B{number}X"),
            "bin": format!("97{number:04}"),
            "shortName": format!("Bank {number}"),
            "logo": format!("https://cdn.vietqr.io/img/B{number}.png"),
            "transferSupported": number % 2,
            "short_name": "another",
            "swift_code": null,
        })
    }

    fn list(rows: Vec<Value>) -> Vec<u8> {
        json!({ "code": "00", "desc": "", "data": rows })
            .to_string()
            .into_bytes()
    }

    fn rows() -> Vec<Value> {
        (0..30).map(row).collect()
    }

    /// What becomes of a list whose eighth row has this member.
    #[track_caller]
    fn check(member: &str, value: Value, expected: Result<(), Unusable>) {
        let mut rows = rows();
        rows[7][member] = value;
        assert_eq!(read(&list(rows)).map(|_| ()), expected, "{member}");
    }

    #[test]
    fn a_list_is_read_with_its_names_composed() {
        let banks = read(&list(rows())).expect("a list");
        let expected = Listed {
            bin: "970007".to_owned(),
            code: "B7X".to_owned(),
            short_name: "Bank 7".to_owned(),
            name: "Ngân hàng 7".to_owned(),
            transfer_supported: true,
            logo_url: Some("https://cdn.vietqr.io/img/B7.png".to_owned()),
        };
        assert_eq!((banks.len(), &banks[7]), (30, &expected));
        assert!(!banks[8].transfer_supported);
    }

    #[test]
    fn a_list_with_a_wrong_row_is_not_taken() {
        for bin in ["97000", "9700071", "97000a", "", "９７００07"] {
            let told: String = bin.chars().flat_map(char::escape_default).collect();
            check("bin", json!(bin), Err(Unusable::Bin(told)));
        }
        check(
            "bin",
            json!("970008"),
            Err(Unusable::Twice("970008".to_owned())),
        );
        check("code", json!("b8x"), Err(Unusable::Twice("b8x".to_owned())));
        check(
            "shortName",
            json!("B9X"),
            Err(Unusable::Twice("b9x".to_owned())),
        );
        check("code", json!("Bank 7"), Ok(()));
        check("code", json!("B"), Err(Unusable::Key("B".to_owned())));
        check(
            "shortName",
            json!("Ngân"),
            Err(Unusable::Key("Ng\\u{e2}n".to_owned())),
        );
        check(
            "name",
            json!("  "),
            Err(Unusable::Name("970007".to_owned())),
        );
        check(
            "name",
            json!("a\u{7}b"),
            Err(Unusable::Name("970007".to_owned())),
        );
        check(
            "name",
            json!("a".repeat(201)),
            Err(Unusable::Name("970007".to_owned())),
        );
        check("name", json!(5), Err(Unusable::NotTheList));
        check("bin", json!(970_007), Err(Unusable::NotTheList));
        check("code", json!(null), Err(Unusable::NotTheList));
    }

    #[test]
    fn what_is_no_list_is_not_taken() {
        assert_eq!(read(&list(rows()[..29].to_vec())), Err(Unusable::Count(29)));
        assert_eq!(
            read(&list((0..501).map(row).collect())),
            Err(Unusable::Count(501))
        );
        for body in [
            "",
            "<html>",
            "[]",
            "{\"code\":\"00\"}",
            "{\"code\":\"21\",\"data\":[]}",
        ] {
            assert_eq!(read(body.as_bytes()), Err(Unusable::NotTheList), "{body}");
        }
    }

    #[test]
    fn a_picture_elsewhere_is_left_out() {
        for logo in [
            "http://cdn.vietqr.io/img/B7.png",
            "https://evil.org/img/B7.png",
            "https://cdn.vietqr.io.evil.org/img/B7.png",
            "https://cdn.vietqr.io/img/../B7.png",
            "https://cdn.vietqr.io/img/B7.svg",
            "javascript:alert(1)",
            "",
        ] {
            let mut rows = rows();
            rows[7]["logo"] = json!(logo);
            assert_eq!(
                read(&list(rows)).expect("a list")[7].logo_url,
                None,
                "{logo}"
            );
        }
        let mut rows = rows();
        rows[7]["logo"] = json!("https://api.vietqr.io/img/B_7-a.png");
        assert!(read(&list(rows)).expect("a list")[7].logo_url.is_some());
    }
}
