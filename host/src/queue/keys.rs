//! Jobs whose API key is not good any more: they end, because nobody could read what they find.

use std::sync::Arc;
use std::time::SystemTime;

use super::JobQueue;
use crate::records::api_key::KeyRecord;
use crate::stores::StoreError;

impl JobQueue {
    /// Looks at once for jobs of keys that are not good any more, because one was revoked.
    pub(crate) fn keys_changed(&self) {
        self.keys_changed.notify_one();
    }

    /// Cancels what was submitted with keys that are revoked, rotated or expired, or whose account has no plan any more: nobody
    /// could read it.
    pub(crate) async fn end_of_bad_keys(&self) {
        let keys = self.board.lock().keys();
        for key in keys {
            match self.is_good(Some(Arc::clone(&key))).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    return tracing::error!(%error, "keys of jobs cannot be read; retrying");
                }
            }
            let jobs = self.board.lock().of_key(&key);
            tracing::info!(
                key = &*key,
                jobs = jobs.len(),
                "cancelling the jobs of a key that is no longer valid"
            );
            for name in jobs {
                if let Err(error) = self.cancel(name, SystemTime::now()).await {
                    return tracing::error!(%error, "jobs cannot be cancelled; retrying");
                }
            }
        }
    }

    /// Whether a job may run on, as far as its key has a say. A plan that ran out was paid for while the job was submitted; one
    /// that was withdrawn ends it.
    pub(crate) async fn is_good(&self, key: Option<Arc<str>>) -> Result<bool, StoreError> {
        let Some(key) = key else { return Ok(true) };
        let now = SystemTime::now();
        let holds = |record: &KeyRecord| record.revoked_at.is_none() && !record.has_expired(now);
        let Some(record) = self.store.key_of_id(&key).await?.filter(holds) else {
            return Ok(false);
        };
        let Some(account) = record.account else {
            return Ok(true);
        };
        let account = self.store.account(&account).await?;
        Ok(account.is_some_and(|account| account.entitlement.is_some()))
    }
}
