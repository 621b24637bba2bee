//! How likely a block is content, by what was measured of it.
//!
//! It must know nothing of pages. There are two judges, each a sum of small decision trees: `weights-first.txt` sees a block
//! by itself, `weights.txt` also what the first said of the blocks around it. A file has one tree a line, its nodes in
//! depth-first order, a question as `measure:limit` (at most goes left) and an answer as `=log odds`.
//!
//! The trees were grown by `training/grow.py` on labelled pages; none of those pages, and nothing that names a site, is in
//! them.

use std::sync::LazyLock;

use crate::features::MEASURES;

const FIRST: &str = include_str!("weights-first.txt");
const SECOND: &str = include_str!("weights.txt");

/// A leaf's measure.
const LEAF: u16 = u16::MAX;

#[derive(Clone, Copy)]
struct TreeNode {
    measure: u16,
    /// Where the right branch begins; the left one is the next node.
    right: u16,
    /// A question's limit or a leaf's answer.
    value: f32,
}

type Trees = LazyLock<Vec<Vec<TreeNode>>>;

static FIRST_TREES: Trees = LazyLock::new(|| FIRST.lines().map(tree).collect());
static SECOND_TREES: Trees = LazyLock::new(|| SECOND.lines().map(tree).collect());

fn tree(line: &str) -> Vec<TreeNode> {
    let mut nodes: Vec<TreeNode> = Vec::new();
    // Questions whose left branch is being read.
    let mut open: Vec<usize> = Vec::new();
    for word in line.split(' ') {
        let at = nodes.len();
        match word.split_once(':') {
            Some((measure, limit)) => {
                open.push(at);
                let measure = measure
                    .parse()
                    .expect("weights.txt has numbers of measures before its colons");
                assert!(
                    usize::from(measure) < MEASURES,
                    "weights.txt was grown on these measures"
                );
                nodes.push(TreeNode {
                    measure,
                    right: 0,
                    value: number(limit),
                });
            }
            None => {
                nodes.push(TreeNode {
                    measure: LEAF,
                    right: 0,
                    value: number(word.trim_start_matches('=')),
                });
                if let Some(question) = open.pop() {
                    nodes[question].right =
                        u16::try_from(at + 1).expect("a tree has some thirty nodes");
                }
            }
        }
    }
    nodes
}

fn number(text: &str) -> f32 {
    text.parse().expect("weights.txt has decimal numbers")
}

/// The log odds that a block is content, judged by itself.
pub(crate) fn judge_first(measures: &[f32; MEASURES]) -> f32 {
    sum(&FIRST_TREES, measures)
}

/// The log odds that a block is content, judged in its context.
pub(crate) fn judge(measures: &[f32; MEASURES]) -> f32 {
    sum(&SECOND_TREES, measures)
}

fn sum(trees: &[Vec<TreeNode>], measures: &[f32; MEASURES]) -> f32 {
    trees.iter().map(|tree| answer(tree, measures)).sum()
}

fn answer(tree: &[TreeNode], measures: &[f32; MEASURES]) -> f32 {
    let mut at = 0;
    loop {
        let node = tree[at];
        if node.measure == LEAF {
            return node.value;
        }
        at = if measures[usize::from(node.measure)] <= node.value {
            at + 1
        } else {
            usize::from(node.right)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_is_whole() {
        assert_eq!((FIRST_TREES.len(), SECOND_TREES.len()), (200, 200));
        for tree in FIRST_TREES.iter().chain(SECOND_TREES.iter()) {
            let leaves = tree.iter().filter(|node| node.measure == LEAF).count();
            assert_eq!(tree.len(), 2 * leaves - 1);
            for (at, node) in tree
                .iter()
                .enumerate()
                .filter(|(_, node)| node.measure != LEAF)
            {
                assert!(usize::from(node.right) > at + 1 && usize::from(node.right) < tree.len());
            }
        }
    }
}
