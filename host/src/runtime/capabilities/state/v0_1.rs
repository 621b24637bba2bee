//! `switchbay:state/records@0.1.0`: one record at a time, without an expiry.

use wasmtime::component::{Accessor, HasSelf};

use super::super::GuestState;
use super::super::bindings::switchbay::state0_1_0::records::{
    Entry, Error, Expected, Host, HostWithStore, Listed,
};
use super::{RecordAccess, RecordsRefusal, bytes_of};
use crate::records::plugin_state::{
    ExpectedVersion, KeptRecord, ListedRecord, RecordChange, RecordWrite, WriteRefusal,
};

impl Host for GuestState {}

impl<T: Send + 'static> HostWithStore<T> for HasSelf<GuestState> {
    async fn get(accessor: &Accessor<T, Self>, key: String) -> Result<Option<Entry>, Error> {
        let found = RecordAccess::admit(accessor)?.get(key).await?;
        Ok(found.map(|KeptRecord { value, version, .. }| Entry { value, version }))
    }

    async fn put(
        accessor: &Accessor<T, Self>,
        key: String,
        value: Vec<u8>,
        expected: Expected,
    ) -> Result<u64, Error> {
        let change = RecordChange::Put {
            value,
            expires_ms: None,
        };
        let write = write(key, expected, change);
        Ok(RecordAccess::admit(accessor)?.write(vec![write]).await?)
    }

    async fn delete(
        accessor: &Accessor<T, Self>,
        key: String,
        expected: Expected,
    ) -> Result<(), Error> {
        let write = write(key, expected, RecordChange::Delete);
        RecordAccess::admit(accessor)?.write(vec![write]).await?;
        Ok(())
    }

    async fn list(
        accessor: &Accessor<T, Self>,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<Listed>, Error> {
        let access = RecordAccess::admit(accessor)?;
        let found = access.list(prefix, after, limit).await?;
        Ok(found.into_iter().map(listed).collect())
    }
}

fn write(key: String, expected: Expected, change: RecordChange) -> RecordWrite {
    let expected = match expected {
        Expected::Any => ExpectedVersion::Any,
        Expected::Absent => ExpectedVersion::Absent,
        Expected::Version(version) => ExpectedVersion::Version(version),
    };
    RecordWrite {
        key,
        expected,
        change,
    }
}

fn listed(record: ListedRecord) -> Listed {
    Listed {
        bytes: bytes_of(&record),
        key: record.key,
        version: record.version,
    }
}

impl From<RecordsRefusal> for Error {
    fn from(refused: RecordsRefusal) -> Self {
        match refused {
            RecordsRefusal::NotGranted(told) => Self::NotGranted(told),
            RecordsRefusal::NotAcceptable(rule) => Self::NotAcceptable(rule.to_string()),
            // There was one write.
            RecordsRefusal::Unwritten(WriteRefusal::Conflict(conflicts)) => {
                Self::Conflict(conflicts.first().and_then(|(_, found)| *found))
            }
            RecordsRefusal::Unwritten(
                full @ (WriteRefusal::NoBytes { .. } | WriteRefusal::NoRecords),
            ) => Self::Full(full.to_string()),
            RecordsRefusal::Busy => Self::Busy,
            RecordsRefusal::Unavailable => Self::Unavailable,
        }
    }
}
