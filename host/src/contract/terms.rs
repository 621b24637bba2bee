//! What a description says of an operation's limits and price.

use serde::Deserialize;

use super::operation::{Consumed, IdempotencySource, OperationTerms};

const PER_MINUTE_MAX: u32 = 1_000_000;
const COST_MAX: u32 = 1_000_000;
const COST_DEFAULT: u32 = 1;

/// The members of an operation's row that its terms are made of.
pub(crate) struct WrittenTerms {
    pub(crate) window_per_minute: Option<u32>,
    pub(crate) first_party_per_minute: Option<u32>,
    pub(crate) consumes: Option<Vec<Consumed>>,
    pub(crate) cost: Option<u32>,
    pub(crate) settle: Option<SettlementPoint>,
    pub(crate) idempotency: Option<IdempotencySource>,
}

/// When a call's credits are spent.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SettlementPoint {
    /// On the operation's own reply.
    Reply,
}

/// Checks them; what is not said takes the default: no window of its own, nobody without a
/// credential, every limit of the caller's, one credit, settled
/// on the reply, named by the header.
pub(crate) fn terms(written: WrittenTerms) -> Result<OperationTerms, String> {
    let WrittenTerms {
        window_per_minute,
        first_party_per_minute,
        consumes,
        cost,
        settle,
        idempotency,
    } = written;
    for (name, limit) in [
        ("window_per_minute", window_per_minute),
        ("first_party_per_minute", first_party_per_minute),
    ] {
        if let Some(limit) = limit.filter(|limit| !(1..=PER_MINUTE_MAX).contains(limit)) {
            return Err(format!(
                "has `{name}` {limit}; it must be from 1 to {PER_MINUTE_MAX}"
            ));
        }
    }
    if let Some(cost) = cost.filter(|cost| *cost > COST_MAX) {
        return Err(format!(
            "has `cost` {cost}; it must be from 0 to {COST_MAX}"
        ));
    }
    match settle {
        Some(SettlementPoint::Reply) | None => {}
    }
    Ok(OperationTerms {
        per_minute: window_per_minute,
        first_party_per_minute,
        consumes: consumes
            .unwrap_or_else(|| vec![Consumed::Window, Consumed::Month, Consumed::Credits]),
        cost: cost.unwrap_or(COST_DEFAULT),
        idempotency: idempotency.unwrap_or(IdempotencySource::Key),
    })
}
