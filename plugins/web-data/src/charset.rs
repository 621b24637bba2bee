//! The characters of a page, from its bytes.
//!
//! It must know nothing of markup beyond where a page declares its encoding. The order is that of browsers: a byte order
//! mark, the header, the declaration in the first bytes; without any of them UTF-8 where the bytes are UTF-8, else what a
//! detector makes of the bytes. Where browsers would show rubbish the bytes win: UTF-8 that is called something else, and
//! something else that is called UTF-8.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use switchbay_sdk::http::media_parameter;

/// Where browsers look for a declaration.
const DECLARATION_BYTES: usize = 1024;
/// Bytes that the detector is shown.
const DETECTED_BYTES: usize = 64 * 1024;

/// Decodes a page. What is no character becomes U+FFFD.
pub(crate) fn decode<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0;
    }
    let declared = || declared(&bytes[..bytes.len().min(DECLARATION_BYTES)]);
    let encoding = content_type.and_then(of_header).or_else(declared);
    match encoding {
        Some(encoding) if encoding != UTF_8 => match std::str::from_utf8(bytes) {
            // Letters of an alphabet by chance make no UTF-8.
            Ok(text) if encoding.is_single_byte() => Cow::Borrowed(text),
            Ok(_) | Err(_) => encoding.decode_without_bom_handling(bytes).0,
        },
        Some(_) | None => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(broken)
                if is_cut(bytes, &broken) || encoding.is_some() && is_mostly_utf8(bytes) =>
            {
                String::from_utf8_lossy(bytes)
            }
            Err(_) => detected(bytes).decode_without_bom_handling(bytes).0,
        },
    }
}

/// Whether more of what is not ASCII is UTF-8 than is not: a page of it with some bytes broken.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut characters, mut broken) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        characters += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    characters >= broken
}

/// Whether bytes are UTF-8 but for a character that was cut at their end.
fn is_cut(bytes: &[u8], broken: &std::str::Utf8Error) -> bool {
    broken.error_len().is_none() && broken.valid_up_to() + 4 > bytes.len()
}

fn of_header(content_type: &str) -> Option<&'static Encoding> {
    let label = media_parameter(content_type, "charset")?;
    Encoding::for_label(label.as_bytes())
}

/// The first `charset=` or XML `encoding=` of the page's first bytes.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let head: Vec<u8> = head.to_ascii_lowercase();
    let name = |word: &[u8]| {
        let at = memchr::memmem::find(&head, word)? + word.len();
        let rest = head[at..]
            .trim_ascii_start()
            .strip_prefix(b"=")?
            .trim_ascii_start();
        let rest = rest
            .strip_prefix(b"\"")
            .or_else(|| rest.strip_prefix(b"'"))
            .unwrap_or(rest);
        let end = rest
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && !b"-_:".contains(byte));
        Encoding::for_label(&rest[..end.unwrap_or(rest.len())])
    };
    let encoding = if head.starts_with(b"<?xml") {
        name(b"encoding").or_else(|| name(b"charset"))
    } else {
        name(b"charset")
    };
    // What is read as ASCII cannot be UTF-16: browsers take such a page as UTF-8.
    encoding.map(|encoding| {
        if encoding == UTF_16LE || encoding == UTF_16BE {
            UTF_8
        } else {
            encoding
        }
    })
}

fn detected(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[..bytes.len().min(DETECTED_BYTES)], true);
    detector.guess(None, Utf8Detection::Deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], content_type: Option<&str>, expected: &str) {
        assert_eq!(decode(bytes, content_type), expected);
    }

    #[test]
    fn the_encoding_is_told_as_browsers_tell_it() {
        check(
            b"\xef\xbb\xbfcaf\xc3\xa9",
            Some("text/html; charset=iso-8859-1"),
            "café",
        );
        check(b"\xff\xfeh\0i\0", None, "hi");
        check(
            b"caf\xe9 \x96 th\xe9",
            Some("text/html; charset=ISO-8859-1"),
            "café – thé",
        );
        check(
            b"<meta charset=windows-1251>\xcf\xf0\xe8",
            None,
            "<meta charset=windows-1251>При",
        );
        check(
            b"<meta charset=utf-16>caf\xc3\xa9",
            None,
            "<meta charset=utf-16>café",
        );
        check(
            b"<?xml version='1.0' encoding='koi8-r'?>\xf0",
            None,
            "<?xml version='1.0' encoding='koi8-r'?>П",
        );
        check(
            b"<meta charset=windows-1251>\xc3\xa9",
            Some("text/html; charset=\"utf-8\""),
            "<meta charset=windows-1251>é",
        );
        check(b"caf\xc3\xa9", None, "café");
        check(b"caf\xc3", None, "caf\u{fffd}");
    }

    #[test]
    fn an_encoding_that_nothing_declares_is_detected() {
        let (japanese, _, _) = encoding_rs::SHIFT_JIS
            .encode("これは日本語の文章です。文字コードは宣言されていません。");
        check(
            &japanese,
            None,
            "これは日本語の文章です。文字コードは宣言されていません。",
        );
        let (russian, _, _) = encoding_rs::WINDOWS_1251
            .encode("Это предложение написано по-русски и ничего не объявляет");
        check(
            &russian,
            Some("text/html"),
            "Это предложение написано по-русски и ничего не объявляет",
        );
    }

    #[test]
    fn a_wrong_declaration_gives_way_to_the_bytes() {
        check(
            "déjà vu".as_bytes(),
            Some("text/html; charset=iso-8859-1"),
            "déjà vu",
        );
        check(
            b"caf\xe9, d\xe9j\xe0 vu, na\xefve",
            Some("text/html; charset=utf-8"),
            "café, déjà vu, naïve",
        );
        check(
            b"d\xc3\xa9j\xc3\xa0 \xff vu",
            Some("text/html; charset=utf-8"),
            "déjà \u{fffd} vu",
        );
    }

    #[test]
    fn an_unknown_label_is_no_declaration() {
        check(
            "über".as_bytes(),
            Some("text/html; charset=nonsense"),
            "über",
        );
    }
}
