//! The two listeners: what stands between a socket and the road. Reads requests and prints answers, and decides nothing of a
//! call.

pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod operator;
pub(crate) mod rest;
