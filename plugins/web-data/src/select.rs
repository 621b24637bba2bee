//! Chooses the blocks that are the page's content.
//!
//! It must know nothing of how they are written out. The choice is the one with the best F1 to be expected: blocks in the
//! order of their odds, as many as gain more than they cost. A page of one article keeps what is nearly sure, a page whose
//! every block is doubtful keeps many: nothing is ever empty that has text.

use crate::blocks::Page;
use crate::features;
use crate::meta::Facts;
use crate::tree::Tree;
use crate::weights;

/// How much of the odds is believed: pages differ more than the blocks of one page, so the odds are too sure of themselves.
const TRUST: f32 = 0.8;

/// Blocks between two kept ones that are kept with them, and the chance that each must have.
const GAP_MAX: usize = 4;
const GAP_CHANCE: f32 = 0.1;

/// For each block whether it is content.
pub(crate) fn content(tree: &Tree, page: &Page, facts: &Facts) -> Vec<bool> {
    let whole = features::whole(tree, page, facts);
    let chance = |at: usize| {
        let odds = weights::judge(&features::measure(tree, page, &whole, at));
        1.0 / (1.0 + (-TRUST * odds).exp())
    };
    let chances: Vec<f32> = (0..page.blocks.len()).map(chance).collect();
    let least = least_chance(page, &chances);
    let mut kept: Vec<bool> = chances.iter().map(|chance| *chance >= least).collect();
    fill_gaps(tree, page, &chances, &mut kept);
    let has_words = page.blocks.iter().zip(&kept).any(|(block, kept)| *kept && block.counts.words > 0);
    if !has_words {
        kept.fill(true);
    }
    kept
}

/// Keeps what stands between two kept blocks of one parent: a short paragraph of an article is seldom of something else.
fn fill_gaps(tree: &Tree, page: &Page, chances: &[f32], kept: &mut [bool]) {
    let mut last: Option<usize> = None;
    for at in 0..kept.len() {
        if !kept[at] {
            continue;
        }
        if let Some(before) = last.filter(|before| (2..=GAP_MAX + 1).contains(&(at - before))) {
            let (one, other) = (page.blocks[before].container, page.blocks[at].container);
            let is_within = one == other || tree.parent(one) == tree.parent(other);
            if is_within && chances[before + 1..at].iter().all(|chance| *chance >= GAP_CHANCE) {
                kept[before + 1..at].fill(true);
            }
        }
        last = Some(at);
    }
}

/// The chance from which on blocks are kept.
fn least_chance(page: &Page, chances: &[f32]) -> f32 {
    let mut order: Vec<(f32, f32)> =
        page.blocks.iter().zip(chances).map(|(block, chance)| (*chance, block.counts.words as f32)).collect();
    order.sort_by(|one, other| other.0.total_cmp(&one.0));
    let expected: f32 = order.iter().map(|(chance, words)| chance * words).sum();
    let (mut content, mut kept, mut best, mut least) = (0.0, 0.0, 0.0, 0.5);
    for (chance, words) in order {
        content += chance * words;
        kept += words;
        let score = 2.0 * content / (kept + expected).max(1.0);
        if score > best {
            (best, least) = (score, chance);
        }
    }
    least
}
