//! Certificates that a test makes.

use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// A certificate that vouches for itself, and its key.
pub(crate) struct Certificate(CertifiedKey<KeyPair>);

impl Certificate {
    /// For these host names.
    pub(crate) fn of(hosts: &[&str]) -> Self {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Self(rcgen::generate_simple_self_signed(hosts).expect("a certificate"))
    }

    /// Writes the certificate, as PEM.
    pub(crate) fn write(&self, path: &Path) {
        std::fs::write(path, self.0.cert.pem()).expect("it is written");
    }

    /// Writes the key, as PEM.
    pub(crate) fn write_key(&self, path: &Path) {
        std::fs::write(path, self.0.signing_key.serialize_pem()).expect("it is written");
    }

    /// TLS with it, and with these protocols above.
    pub(crate) fn server(&self, protocols: &[&str]) -> ServerConfig {
        let key = PrivateKeyDer::try_from(self.0.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions");
        let chain = vec![self.0.cert.der().clone()];
        let mut config = config
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("they fit");
        config.alpn_protocols = protocols
            .iter()
            .map(|protocol| protocol.as_bytes().to_vec())
            .collect();
        config
    }
}
