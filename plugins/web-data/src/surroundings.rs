//! What stands around a block: the blocks that look like it, the section it is in, the elements above it as wholes.
//!
//! It must know nothing of weights. A list's entries, a forum's posts and a shop's reviews are told apart by what their
//! group has in common; a single entry seldom says it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::blocks::{Block, BlockList, Counts};
use crate::lexicon::{TOPICS, Topic};
use crate::tree::{Id, NONE, Tree};

/// Elements above a block that its look is made of, for near kin and for nearer.
const LOOKS: [usize; 2] = [3, 6];
/// Elements above a block that are summed up.
const SUMMED: usize = 10;
/// Of these, the ones that are measured.
const LEVELS: [usize; 5] = [1, 2, 3, 4, 6];
/// What the elements above are asked for.
const ASKED: [Topic; 8] = [
    Topic::Trade,
    Topic::Legal,
    Topic::Account,
    Topic::Related,
    Topic::Thread,
    Topic::Review,
    Topic::Time,
    Topic::Detail,
];
/// Headings that what follows is judged by, however far it is.
const TURNS: [Topic; 5] = [
    Topic::Related,
    Topic::Review,
    Topic::Comment,
    Topic::Legal,
    Topic::Detail,
];

const OF_LOOK: usize = 9;
const OF_LEVEL: usize = 6 + ASKED.len();
/// Measures of a block's surroundings.
pub(crate) const SURROUNDINGS: usize =
    2 + LOOKS.len() * OF_LOOK + TOPICS + 2 + TURNS.len() + LEVELS.len() * OF_LEVEL;

/// What is known of a page's groups, sections and elements.
pub(crate) struct Surroundings {
    words: u32,
    /// Words before each block.
    before: Vec<u32>,
    /// For each kind of look the group of each block.
    groups: Vec<Vec<usize>>,
    looks: Vec<Vec<BlockGroup>>,
    /// The last heading of a first or second level before each block.
    sections: Vec<Option<usize>>,
    /// For each block and turn the words since such a heading.
    turns: Vec<[Option<u32>; TURNS.len()]>,
    /// For each node its place among the sums, or [`NONE`].
    places: Vec<Id>,
    sums: Vec<Sum>,
}

/// Blocks that look alike.
#[derive(Clone, Default)]
struct BlockGroup {
    blocks: u32,
    words: u32,
    linked: u32,
    stops: u32,
    logs: f32,
    copies: u32,
    first: usize,
    last: usize,
}

/// What the blocks of an element come to.
#[derive(Clone, Copy, Default)]
struct Sum {
    blocks: u32,
    counts: Counts,
}

/// Looks around every block of a page.
pub(crate) fn read(tree: &Tree, page: &BlockList) -> Surroundings {
    let mut found = Surroundings {
        words: 0,
        before: Vec::with_capacity(page.blocks.len()),
        groups: Vec::new(),
        looks: Vec::new(),
        sections: Vec::with_capacity(page.blocks.len()),
        turns: Vec::with_capacity(page.blocks.len()),
        places: vec![NONE; tree.nodes.len()],
        sums: Vec::new(),
    };
    let mut section = None;
    let mut turned: [Option<u32>; TURNS.len()] = [None; TURNS.len()];
    for (at, block) in page.blocks.iter().enumerate() {
        found.before.push(found.words);
        found.sections.push(section);
        found
            .turns
            .push(turned.map(|from| from.map(|from| found.words - from)));
        if let Some(level) = tree.tag(block.container).heading() {
            section = if level <= 2 { Some(at) } else { section };
            for (turn, topic) in turned.iter_mut().zip(TURNS) {
                if block.counts.topics[topic as usize] > 0 {
                    *turn = Some(found.words);
                }
            }
        }
        found.words += block.counts.words;
        found.sum(tree, block);
    }
    for levels in LOOKS {
        found.group(tree, page, levels);
    }
    found
}

impl Surroundings {
    /// Kinds of looks.
    pub(crate) const LOOKS: usize = LOOKS.len();

    /// For each kind of look the number of its groups.
    pub(crate) fn groups_of_looks(&self) -> impl Iterator<Item = usize> {
        self.looks.iter().map(Vec::len)
    }

    /// For each kind of look the group of a block.
    pub(crate) fn group_of(&self, block: usize) -> impl Iterator<Item = usize> {
        self.groups.iter().map(move |groups| groups[block])
    }

