//! A page as the blocks of text that a reader sees, with what is counted of each.
//!
//! It must know nothing of what is content. A block is the running text of one block element between two others of its
//! children: a paragraph, a cell, a heading, a list item's own words.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::hints::Hints;
use crate::lexicon::{self, TOPICS};
use crate::tag::Tag;
use crate::tree::{Id, NONE, ROOT, Step, Tree};

/// Blocks of a page; text behind them belongs to the last.
const BLOCKS_MAX: usize = 60_000;

/// A page's blocks in document order, and what is known of its elements.
#[derive(Debug)]
pub(crate) struct BlockList {
    pub(crate) blocks: Vec<Block>,
    /// For each node of the tree.
    pub(crate) places: Vec<Place>,
}

/// A run of text.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The element that it stands in.
    pub(crate) container: Id,
    /// Its hints and those of all elements above it.
    pub(crate) hints: Hints,
    /// The hints of its container and of the two elements above that.
    pub(crate) near: Hints,
    pub(crate) counts: Counts,
    /// Blocks of the page with the same text, itself included.
    pub(crate) copies: u32,
    /// Those of them that stand before it.
    pub(crate) earlier: u32,
    hash: u64,
}

/// What is counted of a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) words: u32,
    /// Words in links.
    pub(crate) linked: u32,
    pub(crate) links: u32,
    pub(crate) letters: u32,
    pub(crate) digits: u32,
    /// Words that begin with a capital letter.
    pub(crate) capitals: u32,
    /// Commas, and what ends sentences.
    pub(crate) stops: u32,
    /// Short words in small letters: in most languages the ones that bind sentences.
    pub(crate) short: u32,
    pub(crate) images: u32,
    /// Sums of money.
    pub(crate) prices: u32,
    /// Words by topic.
    pub(crate) topics: [u16; TOPICS],
    /// Words that the page's title has, and that its description has.
    pub(crate) in_title: u32,
    pub(crate) in_description: u32,
    /// Whether the last word ends a sentence.
    pub(crate) ends: bool,
}

/// What is known of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The block that a text or an image belongs to, or [`NONE`].
    pub(crate) block: Id,
    /// Of an element: what is in it.
    pub(crate) words: u32,
    pub(crate) linked: u32,
    /// Of an element: its siblings of the same name and class, itself included.
    pub(crate) alike: u32,
    hints: Hints,
}

/// Splits a page into its blocks.
pub(crate) fn read(tree: &Tree, title: &str, description: &str) -> BlockList {
    let place = Place {
        block: NONE,
        words: 0,
        linked: 0,
        alike: 1,
        hints: Hints::default(),
    };
    let mut reader = BlockReader {
        tree,
        page: BlockList {
            blocks: Vec::new(),
            places: vec![place; tree.nodes.len()],
        },
        containers: Vec::new(),
        open: false,
        link: 0,
        breaks: 0,
        title: words(title),
        description: words(description),
    };
    reader.read();
    count_copies(&mut reader.page.blocks);
    reader.page
}

struct BlockReader<'a> {
    tree: &'a Tree,
    page: BlockList,
    /// The open block elements, with the hints of all above.
    containers: Vec<(Id, Hints)>,
    /// Whether the last block goes on.
    open: bool,
    /// Open links.
    link: u32,
    /// `<br>` since the last text.
    breaks: u32,
    title: HashSet<u64>,
    description: HashSet<u64>,
}

/// The words of a text that is long enough to tell it from others.
fn words(text: &str) -> HashSet<u64> {
    text.split_whitespace().filter_map(word_hash).collect()
}

/// A hash of a word without its punctuation and case; none of a short one.
fn word_hash(word: &str) -> Option<u64> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    if word.len() < 4 {
        return None;
    }
    let fold = |hash: u64, byte: u8| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
    };
    Some(word.bytes().fold(0xcbf2_9ce4_8422_2325, fold))
}

