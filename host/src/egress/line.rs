//! One line to a server and its answer to the end of the stream, for WHOIS and what is like it.
//!
//! The order is that of a request (`fetch`): the verdict stands before the name is looked up, and that before anything is
//! dialled. Must not know what a line asks for, nor log any of it.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::EgressClient;
use super::audit::HopAudit;
use super::message::{FetchError, Late, SizeExcess, within};
use super::policy;
use super::policy::Host;
use super::traffic::{BEGINNING_BYTES, TrafficShare};
use crate::contract::grants::Grants;
use crate::contract::tenant::Tenant;

/// The longest line without its end, in bytes.
const LINE_BYTES_MAX: usize = 1024;
/// The answer where the plugin asks for no other limit, and the most that it may ask for, in bytes.
const RESPONSE_BYTES: (usize, usize) = (256 << 10, 1 << 20);
/// For a whole query, by default and at most.
const TOTAL: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
/// For each next piece of the answer, by default and at most.
const IDLE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));
/// Room for one piece of the answer, in bytes.
const PIECE_BYTES: usize = 8 << 10;

/// A query as the plugin made it.
#[derive(Clone, Debug)]
pub(crate) struct LineQuery {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Without its end.
    pub(crate) line: String,
    pub(crate) response_bytes: Option<usize>,
    pub(crate) total: Option<Duration>,
    pub(crate) idle: Option<Duration>,
}

impl EgressClient {
    /// Makes one query for a tenant and gives back the whole answer.
    ///
    /// # Errors
    /// It was denied, before anything was looked up or dialled, or it came to no whole answer within its caps.
    pub(crate) async fn query_line(
        &self,
        tenant: &Tenant,
        query: LineQuery,
    ) -> Result<Vec<u8>, FetchError> {
        let total = within(query.total, TOTAL);
        let mut audit = HopAudit::begin("line query", self, Instant::now() + total);
        let asked = tokio::time::timeout(total, self.ask(tenant, &query, &mut audit)).await;
        let answer = asked.unwrap_or(Err(FetchError::Late(Late::Total)));
        match &answer {
            Ok(answer) => audit.ended(answer.len()),
            Err(error) => audit.failed(error),
        }
        answer
    }

    async fn ask(
        &self,
        tenant: &Tenant,
        query: &LineQuery,
        audit: &mut HopAudit<'_>,
    ) -> Result<Vec<u8>, FetchError> {
        let line = written(&query.line)?;
        audit.aimed(|| Some((policy::told(&query.host), query.port)));
        let host = Host::read(&query.host)?;
        audit.at(&host, query.port);
        let by = |rights: &Grants| host.permit_line(query.port, rights);
        self.permit(&host, query.port, by)?;
        let bytes_max = within(query.response_bytes, RESPONSE_BYTES);
        let share = self.traffic.share(tenant);
        let _place = share.place(0).await?;
        let stream = self.egress.connect(&host, query.port, audit).await?;
        exchange(stream, &line, bytes_max, within(query.idle, IDLE), &share).await
    }
}

/// The line as it is sent. One that had an end of its own would be two.
fn written(line: &str) -> Result<Vec<u8>, FetchError> {
    if line.len() > LINE_BYTES_MAX {
        let bytes = line.len();
        let rule = format!("has a line of {bytes} bytes; at most {LINE_BYTES_MAX} are allowed");
        return Err(FetchError::Invalid(rule));
    }
    if line.contains(char::is_control) {
        let rule = "has a control character in its line".to_owned();
        return Err(FetchError::Invalid(rule));
    }
    Ok([line.as_bytes(), b"\r\n"].concat())
}

/// Sends the line and reads to the end. The connection is closed when this returns.
async fn exchange(
    mut stream: TcpStream,
    line: &[u8],
    bytes_max: usize,
    idle: Duration,
    share: &TrafficShare,
) -> Result<Vec<u8>, FetchError> {
    in_time(idle, stream.write_all(line)).await?;
    let (mut answer, mut room) = (Vec::new(), None);
    loop {
        if answer.len() + PIECE_BYTES > BEGINNING_BYTES && room.is_none() {
            room = Some(share.answer(bytes_max).await?);
        }
        answer.reserve(PIECE_BYTES);
        if in_time(idle, stream.read_buf(&mut answer)).await? == 0 {
            return Ok(answer);
        }
        if answer.len() > bytes_max {
            return Err(FetchError::TooLarge(SizeExcess::Body));
        }
    }
}

async fn in_time<T>(
    idle: Duration,
    done: impl Future<Output = io::Result<T>>,
) -> Result<T, FetchError> {
    match tokio::time::timeout(idle, done).await {
        Err(_) => Err(FetchError::Late(Late::Idle)),
        Ok(Err(_)) => Err(FetchError::bad("the connection broke")),
        Ok(Ok(done)) => Ok(done),
    }
}
