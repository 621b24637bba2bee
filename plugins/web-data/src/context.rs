//! What the first judgement of all blocks says of each of them.
//!
//! It must know nothing of what was measured. A block's neighbours, the elements above it, the blocks that look like it and
//! the page as a whole have each been judged once; a second judgement sees that besides the block's own measures.

use crate::blocks::BlockList;
use crate::surroundings::Surroundings;
use crate::tree::Tree;

/// Odds are believed up to this.
const ODDS_MAX: f32 = 9.0;
/// How much of the odds is believed: pages differ more than the blocks of one page, so the odds are too sure of themselves.
const TRUST: f32 = 0.8;
/// Words of a block that count in a mean.
const WORDS_MAX: u32 = 40;
/// Neighbours on each side that are looked at one by one, and as many together.
const BESIDE: usize = 3;
const AROUND: [usize; 2] = [6, 16];
/// Elements above a block whose means are looked at, and those that have any.
const LEVELS: usize = 6;
const LEVELS_SUMMED: usize = 24;
/// Odds of a neighbour that is not there.
const ABSENT: f32 = -3.0;
/// The weight of a block's own odds, or of none, in a mean of others.
const OWN: f32 = 3.0;
const NONE_BESIDE: f32 = 1.5;
/// What stands for the way to a block that is content where there is none.
const FAR: f32 = 9.0;
/// The chance that a block has which counts as content here.
const SURE: f32 = 0.3;

/// Measures of a context.
pub(crate) const CONTEXT: usize =
    1 + 2 * BESIDE + 2 * AROUND.len() + LEVELS + Surroundings::LOOKS + 7;

/// The odds of a page's blocks and what they come to.
pub(crate) struct Context {
    odds: Vec<f32>,
    weights: Vec<f32>,
    /// Sums over all blocks before each: weights, weighted odds, words, expected words of content.
    sums: Vec<[f32; 4]>,
    /// For each node its weights and weighted odds.
    elements: Vec<[f32; 2]>,
    /// The same for each group of each kind of look.
    groups: Vec<Vec<[f32; 2]>>,
    /// Words to the nearest block before and after each that is surely content.
    before: Vec<f32>,
    after: Vec<f32>,
    best: Best,
}

/// The choice of blocks that has the best F1 to be expected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    /// The chance from which on blocks are kept.
    pub(crate) least: f32,
    /// The F1 that is expected of it.
    score: f32,
    /// Words of content that are expected on the page.
    expected: f32,
}

/// How much a block's odds are believed.
pub(crate) fn chance(odds: f32) -> f32 {
    1.0 / (1.0 + (-TRUST * odds).exp())
}

/// The choice with the best F1 to be expected: blocks in the order of their chances, as many as gain more than they cost.
pub(crate) fn best(page: &BlockList, chances: &[f32]) -> Best {
    let mut order: Vec<(f32, f32)> = page
        .blocks
        .iter()
        .zip(chances)
        .map(|(block, chance)| (*chance, block.counts.words as f32))
        .collect();
    order.sort_by(|one, other| other.0.total_cmp(&one.0));
    let expected: f32 = order.iter().map(|(chance, words)| chance * words).sum();
    let (mut content, mut kept) = (0.0, 0.0);
    let mut best = Best {
        least: 0.5,
        score: 0.0,
        expected,
    };
    for (chance, words) in order {
        content += chance * words;
        kept += words;
        let score = 2.0 * content / (kept + expected).max(1.0);
        if score > best.score {
            (best.score, best.least) = (score, chance);
        }
    }
    best
}

