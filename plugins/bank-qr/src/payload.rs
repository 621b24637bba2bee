//! Writes a transfer as the EMV text that Vietnamese banking apps scan.
//!
//! The format is NAPAS "QR Format T&C" v1.0 (09/2021). This file must know nothing of requests or
//! pictures: what it is given has been checked and folded, and it cannot fail.
//!
//! Surprising: only the amount makes a code dynamic; a memo is allowed in either kind.

/// NAPAS's application identifier.
const NAPAS: &str = "A000000727";
/// The NAPAS service which transfers to an account, rather than to a card.
const TO_ACCOUNT: &str = "QRIBFTTA";
/// ISO 4217 for Vietnamese dong, which has no decimals: the amount is plain digits.
const DONG: &str = "704";
/// Enough for the longest payload: a 19-digit account, 13 digits of amount and a full memo.
const LENGTH_MAX: usize = 150;

/// A transfer which a payload can say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PayloadFields<'a> {
    /// The six digits of the receiving bank.
    pub(crate) bin: &'a str,
    /// Up to 19 ASCII letters or digits.
    pub(crate) account_number: &'a str,
    /// Whole dong, at most 13 digits; none leaves the amount to whoever pays.
    pub(crate) amount: Option<u64>,
    /// A memo that `memo::fold` gave; an empty one is left out.
    pub(crate) memo: Option<&'a str>,
}

/// The complete payload, checksum included.
pub(crate) fn encode(transfer: &PayloadFields) -> String {
    let mut bank = String::new();
    push_field(&mut bank, "00", transfer.bin);
    push_field(&mut bank, "01", transfer.account_number);

    let mut receiver = String::new();
    push_field(&mut receiver, "00", NAPAS);
    push_field(&mut receiver, "01", &bank);
    push_field(&mut receiver, "02", TO_ACCOUNT);

    // "Allows many transactions" against "allows exactly one".
    let initiation = transfer.amount.map_or("11", |_| "12");

    let mut payload = String::with_capacity(LENGTH_MAX);
    push_field(&mut payload, "00", "01");
    push_field(&mut payload, "01", initiation);
    push_field(&mut payload, "38", &receiver);
    push_field(&mut payload, "53", DONG);
    if let Some(amount) = transfer.amount {
        push_field(&mut payload, "54", &amount.to_string());
    }
    push_field(&mut payload, "58", "VN");
    if let Some(memo) = transfer.memo.filter(|memo| !memo.is_empty()) {
        let mut purpose = String::new();
        push_field(&mut purpose, "08", memo);
        push_field(&mut payload, "62", &purpose);
    }
    // The checksum covers its own tag and length.
    payload.push_str("6304");
    let checksum = crc16(payload.as_bytes());
    payload.push_str(&format!("{checksum:04X}"));
    payload
}

/// Appends tag, two digits of length and value. Values are ASCII, so bytes are characters.
fn push_field(fields: &mut String, tag: &str, value: &str) {
    debug_assert!(
        value.is_ascii() && value.len() <= 99,
        "field {tag} cannot carry {value:?}: at most 99 ASCII characters"
    );
    fields.push_str(&format!("{tag}{:02}{value}", value.len()));
}

/// CRC-16/CCITT-FALSE. A payload is too short for a table to pay.
fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0xFFFF;
    for &byte in bytes {
        crc ^= u16::from(byte) << 8;
        for _bit in 0..8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(transfer: (&str, &str, Option<u64>, Option<&str>), expected: &str) {
        let (bin, account_number, amount, memo) = transfer;
        let transfer = PayloadFields {
            bin,
            account_number,
            amount,
            memo,
        };
        assert_eq!(encode(&transfer), expected, "{transfer:?}");
    }

    #[test]
    fn the_checksum_is_crc_16_ccitt_false() {
        assert_eq!(crc16(b""), 0xFFFF);
        assert_eq!(crc16(b"123456789"), 0x29B1);
    }

    #[test]
    fn the_checksum_agrees_with_the_format_paper() {
        // NAPAS 6.1.3 also carries a bill number, which this service never writes.
        let payload = b"00020101021238570010A0000007270127000697040301130011012345678\
            0208QRIBFTTA530370454061800005802VN62340107NPS68690819thanh toan don hang6304";
        assert_eq!(crc16(payload), 0x2E2E);
    }

    #[test]
    fn without_an_amount_a_code_is_static() {
        // The example of vietnam-qr-pay's README.
        check(
            ("970416", "257678859", None, None),
            "00020101021138530010A0000007270123000697041601092576788590208QRIBFTTA\
             53037045802VN6304AE9F",
        );
        // NAPAS 6.1.1, with the length of the account and so the checksum that its print gets wrong.
        check(
            ("970403", "0011012345678", None, None),
            "00020101021138570010A00000072701270006970403011300110123456780208QRIBFTTA\
             53037045802VN63049E6F",
        );
    }

    #[test]
    fn with_an_amount_a_code_is_dynamic() {
        // The examples of vietnam-qr-pay's README and of VietQR's API documentation.
        check(
            ("970416", "257678859", Some(10_000), Some("Chuyen tien")),
            "00020101021238530010A0000007270123000697041601092576788590208QRIBFTTA\
             53037045405100005802VN62150811Chuyen tien630453E6",
        );
        check(
            ("970416", "257678859", Some(1_000), Some("Chuyen tien")),
            "00020101021238530010A0000007270123000697041601092576788590208QRIBFTTA\
             5303704540410005802VN62150811Chuyen tien6304BBB8",
        );
        check(
            (
                "970415",
                "113366668888",
                Some(79_000),
                Some("Ung Ho Quy Vac Xin"),
            ),
            "00020101021238560010A0000007270126000697041501121133666688880208QRIBFTTA\
             53037045405790005802VN62220818Ung Ho Quy Vac Xin63043ACF",
        );
    }

    #[test]
    fn a_memo_does_not_make_a_code_dynamic() {
        check(
            ("970436", "0123456789", None, Some("Dang thi Huong")),
            "00020101021138540010A00000072701240006970436011001234567890208QRIBFTTA\
             53037045802VN62180814Dang thi Huong630466B4",
        );
    }

    #[test]
    fn an_empty_memo_is_left_out() {
        check(
            ("970416", "257678859", None, Some("")),
            "00020101021138530010A0000007270123000697041601092576788590208QRIBFTTA\
             53037045802VN6304AE9F",
        );
    }

    #[test]
    fn the_checksum_keeps_its_leading_zeroes() {
        check(
            ("970423", "0000000004", None, None),
            "00020101021138540010A00000072701240006970423011000000000040208QRIBFTTA\
             53037045802VN630407AD",
        );
    }

    #[test]
    fn the_longest_transfer_fits() {
        check(
            (
                "970436",
                "0000000000000000001",
                Some(9_999_999_999_999),
                Some("Dang thi Huong chuyen kho"),
            ),
            "00020101021238630010A00000072701330006970436011900000000000000000010208QRIBFTTA\
             5303704541399999999999995802VN62290825Dang thi Huong chuyen kho6304A7FF",
        );
    }
}
