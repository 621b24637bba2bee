//! Bank QR: the directory, and codes whose payload is read from the picture again.

mod emv;
mod refresh;
mod scanner;

use std::collections::HashSet;

use regex_lite::Regex;
use serde_json::{Value, json};
use unicode_normalization::is_nfc;

use crate::support::{Service, members};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const GENERATE: &str = "/api/v1/tools/bank-qr";

async fn directory() -> Vec<Value> {
    let answer = Service::shared().get(BANKS).await;
    assert_eq!(answer.status, 200);
    answer.json()["data"]["banks"]
        .as_array()
        .expect("banks")
        .clone()
}

/// Generates a code and gives back the answer's `data`, after scanning its picture: whatever is asked for, the picture says
/// what the payload says, in the size that was asked for.
async fn generated(request: &Value) -> Value {
    let answer = Service::shared().post(GENERATE, request).await;
    let body = answer.json();
    assert_eq!(answer.status, 200, "{request}: {body}");
    let data = body["data"].clone();
    assert_eq!(members(&data), ["bank", "transfer", "qr", "warnings"]);
    assert_eq!(
        members(&data["bank"]),
        ["bin", "code", "shortName", "name", "transferSupported"]
    );
    assert_eq!(
        members(&data["transfer"]),
        ["accountNumber", "amount", "memo"]
    );
    assert_eq!(members(&data["qr"]), ["type", "payload", "image"]);
    let (payload, image) = (text(&data["qr"]["payload"]), &data["qr"]["image"]);
    assert_eq!(members(image), ["format", "mimeType", "dataUrl", "size"]);
    assert_eq!(
        (&image["format"], &image["mimeType"]),
        (&json!("svg"), &json!("image/svg+xml"))
    );
    let size = request["imageSize"].as_u64().unwrap_or(320);
    assert_eq!(image["size"], size, "{request}");
    assert_eq!(
        scanner::scan(text(&image["dataUrl"]), size),
        payload,
        "{request}"
    );
    data
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no string"))
}

#[tokio::test]
async fn the_directory_lists_65_banks_and_says_so() {
    let data = Service::shared().get(BANKS).await.json()["data"].clone();
    assert_eq!(members(&data), ["banks", "count", "updatedAt"]);
    assert_eq!(data["banks"].as_array().map(Vec::len), Some(65));
    assert_eq!(data["count"], 65);
    assert_eq!(
        data["updatedAt"], "2026-07-14T07:24:47Z",
        "the snapshot's time, not the request's"
    );
    let supported = data["banks"]
        .as_array()
        .expect("banks")
        .iter()
        .filter(|bank| bank["transferSupported"] == true);
    assert_eq!(supported.count(), 41);
}

#[tokio::test]
async fn a_bank_has_exactly_the_published_fields() {
    let banks = directory().await;
    let find = |bin: &str| {
        banks
            .iter()
            .find(|bank| bank["bin"] == bin)
            .unwrap_or_else(|| panic!("no bank {bin}"))
    };
    let expected = json!({
        "bin": "970436", "code": "VCB", "shortName": "Vietcombank", "name": "Ngân hàng TMCP Ngoại Thương Việt Nam",
        "transferSupported": true, "logoUrl": "https://cdn.vietqr.io/img/VCB.png",
    });
    assert_eq!(find("970436"), &expected);
    let without_logo = json!({
        "bin": "971025", "code": "MOMO", "shortName": "MoMo", "name": "CTCP Dịch Vụ Di Động Trực Tuyến",
        "transferSupported": true,
    });
    assert_eq!(find("971025"), &without_logo);
    for bank in &banks {
        let mut fields = members(bank);
        fields.retain(|name| *name != "logoUrl");
        assert_eq!(
            fields,
            ["bin", "code", "shortName", "name", "transferSupported"]
        );
        assert!(bank["transferSupported"].is_boolean(), "{bank}");
    }
}

#[tokio::test]
async fn every_bank_is_well_formed() {
    let six_digits = Regex::new("^[0-9]{6}$").unwrap();
    let logo = Regex::new("^https://(cdn|api)\\.vietqr\\.io/img/[A-Za-z0-9_-]+\\.png$").unwrap();
    for bank in directory().await {
        assert!(six_digits.is_match(text(&bank["bin"])), "{bank}");
        for field in ["code", "shortName", "name"] {
            let name = text(&bank[field]);
            assert!(
                is_nfc(name) && name.trim() == name && !name.is_empty(),
                "{bank}"
            );
        }
        assert!(
            bank["logoUrl"]
                .as_str()
                .is_none_or(|url| logo.is_match(url)),
            "{bank}"
        );
    }
}

