//! The ledger on each engine, beside a list of reservations.

use std::time::Duration;

use arbtest::arbtest;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::again;
use crate::records::credits::{Balance, Reservation, ReservationOutcome};
use crate::records::ledger_audit::LedgerAudit;
use crate::records::month::Month;
use crate::records::tests::ledger_model::{DrivenLedger, drive};
use crate::stores::Store;
use crate::stores::engine::Engine;
use crate::stores::tests::memory::{MemoryEngine, Mishaps};

/// A store that is asked by a thread that waits.
struct DrivenStore<'r> {
    runtime: &'r Runtime,
    store: Option<Store>,
    /// Where an embedded one is opened again.
    folder: Option<TempDir>,
}

impl<'r> DrivenStore<'r> {
    fn embedded(runtime: &'r Runtime) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let store = runtime.block_on(Store::open(folder.path()));
        Self {
            runtime,
            store: Some(store.expect("a store")),
            folder: Some(folder),
        }
    }

    fn memory(runtime: &'r Runtime) -> Self {
        let mishaps = Mishaps {
            repeats: 3,
            ..super::MISHAPS
        };
        let engine =
            async || Store::of(Engine::Memory(MemoryEngine::new(mishaps, rand::random()))).await;
        Self {
            runtime,
            store: Some(runtime.block_on(again(engine))),
            folder: None,
        }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }
}

impl DrivenLedger for DrivenStore<'_> {
    fn reserve(&mut self, reservation: Reservation, limit: u64) -> bool {
        let ask = async || self.store().reserve(reservation.clone(), limit).await;
        self.runtime.block_on(again(ask)).is_ok()
    }

    fn resolve(
        &mut self,
        account: &str,
        id: u128,
        outcome: ReservationOutcome,
        now_s: u64,
    ) -> Option<ReservationOutcome> {
        let ask = async || self.store().resolve(account, id, outcome, now_s).await;
        self.runtime.block_on(again(ask))
    }

    fn reopen(&mut self, now_s: u64) -> usize {
        if let Some(folder) = &self.folder {
            drop(self.store.take());
            let store = self.runtime.block_on(Store::open(folder.path()));
            self.store = Some(store.expect("a store"));
            return self
                .runtime
                .block_on(self.store().expire_all(now_s))
                .expect("written");
        }
        // What failed and what was not heard may have been made: how many is what was open before.
        let audited = self.audit().pending;
        self.runtime
            .block_on(again(async || self.store().expire_all(now_s).await));
        usize::try_from(audited).expect("it fits")
    }

    fn balance(&mut self, account: &str, month: Month) -> Balance {
        let ask = async || self.store().balance(account, month).await;
        self.runtime.block_on(again(ask))
    }

    fn audit(&mut self) -> LedgerAudit {
        self.runtime
            .block_on(again(async || self.store().audit().await))
    }
}

#[test]
fn the_ledger_does_what_a_list_of_reservations_would_on_each_engine() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    for is_embedded in [true, false] {
        let new = || {
            if is_embedded {
                DrivenStore::embedded(&runtime)
            } else {
                DrivenStore::memory(&runtime)
            }
        };
        arbtest(|u| drive(u, &mut new()))
            .budget(Duration::from_secs(2))
            .size_max(400);
    }
}
