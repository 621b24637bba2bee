//! The data folder: whoever may change what is in it has the host's credentials and chooses the code that it runs, so it is
//! this user's alone.
//!
//! Looked at before a server reads anything of it. A folder that nothing was put into yet is made private; one that others may have put
//! something into is for its operator to look at.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// In such a folder, only the owner of an entry may rename or remove it.
const STICKY: u32 = 0o1000;
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// A data folder that others have in their hands. A mode is the last four octal digits of a file's.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum FolderFault {
    #[error(
        "`{path}` belongs to user {owner}, who may change it, and this process runs as user {user}: run it as user \
         {owner}, or use a data folder that belongs to user {user}"
    )]
    Foreign {
        path: PathBuf,
        owner: u32,
        user: u32,
    },
    #[error(
        "other users may write to the data folder {path} (mode {mode:04o}) and may have put something into it: check \
         what is there, then `chmod 700` it, or use another one"
    )]
    Writable { path: PathBuf, mode: u32 },
    #[error(
        "other users may write to {path} (mode {mode:04o}) and so replace the data folder {folder} in it: `chmod o-w \
         {path}`, or use a data folder elsewhere"
    )]
    Above {
        path: PathBuf,
        mode: u32,
        folder: PathBuf,
    },
    #[error(
        "other users may write to {path} (mode {mode:04o}), which holds credentials and what plugins may do: check \
         what is there, then `chmod 600` it"
    )]
    WritableFile { path: PathBuf, mode: u32 },
}

/// What is wrong with a folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error(transparent)]
    Fault(#[from] FolderFault),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Makes the folder, private, where it is missing.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_FOLDER)
        .create(folder)
}

/// Makes sure that the folder, and the store's file where it is there, are this user's alone.
pub(super) fn secure(folder: &Path, file: &str) -> Result<(), Unfit> {
    let folder = fs::canonicalize(folder)?;
    for above in folder.ancestors().skip(1) {
        let mode = fs::metadata(above)?.mode() & 0o7777;
        if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
            return Err(FolderFault::Above {
                path: above.to_owned(),
                mode,
                folder,
            }
            .into());
        }
    }
    own(&folder)?;
    let mode = mode(&folder)?;
    if mode & (GROUP_WRITES | OTHERS_WRITE) != 0 {
        // What a group may do is what its operator chose, often a group of one; whoever else it is, is a stranger.
        let trusted = mode & OTHERS_WRITE == 0 || fs::read_dir(&folder)?.next().is_none();
        let mended = trusted && mode & STICKY == 0 && private(&folder, PRIVATE_FOLDER)?;
        if !mended {
            return Err(FolderFault::Writable { path: folder, mode }.into());
        }
        let (folder, mode) = (folder.display(), format!("{mode:04o}"));
        tracing::warn!(%folder, mode, "other users could write to the data folder; its mode is now 0700");
    }
    secure_file(&folder.join(file))
}

fn secure_file(path: &Path) -> Result<(), Unfit> {
    let mode = match mode(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        mode => mode?,
    };
    own(path)?;
    if mode & OTHERS_WRITE != 0 {
        return Err(FolderFault::WritableFile {
            path: path.to_owned(),
            mode,
        }
        .into());
    }
    if mode & !PRIVATE_FILE != 0 {
        private(path, PRIVATE_FILE)?;
    }
    Ok(())
}

/// Whether the path is this user's own: not a link, whose target another may choose.
fn own(path: &Path) -> Result<(), Unfit> {
    let (owner, user) = (
        fs::symlink_metadata(path)?.uid(),
        rustix::process::geteuid().as_raw(),
    );
    if owner == user {
        Ok(())
    } else {
        Err(FolderFault::Foreign {
            path: path.to_owned(),
            owner,
            user,
        }
        .into())
    }
}

/// The mode after a change says whether it was made: some file systems keep none.
fn private(path: &Path, wanted: u32) -> io::Result<bool> {
    fs::set_permissions(path, Permissions::from_mode(wanted))?;
    Ok(mode(path)? == wanted)
}

fn mode(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.mode() & 0o7777)
}
