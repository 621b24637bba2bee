//! `switchbay:state/records@0.2.0`: several records in one write, and records that expire.

use wasmtime::component::{Accessor, HasSelf};

use super::super::GuestState;
use super::super::bindings::switchbay::state0_2_0::records::{
    Change, Entry, Error, Expected, Host, HostWithStore, Listed, Mismatch, WriteOne,
};
use super::{RecordAccess, RecordsRefusal, bytes_of};
use crate::records::plugin_state::{
    ExpectedVersion, KeptRecord, ListedRecord, RecordChange, RecordWrite, WriteRefusal,
};

impl Host for GuestState {}

impl<T: Send + 'static> HostWithStore<T> for HasSelf<GuestState> {
    async fn get(accessor: &Accessor<T, Self>, key: String) -> Result<Option<Entry>, Error> {
        let found = RecordAccess::admit(accessor)?.get(key).await?;
        let entry = |record: KeptRecord| Entry {
            value: record.value,
            version: record.version,
            expires_ms: record.expires_ms,
        };
        Ok(found.map(entry))
    }

    async fn write(accessor: &Accessor<T, Self>, writes: Vec<WriteOne>) -> Result<u64, Error> {
        let access = RecordAccess::admit(accessor)?;
        let writes = writes.into_iter().map(write).collect();
        Ok(access.write(writes).await?)
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

fn write(write: WriteOne) -> RecordWrite {
    let expected = match write.expected {
        Expected::Any => ExpectedVersion::Any,
        Expected::Absent => ExpectedVersion::Absent,
        Expected::Version(version) => ExpectedVersion::Version(version),
    };
    let change = match write.change {
        Change::Put(entry) => RecordChange::Put {
            value: entry.value,
            expires_ms: entry.expires_ms,
        },
        Change::Delete => RecordChange::Delete,
    };
    RecordWrite {
        key: write.key,
        expected,
        change,
    }
}

fn listed(record: ListedRecord) -> Listed {
    Listed {
        bytes: bytes_of(&record),
        key: record.key,
        version: record.version,
        expires_ms: record.expires_ms,
    }
}

fn mismatch((index, found): (usize, Option<u64>)) -> Mismatch {
    Mismatch {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        found,
    }
}

impl From<RecordsRefusal> for Error {
    fn from(refused: RecordsRefusal) -> Self {
        match refused {
            RecordsRefusal::NotGranted(told) => Self::NotGranted(told),
            RecordsRefusal::NotAcceptable(rule) => Self::NotAcceptable(rule.to_string()),
            RecordsRefusal::Unwritten(WriteRefusal::Conflict(conflicts)) => {
                Self::Conflict(conflicts.into_iter().map(mismatch).collect())
            }
            RecordsRefusal::Unwritten(
                full @ (WriteRefusal::NoBytes { .. } | WriteRefusal::NoRecords),
            ) => Self::Full(full.to_string()),
            RecordsRefusal::Busy => Self::Busy,
            RecordsRefusal::Unavailable => Self::Unavailable,
        }
    }
}
