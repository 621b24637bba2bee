//! A page as a tree of nodes in one list.
//!
//! It must know nothing of how it was parsed or what of it is content. Nodes are numbers, so that walks are loops over links
//! and no depth of a page is a depth of the stack.

use html5ever::tendril::StrTendril;
use html5ever::{Attribute, QualName};

use crate::tag::Tag;

/// A node's place in its tree.
pub(crate) type Id = u32;

/// Nodes that a look for a short text may take.
const NODES_LOOKED_AT: usize = 256;

/// No node.
pub(crate) const NONE: Id = u32::MAX;
/// The document.
pub(crate) const ROOT: Id = 0;

/// A parsed page.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    /// Something of the page is not in it: the page is larger than any, or costs more to parse.
    pub(crate) is_cut: bool,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: Id,
    pub(crate) previous: Id,
    pub(crate) next: Id,
    pub(crate) first: Id,
    pub(crate) last: Id,
    /// Elements above it, as it was when the node came to its place.
    pub(crate) depth: u32,
    pub(crate) content: NodeContent,
}

#[derive(Debug)]
pub(crate) enum NodeContent {
    /// The document, a template's content, a comment: nothing that is shown.
    Hidden,
    Text(StrTendril),
    Element(Box<Element>),
}

#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: QualName,
    pub(crate) tag: Tag,
    pub(crate) attributes: Vec<Attribute>,
    /// What a template holds; it is in no other place of the tree.
    pub(crate) template: Id,
}

/// A step of a walk over a subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Before a node's children.
    Enter(Id),
    /// After them.
    Leave(Id),
}

impl Tree {
    /// The element at `id`, if it is one.
    pub(crate) fn element(&self, id: Id) -> Option<&Element> {
        match &self.nodes.get(id as usize)?.content {
            NodeContent::Element(element) => Some(element),
            NodeContent::Hidden | NodeContent::Text(_) => None,
        }
    }

    /// The tag at `id`; [`Tag::None`] where no element is.
    pub(crate) fn tag(&self, id: Id) -> Tag {
        self.element(id).map_or(Tag::None, |element| element.tag)
    }

    /// The text at `id`, if it is a text.
    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        match &self.nodes.get(id as usize)?.content {
            NodeContent::Text(text) => Some(text),
            NodeContent::Hidden | NodeContent::Element(_) => None,
        }
    }

    /// An attribute of the element at `id`, as it was written.
    pub(crate) fn attribute(&self, id: Id, name: &str) -> Option<&str> {
        self.element(id)?.attribute(name)
    }

    /// The parent of `id`, or [`NONE`].
    pub(crate) fn parent(&self, id: Id) -> Id {
        self.nodes[id as usize].parent
    }

    /// `id` and what stands above it, up to the document and without it. Nothing of [`NONE`].
    pub(crate) fn upward(&self, id: Id) -> impl Iterator<Item = Id> {
        let parent = |id: &Id| self.nodes.get(*id as usize).map(|node| node.parent);
        std::iter::successors(Some(id), parent).take_while(|id| *id != NONE && *id != ROOT)
    }

    /// The children of `id` in order.
    pub(crate) fn children(&self, id: Id) -> impl Iterator<Item = Id> {
        let mut at = self.nodes[id as usize].first;
        std::iter::from_fn(move || {
            let child = at;
            #[cfg(test)]
            LOOKED_AT.set(LOOKED_AT.get() + 1);
            at = self.nodes.get(child as usize)?.next;
            Some(child)
        })
    }

    /// All steps of a walk over the subtree at `from`, itself included.
    pub(crate) fn walk(&self, from: Id) -> TreeWalk<'_> {
        TreeWalk {
            tree: self,
            from,
            next: Some(Step::Enter(from)),
        }
    }

    /// The elements of the subtree at `from` in document order.
    pub(crate) fn elements(&self, from: Id) -> impl Iterator<Item = (Id, &Element)> {
        self.walk(from).filter_map(|step| match step {
            Step::Enter(id) => Some((id, self.element(id)?)),
            Step::Leave(_) => None,
        })
    }

    /// The text of the subtree at `from`, its white space collapsed, at most about `bytes_max` of it. It looks at no more
    /// nodes than that either, so that asking for it at many nodes stays cheap.
    pub(crate) fn text_of(&self, from: Id, bytes_max: usize) -> String {
        let mut text = String::new();
        for step in self.walk(from).take(bytes_max.max(NODES_LOOKED_AT)) {
            let (Step::Enter(id) | Step::Leave(id)) = step;
            if self.tag(id).is_block() || self.tag(id) == Tag::Br {
                push_space(&mut text);
            }
            if let Step::Leave(_) = step {
                continue;
            }
            let piece = self.text(id).unwrap_or_default();
            collapse_into(&piece[..piece.floor_char_boundary(bytes_max)], &mut text);
            if text.len() > bytes_max {
                break;
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// Adds text with each run of white space as one space, and none at the begin.
pub(crate) fn collapse_into(text: &str, into: &mut String) {
    if text.starts_with(char::is_whitespace) {
        push_space(into);
    }
    let mut words = text.split_whitespace();
    if let Some(word) = words.next() {
        into.push_str(word);
    }
    for word in words {
        into.push(' ');
        into.push_str(word);
    }
    if text.ends_with(char::is_whitespace) {
        push_space(into);
    }
}

fn push_space(into: &mut String) {
    if !into.is_empty() && !into.ends_with([' ', '\n']) {
        into.push(' ');
    }
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|attribute| &*attribute.name.local == name)
            .map(|attribute| &*attribute.value)
    }
}

/// The steps of a walk.
pub(crate) struct TreeWalk<'a> {
    tree: &'a Tree,
    from: Id,
    next: Option<Step>,
}

impl TreeWalk<'_> {
    /// Leaves out the children of the node that was entered last.
    pub(crate) fn skip_children(&mut self) {
        if let Some(Step::Enter(id)) = self.next {
            self.next = Some(Step::Leave(self.tree.parent(id)));
        }
    }
}

impl Iterator for TreeWalk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let step = self.next?;
        #[cfg(test)]
        LOOKED_AT.set(LOOKED_AT.get() + 1);
        let nodes = &self.tree.nodes;
        self.next = match step {
            Step::Enter(id) => match nodes[id as usize].first {
                NONE => Some(Step::Leave(id)),
                child => Some(Step::Enter(child)),
            },
            Step::Leave(id) if id == self.from => None,
            Step::Leave(id) => match nodes[id as usize].next {
                NONE => Some(Step::Leave(nodes[id as usize].parent)),
                sibling => Some(Step::Enter(sibling)),
            },
        };
        Some(step)
    }
}

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Looks at nodes in walks of this thread.
#[cfg(test)]
pub(crate) fn looked_at() -> u64 {
    LOOKED_AT.get()
}
