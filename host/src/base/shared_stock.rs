//! A bounded resource that several share: each has a share of it, and a quarter is kept for those who hold none.
//!
//! So whoever takes all that it may keeps nobody else from a first part. Must not know what is shared, nor among whom: who
//! shares has a semaphore of its own, of which it takes first.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One resource, in permits.
pub(crate) struct SharedStock {
    open: Arc<Semaphore>,
    /// For those who hold none.
    kept: Arc<Semaphore>,
    all: usize,
    each: usize,
}

/// A part of a resource, until it is dropped.
pub(crate) struct StockPortion {
    _common: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl SharedStock {
    /// Of so many permits for all, and for each.
    pub(crate) fn new(all: usize, each: usize) -> Self {
        let kept = all / 4;
        Self {
            open: Arc::new(Semaphore::new(all - kept)),
            kept: Arc::new(Semaphore::new(kept)),
            all,
            each,
        }
    }

    /// The share of one who comes.
    pub(crate) fn share(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.each))
    }

    /// Permits that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.all - self.open.available_permits() - self.kept.available_permits()
    }

    /// Takes so many permits by one's share, and waits for them: behind its own first, and then behind others. `None` never.
    pub(crate) async fn take(&self, share: &Arc<Semaphore>, permits: u32) -> Option<StockPortion> {
        let own = Arc::clone(share).acquire_many_owned(permits).await.ok()?;
        self.add(share, own, permits).await
    }

    /// The same where one's own part is there already.
    pub(crate) async fn add(
        &self,
        share: &Arc<Semaphore>,
        own: OwnedSemaphorePermit,
        permits: u32,
    ) -> Option<StockPortion> {
        let open = Arc::clone(&self.open).acquire_many_owned(permits);
        let common = if self.is_first(share, permits) {
            tokio::select! {
                biased;
                open = open => open.ok()?,
                kept = Arc::clone(&self.kept).acquire_many_owned(permits) => kept.ok()?,
            }
        } else {
            open.await.ok()?
        };
        Some(StockPortion {
            _common: common,
            _own: own,
        })
    }

    /// Takes so many permits by one's share, where they are free.
    pub(crate) fn try_take(&self, share: &Arc<Semaphore>, permits: u32) -> Option<StockPortion> {
        let try_acquire = |of: &Arc<Semaphore>| Arc::clone(of).try_acquire_many_owned(permits).ok();
        let own = try_acquire(share)?;
        let kept = || {
            self.is_first(share, permits)
                .then(|| try_acquire(&self.kept))
                .flatten()
        };
        let common = try_acquire(&self.open).or_else(kept)?;
        Some(StockPortion {
            _common: common,
            _own: own,
        })
    }

    /// Whether these are all that it holds.
    fn is_first(&self, share: &Semaphore, permits: u32) -> bool {
        u32::try_from(self.each - share.available_permits()).is_ok_and(|held| held <= permits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_for_those_who_hold_none() {
        let stock = SharedStock::new(8, 6);
        let (one, other, third) = (stock.share(), stock.share(), stock.share());
        let all: Vec<StockPortion> = std::iter::from_fn(|| stock.try_take(&one, 1)).collect();
        assert_eq!((all.len(), stock.taken()), (6, 6));
        let first = stock.try_take(&other, 1);
        assert!(
            first.is_some() && stock.try_take(&other, 1).is_none(),
            "the rest is for another's first"
        );
        assert!(
            stock
                .try_take(&third, 1)
                .is_some_and(|_| stock.taken() == 8)
        );
        drop((all, first));
        assert_eq!(
            (
                stock.taken(),
                one.available_permits(),
                other.available_permits()
            ),
            (0, 6, 6)
        );
    }
}
