//! The characters of a port-43 answer, which no protocol names: UTF-8 where it is that, else what its registry's
//! country wrote before UTF-8.

use encoding_rs::{
    BIG5, EUC_KR, Encoding, GB18030, ISO_2022_JP, ISO_8859_2, KOI8_R, SHIFT_JIS, WINDOWS_874,
    WINDOWS_1252, WINDOWS_1254,
};

/// Encodings by top-level domain; the others are of Western Europe.
const OF_COUNTRIES: &[(&str, &Encoding)] = &[
    ("cn", GB18030),
    ("cz", ISO_8859_2),
    ("hk", BIG5),
    ("hr", ISO_8859_2),
    ("hu", ISO_8859_2),
    ("jp", SHIFT_JIS),
    ("kr", EUC_KR),
    ("mo", BIG5),
    ("pl", ISO_8859_2),
    ("ro", ISO_8859_2),
    ("ru", KOI8_R),
    ("si", ISO_8859_2),
    ("sk", ISO_8859_2),
    ("su", KOI8_R),
    ("th", WINDOWS_874),
    ("tr", WINDOWS_1254),
    ("tw", BIG5),
    ("ua", KOI8_R),
];

/// The text of an answer about a domain.
pub(super) fn decode(bytes: &[u8], domain: &str) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    // Escapes shift the character set, and all of its bytes are ASCII.
    let shifts = bytes.windows(2).any(|two| two == b"\x1b$");
    if shifts && bytes.is_ascii() {
        return ISO_2022_JP
            .decode_without_bom_handling(bytes)
            .0
            .into_owned();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let top = domain.rsplit('.').next().unwrap_or_default();
            let encoding = OF_COUNTRIES
                .iter()
                .find(|(country, _)| *country == top)
                .map_or(WINDOWS_1252, |(_, known)| *known);
            encoding.decode_without_bom_handling(bytes).0.into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_in_the_characters_of_its_country() {
        for (text, encoding, domain) in [
            ("등록인 : 예시", EUC_KR, "example.kr"),
            ("注册者: 例子", GB18030, "example.cn"),
            ("登録者 例", ISO_2022_JP, "example.jp"),
            ("Držitel: Příklad", ISO_8859_2, "example.cz"),
            ("titular: Açúcar", WINDOWS_1252, "example.com.br"),
        ] {
            let (bytes, _, lossy) = encoding.encode(text);
            assert!(!lossy);
            assert_eq!(decode(&bytes, domain), text);
            assert_eq!(decode(text.as_bytes(), domain), text);
        }
    }
}
