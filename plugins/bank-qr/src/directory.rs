//! The bank directory: what is known of a bank, and which bank a caller means.
//!
//! It must know nothing of payloads, JSON or requests; the facts themselves are in `banks`, or came by `refresh`.

use crate::banks::{BANKS, UPDATED_AT};
#[cfg(any(target_family = "wasm", test))]
use crate::upstream::Listed;

/// The banks as they are at one time.
#[derive(Debug)]
pub(crate) struct BankList {
    /// Every bank, in directory order.
    pub(crate) banks: &'static [BankRecord],
    /// Since when they are these.
    pub(crate) updated_at: &'static str,
}

/// The directory that is built in.
pub(crate) static SNAPSHOT: BankList = BankList {
    banks: BANKS,
    updated_at: UPDATED_AT,
};

/// One bank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BankRecord {
    /// The six digits that route a transfer; the only key which goes into a payload.
    pub(crate) bin: &'static str,
    /// VietQR's code. It may contain spaces (`IBK - HN`).
    pub(crate) code: &'static str,
    /// The name the bank is commonly called by.
    pub(crate) short_name: &'static str,
    /// The Vietnamese name, in Unicode NFC.
    pub(crate) name: &'static str,
    /// Whether the bank is known to receive QR transfers. Advice to the caller, never a refusal.
    pub(crate) transfer_supported: bool,
    /// A public logo, for banks which have one.
    pub(crate) logo_url: Option<&'static str>,
    /// Former codes and short names: understood when asked for, never published.
    pub(crate) aliases: &'static [&'static str],
}

impl BankList {
    /// Of these banks, for as long as the process lives. Each keeps the former names that the snapshot knows, and the
    /// snapshot's own where they are others now.
    #[cfg(any(target_family = "wasm", test))]
    pub(crate) fn of(banks: &[Listed], updated_at: &str) -> Self {
        let banks: Vec<BankRecord> = banks.iter().map(adopt).collect();
        Self {
            banks: banks.leak(),
            updated_at: kept(updated_at),
        }
    }

    /// The bank whose bin, code, short name or alias is `key`, whatever the case of its letters.
    ///
    /// All keys are ASCII, so ASCII case is enough, and a look-alike such as the Kelvin sign finds
    /// nothing. A current name wins over another bank's former one.
    pub(crate) fn find(&self, key: &str) -> Option<&'static BankRecord> {
        let named = |name: &&str| name.eq_ignore_ascii_case(key);
        self.banks
            .iter()
            .find(|bank| [bank.bin, bank.code, bank.short_name].iter().any(named))
            .or_else(|| {
                self.banks
                    .iter()
                    .find(|bank| bank.aliases.iter().any(named))
            })
    }
}

#[cfg(any(target_family = "wasm", test))]
fn adopt(listed: &Listed) -> BankRecord {
    let (code, short_name) = (kept(&listed.code), kept(&listed.short_name));
    let known = BANKS.iter().find(|bank| bank.bin == listed.bin);
    let mut aliases: Vec<&'static str> =
        known.map(|bank| bank.aliases.to_vec()).unwrap_or_default();
    aliases.extend(
        known
            .into_iter()
            .flat_map(|bank| [bank.code, bank.short_name]),
    );
    aliases.retain(|alias| {
        ![code, short_name]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(alias))
    });
    BankRecord {
        bin: kept(&listed.bin),
        code,
        short_name,
        name: kept(&listed.name),
        transfer_supported: listed.transfer_supported,
        logo_url: listed.logo_url.as_deref().map(kept),
        aliases: aliases.leak(),
    }
}

