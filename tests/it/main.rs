//! The black-box tests: one binary, real sockets, real components built by `switchbay build`.
//!
//! Each file is a subject. Nothing here links the host: what the wire cannot show is not promised.

#![expect(
    clippy::disallowed_methods,
    reason = "a test's tasks end with its runtime"
)]

mod lab;
mod support;

mod accounts;
mod bank_qr;
mod cache;
mod compile;
mod compression;
mod credentials;
mod credits;
mod data;
mod data_folder;
mod dev;
mod discovery;
mod dns;
mod documents;
mod domain_dns;
mod domain_whois;
mod drain;
mod egress;
mod features;
mod first_party;
mod hostile;
mod ip_info;
mod jobs;
mod keys;
mod killed;
mod life;
mod malformed;
mod mcp_auth;
mod mcp_documents;
mod mcp_legacy;
mod mcp_modern;
mod mcp_tools;
mod mcp_transport;
mod metrics;
mod oauth;
mod oauth_keys;
mod oauth_tls;
mod oauth_tokens;
mod oembed;
mod openapi;
mod operations;
mod parity;
mod peers;
mod quota;
mod reading;
mod rest;
mod secrets;
mod shares;
mod siege;
mod startup;
mod state;
mod tidy;
mod toolchain;
mod transport;
mod transport_deadlines;
mod transport_h2;
mod unsent;
mod usage;
mod web_data;
mod windows;
mod wrong;
