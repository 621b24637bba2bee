//! Where the scripted outside world listens: a loopback port, and a certificate for names that lead to it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// Answers each connection on a thread of its own, for as long as the process lives. Blocking sockets, so that a site goes on
/// being what it is whatever the test's runtime does.
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

/// A certificate for these names, and as PEM.
pub(crate) fn certificate(names: &[&str]) -> (ServerConfig, String) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions");
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("they fit");
    (config, made.cert.pem())
}