impl BlockReader<'_> {
    fn read(&mut self) {
        let mut walk = self.tree.walk(ROOT);
        while let Some(step) = walk.next() {
            match step {
                Step::Enter(id) => {
                    if self.enter(id) {
                        walk.skip_children();
                    }
                }
                Step::Leave(id) => self.leave(id),
            }
        }
    }

    /// True where nothing in the node is read.
    fn enter(&mut self, id: Id) -> bool {
        if let Some(text) = self.tree.text(id) {
            match text.trim().is_empty() {
                false => self.text(id, text),
                // It parts the words of the block that goes on; between two blocks it parts nothing.
                true if self.open => self.page.places[id as usize].block = self.last_block(),
                true => {}
            }
            return false;
        }
        let Some(element) = self.tree.element(id) else {
            return false;
        };
        let own = Hints::of(element);
        let above = self.hints();
        self.page.places[id as usize].hints = own;
        match element.tag {
            tag if tag.is_unread() => return true,
            Tag::Br => {
                self.breaks += 1;
                self.open &= self.breaks < 2;
            }
            Tag::Img => self.image(id),
            Tag::A if element.attribute("href").is_some() => self.link += 1,
            tag if tag.is_block() => {
                self.open = false;
                self.count_alike(id);
            }
            _ => {}
        }
        self.containers.push((id, above.and(own)));
        false
    }

    fn leave(&mut self, id: Id) {
        let Some(element) = self.tree.element(id) else {
            return;
        };
        if element.tag.is_unread() {
            return;
        }
        self.containers.pop();
        if element.tag.is_block() {
            self.open = false;
        }
        if element.tag == Tag::A && element.attribute("href").is_some() {
            self.link -= 1;
        }
        let Place { words, linked, .. } = self.page.places[id as usize];
        if let Some(parent) = self.page.places.get_mut(self.tree.parent(id) as usize) {
            parent.words += words;
            parent.linked += linked;
        }
    }

    fn hints(&self) -> Hints {
        self.containers
            .last()
            .map(|(_, hints)| *hints)
            .unwrap_or_default()
    }

    /// The block that text or an image at this place belongs to.
    fn block(&mut self) -> usize {
        if !self.open && self.page.blocks.len() < BLOCKS_MAX || self.page.blocks.is_empty() {
            let is_container = |(id, _): &&(Id, Hints)| self.tree.tag(*id).is_block();
            let container = self
                .containers
                .iter()
                .rev()
                .find(is_container)
                .map_or(ROOT, |(id, _)| *id);
            let near = self.containers.iter().rev().take(3);
            let near = near.fold(Hints::default(), |near, (id, _)| {
                near.and(self.page.places[*id as usize].hints)
            });
            let (hints, counts) = (self.hints(), Counts::default());
            self.page.blocks.push(Block {
                container,
                hints,
                near,
                counts,
                copies: 1,
                earlier: 0,
                hash: 0,
            });
            self.open = true;
        }
        self.page.blocks.len() - 1
    }

    fn last_block(&self) -> Id {
        self.page
            .blocks
            .len()
            .checked_sub(1)
            .and_then(|at| Id::try_from(at).ok())
            .unwrap_or(NONE)
    }

    fn text(&mut self, id: Id, text: &str) {
        let at = self.block();
        self.breaks = 0;
        let counted = count(text, &self.title, &self.description);
        let block = &mut self.page.blocks[at];
        let mut hash = DefaultHasher::new();
        (block.hash, text.trim()).hash(&mut hash);
        block.hash = hash.finish();
        let counts = &mut block.counts;
        counts.words += counted.words;
        counts.letters += counted.letters;
        counts.digits += counted.digits;
        counts.capitals += counted.capitals;
        counts.stops += counted.stops;
        counts.short += counted.short;
        counts.prices += counted.prices;
        counts.ends = counted.ends;
        counts.in_title += counted.in_title;
        counts.in_description += counted.in_description;
        for (topic, words) in counts.topics.iter_mut().zip(counted.topics) {
            *topic = topic.saturating_add(words);
        }
        let linked = if self.link > 0 { counted.words } else { 0 };
        counts.linked += linked;
        counts.links += u32::from(self.link > 0);
        self.page.places[id as usize].block = Id::try_from(at).unwrap_or(NONE);
        if let Some((parent, _)) = self.containers.last() {
            let place = &mut self.page.places[*parent as usize];
            place.words += counted.words;
            place.linked += linked;
        }
    }

    fn image(&mut self, id: Id) {
        let at = self.block();
        self.page.blocks[at].counts.images += 1;
        self.page.places[id as usize].block = Id::try_from(at).unwrap_or(NONE);
    }

    /// Counts the children of an element that look alike: what a list or a grid is made of.
    fn count_alike(&mut self, parent: Id) {
        let look = |id: Id| {
            let element = self.tree.element(id)?;
            let mut hash = DefaultHasher::new();
            let class = element.attribute("class").unwrap_or_default();
            (element.tag, class.split_whitespace().next()).hash(&mut hash);
            Some(hash.finish())
        };
        let mut looks: HashMap<u64, u32> = HashMap::new();
        for look in self.tree.children(parent).filter_map(look) {
            *looks.entry(look).or_default() += 1;
        }
        if looks.values().all(|alike| *alike < 2) {
            return;
        }
        for child in self.tree.children(parent) {
            if let Some(alike) = look(child).and_then(|look| looks.get(&look)) {
                self.page.places[child as usize].alike = *alike;
            }
        }
    }
}

