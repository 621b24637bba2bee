//! `switchbay:ip-database/lookup`: what addresses are, what the operator's databases say of them, and the time zone of a place.
//!
//! Translates and says what is granted. Must not know what an entry means.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use super::bindings::switchbay::ip_database::lookup::{self as wire, Error, Host};
use super::{GuestState, LendingOrder};
use crate::base::address::{carried, classify};
use crate::lookup::{Basis, DatabaseInfo, IpDatabases, LocalZone, Location};

/// The interface in atoms.
const ATOM: &str = "ip-database";
/// What is no address.
const RULE: &str =
    "must be only an IPv4 or IPv6 address, without brackets, port, prefix, zone or leading zeros";

/// What the process knows.
pub(super) fn lend(order: &mut LendingOrder<'_>) -> Option<Arc<IpDatabases>> {
    Some(Arc::clone(&order.runtime.lendable.ip_databases))
}

impl Host for GuestState {
    fn classify(&mut self, address: String) -> Result<wire::Class, Error> {
        self.databases().and_then(|_| {
            let address = read(&address)?;
            let class = classify(address);
            Ok(wire::Class {
                address: address.to_string(),
                family: if address.is_ipv4() { 4 } else { 6 },
                range: class.range.map(str::to_owned),
                global: class.global,
                dialable: class.dialable,
            })
        })
    }

    fn find(&mut self, database: String, address: String) -> Result<wire::Found, Error> {
        let may = self.lent.rights.grant_name(ATOM, &database);
        let databases = self.lent_where(may, || format!("{ATOM}:{database}"))?;
        let address = read(&address)?;
        let named = databases.named(&database).ok_or(Error::Absent)?;
        let (about, found) = named
            .find(address)
            .map_err(|error| Error::Unreadable(error.to_string()))?;
        let (network, entry) = found
            .map(|(network, entry)| (network, entry.to_string()))
            .unzip();
        Ok(wire::Found {
            database: described(about),
            network,
            entry,
        })
    }

    fn zone_of(&mut self, place: wire::Place) -> Result<Option<wire::Zone>, Error> {
        let zones = self.databases()?.zones();
        let place = Location {
            zone: place.zone,
            country: place.country,
            coordinates: place.latitude.zip(place.longitude),
        };
        Ok(zones.of(&place, SystemTime::now()).map(told))
    }
}

impl GuestState {
    /// For what any right to the interface is enough for.
    fn databases(&self) -> Result<&IpDatabases, Error> {
        self.lent_where(self.lent.rights.any_of(ATOM), || ATOM.to_owned())
    }

    /// The databases, or a denial that names what is missing and is counted.
    fn lent_where(&self, may: bool, atom: impl FnOnce() -> String) -> Result<&IpDatabases, Error> {
        let lent = self.lent.ip_databases.as_deref().filter(|_| may);
        lent.ok_or_else(|| Error::Denied(self.denied(&atom())))
    }
}

/// The address that a text means: the one within, where it only stands for that.
fn read(text: &str) -> Result<IpAddr, Error> {
    match text.parse() {
        Ok(IpAddr::V6(address)) => Ok(carried(address).map_or(address.into(), IpAddr::V4)),
        Ok(address) => Ok(address),
        Err(_) => Err(Error::InvalidAddress(RULE.to_owned())),
    }
}

fn described(about: DatabaseInfo) -> wire::Database {
    wire::Database {
        title: about.title,
        kind: about.kind,
        built: about.built,
        languages: about.languages,
        license: about.license,
    }
}

fn told(zone: LocalZone) -> wire::Zone {
    let by = match zone.basis {
        Basis::Named => wire::Basis::Named,
        Basis::Country => wire::Basis::Country,
        Basis::Boundaries => wire::Basis::Boundaries,
    };
    wire::Zone {
        id: zone.id,
        abbreviation: zone.abbreviation,
        offset_seconds: zone.offset_seconds,
        is_dst: zone.is_dst,
        local_time: zone.local_time,
        by,
    }
}