impl Context {
    /// Sums up what a page's blocks were judged.
    pub(crate) fn read(
        tree: &Tree,
        page: &BlockList,
        surroundings: &Surroundings,
        odds: &[f32],
    ) -> Self {
        let odds: Vec<f32> = odds
            .iter()
            .map(|odds| odds.clamp(-ODDS_MAX, ODDS_MAX))
            .collect();
        let weight = |words: u32| words.min(WORDS_MAX) as f32 + 0.5;
        let weights: Vec<f32> = page
            .blocks
            .iter()
            .map(|block| weight(block.counts.words))
            .collect();
        let chances: Vec<f32> = odds.iter().map(|odds| chance(*odds)).collect();
        let mut sums = vec![[0.0; 4]];
        let mut elements = vec![[0.0; 2]; tree.nodes.len()];
        let mut groups = surroundings
            .groups_of_looks()
            .map(|groups| vec![[0.0; 2]; groups])
            .collect::<Vec<_>>();
        for (at, block) in page.blocks.iter().enumerate() {
            let (weight, words) = (weights[at], block.counts.words as f32);
            let added = [weight, weight * odds[at]];
            let [weights, weighted, all, content] = sums[at];
            sums.push([
                weights + weight,
                weighted + added[1],
                all + words,
                content + words * chances[at],
            ]);
            for id in tree.upward(block.container).take(LEVELS_SUMMED) {
                add(&mut elements[id as usize], added);
            }
            for (look, group) in groups.iter_mut().zip(surroundings.group_of(at)) {
                add(&mut look[group], added);
            }
        }
        let best = best(page, &chances);
        let sure: Vec<bool> = page
            .blocks
            .iter()
            .zip(&chances)
            .map(|(block, chance)| *chance >= best.least.max(SURE) && block.counts.words > 0)
            .collect();
        let (before, after) = ways(&sums, &sure);
        Self {
            odds,
            weights,
            sums,
            elements,
            groups,
            before,
            after,
            best,
        }
    }

    /// Measures the context of a block, [`CONTEXT`] numbers.
    pub(crate) fn measure(
        &self,
        tree: &Tree,
        page: &BlockList,
        surroundings: &Surroundings,
        at: usize,
        mut push: impl FnMut(f32),
    ) {
        let odds = self.odds[at];
        push(odds);
        for distance in 1..=BESIDE {
            push(at.checked_sub(distance).map_or(ABSENT, |at| self.odds[at]));
            push(self.odds.get(at + distance).copied().unwrap_or(ABSENT));
        }
        for blocks in AROUND {
            push(self.mean(at.saturating_sub(blocks), at));
            push(self.mean(at + 1, (at + 1 + blocks).min(self.odds.len())));
        }
        let (mut levels, mut last) = (tree.upward(page.blocks[at].container), odds);
        for _ in 0..LEVELS {
            last = levels
                .next()
                .map_or(last, |id| self.without(self.elements[id as usize], at));
            push(last);
        }
        for (look, group) in self.groups.iter().zip(surroundings.group_of(at)) {
            push(self.without(look[group], at));
        }
        let all = self.sums[self.odds.len()];
        let least = self.best.least.clamp(1e-4, 1.0 - 1e-4);
        push(odds - (least / (1.0 - least)).ln());
        push(self.best.score);
        push(self.best.expected / all[2].max(1.0));
        push(self.best.expected.ln_1p());
        push(self.before[at]);
        push(self.after[at]);
        push(self.sums[at][3] / all[3].max(1e-6));
    }

    /// The mean of the odds from one block to before another.
    fn mean(&self, from: usize, to: usize) -> f32 {
        let (from, to) = (self.sums[from.min(to)], self.sums[to]);
        (to[1] - from[1]) / (to[0] - from[0] + NONE_BESIDE)
    }

    /// The mean of the odds of others that a sum has, and a little of the block's own.
    fn without(&self, [weights, weighted]: [f32; 2], at: usize) -> f32 {
        let (odds, weight) = (self.odds[at], self.weights[at]);
        (weighted - weight * odds + OWN * odds) / (weights - weight + OWN).max(OWN)
    }
}

fn add(sum: &mut [f32; 2], added: [f32; 2]) {
    sum[0] += added[0];
    sum[1] += added[1];
}

/// For each block the words to the nearest sure one before and after it, as logarithms.
fn ways(sums: &[[f32; 4]], sure: &[bool]) -> (Vec<f32>, Vec<f32>) {
    let words = |from: usize, to: usize| (sums[to][2] - sums[from][2]).ln_1p();
    let (mut before, mut after) = (vec![FAR; sure.len()], vec![FAR; sure.len()]);
    let mut last = None;
    for at in 0..sure.len() {
        before[at] = last.map_or(FAR, |last: usize| words(last + 1, at));
        last = if sure[at] { Some(at) } else { last };
    }
    let mut next = None;
    for at in (0..sure.len()).rev() {
        after[at] = next.map_or(FAR, |next: usize| words(at + 1, next));
        next = if sure[at] { Some(at) } else { next };
    }
    (before, after)
}