#[tokio::test]
async fn no_key_of_the_directory_means_two_banks() {
    let mut seen = HashSet::new();
    for bank in directory().await {
        let keys: HashSet<String> = ["bin", "code", "shortName"]
            .iter()
            .map(|field| text(&bank[*field]).to_lowercase())
            .collect();
        for key in keys {
            assert!(seen.insert(key.clone()), "{key} names two banks");
        }
    }
}

#[tokio::test]
async fn former_names_are_never_published() {
    for bank in directory().await {
        for field in ["code", "shortName"] {
            let name = text(&bank[field]).to_lowercase();
            assert!(
                !["oceanbank", "dob", "dongabank", "vietcapitalbank"].contains(&name.as_str()),
                "{bank}"
            );
        }
        assert_eq!(bank.get("aliases"), None);
    }
}

#[tokio::test]
async fn every_key_of_the_directory_finds_its_bank() {
    for bank in directory().await {
        let mut expected = bank.clone();
        expected
            .as_object_mut()
            .expect("an object")
            .shift_remove("logoUrl");
        for field in ["bin", "code", "shortName"] {
            let request = json!({ "bank": bank[field], "accountNumber": "0123456789" });
            let answer = Service::shared().post(GENERATE, &request).await.json();
            assert_eq!(answer["data"]["bank"], expected, "{}", bank[field]);
        }
    }
}

#[tokio::test]
async fn a_bank_is_found_in_any_case_and_by_its_former_names() {
    check_bank("970436", ("970436", "VCB", "Vietcombank")).await;
    check_bank("vcb", ("970436", "VCB", "Vietcombank")).await;
    check_bank("vIETCOMBANK", ("970436", "VCB", "Vietcombank")).await;
    check_bank("ibk - hn", ("970455", "IBK - HN", "IBKHN")).await;
    check_bank("nhb hn", ("801011", "NHB HN", "Nonghyup")).await;
    check_bank("Oceanbank", ("970414", "MBV", "MBV")).await;
    check_bank("DOB", ("970406", "VIKKI", "VikkiBank")).await;
    check_bank("dongabank", ("970406", "VIKKI", "VikkiBank")).await;
    check_bank("VIETCAPITALBANK", ("970454", "VCCB", "BVBank")).await;
    check_bank("BVB", ("970438", "BVB", "BaoVietBank")).await;
    check_bank("BVBank", ("970454", "VCCB", "BVBank")).await;
}

async fn check_bank(key: &str, expected: (&str, &str, &str)) {
    let data = generated(&json!({ "bank": key, "accountNumber": "0123456789" })).await;
    let bank = &data["bank"];
    assert_eq!(
        (
            text(&bank["bin"]),
            text(&bank["code"]),
            text(&bank["shortName"])
        ),
        expected,
        "{key}"
    );
    let encoded = emv::fields(text(&data["qr"]["payload"]))
        .into_iter()
        .find(|(path, _)| path == "38.01.00");
    assert_eq!(
        encoded,
        Some(("38.01.00".to_owned(), expected.0.to_owned())),
        "{key}"
    );
}

