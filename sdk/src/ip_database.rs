//! What is known of IP addresses without asking anybody: their class, the operator's databases, and the time zone of a place.
//!
//! Using this module makes the component import `switchbay:ip-database/lookup`. A database is named by an atom such as
//! `ip-database:city`: the plugin names it with [`Plugin::wants`], the operator grants it in the manifest and says in the
//! configuration which file it is.
//!
//! ```no_run
//! use switchbay_sdk::ip_database;
//! # fn country() -> Result<Option<String>, ip_database::Error> {
//! let class = ip_database::classify("2606:4700::1111")?;
//! let found = ip_database::find("country", &class.address)?;
//! # Ok(found.entry) }
//! ```
//!
//! [`Plugin::wants`]: crate::Plugin::wants

use crate::bindings::switchbay::ip_database::lookup;

pub use crate::bindings::switchbay::ip_database::lookup::{
    Basis, Class, Database, Error, Found, Place, Zone,
};

/// Reads an address as it stands, and says what it is.
///
/// # Errors
/// It is none, or nothing of this is granted.
pub fn classify(address: &str) -> Result<Class, Error> {
    lookup::classify(address)
}

/// Looks an address up in a database, by its name in atoms.
///
/// # Errors
/// It is not granted, or the operator has none of that name: [`Error::Absent`].
pub fn find(database: &str, address: &str) -> Result<Found, Error> {
    lookup::find(database, address)
}

/// The time zone of a place and what the clock says there now; `None` where nothing tells it.
///
/// # Errors
/// Nothing of this is granted.
pub fn zone_of(place: &Place) -> Result<Option<Zone>, Error> {
    lookup::zone_of(place)
}
