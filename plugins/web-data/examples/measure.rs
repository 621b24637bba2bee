//! Measures pages for `training/grow.py`, which starts it: pages come in and blocks go out until the input ends.
//!
//! A page is three parts, each a number of bytes (32 bits, little-endian) and the bytes: what is asked for (`measure` or
//! `markdown`), the page, and 32-bit floats: one log odds a block or nothing. An answer is two such parts: a JSON list of
//! the blocks' texts and their measures as floats; or the Markdown and nothing. It must know nothing of labels.

use std::io::{self, Read, Write};

use web_data::training;

/// Bytes of a part: pages are read whole.
const PART_BYTES_MAX: u32 = 64 << 20;

fn main() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    while let Some(asked) = part(&mut input)? {
        let page = part(&mut input)?.unwrap_or_default();
        let odds: Vec<f32> = part(&mut input)?
            .unwrap_or_default()
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        if asked == b"markdown" {
            put(&mut output, training::markdown(&page, &odds).as_bytes())?;
            put(&mut output, &[])?;
        } else {
            let measured = training::measure(&page, (!odds.is_empty()).then_some(&odds));
            put(&mut output, &serde_json::to_vec(&measured.texts)?)?;
            let bytes: Vec<u8> = measured
                .measures
                .iter()
                .flat_map(|measure| measure.to_le_bytes())
                .collect();
            put(&mut output, &bytes)?;
        }
        output.flush()?;
    }
    Ok(())
}

/// The next part; None where the input ends.
fn part(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    if input.read(&mut length[..1])? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut length[1..])?;
    let length = u32::from_le_bytes(length);
    if length > PART_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a part of {length} bytes is over 64 MiB"),
        ));
    }
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

fn put(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length =
        u32::try_from(bytes.len()).map_err(|_| io::Error::other("an answer is over 4 GiB"))?;
    output.write_all(&length.to_le_bytes())?;
    output.write_all(bytes)
}
