//! First-party browsers: requests without a credential from the operator's own web pages, known by their address alone.
//!
//! A page's origin is what the browser says it is, and anybody else may say the same: it opens no more than the allowance for
//! each address (`places::peer`).

use http::HeaderValue;

/// Which pages are the operator's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstParty {
    origins: Vec<String>,
}

impl FirstParty {
    pub(crate) fn new(origins: Vec<String>) -> Self {
        Self { origins }
    }

    /// Whether browsers may call from pages of this origin.
    pub(crate) fn allows(&self, origin: &HeaderValue) -> bool {
        self.origins
            .iter()
            .any(|allowed| origin == allowed.as_str())
    }
}