#[tokio::test]
async fn a_bank_that_is_not_in_the_directory_is_told_as_the_field_bank() {
    for key in [
        "XYZ",
        "97043",
        "9704360",
        " VCB",
        "VCB ",
        "IBK-HN",
        "ＶＣＢ",
        "\u{212A}Bank",
        "Ngân hàng TMCP Á Châu",
    ] {
        let answer = Service::shared()
            .post(
                GENERATE,
                &json!({ "bank": key, "accountNumber": "0123456789" }),
            )
            .await;
        assert_eq!(
            answer.refusal(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{key}"
        );
        let data = answer.json()["data"].clone();
        assert_eq!(
            (members(&data).len(), &data["field"]),
            (2, &json!("bank")),
            "{key}"
        );
    }
}

/// The whole payload of a transfer, and the kind of code.
async fn check_payload(request: Value, kind: &str, expected: &str) {
    let data = generated(&request).await;
    assert_eq!(
        (text(&data["qr"]["type"]), text(&data["qr"]["payload"])),
        (kind, expected),
        "{request}"
    );
}

#[tokio::test]
async fn without_an_amount_a_code_is_static() {
    // The example of vietnam-qr-pay's README.
    check_payload(
        json!({ "bank": "ACB", "accountNumber": "257678859" }),
        "static",
        "00020101021138530010A0000007270123000697041601092576788590208QRIBFTTA53037045802VN6304AE9F",
    )
    .await;
    check_payload(
        json!({ "bank": "BIDV", "accountNumber": "31410001234567", "amount": null }),
        "static",
        "00020101021138580010A000000727012800069704180114314100012345670208QRIBFTTA53037045802VN6304C6F9",
    )
    .await;
    check_payload(
        json!({ "bank": "VCB", "accountNumber": "0011001234567", "memo": "Tien ca phe" }),
        "static",
        "00020101021138570010A00000072701270006970436011300110012345670208QRIBFTTA53037045802VN\
         62150811Tien ca phe63041545",
    )
    .await;
}

#[tokio::test]
async fn with_an_amount_a_code_is_dynamic() {
    // The examples of vietnam-qr-pay's README and of VietQR's API documentation.
    check_payload(
        json!({ "bank": "ACB", "accountNumber": "257678859", "amount": 10000, "memo": "Chuyen tien" }),
        "dynamic",
        "00020101021238530010A0000007270123000697041601092576788590208QRIBFTTA53037045405100005802VN\
         62150811Chuyen tien630453E6",
    )
    .await;
    check_payload(
        json!({ "bank": "VietinBank", "accountNumber": "113366668888", "amount": 79000, "memo": "Ung Ho Quy Vac Xin" }),
        "dynamic",
        "00020101021238560010A0000007270126000697041501121133666688880208QRIBFTTA53037045405790005802VN\
         62220818Ung Ho Quy Vac Xin63043ACF",
    )
    .await;
    check_payload(
        json!({ "bank": "801011", "accountNumber": "000000", "amount": 1 }),
        "dynamic",
        "00020101021238500010A0000007270120000680101101060000000208QRIBFTTA5303704540115802VN6304475C",
    )
    .await;
}

#[tokio::test]
async fn leading_zeroes_are_kept_in_the_account_and_in_the_checksum() {
    check_payload(
        json!({ "bank": "TPB", "accountNumber": "0000000004" }),
        "static",
        "00020101021138540010A00000072701240006970423011000000000040208QRIBFTTA53037045802VN630407AD",
    )
    .await;
}

#[tokio::test]
async fn a_payload_has_the_fields_of_napas_in_their_order() {
    let request = json!({ "bank": "VCB", "accountNumber": "0011001234567", "amount": 150_000, "memo": "Tiền cà phê" });
    let data = generated(&request).await;
    let expected = [
        ("00", "01"),
        ("01", "12"),
        ("38.00", "A000000727"),
        ("38.01.00", "970436"),
        ("38.01.01", "0011001234567"),
        ("38.02", "QRIBFTTA"),
        ("53", "704"),
        ("54", "150000"),
        ("58", "VN"),
        ("62.08", "Tien ca phe"),
    ];
    let expected = expected.map(|(path, value)| (path.to_owned(), value.to_owned()));
    assert_eq!(emv::fields(text(&data["qr"]["payload"])), expected);
    let transfer =
        json!({ "accountNumber": "0011001234567", "amount": 150_000, "memo": "Tien ca phe" });
    assert_eq!(data["transfer"], transfer);
}

#[tokio::test]
async fn a_code_scans_in_every_size() {
    let shortest = json!({ "bank": "VCB", "accountNumber": "123456" });
    let longest = json!({
        "bank": "VCB",
        "accountNumber": "1234567890123456789",
        "amount": 9_999_999_999_999_u64,
        "memo": "Dang thi Huong chuyen kho",
    });
    let others = ["CAKE", "MoMo", "IBK - HCM", "VTLMONEY", "999888", "Citibank"].map(
        |bank| json!({ "bank": bank, "accountNumber": "9876543210987", "amount": 1_234_567, "memo": "HD 2026/11" }),
    );
    for request in [shortest, longest].into_iter().chain(others) {
        for size in [160, 162, 166, 213, 320, 500, 1024] {
            let mut request = request.clone();
            request["imageSize"] = json!(size);
            generated(&request).await;
        }
    }
}

#[tokio::test]
async fn the_shortest_and_the_longest_payload() {
    check_payload(
        json!({ "bank": "VCB", "accountNumber": "123456" }),
        "static",
        "00020101021138500010A0000007270120000697043601061234560208QRIBFTTA53037045802VN630416F1",
    )
    .await;
    check_payload(
        json!({
            "bank": "VCB",
            "accountNumber": "1234567890123456789",
            "amount": 9_999_999_999_999_u64,
            "memo": "Dang thi Huong chuyen kho",
        }),
        "dynamic",
        "00020101021238630010A00000072701330006970436011912345678901234567890208QRIBFTTA\
         5303704541399999999999995802VN62290825Dang thi Huong chuyen kho630414BD",
    )
    .await;
}

#[tokio::test]
async fn a_memo_is_folded_and_the_caller_is_told() {
    check_memo("Thanh toan HD 1024", "Thanh toan HD 1024").await;
    check_memo("A.B_C/D,E:F(G)H+I&J#K-L", "A.B_C/D,E:F(G)H+I&J#K-L").await;
    // Composed, decomposed, and composed letters with loose marks: Đặng thị Hường.
    check_memo(
        "\u{110}\u{1EB7}ng th\u{1ECB} H\u{1B0}\u{1EDD}ng",
        "Dang thi Huong",
    )
    .await;
    check_memo(
        "\u{110}a\u{323}\u{306}ng thi\u{323} Hu\u{31B}o\u{31B}\u{300}ng",
        "Dang thi Huong",
    )
    .await;
    check_memo(
        "\u{110}\u{1EA1}\u{306}ng th\u{1ECB} H\u{1B0}\u{1A1}\u{300}ng",
        "Dang thi Huong",
    )
    .await;
    check_memo("đ Đ ð Ð", "d D d D").await;
    check_memo("a@b", "a b").await;
    check_memo("mutluluk.©Bamszlk", "mutluluk. Bamszlk").await;
    check_memo("Straße 50%", "Stra e 50").await;
    check_memo("cảm ơn 🙏🏽 nhé", "cam on nhe").await;
    check_memo("a  b \t\r\n c", "a b c").await;
    check_memo(" a ", "a").await;
    check_memo("1234567890123456789012345", "1234567890123456789012345").await;
    check_memo("12345678901234567890123456", "1234567890123456789012345").await;
    check_memo("123456789012345678901234 67", "123456789012345678901234").await;
    check_memo(
        "Đặng thị Hường chuyển khoản tiền nhà",
        "Dang thi Huong chuyen kho",
    )
    .await;
    check_memo("", "").await;
    check_memo("   ", "").await;
    check_memo("🙏", "").await;
    check_memo("谢谢 한글", "").await;
}

/// What a memo is encoded as. The warning is there exactly where that is not what was written.
async fn check_memo(memo: &str, expected: &str) {
    let data =
        generated(&json!({ "bank": "VCB", "accountNumber": "0123456789", "memo": memo })).await;
    assert_eq!(data["transfer"]["memo"], expected, "{memo:?}");
    let fields = emv::fields(text(&data["qr"]["payload"]));
    let purpose = fields
        .iter()
        .find(|(path, _)| path.starts_with("62"))
        .map(|(path, value)| (&**path, &**value));
    assert_eq!(
        purpose,
        (!expected.is_empty()).then_some(("62.08", expected)),
        "{memo:?}"
    );
    let warned: &[&str] = if memo == expected {
        &[]
    } else {
        &["MEMO_NORMALIZED"]
    };
    assert_eq!(warnings(&data), warned, "{memo:?}");
    let again =
        generated(&json!({ "bank": "VCB", "accountNumber": "0123456789", "memo": expected })).await;
    assert_eq!(
        again["qr"]["payload"], data["qr"]["payload"],
        "folding {memo:?} twice"
    );
}

fn warnings(data: &Value) -> Vec<&str> {
    let warnings = data["warnings"].as_array().expect("always an array");
    for warning in warnings {
        assert_eq!(members(warning), ["code", "message"]);
        assert!(!text(&warning["message"]).is_empty());
    }
    warnings
        .iter()
        .map(|warning| text(&warning["code"]))
        .collect()
}

#[tokio::test]
async fn a_warning_is_a_success() {
    check_warnings(
        json!({ "bank": "VCB", "accountNumber": "0123456789", "memo": "a" }),
        &[],
    )
    .await;
    check_warnings(json!({ "bank": "VCB", "accountNumber": "0123456789" }), &[]).await;
    check_warnings(
        json!({ "bank": "CIMB", "accountNumber": "0123456789" }),
        &["LIMITED_TRANSFER_SUPPORT"],
    )
    .await;
    let both = json!({ "bank": "422589", "accountNumber": "0123456789", "memo": "á" });
    check_warnings(both, &["MEMO_NORMALIZED", "LIMITED_TRANSFER_SUPPORT"]).await;
}

async fn check_warnings(request: Value, expected: &[&str]) {
    assert_eq!(warnings(&generated(&request).await), expected, "{request}");
}

#[tokio::test]
async fn the_image_is_320_pixels_where_none_are_asked_for() {
    let request =
        |size: Value| json!({ "bank": "VCB", "accountNumber": "0123456789", "imageSize": size });
    for (size, expected) in [(json!(null), 320), (json!(160), 160), (json!(1024), 1024)] {
        let data = generated(&request(size)).await;
        assert_eq!(data["qr"]["image"]["size"], expected);
    }
}
