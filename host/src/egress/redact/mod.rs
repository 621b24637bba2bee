//! A secret taken out of what a server says, in the forms in which programs repeat what they were sent.
//!
//! Two kinds of forms are searched for. In the first each character stands for itself or is escaped, as in URLs, forms, JSON,
//! JavaScript and HTML, and one text may mix them. In the second the whole is written in other characters: hexadecimal, and
//! base64 wherever in a group of three it begins. What a server does otherwise (to turn it around, to encrypt it, to tell a part
//! of it, to encode it twice) is not recognised. Pure: knows neither bindings nor requests.

use std::fmt::Write as _;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem;

/// What stands in an answer instead of a secret.
const REDACTED: &[u8] = b"[secret]";
/// A shorter part of a secret is none, and would be found in every answer.
pub(super) const BYTES_MIN: usize = 8;

/// All that gives one secret away.
pub(super) struct SecretForms(Vec<SecretForm>);

/// A value, and it as other characters write it.
struct SecretForm {
    value: Vec<u8>,
    /// Which bytes a form of the first kind begins with.
    begins: [bool; 256],
    written: Vec<Vec<u8>>,
}

impl SecretForms {
    /// Of a value that is sent: all of it, what stands behind its scheme (`Bearer x`), and of `Basic` what that encodes.
    pub(super) fn of(value: &str) -> Self {
        let mut values = vec![value.as_bytes().to_vec()];
        if let Some((scheme, rest)) = value.split_once(' ') {
            values.push(rest.trim_start().as_bytes().to_vec());
            if scheme.eq_ignore_ascii_case("basic")
                && let Ok(pair) = STANDARD.decode(rest.trim())
            {
                let colon = pair.iter().position(|byte| *byte == b':');
                let word = colon.map(|colon| pair[colon + 1..].to_vec());
                values.extend([pair].into_iter().chain(word));
            }
        }
        values.retain(|value| value.len() >= BYTES_MIN);
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self(values.into_iter().map(SecretForm::new).collect())
    }

    /// Whether a text holds it.
    pub(super) fn are_in(&self, text: &[u8]) -> bool {
        self.0.iter().any(|form| {
            form.find(text, 0).is_some() || form.written.iter().any(|one| holds(text, one))
        })
    }

    /// The text without it.
    pub(super) fn redact(&self, mut text: Vec<u8>) -> Vec<u8> {
        for form in &self.0 {
            text = without(text, |text, from| form.find(text, from));
            for one in &form.written {
                let finder = memmem::Finder::new(one);
                text = without(text, |text, from| {
                    let at = from + finder.find(&text[from..])?;
                    Some(at..at + one.len())
                });
            }
        }
        text
    }
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    memmem::find(text, part).is_some()
}

fn without(text: Vec<u8>, find: impl Fn(&[u8], usize) -> Option<Range<usize>>) -> Vec<u8> {
    let Some(mut found) = find(&text, 0) else {
        return text;
    };
    let (mut kept, mut from) = (Vec::with_capacity(text.len()), 0);
    loop {
        kept.extend_from_slice(&text[from..found.start]);
        kept.extend_from_slice(REDACTED);
        from = found.end;
        match find(&text, from) {
            Some(next) => found = next,
            None => break,
        }
    }
    kept.extend_from_slice(&text[from..]);
    kept
}

impl SecretForm {
    fn new(value: Vec<u8>) -> Self {
        let mut begins = [false; 256];
        let escapes = b"%&\\".iter().chain((value[0] == b' ').then_some(&b'+'));
        escapes
            .chain(&value[..1])
            .for_each(|byte| begins[usize::from(*byte)] = true);
        let mut written = Vec::new();
        let hexadecimal = value.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String does not fail");
            text
        });
        written.push(hexadecimal.to_ascii_uppercase().into_bytes());
        written.push(hexadecimal.into_bytes());
        for (engine, before) in [STANDARD_NO_PAD, URL_SAFE_NO_PAD]
            .iter()
            .flat_map(|engine| (0..3).map(move |before| (engine, before)))
        {
            let text = engine.encode([vec![0; before], value.clone()].concat());
            // The characters at its ends hold bits of what stands beside it.
            let (first, end) = ((8 * before).div_ceil(6), 8 * (before + value.len()) / 6);
            written.push(text.as_bytes()[first..end].to_vec());
        }
        written.sort();
        written.dedup();
        Self {
            value,
            begins,
            written,
        }
    }

    /// Where the value stands next, each of its characters as it is or escaped.
    fn find(&self, text: &[u8], mut from: usize) -> Option<Range<usize>> {
        loop {
            from += text
                .get(from..)?
                .iter()
                .position(|byte| self.begins[usize::from(*byte)])?;
            if let Some(end) = self.end_at(text, from) {
                return Some(from..end);
            }
            from += 1;
        }
    }

    /// Where the value that begins here ends.
    fn end_at(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = &text[from..];
        let both = self.value.iter().zip(rest);
        let same = both.take_while(|(one, two)| one == two).count();
        let may_be_escaped = |byte: &u8| matches!(byte, b'%' | b'&' | b'\\' | b'+');
        // Nearly all that begins like it is something else.
        if same < self.value.len() && !rest.iter().take(same + 1).any(may_be_escaped) {
            return None;
        }
        // A character such as `%` may stand for itself or begin an escape, so there may be several ways on.
        let mut ways = vec![from];
        for byte in &self.value {
            let mut next: Vec<usize> = ways
                .iter()
                .flat_map(|at| spellings(text, *at, *byte))
                .collect();
            next.sort_unstable();
            next.dedup();
            if next.is_empty() {
                return None;
            }
            ways = next;
        }
        ways.last().copied()
    }
}

