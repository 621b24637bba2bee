//! Pictures in running text: which of them are written, and which words of theirs.
//!
//! It must know nothing of how they are written. A page may show a picture a hundred thousand times, so what stands around
//! one is read once for all that stand there.

use std::collections::{HashMap, HashSet};

use crate::address::Addresses;
use crate::tree::{Id, ROOT, Tree, collapse_into};

/// Elements above a picture in which its name is looked for, and the bytes of their text.
const CARD_LEVELS: usize = 4;
const CARD_BYTES_MAX: usize = 400;
/// Cards that are remembered: those around one place are few.
const CARDS_MAX: usize = 64;

/// The pictures of a page while it is written.
#[derive(Default)]
pub(crate) struct Pictures {
    /// The address of the one that was written last.
    last: String,
    /// The words of elements that have few.
    cards: HashMap<Id, Option<HashSet<String>>>,
}

impl Pictures {
    /// The address and the alternative text of the picture at `id`. None of one without an address, or right behind itself.
    pub(crate) fn next(
        &mut self,
        tree: &Tree,
        id: Id,
        addresses: &mut Addresses<'_>,
    ) -> Option<(String, String)> {
        let address = addresses
            .picture(|name| tree.attribute(id, name))
            .filter(|address| *address != self.last)?;
        let mut alt = String::new();
        collapse_into(tree.attribute(id, "alt").unwrap_or_default(), &mut alt);
        alt.truncate(alt.trim_end().len());
        if self.is_said_beside(tree, id, &alt) {
            alt.clear();
        }
        self.last.clone_from(&address);
        Some((address, alt))
    }

    /// Whether the text around a picture says most of what its alternative says: a card's name, a caption. A name of a
    /// file says nothing.
    fn is_said_beside(&mut self, tree: &Tree, id: Id, alt: &str) -> bool {
        if !alt.contains(' ') && alt.contains(['_', '.']) {
            return true;
        }
        let said: Vec<String> = words(alt).collect();
        if said.is_empty() {
            return false;
        }
        let mut around = id;
        let mut card = None;
        for _ in 0..CARD_LEVELS {
            around = tree.parent(around);
            if self.card(tree, around).is_none() {
                break;
            }
            card = Some(around);
        }
        let Some(card) = card.and_then(|card| self.card(tree, card)) else {
            return false;
        };
        let found = said.iter().filter(|word| card.contains(*word)).count();
        found * 3 >= said.len() * 2
    }

    /// The words of an element, if they are few.
    fn card(&mut self, tree: &Tree, id: Id) -> Option<&HashSet<String>> {
        if self.cards.len() > CARDS_MAX && !self.cards.contains_key(&id) {
            self.cards.clear();
        }
        let read = || {
            let text = tree.text_of(id, CARD_BYTES_MAX);
            (id != ROOT && text.len() <= CARD_BYTES_MAX).then(|| words(&text).collect())
        };
        self.cards.entry(id).or_insert_with(read).as_ref()
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 3);
    words.take(CARD_BYTES_MAX).map(str::to_lowercase)
}
