//! Tells that a page shows its content only to a browser that runs its scripts.
//!
//! It must know nothing of browsers: one function of what a server answered, so that the same page is always judged alike.

use crate::tag::Tag;
use crate::tree::{ROOT, Tree};

/// Words below which a page may be a shell.
const SHELL_WORDS: u32 = 50;
/// Script bytes for each byte of text from which a page is made by its scripts.
const SCRIPT_SHARE: usize = 200;
/// Elements that scripts fill.
const MOUNTS: [&str; 8] = [
    "root",
    "app",
    "__next",
    "__nuxt",
    "___gatsby",
    "app-root",
    "main-outlet",
    "svelte",
];
/// What answers a request that a site takes for a robot's.
const CHALLENGES: [&str; 3] = [
    "/cdn-cgi/challenge-platform/",
    "_Incapsula_",
    "captcha-delivery.com",
];

/// Why a page needs a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The element that its scripts fill is empty.
    EmptyMount,
    /// It asks to have scripts switched on.
    AsksForScripts,
    /// It is nearly all scripts.
    ScriptsAlone,
    /// It shows other pages in frames.
    Frames,
    /// It wants to see that its reader is no robot.
    Challenge,
}

/// What is known of an answer.
pub(crate) struct PageSigns<'a> {
    pub(crate) status: u16,
    pub(crate) page: &'a str,
    pub(crate) tree: &'a Tree,
    pub(crate) script_bytes: usize,
    pub(crate) has_frames: bool,
    /// Words of the page, kept or not.
    pub(crate) words: u32,
}

/// Why a page needs a browser; most do not.
pub(crate) fn needed(answer: &PageSigns<'_>) -> Option<Reason> {
    let is_refusal = matches!(answer.status, 403 | 429 | 503);
    if is_refusal
        && CHALLENGES
            .iter()
            .any(|mark| memchr::memmem::find(answer.page.as_bytes(), mark.as_bytes()).is_some())
    {
        return Some(Reason::Challenge);
    }
    if answer.words >= SHELL_WORDS {
        return None;
    }
    if answer.has_frames {
        return Some(Reason::Frames);
    }
    let tree = answer.tree;
    let mut asks = false;
    for (id, element) in tree.elements(ROOT) {
        let name = element.attribute("id").unwrap_or(&element.name.local);
        if MOUNTS.contains(&name) && tree.text_of(id, 64).len() < 64 {
            return Some(Reason::EmptyMount);
        }
        if element.tag == Tag::Noscript {
            asks |= tree
                .text_of(id, 1024)
                .to_ascii_lowercase()
                .contains("javascript");
        }
    }
    let is_script = answer.script_bytes > SCRIPT_SHARE * (answer.words as usize + 1);
    match (asks, is_script) {
        (true, _) => Some(Reason::AsksForScripts),
        (false, true) => Some(Reason::ScriptsAlone),
        (false, false) => None,
    }
}
