//! Reads an EMV payload: tag, two digits of length, value; a checksum over all that stands before it.

/// Tags whose value is a list of fields.
const TEMPLATES: [&str; 3] = ["38", "38.01", "62"];

/// Every field by its path, such as `38.01.00`, in the payload's order. The checksum must be right and stand last.
pub(crate) fn fields(payload: &str) -> Vec<(String, String)> {
    assert!(payload.is_ascii(), "{payload}");
    let mut found = Vec::new();
    read(payload, "", &mut found);
    let (before, written) = payload.split_at(payload.len() - 4);
    let last = found.pop().expect("a payload has fields");
    assert_eq!(last, ("63".to_owned(), written.to_owned()), "{payload}");
    assert_eq!(
        written,
        format!("{:04X}", checksum(before.as_bytes())),
        "{payload}"
    );
    found
}

fn read(text: &str, above: &str, found: &mut Vec<(String, String)>) {
    let mut rest = text;
    while !rest.is_empty() {
        let (tag, length) = (&rest[..2], &rest[2..4]);
        let end = 4 + length
            .parse::<usize>()
            .unwrap_or_else(|error| panic!("{length} in {text}: {error}"));
        let (value, path) = (&rest[4..end], format!("{above}{tag}"));
        if TEMPLATES.contains(&path.as_str()) {
            read(value, &format!("{path}."), found);
        } else {
            found.push((path, value.to_owned()));
        }
        rest = &rest[end..];
    }
}

/// CRC-16/CCITT-FALSE, by the division that defines it: the message, then sixteen zero bits.
fn checksum(message: &[u8]) -> u32 {
    let bits = message
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| u32::from(byte >> bit & 1)));
    let mut remainder: u32 = 0x84CF;
    for bit in bits.chain([0; 16]) {
        remainder = remainder << 1 | bit;
        if remainder & 0x1_0000 != 0 {
            remainder ^= 0x1_1021;
        }
    }
    remainder
}

#[test]
fn the_checksum_has_the_catalogues_check_value() {
    assert_eq!(checksum(b"123456789"), 0x29B1);
}
