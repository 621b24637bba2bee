//! The outside world on loopback: real servers, and scripted ones for what real ones do not do. Its data is in `tests/lab`.

pub(crate) mod dns;
