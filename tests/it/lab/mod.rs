//! The outside world on loopback: real servers, and scripted ones for what real ones do not do. Its data is in `tests/lab`.
//!
//! [`HttpServer`] is the one server of HTTP; [`Sites`], [`Pages`] and what a subject adds are scripts for it. [`listen`] is for
//! what is no HTTP.

mod certificate;
pub(crate) mod dns;
mod http;
mod pages;
mod raw;
mod sites;

pub(crate) use certificate::Certificate;
pub(crate) use http::{ANY_HOST, HttpServer, Reply, Then, Visit};
pub(crate) use pages::Pages;
pub(crate) use raw::listen;
pub(crate) use sites::{Sites, public_row};
