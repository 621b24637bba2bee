//! What is measured of each block, for the weights to judge.
//!
//! It must know nothing of the weights. All of it is of the page alone: no host names, no lists of sites.

use std::collections::HashSet;

use crate::blocks::{Block, BlockList};
use crate::context::{CONTEXT, Context};
use crate::hints::{self, Hint};
use crate::lexicon::TOPICS;
use crate::meta::{Facts, KINDS};
use crate::surroundings::{self, SURROUNDINGS, Surroundings, log};
use crate::tag::Tag;
use crate::tree::{Id, NONE, ROOT, Tree};

/// Measures of a block before its hints.
const NUMBERS: usize = 91 + 2 * TOPICS + 22;
/// Measures of a block by itself.
const OWN: usize = NUMBERS + SURROUNDINGS + 2 * hints::ALL.len();
/// Measures of a block; those of its context come last and are 0 at first.
pub(crate) const MEASURES: usize = OWN + CONTEXT;

/// Neighbours on each side that are averaged.
const AROUND: usize = 4;
/// Words from which unlinked text counts as a paragraph.
const PARAGRAPH_WORDS: u32 = 15;
/// Elements above a block that are measured.
const LEVELS: usize = 7;

/// What is measured of the whole page once.
pub(crate) struct Whole {
    words: u32,
    /// Words before each block.
    before: Vec<u32>,
    /// Words before the first `<h1>`.
    heading_at: Option<u32>,
    heading_block: usize,
    /// Words of paragraphs in each element.
    paragraphs: Vec<u32>,
    paragraph_words: u32,
    numbers: [f32; 7],
    /// Elements above and around the first `<h1>`.
    above_heading: HashSet<Id>,
    /// The heading before each block.
    headings: Vec<Option<usize>>,
    kinds: [bool; KINDS],
    pub(crate) surroundings: Surroundings,
}

/// Measures the page.
pub(crate) fn whole(tree: &Tree, page: &BlockList, facts: &Facts) -> Whole {
    let mut before = Vec::with_capacity(page.blocks.len());
    let (mut words, mut heading_at, mut heading_block) = (0, None, 0);
    let mut paragraphs = vec![0; tree.nodes.len()];
    let mut paragraph_words = 0;
    let (mut in_article, mut in_main, mut alike) = (0, 0, 1);
    let (mut heading, mut headings) = (None, Vec::with_capacity(page.blocks.len()));
    for (at, block) in page.blocks.iter().enumerate() {
        before.push(words);
        headings.push(heading);
        if tree.tag(block.container).heading().is_some() {
            heading = Some(at);
        }
        if heading_at.is_none() && tree.tag(block.container) == Tag::H1 {
            heading_at = Some(words);
            heading_block = at;
        }
        let counts = block.counts;
        words += counts.words;
        if block.hints.has(Hint::InArticle) {
            in_article += counts.words;
        }
        if block.hints.has(Hint::InMain) {
            in_main += counts.words;
        }
        if is_paragraph(block) {
            paragraph_words += counts.words;
            paragraphs[block.container as usize] += counts.words;
        }
    }
    // Children stand behind their parents in the list, but for what the parser moved: near enough for a share.
    for id in (1..tree.nodes.len()).rev() {
        let parent = tree.nodes[id].parent;
        if parent != NONE && paragraphs[id] > 0 {
            paragraphs[parent as usize] += paragraphs[id];
        }
        alike = alike.max(page.places[id].alike);
    }
    let share = |part: u32| part as f32 / words.max(1) as f32;
    let linked = page.blocks.iter().map(|block| block.counts.linked).sum();
    let numbers = [
        log(words),
        share(linked),
        share(paragraph_words),
        share(in_article),
        share(in_main),
        log(alike),
        log(u32::try_from(page.blocks.len()).unwrap_or(u32::MAX)),
    ];
    let above_heading = if heading_at.is_some() {
        let heading = page.blocks[heading_block].container;
        tree.upward(heading).chain([ROOT]).collect()
    } else {
        HashSet::new()
    };
    let kinds = facts.kinds;
    Whole {
        words,
        before,
        heading_at,
        heading_block,
        paragraphs,
        paragraph_words,
        numbers,
        above_heading,
        headings,
        kinds,
        surroundings: surroundings::read(tree, page),
    }
}

fn is_paragraph(block: &Block) -> bool {
    block.counts.words >= PARAGRAPH_WORDS && block.counts.linked * 3 < block.counts.words
}

