//! What providers' answers have in common.
//!
//! They are read leniently and within bounds: one odd result must not cost the others.

use switchbay_sdk::lenient::First;

use crate::Format;

/// A list of results, as far as it is kept.
pub(super) type FirstHits<T> = First<T, 100>;

/// What a provider answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SearchAnswer {
    pub(super) hits: Vec<Hit>,
    /// Something that the provider asks did not answer: without a hit, this is no empty result.
    pub(super) is_outage: bool,
}

/// One result, as the provider wrote it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) url: String,
    pub(super) title: String,
    pub(super) snippet: String,
    pub(super) content: Option<(String, Format)>,
}
