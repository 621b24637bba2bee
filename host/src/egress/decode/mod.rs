//! Content codings undone, in bounded memory and time.
//!
//! At most two codings one within the other, and no stage gives out more than the body may have: so what is decoded is never
//! larger than that, and neither is the work. Must not know where the bytes came from.

use std::cell::Cell;
use std::io::{self, BufReader, Cursor, Read};
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

use crate::base::clock::thread_time;

/// Codings one within the other.
const CODINGS_MAX: usize = 2;
/// How far back zstd may refer; what a sender for the web may ask of a receiver (RFC 9659).
const ZSTD_WINDOW_MAX: u64 = 8 << 20;
const BUFFER_BYTES: usize = 16 * 1024;
/// The processor's time that decoding one body may take. What is made to be decoded takes a tenth of it.
const PROCESSOR_MAX: Duration = Duration::from_secs(1);

/// What every request says that it takes.
pub(super) const ACCEPTED: &str = "gzip, br, zstd, deflate";

/// A way in which a body was made smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentCoding {
    Gzip,
    Brotli,
    Zstd,
    Deflate,
}

/// A body that cannot be given to anybody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecodeError {
    #[error("the decoded body has more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the body has more than {CODINGS_MAX} content codings")]
    TooMany,
    #[error("the body has a content coding that was not requested")]
    Unknown,
    #[error("the body does not match its content coding")]
    Malformed,
    #[error("decoding the body takes more than {PROCESSOR_MAX:?} of processor time")]
    Work,
}

/// What decoding one body may cost.
pub(super) struct Work {
    /// Gone when nobody waits for the body any more.
    wanted: Weak<()>,
    /// The thread's clock at which it is too much.
    until: Cell<Option<Duration>>,
    is_over: Cell<bool>,
}

impl Work {
    /// Goes on for as long as this is held.
    pub(super) fn wanted_by(wanted: &Arc<()>) -> Self {
        Self {
            wanted: Arc::downgrade(wanted),
            until: Cell::new(None),
            is_over: Cell::new(false),
        }
    }

    /// Whether it may go on. To be asked on the thread that works.
    fn goes_on(&self) -> bool {
        let now = thread_time();
        let until = self.until.get().unwrap_or(now + PROCESSOR_MAX);
        self.until.set(Some(until));
        self.is_over
            .set(self.is_over.get() || now > until || self.wanted.strong_count() == 0);
        !self.is_over.get()
    }
}

/// Reads the values of `Content-Encoding`, in the order in which the codings were applied.
pub(super) fn codings<'v>(
    values: impl Iterator<Item = &'v str>,
) -> Result<Vec<ContentCoding>, DecodeError> {
    let mut codings = Vec::new();
    for name in values.flat_map(|value| value.split(',')).map(str::trim) {
        let coding = match name.to_ascii_lowercase().as_str() {
            "" | "identity" => continue,
            "gzip" | "x-gzip" => ContentCoding::Gzip,
            "br" => ContentCoding::Brotli,
            "zstd" => ContentCoding::Zstd,
            "deflate" => ContentCoding::Deflate,
            _ => return Err(DecodeError::Unknown),
        };
        if codings.len() == CODINGS_MAX {
            return Err(DecodeError::TooMany);
        }
        codings.push(coding);
    }
    Ok(codings)
}

/// The body without its codings. Runs for as long as that takes, so it is no work for the thread of a reactor.
pub(super) fn decode(
    codings: &[ContentCoding],
    body: Vec<u8>,
    bytes_max: usize,
    work: &Work,
) -> Result<Vec<u8>, DecodeError> {
    let spent = Rc::new(Cell::new(false));
    let failed = |spent: &Cell<bool>| match (work.is_over.get(), spent.get()) {
        (true, _) => DecodeError::Work,
        (false, true) => DecodeError::TooLarge { bytes_max },
        (false, false) => DecodeError::Malformed,
    };
    let metered = MeteredReader {
        from: Cursor::new(body),
        work,
    };
    let mut reader: Box<dyn Read + '_> = Box::new(BufReader::with_capacity(BUFFER_BYTES, metered));
    for coding in codings.iter().rev() {
        let decoder = coding.decoder(reader).map_err(|_| failed(&spent))?;
        reader = Box::new(CappedReader {
            decoder,
            left: bytes_max,
            spent: Rc::clone(&spent),
        });
    }
    let mut decoded = Vec::new();
    reader
        .read_to_end(&mut decoded)
        .map_err(|_| failed(&spent))?;
    Ok(decoded)
}

impl ContentCoding {
    fn decoder<'w>(self, from: Box<dyn Read + 'w>) -> io::Result<Box<dyn Read + 'w>> {
        Ok(match self {
            ContentCoding::Gzip => Box::new(MultiGzDecoder::new(from)),
            ContentCoding::Brotli => Box::new(Decompressor::new(from, BUFFER_BYTES)),
            ContentCoding::Zstd => {
                let decoder = StreamingDecoder::new_with_max_window_size(from, ZSTD_WINDOW_MAX);
                Box::new(OneFrame(decoder.map_err(io::Error::other)?))
            }
            ContentCoding::Deflate => deflate(from)?,
        })
    }
}

/// `deflate` is zlib's format, but some servers send what is inside of that alone.
fn deflate<'w>(mut from: Box<dyn Read + 'w>) -> io::Result<Box<dyn Read + 'w>> {
    let mut first = [0; 2];
    from.read_exact(&mut first)?;
    let is_zlib = first[0] & 0x0f == 8 && u16::from_be_bytes(first).is_multiple_of(31);
    let whole = Cursor::new(first).chain(from);
    if is_zlib {
        Ok(Box::new(ZlibDecoder::new(whole)))
    } else {
        Ok(Box::new(DeflateDecoder::new(whole)))
    }
}

/// A frame of zstd with nothing behind it. What would be dropped without a word is an error.
struct OneFrame<'w>(StreamingDecoder<Box<dyn Read + 'w>, ruzstd::decoding::FrameDecoder>);

impl Read for OneFrame<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        if read == 0 && !buffer.is_empty() && self.0.get_mut().read(&mut [0])? != 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(read)
    }
}

/// Gives out the encoded body for as long as the work on it may go on. What is made of one piece has a bound by itself.
struct MeteredReader<'w> {
    from: Cursor<Vec<u8>>,
    work: &'w Work,
}

impl Read for MeteredReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.work.goes_on() {
            self.from.read(buffer)
        } else {
            Err(io::ErrorKind::QuotaExceeded.into())
        }
    }
}

/// Gives out so many bytes and fails on the next.
struct CappedReader<'w> {
    decoder: Box<dyn Read + 'w>,
    left: usize,
    spent: Rc<Cell<bool>>,
}

impl Read for CappedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(self.left.saturating_add(1));
        let read = self.decoder.read(&mut buffer[..room])?;
        match self.left.checked_sub(read) {
            Some(left) => self.left = left,
            None => {
                self.spent.set(true);
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