/// Measures a block.
pub(crate) fn measure(tree: &Tree, page: &BlockList, whole: &Whole, at: usize) -> [f32; MEASURES] {
    let mut measures = Measures {
        list: [0.0; MEASURES],
        length: 0,
    };
    let block = &page.blocks[at];
    own(&mut measures, tree, block);
    position(&mut measures, whole, block, at);
    neighbours(&mut measures, page, at);
    elements_above(&mut measures, tree, page, whole, block.container);
    words_about(&mut measures, page, whole, at);
    measures.push_all(whole.kinds.map(flag));
    measures.push_all(whole.numbers);
    debug_assert_eq!(measures.length, NUMBERS);
    whole
        .surroundings
        .measure(tree, page, at, |measure| measures.push(measure));
    debug_assert_eq!(measures.length, NUMBERS + SURROUNDINGS);
    measures.push_all(hints::ALL.iter().map(|hint| flag(block.hints.has(*hint))));
    measures.push_all(hints::ALL.iter().map(|hint| flag(block.near.has(*hint))));
    measures.list
}

/// Adds what the first judgement says of a block's surroundings to its measures.
pub(crate) fn measure_context(
    tree: &Tree,
    page: &BlockList,
    whole: &Whole,
    context: &Context,
    at: usize,
    list: &mut [f32; MEASURES],
) {
    let mut measures = Measures {
        list: *list,
        length: OWN,
    };
    context.measure(tree, page, &whole.surroundings, at, |measure| {
        measures.push(measure);
    });
    debug_assert_eq!(measures.length, MEASURES);
    *list = measures.list;
}

struct Measures {
    list: [f32; MEASURES],
    length: usize,
}

impl Measures {
    fn push(&mut self, measure: f32) {
        if let Some(place) = self.list.get_mut(self.length) {
            *place = measure;
        }
        self.length += 1;
    }

    fn push_all(&mut self, measures: impl IntoIterator<Item = f32>) {
        for measure in measures {
            self.push(measure);
        }
    }
}

fn own(measures: &mut Measures, tree: &Tree, block: &Block) {
    let counts = block.counts;
    let words = counts.words.max(1) as f32;
    measures.push(log(counts.words));
    measures.push(flag(counts.words <= 1));
    measures.push(flag(counts.words <= 3));
    measures.push(flag(counts.words == 0));
    measures.push(counts.linked as f32 / words);
    measures.push(flag(counts.words > 0 && counts.linked == counts.words));
    measures.push(log(counts.links));
    measures.push((counts.letters as f32 / words).min(12.0));
    measures.push((counts.digits as f32 / words).min(4.0));
    measures.push(counts.capitals as f32 / words);
    measures.push((counts.stops as f32 / words).min(1.0));
    measures.push(counts.short as f32 / words);
    measures.push(flag(counts.ends));
    measures.push(log(counts.images));
    measures.push(log(block.copies - 1));
    let tag = tree.tag(block.container);
    let kinds = [
        tag == Tag::P,
        tag == Tag::Li,
        matches!(tag, Tag::Td | Tag::Th),
        tag == Tag::H1,
        tag == Tag::H2,
        tag == Tag::H3,
        matches!(tag, Tag::H4 | Tag::H5 | Tag::H6),
        tag == Tag::Pre,
        tag == Tag::Blockquote,
        matches!(tag, Tag::Dt | Tag::Dd),
        tag == Tag::Figcaption,
        matches!(tag, Tag::Button | Tag::Option | Tag::Legend | Tag::Summary),
    ];
    measures.push_all(kinds.map(flag));
}

fn position(measures: &mut Measures, whole: &Whole, block: &Block, at: usize) {
    let before = whole.before[at];
    let after = whole.words - before - block.counts.words.min(whole.words - before);
    measures.push(before as f32 / whole.words.max(1) as f32);
    measures.push(log(before));
    measures.push(log(after));
    let heading = whole.heading_at;
    measures.push(flag(heading.is_none()));
    measures.push(flag(heading.is_some() && at < whole.heading_block));
    let is_behind = at >= whole.heading_block;
    let above = heading.filter(|_| is_behind);
    measures.push(above.map_or(0.0, |heading| log(before - heading)));
    let below = heading.filter(|_| !is_behind);
    measures.push(below.map_or(0.0, |heading| log(heading - before)));
}

fn neighbours(measures: &mut Measures, page: &BlockList, at: usize) {
    let blocks = &page.blocks;
    let block = |place: Option<usize>| {
        place
            .and_then(|place| blocks.get(place))
            .map(|block| block.counts)
    };
    for place in [
        at.checked_sub(2),
        at.checked_sub(1),
        Some(at + 1),
        Some(at + 2),
    ] {
        let counts = block(place).unwrap_or_default();
        measures.push(log(counts.words));
        measures.push(counts.linked as f32 / counts.words.max(1) as f32);
    }
    let around = [
        at.saturating_sub(AROUND)..at,
        (at + 1).min(blocks.len())..(at + 1 + AROUND).min(blocks.len()),
    ];
    for side in around {
        let (mut words, mut linked, mut stops, mut short) = (0, 0, 0, 0);
        let length = side.len();
        for near in &blocks[side] {
            words += near.counts.words;
            linked += near.counts.linked;
            stops += near.counts.stops;
            short += near.counts.short;
        }
        let all = words.max(1) as f32;
        measures.push(log(words / u32::try_from(length.max(1)).unwrap_or(1)));
        measures.push(linked as f32 / all);
        measures.push((stops as f32 / all).min(1.0));
        measures.push(short as f32 / all);
    }
}

