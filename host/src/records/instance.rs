//! The instance's own values.

use super::plugin_life::INSTANCE;
use super::rows::{Decision, Reads, Row, RowFault, RowName, Space};

/// Name of the value → the value.
pub(crate) const VALUES: Space = Space::new("instance.value");

/// The form of the rows. A store of a later one is not read.
pub(crate) const FORMAT: u32 = 2;

/// Notes the form of the rows where it is not noted yet, or is an earlier one. The outcome is what was noted.
pub(crate) fn keep_format(read: &mut dyn Reads) -> Result<Decision<u32>, RowFault> {
    let noted: Option<u32> = read.record(&name("format"))?;
    match noted {
        Some(noted) if noted >= FORMAT => Ok(Decision::unchanged(noted)),
        Some(_) | None => {
            let writes = vec![Row::record(name("format"), &FORMAT)?.into()];
            Ok(Decision::write(FORMAT, writes))
        }
    }
}

/// Keeps the secret that a caller's name within a plugin is made with, where there is none yet. The outcome is the one that is
/// kept.
pub(crate) fn keep_owner_secret(
    read: &mut dyn Reads,
    secret: &[u8; 32],
) -> Result<Decision<[u8; 32]>, RowFault> {
    if let Some(kept) = read.record(&name("owner-secret"))? {
        return Ok(Decision::unchanged(kept));
    }
    let writes = vec![owner_secret_row(secret)?.into()];
    Ok(Decision::write(*secret, writes))
}

/// The row of that secret.
pub(crate) fn owner_secret_row(secret: &[u8; 32]) -> Result<Row, RowFault> {
    Row::record(name("owner-secret"), secret)
}

fn name(value: &str) -> RowName {
    RowName::of(VALUES, INSTANCE).text(value)
}