    /// Adds a block to the elements above it.
    fn sum(&mut self, tree: &Tree, block: &Block) {
        for id in tree.upward(block.container).take(SUMMED) {
            let place = &mut self.places[id as usize];
            if *place == NONE {
                *place = Id::try_from(self.sums.len()).unwrap_or(NONE);
                self.sums.push(Sum::default());
            }
            let sum = &mut self.sums[*place as usize];
            sum.blocks += 1;
            let (all, counts) = (&mut sum.counts, block.counts);
            all.words += counts.words;
            all.linked += counts.linked;
            all.digits += counts.digits;
            all.stops += counts.stops;
            all.short += counts.short;
            all.images += counts.images;
            all.prices += counts.prices;
            for (topic, words) in all.topics.iter_mut().zip(counts.topics) {
                *topic = topic.saturating_add(words);
            }
        }
    }

    /// Puts blocks that look alike together.
    fn group(&mut self, tree: &Tree, page: &BlockList, levels: usize) {
        let mut known: HashMap<u64, usize> = HashMap::new();
        let mut groups: Vec<BlockGroup> = Vec::new();
        let mut of_blocks = Vec::with_capacity(page.blocks.len());
        for (at, block) in page.blocks.iter().enumerate() {
            let place = *known
                .entry(look(tree, block.container, levels))
                .or_insert(groups.len());
            if place == groups.len() {
                groups.push(BlockGroup {
                    first: at,
                    ..BlockGroup::default()
                });
            }
            let group = &mut groups[place];
            group.blocks += 1;
            group.words += block.counts.words;
            group.linked += block.counts.linked;
            group.stops += block.counts.stops;
            group.logs += log(block.counts.words);
            group.copies += u32::from(block.earlier > 0);
            group.last = at;
            of_blocks.push(place);
        }
        self.groups.push(of_blocks);
        self.looks.push(groups);
    }

    /// Measures the surroundings of a block, [`SURROUNDINGS`] numbers.
    pub(crate) fn measure(
        &self,
        tree: &Tree,
        page: &BlockList,
        at: usize,
        mut push: impl FnMut(f32),
    ) {
        let block = &page.blocks[at];
        push(log(block.earlier));
        push(log(block.counts.prices));
        for (groups, looks) in self.groups.iter().zip(&self.looks) {
            let group = &looks[groups[at]];
            let blocks = group.blocks.max(1) as f32;
            push(log(group.blocks));
            push(group.logs / blocks);
            push(log(block.counts.words) - group.logs / blocks);
            push(share(group.linked, group.words));
            push(share(group.stops, group.words).min(1.0));
            push(share(group.words, self.words));
            let spread = self.before[group.last] - self.before[group.first];
            push(share(spread, self.words));
            push(group.copies as f32 / blocks);
            push(share(self.before[group.first], self.words));
        }
        let section = self.sections[at].map(|heading| &page.blocks[heading].counts);
        for topic in 0..TOPICS {
            push(section.map_or(0.0, |counts| {
                share(u32::from(counts.topics[topic]), counts.words)
            }));
        }
        push(section.map_or(0.0, |counts| share(counts.in_title, counts.words)));
        push(self.sections[at].map_or(-1.0, |heading| log(self.before[at] - self.before[heading])));
        for words in self.turns[at] {
            push(words.map_or(-1.0, log));
        }
        self.measure_elements(tree, block, push);
    }

    fn measure_elements(&self, tree: &Tree, block: &Block, mut push: impl FnMut(f32)) {
        let mut id = block.container;
        let mut sum = Sum::default();
        for level in 0..=LEVELS[LEVELS.len() - 1] {
            let place = self.places.get(id as usize);
            if let Some(found) = place.and_then(|place| self.sums.get(*place as usize)) {
                sum = *found;
                id = tree.parent(id);
            }
            if LEVELS.contains(&level) {
                let counts = sum.counts;
                push(log(sum.blocks));
                push(counts.images as f32 / sum.blocks.max(1) as f32);
                push(counts.prices as f32 / sum.blocks.max(1) as f32);
                push(share(counts.digits, counts.words).min(4.0));
                push(share(counts.stops, counts.words).min(1.0));
                push(share(counts.short, counts.words));
                for topic in ASKED {
                    let about = u32::from(counts.topics[topic as usize]);
                    push(share(about, counts.words));
                }
            }
        }
    }
}

/// The names and classes of an element and of some above it.
fn look(tree: &Tree, container: Id, levels: usize) -> u64 {
    let mut hash = DefaultHasher::new();
    let mut id = container;
    for _ in 0..levels {
        let Some(element) = tree.element(id) else {
            break;
        };
        let class = element.attribute("class").unwrap_or_default();
        (element.tag, class.split_whitespace().next()).hash(&mut hash);
        id = tree.parent(id);
    }
    hash.finish()
}

fn share(part: u32, whole: u32) -> f32 {
    part as f32 / whole.max(1) as f32
}

/// A count as the judges see it.
pub(crate) fn log(count: u32) -> f32 {
    (count as f32).ln_1p()
}
