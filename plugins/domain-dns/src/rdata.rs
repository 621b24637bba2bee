//! The data of a record as text: in presentation form, and in one form of all spellings for comparison.
//!
//! It goes by the rows of `kind`. Data that does not fit its row, or has none, is shown in the form that RFC 3597 gives to
//! unknown types, so that no record is lost.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::kind::{self, Field};
use crate::svcb;
use crate::wire::{Malformed, Reader, push_decimal};

/// Data, or a part of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Presentation form.
    pub(crate) data: String,
    /// Names in lower case without trailing dot, texts joined and decoded, hexadecimal digits in lower case, parameters in
    /// the order of their keys.
    pub(crate) normalized: String,
}

impl Shown {
    /// What has one form alone.
    pub(crate) fn once(text: String) -> Self {
        Self {
            normalized: text.clone(),
            data: text,
        }
    }
}

/// Shows a record's data.
pub(crate) fn show(code: u16, rdata: Reader<'_>) -> Shown {
    let known = kind::of(code).and_then(|kind| by_fields(kind.fields, rdata).ok());
    known.unwrap_or_else(|| unknown(rdata))
}

fn by_fields(fields: &[Field], mut rdata: Reader<'_>) -> Result<Shown, Malformed> {
    let parts = fields
        .iter()
        .map(|field| read(*field, &mut rdata))
        .collect::<Result<Vec<_>, _>>()?;
    if rdata.is_at_end() {
        Ok(Shown {
            data: joined(parts.iter().map(|part| &*part.data)),
            normalized: joined(parts.iter().map(|part| &*part.normalized)),
        })
    } else {
        Err(rdata.malformed())
    }
}

/// A part may be empty: a service without parameters, a key without bytes.
fn joined<'p>(parts: impl Iterator<Item = &'p str>) -> String {
    let mut text = String::new();
    for (index, part) in parts.enumerate() {
        if index > 0 && !part.is_empty() {
            text.push(' ');
        }
        text.push_str(part);
    }
    text
}

fn read(field: Field, rdata: &mut Reader<'_>) -> Result<Shown, Malformed> {
    Ok(match field {
        Field::U8 => Shown::once(rdata.u8()?.to_string()),
        Field::U16 => Shown::once(rdata.u16()?.to_string()),
        Field::U32 => Shown::once(rdata.u32()?.to_string()),
        Field::Address4 => Shown::once(Ipv4Addr::from_bits(rdata.u32()?).to_string()),
        Field::Address6 => Shown::once(Ipv6Addr::from_bits(rdata.u128()?).to_string()),
        Field::Domain => {
            let name = rdata.name()?;
            Shown {
                data: name.absolute(),
                normalized: name.plain().to_ascii_lowercase(),
            }
        }
        Field::Text => Shown::once(quoted(rdata.string()?)),
        Field::Texts => texts(rdata)?,
        Field::CaaTag => {
            let tag = rdata.string()?;
            if tag.is_empty() || !tag.iter().all(u8::is_ascii_alphanumeric) {
                return Err(rdata.malformed());
            }
            let tag: String = tag.iter().copied().map(char::from).collect();
            Shown {
                normalized: tag.to_ascii_lowercase(),
                data: tag,
            }
        }
        Field::CaaValue => Shown::once(quoted(rdata.rest())),
        Field::Hex => hexadecimal(rdata.rest()),
        Field::Base64 => Shown::once(STANDARD.encode(rdata.rest())),
        Field::Params => svcb::params(rdata)?,
    })
}

/// `"a" "b"` for reading, and what they say together for comparing.
fn texts(rdata: &mut Reader<'_>) -> Result<Shown, Malformed> {
    let mut strings = vec![rdata.string()?];
    while !rdata.is_at_end() {
        strings.push(rdata.string()?);
    }
    let data: Vec<String> = strings.iter().map(|string| quoted(string)).collect();
    Ok(Shown {
        data: data.join(" "),
        normalized: decoded(&strings.concat()),
    })
}

/// A string in quotes, with what cannot stand there escaped.
pub(crate) fn quoted(string: &[u8]) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    text.push('"');
    for &byte in string {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            0x20..=0x7E => text.push(char::from(byte)),
            _ => push_decimal(&mut text, byte),
        }
    }
    text.push('"');
    text
}

/// Text in UTF-8; bytes that are none become `\DDD`.
fn decoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for &byte in chunk.invalid() {
            push_decimal(&mut text, byte);
        }
    }
    text
}

fn hexadecimal(bytes: &[u8]) -> Shown {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    Shown {
        normalized: digits.to_ascii_lowercase(),
        data: digits,
    }
}

/// `\# 3 0A0B0C`.
fn unknown(mut rdata: Reader<'_>) -> Shown {
    let bytes = rdata.rest();
    let digits = hexadecimal(bytes);
    let length = bytes.len().to_string();
    Shown {
        data: joined(["\\#", &length, &digits.data].into_iter()),
        normalized: joined(["\\#", &length, &digits.normalized].into_iter()),
    }
}

#[cfg(test)]
mod tests;