fn words_about(measures: &mut Measures, page: &BlockList, whole: &Whole, at: usize) {
    let block = &page.blocks[at];
    let share = |block: &Block, words: u32| words as f32 / block.counts.words.max(1) as f32;
    measures.push_all(
        block
            .counts
            .topics
            .map(|topic| share(block, u32::from(topic))),
    );
    let heading = whole.headings[at];
    let topics = heading.map_or([0; TOPICS], |at| page.blocks[at].counts.topics);
    let above = heading.map_or(block, |at| &page.blocks[at]);
    measures.push_all(topics.map(|topic| share(above, u32::from(topic))));
    measures.push(share(block, block.counts.in_title));
    measures.push(share(block, block.counts.in_description));
    measures.push(log(block.counts.in_description));
    let distance = heading.map_or(0, |heading| at - heading);
    measures.push(log(u32::try_from(distance).unwrap_or(u32::MAX)));
    measures.push(heading.map_or(0.0, |at| {
        share(&page.blocks[at], page.blocks[at].counts.in_title)
    }));
    measures.push(heading.map_or(0.0, |at| log(page.blocks[at].counts.words)));
}

fn elements_above(
    measures: &mut Measures,
    tree: &Tree,
    page: &BlockList,
    whole: &Whole,
    container: Id,
) {
    let mut levels = 0;
    let mut depth = 0;
    let (mut nearest, mut most) = (None, (1, 0, 0));
    let mut paragraph_level = [0.0; 3];
    let (mut met, mut to_heading, mut met_words, mut met_paragraphs, mut group) =
        (false, 0_u32, 0, 0, NONE);
    for id in tree.upward(container) {
        let place = page.places[id as usize];
        if levels < LEVELS {
            measures.push(log(place.words));
            measures.push(place.linked as f32 / place.words.max(1) as f32);
            measures.push(whole.paragraphs[id as usize] as f32 / place.words.max(1) as f32);
            levels += 1;
        }
        // How far up the text is shared with so much of the page's paragraphs.
        let share = whole.paragraphs[id as usize] as f32 / whole.paragraph_words.max(1) as f32;
        for (level, least) in paragraph_level.iter_mut().zip([0.25, 0.5, 0.75]) {
            if share < least {
                *level += 1.0;
            }
        }
        if !met && !whole.above_heading.contains(&id) {
            to_heading += 1;
        } else if !met {
            met = true;
            met_words = place.words;
            met_paragraphs = whole.paragraphs[id as usize];
        }
        if place.alike >= 2 && nearest.is_none() {
            nearest = Some(place);
        }
        if place.alike > most.0 {
            most = (place.alike, place.words, place.linked);
            group = tree.parent(id);
        }
        depth += 1;
    }
    measures.push_all(std::iter::repeat_n(0.0, 3 * (LEVELS - levels)));
    measures.push(nearest.map_or(0.0, |place| log(place.alike)));
    measures.push(nearest.map_or(0.0, |place| log(place.words)));
    measures.push(nearest.map_or(0.0, |place| place.linked as f32 / place.words.max(1) as f32));
    measures.push(log(most.0));
    measures.push(log(most.1));
    measures.push(most.2 as f32 / most.1.max(1) as f32);
    measures.push(depth as f32 / 10.0);
    measures.push_all(paragraph_level.map(|level| level / 4.0));
    let of_page = |words: u32| words as f32 / whole.words.max(1) as f32;
    let group_words = page
        .places
        .get(group as usize)
        .map_or(0, |place| place.words);
    measures.push(of_page(group_words));
    measures.push(flag(whole.above_heading.contains(&group)));
    measures.push(if whole.heading_at.is_some() {
        to_heading as f32 / 4.0
    } else {
        -1.0
    });
    measures.push(of_page(met_words));
    measures.push(met_paragraphs as f32 / whole.paragraph_words.max(1) as f32);
    measures.push(flag(whole.paragraph_words == 0));
    measures.push(log(whole.paragraphs[container as usize]));
    measures.push(log(page.places[container as usize].alike));
}

fn flag(is: bool) -> f32 {
    if is { 1.0 } else { 0.0 }
}
