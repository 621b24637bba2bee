//! A pattern of robots.txt that is more than the begin of a path.
//!
//! It must know nothing of rules. Matching is linear in the path and the pattern: the leftmost place of each part is as good
//! as any other.

use memchr::memmem;

/// Parts between stars, in one form, and perhaps the end of the path behind them.
#[derive(Debug)]
pub(super) struct Wildcard {
    /// In one form (see [`crate::octets`]), so that each `*` is a star.
    pub(super) text: Vec<u8>,
    /// It ends with `$`.
    pub(super) is_anchored: bool,
}

impl Wildcard {
    /// Octets of the pattern, by which the most specific rule is found.
    pub(super) fn octets(&self) -> usize {
        self.text.len() + usize::from(self.is_anchored)
    }

    /// Whether it matches a path with its query, in one form.
    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let mut parts = self.text.split(|octet| *octet == b'*').peekable();
        let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
            return false;
        };
        while let Some(part) = parts.next() {
            if parts.peek().is_none() && self.is_anchored {
                return rest.ends_with(part);
            }
            let Some(at) = memmem::find(rest, part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        !self.is_anchored || rest.is_empty()
    }
}
