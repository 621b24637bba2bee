//! Pages of the outside world that the tests can hold back, and that know who asked for them.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use super::{HttpServer, Reply, Visit, public_row};

/// Sites on a loopback port, for as long as the process lives.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) address: SocketAddr,
    hosts: Arc<[String]>,
    server: HttpServer,
    /// Beginnings of paths that are not answered yet.
    held: Arc<watch::Sender<HashSet<String>>>,
}

impl Pages {
    /// Sites of these hosts on port 80, which answer so.
    pub(crate) fn serve(
        hosts: &[&str],
        reply: impl Fn(&Visit) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let held: Arc<watch::Sender<HashSet<String>>> = Arc::default();
        let holding = Arc::clone(&held);
        let server = HttpServer::patient(move |visit| {
            let (reply, mut held) = (reply(&visit), holding.subscribe());
            async move {
                let is_free =
                    |held: &HashSet<String>| !held.iter().any(|held| visit.path.starts_with(held));
                held.wait_for(is_free).await.expect("the pages stay");
                reply
            }
        });
        Self {
            address: server.listen(None),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            server,
            held,
        }
    }

    /// The configuration that leads guests here.
    pub(crate) fn configuration(&self) -> String {
        let rows: Vec<String> = self
            .hosts
            .iter()
            .map(|host| public_row(&format!("{host}:80"), self.address))
            .collect();
        format!("[egress]\nconnect_to = {{ {} }}\n", rows.join(", "))
    }

    /// Holds back every page whose path begins so.
    pub(crate) fn hold(&self, path: &str) {
        self.held.send_modify(|held| {
            held.insert(path.to_owned());
        });
    }

    /// Answers them.
    pub(crate) fn release(&self, path: &str) {
        self.held.send_modify(|held| {
            held.remove(path);
        });
    }

    /// All requests, in their order.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.server.visits()
    }

    /// All paths that begin so and were asked for, in their order.
    pub(crate) fn asked(&self, path: &str) -> Vec<String> {
        self.visits()
            .into_iter()
            .map(|visit| visit.path)
            .filter(|asked| asked.starts_with(path))
            .collect()
    }

    /// The most requests that were under way at once for a host.
    pub(crate) fn most_at_once(&self, host: &str) -> usize {
        self.server.most_at_once(host)
    }

    /// Waits until a page was asked for.
    pub(crate) async fn until_asked(&self, path: &str) {
        self.until_asked_often(path, 1).await;
    }

    /// Waits until pages were asked for so often.
    pub(crate) async fn until_asked_often(&self, path: &str, often: usize) {
        let is_one = |visit: &Visit| visit.path.starts_with(path);
        self.server.until(path, often, is_one).await;
    }

    /// Waits until a client went away before it had the page.
    pub(crate) async fn until_gone(&self, path: &str) {
        self.until_gone_often(path, 1).await;
    }

    /// Waits until so many clients did.
    pub(crate) async fn until_gone_often(&self, path: &str, often: usize) {
        let is_one = |visit: &Visit| visit.gone && visit.path.starts_with(path);
        self.server.until(path, often, is_one).await;
    }
}