#[cfg(any(target_family = "wasm", test))]
fn kept(text: &str) -> &'static str {
    text.to_owned().leak()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use unicode_normalization::is_nfc;

    use super::*;

    #[track_caller]
    fn check(key: &str, expected_bin: Option<&str>) {
        assert_eq!(
            SNAPSHOT.find(key).map(|bank| bank.bin),
            expected_bin,
            "{key:?}"
        );
    }

    #[test]
    fn a_bank_is_found_by_bin_code_or_short_name() {
        check("970436", Some("970436"));
        check("VCB", Some("970436"));
        check("Vietcombank", Some("970436"));
        check("IBK - HN", Some("970455"));
        check("422589", Some("422589"));
    }

    #[test]
    fn letter_case_does_not_matter() {
        check("vcb", Some("970436"));
        check("vIETCOMBANK", Some("970436"));
        check("nhb hn", Some("801011"));
        check("UBANK", Some("546035"));
    }

    #[test]
    fn a_former_name_finds_the_renamed_bank() {
        check("Oceanbank", Some("970414"));
        check("dob", Some("970406"));
        check("DONGABANK", Some("970406"));
        check("vietcapitalbank", Some("970454"));
    }

    #[test]
    fn bvb_is_bao_viet_and_not_ban_viet() {
        check("BVB", Some("970438"));
        check("BVBank", Some("970454"));
    }

    #[test]
    fn a_refreshed_bank_is_found_by_the_names_that_the_snapshot_knows() {
        let mut banks: Vec<Listed> = SNAPSHOT.banks.iter().map(crate::upstream::listed).collect();
        let renamed = banks
            .iter_mut()
            .find(|bank| bank.bin == "970406")
            .expect("a bank");
        (renamed.code, renamed.short_name) = ("NEW".to_owned(), "Newest".to_owned());
        let directory = BankList::of(&banks, "2026-11-21T00:00:00Z");
        let bin = |key: &str| directory.find(key).map(|bank| bank.bin);
        for key in ["new", "Newest", "VIKKI", "VikkiBank", "DOB", "DongABank"] {
            assert_eq!(bin(key), Some("970406"), "{key}");
        }
        for bank in SNAPSHOT.banks {
            assert_eq!(bin(bank.bin), Some(bank.bin));
        }
        assert_eq!(
            (directory.find("VCCB"), directory.updated_at),
            (
                SNAPSHOT
                    .find("VCCB")
                    .filter(|bank| bank.aliases == ["VietCapitalBank"]),
                "2026-11-21T00:00:00Z"
            )
        );
    }

    #[test]
    fn anything_else_finds_nothing() {
        check("", None);
        check("97043", None);
        check("9704360", None);
        check(" VCB", None);
        check("VCB ", None);
        check("IBK-HN", None);
        check("\u{FF36}\u{FF23}\u{FF22}", None);
        check("\u{212A}Bank", None);
        check("Ngân hàng TMCP Á Châu", None);
    }

    #[test]
    fn a_bank_carries_every_field_of_its_row() {
        let expected = BankRecord {
            bin: "970454",
            code: "VCCB",
            short_name: "BVBank",
            name: "Ngân hàng TMCP Bản Việt",
            transfer_supported: true,
            logo_url: Some("https://cdn.vietqr.io/img/VCCB.png"),
            aliases: &["VietCapitalBank"],
        };
        assert_eq!(SNAPSHOT.find("VCCB"), Some(&expected));
    }

    #[test]
    fn the_snapshot_is_whole() {
        assert_eq!(SNAPSHOT.banks.len(), 65);
        assert_eq!(
            SNAPSHOT
                .banks
                .iter()
                .filter(|bank| bank.transfer_supported)
                .count(),
            41
        );
        assert_eq!(
            SNAPSHOT
                .banks
                .iter()
                .filter(|bank| bank.logo_url.is_none())
                .count(),
            2
        );
        assert_eq!(
            SNAPSHOT.banks.first().map(|bank| bank.short_name),
            Some("VietinBank")
        );
        assert_eq!(
            SNAPSHOT.banks.last().map(|bank| bank.short_name),
            Some("MoMo")
        );
    }

    #[test]
    fn no_key_means_two_banks() {
        let mut owners = BTreeMap::new();
        for bank in SNAPSHOT.banks {
            let keys = [bank.bin, bank.code, bank.short_name];
            for key in keys.iter().chain(bank.aliases) {
                let owner = *owners.entry(key.to_ascii_lowercase()).or_insert(bank.bin);
                assert_eq!(owner, bank.bin, "{key:?} names two banks");
            }
        }
    }

    #[test]
    fn every_row_is_well_formed() {
        for bank in SNAPSHOT.banks {
            assert_eq!(bank.bin.len(), 6, "{bank:?}");
            assert!(
                bank.bin.bytes().all(|byte| byte.is_ascii_digit()),
                "{bank:?}"
            );
            for key in [bank.code, bank.short_name].iter().chain(bank.aliases) {
                assert!(key.is_ascii() && (2..=64).contains(&key.len()), "{bank:?}");
            }
            assert!(!bank.name.is_empty() && is_nfc(bank.name), "{bank:?}");
            let logo = bank
                .logo_url
                .unwrap_or("https://cdn.vietqr.io/img/none.png");
            assert!(logo.starts_with("https://cdn.vietqr.io/img/"), "{bank:?}");
        }
    }
}