fn count(text: &str, title: &HashSet<u64>, description: &HashSet<u64>) -> Counts {
    let mut counts = Counts::default();
    for word in text.split_whitespace() {
        let mut letters = 0;
        let mut lower = true;
        for (at, c) in word.chars().enumerate() {
            match c {
                '.' | ',' | ';' | '!' | '?' | '。' | '、' | '，' | '！' | '？' => {
                    counts.stops += 1;
                }
                c if c.is_ascii_digit() => counts.digits += 1,
                c if c.is_alphanumeric() => {
                    letters += 1;
                    lower &= !c.is_uppercase();
                    counts.capitals += u32::from(at == 0 && c.is_uppercase());
                }
                _ => {}
            }
        }
        if let Some(topic) = lexicon::topic(word) {
            let words = &mut counts.topics[topic as usize];
            *words = words.saturating_add(1);
        }
        if let Some(hash) = word_hash(word) {
            counts.in_title += u32::from(title.contains(&hash));
            counts.in_description += u32::from(description.contains(&hash));
        }
        counts.letters += letters;
        counts.prices += u32::from(is_price(word));
        counts.short += u32::from(lower && (1..=3).contains(&letters));
        // Scripts without spaces: two letters count as a word.
        let is_unspaced = word
            .chars()
            .next()
            .is_some_and(|c| ('\u{3040}'..='\u{9fff}').contains(&c));
        counts.words += if is_unspaced { (letters / 2).max(1) } else { 1 };
        counts.ends = word.ends_with(['.', '!', '?', '。', '！', '？', '…', ':']);
    }
    counts
}

/// Whether a word is a currency's sign with digits.
fn is_price(word: &str) -> bool {
    word.contains(['$', '€', '£', '¥', '₹']) && word.contains(|c: char| c.is_ascii_digit())
}

fn count_copies(blocks: &mut [Block]) {
    let mut copies: HashMap<u64, u32> = HashMap::new();
    for block in blocks.iter_mut() {
        let before = copies.entry(block.hash).or_default();
        block.earlier = *before;
        *before += 1;
    }
    for block in blocks {
        block.copies = copies.get(&block.hash).copied().unwrap_or(1);
    }
}
