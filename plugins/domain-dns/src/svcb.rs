//! Service parameters of SVCB and HTTPS records as text (RFC 9460, 2.1 and appendix A).

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::rdata::{Shown, quoted};
use crate::wire::{Malformed, Reader};

/// The registered keys, by number.
const KEYS: [&str; 9] = [
    "mandatory",
    "alpn",
    "no-default-alpn",
    "port",
    "ipv4hint",
    "ech",
    "ipv6hint",
    "dohpath",
    "ohttp",
];

/// Parameters up to the end: for reading as they stand, for comparing in the order of their keys.
pub(crate) fn params(rdata: &mut Reader<'_>) -> Result<Shown, Malformed> {
    let mut params = Vec::new();
    while !rdata.is_at_end() {
        let key = rdata.u16()?;
        let length = usize::from(rdata.u16()?);
        params.push((key, param(key, rdata.part(length)?)?));
    }
    let joined = |params: &[(u16, String)]| {
        let texts: Vec<&str> = params.iter().map(|(_, text)| text.as_str()).collect();
        texts.join(" ")
    };
    let data = joined(&params);
    params.sort();
    Ok(Shown {
        data,
        normalized: joined(&params),
    })
}

fn param(key: u16, mut value: Reader<'_>) -> Result<String, Malformed> {
    let name = key_name(key);
    let text = match key {
        0 => list(&mut value, |value| value.u16().map(key_name))?,
        1 => quoted_list(&mut value)?,
        3 => value.u16()?.to_string(),
        4 => list(&mut value, |value| {
            Ok(Ipv4Addr::from_bits(value.u32()?).to_string())
        })?,
        5 => STANDARD.encode(some(&mut value)?),
        6 => list(&mut value, |value| {
            Ok(Ipv6Addr::from_bits(value.u128()?).to_string())
        })?,
        7 => quoted(some(&mut value)?),
        // Flags have no value.
        2 | 8 => return end(&value).map(|()| name),
        _ if value.is_at_end() => return Ok(name),
        _ => quoted(value.rest()),
    };
    end(&value)?;
    Ok(format!("{name}={text}"))
}

fn key_name(key: u16) -> String {
    KEYS.get(usize::from(key))
        .map_or_else(|| format!("key{key}"), |name| (*name).to_owned())
}

fn end(value: &Reader<'_>) -> Result<(), Malformed> {
    if value.is_at_end() {
        Ok(())
    } else {
        Err(value.malformed())
    }
}

fn some<'m>(value: &mut Reader<'m>) -> Result<&'m [u8], Malformed> {
    if value.is_at_end() {
        return Err(value.malformed());
    }
    Ok(value.rest())
}

/// `a,b`, of one item at least.
fn list<'m>(
    value: &mut Reader<'m>,
    item: impl Fn(&mut Reader<'m>) -> Result<String, Malformed>,
) -> Result<String, Malformed> {
    let mut items = vec![item(value)?];
    while !value.is_at_end() {
        items.push(item(value)?);
    }
    Ok(items.join(","))
}

/// `"h2,h3"`: commas and backslashes of an item are escaped once for the list, and that again for the quotes.
fn quoted_list(value: &mut Reader<'_>) -> Result<String, Malformed> {
    let mut joined = Vec::new();
    loop {
        for &byte in value.string()? {
            if matches!(byte, b',' | b'\\') {
                joined.push(b'\\');
            }
            joined.push(byte);
        }
        if value.is_at_end() {
            return Ok(quoted(&joined));
        }
        joined.push(b',');
    }
}