/// Where the spellings of a character end that stand here.
fn spellings(text: &[u8], at: usize, byte: u8) -> impl Iterator<Item = usize> {
    let rest = text.get(at..).unwrap_or_default();
    let literal =
        (rest.first() == Some(&byte) || rest.first() == Some(&b'+') && byte == b' ').then_some(1);
    let escaped = match rest.first() {
        Some(b'%') => percent(rest, byte),
        Some(b'\\') => backslash(rest, byte),
        Some(b'&') => entity(rest, byte),
        Some(_) | None => None,
    };
    [literal, escaped]
        .into_iter()
        .flatten()
        .map(move |length| at + length)
}

/// `%2F`, and the same once more: `%252F`.
fn percent(rest: &[u8], byte: u8) -> Option<usize> {
    let is = |from: usize| rest.get(from..from + 2).and_then(hexadecimal) == Some(u32::from(byte));
    match rest {
        [b'%', b'2', b'5', ..] if is(3) => Some(5),
        _ if is(1) => Some(3),
        _ => None,
    }
}

/// `\/` and `\"`, `\x2f`, `\u002f`.
fn backslash(rest: &[u8], byte: u8) -> Option<usize> {
    let is = |digits: Range<usize>| rest.get(digits).and_then(hexadecimal) == Some(u32::from(byte));
    match rest.get(1)? {
        b'x' | b'X' if is(2..4) => Some(4),
        b'u' | b'U' if is(2..6) => Some(6),
        next if *next == byte && byte.is_ascii_punctuation() => Some(2),
        _ => None,
    }
}

/// The longest entity that stands for a character of ASCII, in bytes behind the ampersand.
const ENTITY_BYTES_MAX: usize = 12;

/// Characters of ASCII that have a name in HTML.
const NAMED: [(&[u8], u8); 37] = [
    (b"amp", b'&'),
    (b"AMP", b'&'),
    (b"lt", b'<'),
    (b"LT", b'<'),
    (b"gt", b'>'),
    (b"GT", b'>'),
    (b"quot", b'"'),
    (b"QUOT", b'"'),
    (b"apos", b'\''),
    (b"excl", b'!'),
    (b"num", b'#'),
    (b"dollar", b'$'),
    (b"percnt", b'%'),
    (b"lpar", b'('),
    (b"rpar", b')'),
    (b"ast", b'*'),
    (b"midast", b'*'),
    (b"plus", b'+'),
    (b"comma", b','),
    (b"period", b'.'),
    (b"sol", b'/'),
    (b"colon", b':'),
    (b"semi", b';'),
    (b"equals", b'='),
    (b"quest", b'?'),
    (b"commat", b'@'),
    (b"lsqb", b'['),
    (b"bsol", b'\\'),
    (b"rsqb", b']'),
    (b"Hat", b'^'),
    (b"lowbar", b'_'),
    (b"grave", b'`'),
    (b"lcub", b'{'),
    (b"verbar", b'|'),
    (b"vert", b'|'),
    (b"rcub", b'}'),
    (b"nbsp", b' '),
];

/// `&#47;`, `&#x2f;` and `&sol;`; some leave the semicolon out.
fn entity(rest: &[u8], byte: u8) -> Option<usize> {
    let body = rest.get(1..)?;
    let body = &body[..body.len().min(ENTITY_BYTES_MAX)];
    let length = match body {
        [b'#', b'x' | b'X', digits @ ..] => {
            let count = leading(digits, u8::is_ascii_hexdigit);
            (hexadecimal(&digits[..count])? == u32::from(byte)).then_some(2 + count)?
        }
        [b'#', digits @ ..] => {
            let count = leading(digits, u8::is_ascii_digit);
            let number = std::str::from_utf8(&digits[..count]).ok()?;
            (number.parse() == Ok(u32::from(byte))).then_some(1 + count)?
        }
        _ => {
            let is = |(name, named): &&(&[u8], u8)| *named == byte && body.starts_with(name);
            NAMED.iter().find(is)?.0.len()
        }
    };
    Some(1 + length + usize::from(body.get(length) == Some(&b';')))
}

/// How many bytes at the beginning are of a kind.
fn leading(bytes: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is(byte)).count()
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests;
