//! The 16 queries of a lookup, asked at once.
//!
//! Which resolver a name stands for is the operator's configuration; what an answer says is `query`'s to read.

use futures::future::join_all;
use switchbay_sdk::dns::{self, Error, Question};

use crate::hostname::Hostname;
use crate::kind::{ASKED, Kind};
use crate::lookup::Provider;
use crate::query::{Failed, Outcome};

/// The time of one query.
const QUERY_MS: u32 = 5000;

/// What became of each query, in the order of [`ASKED`].
pub(crate) async fn all(domain: &Hostname, provider: Provider) -> Vec<Outcome> {
    join_all(ASKED.iter().map(|kind| one(domain, provider, kind))).await
}

async fn one(domain: &Hostname, provider: Provider, kind: &Kind) -> Outcome {
    let question = Question::new(provider.name(), domain.as_str(), kind.code).within_ms(QUERY_MS);
    Outcome::of(
        dns::query(question).await.map_err(failed),
        domain.as_str(),
        kind,
    )
}

fn failed(error: Error) -> Failed {
    match error {
        Error::Late => Failed::Late,
        Error::BadResponse(_) => Failed::Bad,
        Error::Denied(_) | Error::InvalidRequest(_) | Error::Busy | Error::Unreachable => {
            Failed::Unreachable
        }
    }
}
