//! Servers of the outside world that speak no HTTP, or none that a library could write.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Answers each connection on a thread of its own, for as long as the process lives. Blocking sockets, so that a server goes on
/// being hostile whatever the test's runtime does.
pub(crate) fn listen(
    answer: impl Fn(TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            // A client that goes away in the middle ends its connection, and nothing else.
            std::thread::spawn(move || answer(stream).ok());
        }
    });
    address
}
