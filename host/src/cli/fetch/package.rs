//! What is taken of a package's archive: files that are asked for by name, and nothing else.
//!
//! Nothing is unpacked to where the archive says. An entry is compared with the names that are wanted and written to a new
//! file of ours, so no path, link or device of an archive matters. Must not know where an archive came from.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::Path;

use flate2::read::GzDecoder;
use tar::{Archive, Entry};
use tempfile::NamedTempFile;

use super::DatabaseContent;
use super::systems::{Systems, SystemsError};
use crate::lookup::{FileError, check};

/// All that an archive may unpack to, in bytes.
const UNPACKED_BYTES_MAX: u64 = 4 << 30;
/// The largest file that is taken, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// The most entries of an archive.
const ENTRIES_MAX: usize = 1000;

/// An archive that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageError {
    #[error("it cannot be unpacked: {0}")]
    Archive(#[source] io::Error),
    #[error("it has more than {ENTRIES_MAX} entries")]
    TooMany,
    #[error("its file {name} has {bytes} bytes; at most {FILE_BYTES_MAX} are allowed")]
    TooLarge { name: &'static str, bytes: u64 },
    #[error("its file {name} is truncated")]
    Cut { name: &'static str },
    #[error("it has the file {name} more than once")]
    Twice { name: &'static str },
    #[error("it has no file {name}")]
    Missing { name: &'static str },
    #[error("its table {name}: {source}")]
    Systems {
        name: &'static str,
        source: SystemsError,
    },
    #[error("its file {name} cannot be used: {source}")]
    File {
        name: &'static str,
        source: FileError,
    },
    #[error("cannot write into the data folder: {0}")]
    Write(#[source] io::Error),
}

/// Makes the database's files, new ones in this folder, each one that can be used. Blocks.
pub(crate) fn unpack(
    mut archive: File,
    content: DatabaseContent,
    folder: &Path,
) -> Result<Vec<NamedTempFile>, PackageError> {
    archive.rewind().map_err(PackageError::Archive)?;
    let made = match content {
        DatabaseContent::Files(names) => {
            let mut made: Vec<Option<NamedTempFile>> = names.iter().map(|_| None).collect();
            each(archive, names, |place, entry, bytes| {
                let mut file = NamedTempFile::new_in(folder).map_err(PackageError::Write)?;
                let copied =
                    io::copy(&mut entry.take(bytes), &mut file).map_err(PackageError::Archive)?;
                made[place] = Some(file);
                Ok(copied)
            })?;
            names
                .iter()
                .zip(made)
                .filter_map(|(name, file)| Some((*name, file?)))
                .collect()
        }
        DatabaseContent::Systems(names) => {
            let mut systems = Systems::new();
            each(archive, names, |place, entry, bytes| {
                let name = names[place];
                let mut counted = CountedReader {
                    inner: entry.take(bytes),
                    bytes: 0,
                };
                systems
                    .read(&mut counted)
                    .map_err(|source| PackageError::Systems { name, source })?;
                Ok(counted.bytes)
            })?;
            let mut file = NamedTempFile::new_in(folder).map_err(PackageError::Write)?;
            systems
                .write(&mut file)
                .map_err(|source| PackageError::Systems {
                    name: names[0],
                    source,
                })?;
            vec![(names[0], file)]
        }
    };
    let mut files = Vec::new();
    for (name, file) in made {
        check(file.path(), folder).map_err(|source| PackageError::File { name, source })?;
        files.push(file);
    }
    Ok(files)
}

/// Hands out each wanted file once, with its place among the names and its length; `take` says how much of it was there.
fn each(
    archive: File,
    names: &[&'static str],
    mut take: impl FnMut(
        usize,
        &mut Entry<'_, io::Take<GzDecoder<File>>>,
        u64,
    ) -> Result<u64, PackageError>,
) -> Result<(), PackageError> {
    let mut archive = Archive::new(GzDecoder::new(archive).take(UNPACKED_BYTES_MAX));
    let mut seen = vec![false; names.len()];
    // Raw: an extension that gives an entry another name or size, of any length, is an entry like others here.
    let entries = archive.entries().map_err(PackageError::Archive)?.raw(true);
    for (count, entry) in entries.enumerate() {
        let mut entry = entry.map_err(PackageError::Archive)?;
        if count >= ENTRIES_MAX {
            return Err(PackageError::TooMany);
        }
        let path = entry.header().path_bytes().into_owned();
        let is_file = entry.header().entry_type().is_file();
        let wanted = |name: &&str| is_file && path == format!("package/{name}").as_bytes();
        let Some(place) = names.iter().position(wanted) else {
            continue;
        };
        let name = names[place];
        let bytes = entry.header().entry_size().map_err(PackageError::Archive)?;
        if bytes > FILE_BYTES_MAX {
            return Err(PackageError::TooLarge { name, bytes });
        }
        if std::mem::replace(&mut seen[place], true) {
            return Err(PackageError::Twice { name });
        }
        if take(place, &mut entry, bytes)? < bytes {
            return Err(PackageError::Cut { name });
        }
    }
    match seen.iter().position(|seen| !seen) {
        Some(place) => Err(PackageError::Missing { name: names[place] }),
        None => Ok(()),
    }
}

/// Counts what is read.
struct CountedReader<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes += u64::try_from(read).unwrap_or(u64::MAX);
        Ok(read)
    }
}
