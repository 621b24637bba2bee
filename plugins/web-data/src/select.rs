//! Chooses the blocks that are the page's content.
//!
//! It must know nothing of how they are written out. The choice is the one with the best F1 to be expected: blocks in the
//! order of their odds, as many as gain more than they cost. A page of one article keeps what is nearly sure, a page whose
//! every block is doubtful keeps many: nothing is ever empty that has text.

use crate::blocks::BlockList;
use crate::context::{self, Context};
use crate::features;
use crate::meta::Facts;
use crate::tree::Tree;
use crate::weights;

/// Blocks between two kept ones that are kept with them, and the chance that each must have.
const GAP_MAX: usize = 4;
const GAP_CHANCE: f32 = 0.1;

/// For each block whether it is content.
pub(crate) fn content(tree: &Tree, page: &BlockList, facts: &Facts) -> Vec<bool> {
    choose(tree, page, &odds(tree, page, facts))
}

/// For each block whether it is content, by its log odds.
pub(crate) fn choose(tree: &Tree, page: &BlockList, odds: &[f32]) -> Vec<bool> {
    let chances: Vec<f32> = odds.iter().map(|odds| context::chance(*odds)).collect();
    let least = context::best(page, &chances).least;
    let mut kept: Vec<bool> = chances.iter().map(|chance| *chance >= least).collect();
    fill_gaps(tree, page, &chances, &mut kept);
    let has_words = page
        .blocks
        .iter()
        .zip(&kept)
        .any(|(block, kept)| *kept && block.counts.words > 0);
    if !has_words {
        kept.fill(true);
    }
    kept
}

/// The log odds of each block: judged by itself, then once more by what was judged of the others.
fn odds(tree: &Tree, page: &BlockList, facts: &Facts) -> Vec<f32> {
    let whole = features::whole(tree, page, facts);
    let measure = |at: usize| features::measure(tree, page, &whole, at);
    let first: Vec<f32> = (0..page.blocks.len())
        .map(|at| weights::judge_first(&measure(at)))
        .collect();
    let context = Context::read(tree, page, &whole.surroundings, &first);
    let second = |at: usize| {
        let mut measures = measure(at);
        features::measure_context(tree, page, &whole, &context, at, &mut measures);
        weights::judge(&measures)
    };
    (0..page.blocks.len()).map(second).collect()
}

/// Keeps what stands between two kept blocks of one parent: a short paragraph of an article is seldom of something else.
fn fill_gaps(tree: &Tree, page: &BlockList, chances: &[f32], kept: &mut [bool]) {
    let mut last: Option<usize> = None;
    for at in 0..kept.len() {
        if !kept[at] {
            continue;
        }
        if let Some(before) = last.filter(|before| (2..=GAP_MAX + 1).contains(&(at - before))) {
            let (one, other) = (page.blocks[before].container, page.blocks[at].container);
            let is_within = one == other || tree.parent(one) == tree.parent(other);
            if is_within
                && chances[before + 1..at]
                    .iter()
                    .all(|chance| *chance >= GAP_CHANCE)
            {
                kept[before + 1..at].fill(true);
            }
        }
        last = Some(at);
    }
}
