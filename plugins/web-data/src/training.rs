//! What growing the judges' trees needs of a page: its blocks, what is measured of them, and what a choice would write.
//!
//! The guest is built without it; `examples/measure.rs` is its one user. It must know nothing of labels.

use crate::blocks;
use crate::charset;
use crate::context::Context;
use crate::features;
use crate::markdown::{self, Style};
use crate::meta::{self, Facts};
use crate::page;
use crate::parse;
use crate::select;
use crate::source;
use crate::tree::Tree;

/// The blocks of a page.
#[derive(Debug)]
pub struct Measured {
    /// The text of each block.
    pub texts: Vec<String>,
    /// The measures of all blocks, one block after the other.
    pub measures: Vec<f32>,
}

struct TrainingPage {
    tree: Tree,
    facts: Facts,
    page: blocks::BlockList,
}

fn read(html: &[u8]) -> TrainingPage {
    let text = charset::decode(html, Some("text/html"));
    let source = source::reduce(&text);
    let tree = parse::parse(source.html);
    let facts = meta::read(&tree, &source.structured);
    let (titles, descriptions) = facts.words();
    let page = blocks::read(&tree, &titles, &descriptions);
    TrainingPage { tree, facts, page }
}

/// Measures the blocks of a page, with the context that the log odds of a first judgement are, if there are any.
pub fn measure(html: &[u8], first: Option<&[f32]>) -> Measured {
    let TrainingPage { tree, facts, page } = read(html);
    let mut texts = vec![String::new(); page.blocks.len()];
    for (id, place) in (0..).zip(&page.places) {
        if let (Some(into), Some(text)) = (texts.get_mut(place.block as usize), tree.text(id)) {
            into.push_str(text);
            into.push(' ');
        }
    }
    let whole = features::whole(&tree, &page, &facts);
    let context = first.map(|odds| Context::read(&tree, &page, &whole.surroundings, odds));
    let mut measures = Vec::with_capacity(page.blocks.len() * features::MEASURES);
    for at in 0..page.blocks.len() {
        let mut list = features::measure(&tree, &page, &whole, at);
        if let Some(context) = &context {
            features::measure_context(&tree, &page, &whole, context, at, &mut list);
        }
        measures.extend(list);
    }
    Measured { texts, measures }
}

/// The Markdown that is written of a page where a second judgement gave these log odds.
pub fn markdown(html: &[u8], odds: &[f32]) -> String {
    let TrainingPage { tree, page, .. } = read(html);
    let kept = page::kept_nodes(&tree, &page, &select::choose(&tree, &page, odds));
    markdown::write(
        &tree,
        &kept,
        None,
        Style::Markdown,
        page::CONTENT_CHARACTERS_MAX,
    )
}
