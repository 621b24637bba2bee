//! The operator's token: a file in the data folder that only this user may read, made once.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rand::RngExt as _;
use sha2::{Digest, Sha256};

/// The file's name in the data folder.
pub(crate) const FILE: &str = "operator-token";
/// Where a running server says which address its operator's API has.
pub(crate) const ADDRESS_FILE: &str = "operator-address";

/// A token, kept as its digest.
pub(crate) struct OperatorToken {
    digest: [u8; 32],
}

impl OperatorToken {
    /// Reads the token from its file, or makes one.
    pub(crate) fn keep(path: &Path) -> io::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) if text.trim().len() >= 32 => text.trim().to_owned(),
            Ok(_) => make(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path)?,
            Err(error) => return Err(error),
        };
        // Somebody may have copied the folder with wider rights.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self {
            digest: Sha256::digest(text.as_bytes()).into(),
        })
    }

    /// Compares digests, so that the time taken tells nothing of the token.
    pub(crate) fn matches(&self, presented: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        digest == self.digest
    }
}

fn make(path: &Path) -> io::Result<String> {
    let random: [u8; 24] = rand::rng().random();
    let text = {
        use base64::Engine as _;
        format!(
            "sbop_{}",
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random)
        )
    };
    write_private(path, &text)?;
    Ok(text)
}

/// Writes a file that only this user may read.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    writeln!(file, "{text}")
}
