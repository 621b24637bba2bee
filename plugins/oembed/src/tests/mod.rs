//! The pure parts, natively: which URLs are whose, and what hostile markup becomes.

mod hostile;
mod markup;
mod urls;
