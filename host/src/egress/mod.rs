//! What leaves this process. Nothing else opens a connection outwards, and each kind of traffic has a file that says where
//! it may go.

mod operators_own;

pub(crate) use operators_own::{FetchError, OperatorsOwn};
