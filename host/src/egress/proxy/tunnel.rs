//! `CONNECT`: bytes both ways between a client and a destination that was judged. Nothing reads them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

use super::client::{PassageEnd, ProxyFlow};
use super::credential::LeaseGrant;
use super::head::ProxyRequest;
use super::refusal;
use super::refusal::ProxyRefusal;
use crate::egress::audit::HopAudit;
use crate::egress::message::{FetchError, Late};

/// What a client is told before its bytes go on.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Opens a tunnel to a host and a port, and holds it until one of its ends, its time or its credential is over.
pub(super) async fn serve(
    mut stream: TcpStream,
    early: Bytes,
    asked: &ProxyRequest,
    end: &PassageEnd<'_>,
) {
    let (grant, flow) = (end.grant, Arc::new(ProxyFlow::default()));
    let mut audit = end.audit("tunnel", &flow);
    let Some(_place) = grant.door.traffic.tunnel() else {
        audit.came_to(ProxyRefusal::Tunnels.verdict());
        return refusal::send(stream, &ProxyRefusal::Tunnels).await;
    };
    let opened = tokio::select! {
        opened = open(asked, grant, &mut audit) => opened,
        () = flow.over(end) => Err(FetchError::Late(Late::Total)),
    };
    let mut upstream = match opened {
        Ok(upstream) => upstream,
        Err(error) => {
            audit.failed(&error);
            return refusal::send(stream, &error.into()).await;
        }
    };
    if stream.write_all(ESTABLISHED).await.is_err() {
        return;
    }
    let mut client = end.client(stream, early, &flow);
    tokio::select! {
        biased;
        ended = copy_bidirectional(&mut client, &mut upstream) => audit.came_to(match ended {
            Ok(_) => "sent",
            Err(_) => "broken",
        }),
        () = flow.over(end) => {}
    }
}

/// The verdict, and then a connection to the first of the destination's addresses that takes one.
async fn open(
    asked: &ProxyRequest,
    grant: &LeaseGrant,
    audit: &mut HopAudit<'_>,
) -> Result<TcpStream, FetchError> {
    let door = &grant.door;
    audit.aimed(|| asked.aim());
    let to = door.judge(asked.destination(), asked.way(), audit)?;
    door.egress.connect(to.host(), to.port(), audit).await
}
