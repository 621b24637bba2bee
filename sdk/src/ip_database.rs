//! What is known about IP addresses without network requests: their class, entries in the operator's
//! databases, and the time zone of a place.
//!
//! Using this module makes the component import `switchbay:ip-database/lookup`. An atom such as
//! `ip-database:city` names a database: the plugin asks for it with [`Plugin::wants`], the operator
//! grants it in the manifest and sets its file in the configuration.
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

/// Parses an IP address and classifies it.
///
/// # Errors
/// If the text is not an IP address, or no database is granted.
pub fn classify(address: &str) -> Result<Class, Error> {
    lookup::classify(address)
}

/// Looks up an address in a database, by the database's name in atoms.
///
/// # Errors
/// If the database is not granted, or the operator has none with that name ([`Error::Absent`]).
pub fn find(database: &str, address: &str) -> Result<Found, Error> {
    lookup::find(database, address)
}

/// Returns the time zone of a place and its local time; `None` if it is not known.
///
/// # Errors
/// If no database is granted.
pub fn zone_of(place: &Place) -> Result<Option<Zone>, Error> {
    lookup::zone_of(place)
}
