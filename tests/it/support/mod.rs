//! What the subjects share: a running server, and a client that reads its answers.

mod answer;
mod compiled;
mod dev;
mod guest;
mod issuer;
mod keeps;
mod metered;
mod minute;
mod operator;
mod post;
mod program;
mod service;
mod streams;
mod wire;

pub(crate) use answer::{Answer, members};
pub(crate) use compiled::lend_compiled;
pub(crate) use dev::Dev;
pub(crate) use guest::{built, described_by, describing, good, operation};
pub(crate) use issuer::{Document, Issuer, KEYS, METADATA, Signer, claims, encode, now_s};
pub(crate) use keeps::{Keeps, keeps_anew};
pub(crate) use metered::Metered;
pub(crate) use minute::{in_one_minute, in_one_second};
pub(crate) use operator::{command, operator};
pub(crate) use post::{META_CAPABILITIES, META_VERSION, MODERN, Post, failure, outcome, request};
pub(crate) use program::{ensure, path};
pub(crate) use service::{LAB_TOKEN, Options, Service, binary, build, issue, workspace};
pub(crate) use streams::{
    Body, Connection, ask, dial, get, get_from, post_held, post_mcp, streams, with,
};
pub(crate) use wire::{Held, Wire, in_time};
