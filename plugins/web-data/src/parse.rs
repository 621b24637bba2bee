//! Parses a page as browsers do, within bounds.
//!
//! It must know nothing of content. The parser is html5ever; here are the tree that it builds and a guard before it.
//!
//! Surprising: the guard drops start tags below [`DEPTH_MAX`]. The parser looks through its open elements at most tags, so
//! a megabyte of `<div>` would be quadratic; browsers flatten such pages in the same way. End tags of what was dropped are
//! dropped with it.
//!
//! What a tag costs depends on what is open, and there are many ways to make it much: an end tag that ends nothing, text in a
//! table, links in links. None of them is known here. The tree is asked at each step that the parser takes, counts them, and
//! the page is cut where they come to more than [`STEPS_PER_BYTE`] allows.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};

use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    Tag as TagToken, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{
    ElementFlags, NodeOrText, QuirksMode, TreeBuilder, TreeBuilderOpts, TreeSink,
};
use html5ever::{Attribute, QualName, TokenizerResult};

use crate::tag::Tag;
use crate::tree::{Element, Id, NONE, Node, NodeContent, ROOT, Tree};

/// Elements above a node; browsers keep about as many.
const DEPTH_MAX: u32 = 256;
/// Depth at which elements are dropped that the parser opens again in each paragraph they reach over.
const FORMATTING_DEPTH_MAX: u32 = 64;
/// Nodes of a tree. A page of 5 MB has at most about 200,000; what comes after is not read.
const NODES_MAX: usize = 250_000;
/// Tags, texts and other pieces of a page: several for each node that it may have.
const TOKENS_MAX: usize = 1_000_000;
/// Steps of the parser (elements that it looks at, nodes that it makes or moves) that a page of any length may take, and those
/// that each of its bytes adds. Of 330 pages none takes more than two a byte.
const STEPS_MIN: u64 = 2_000_000;
const STEPS_PER_BYTE: u64 = 8;
/// Steps for an attribute that is compared with another element's.
const STEPS_PER_COMPARISON: u64 = 16;
/// Elements that the parser keeps a mark of, which some ways to end them leave behind.
const MARKERS_MAX: u32 = 256;

/// Parses HTML that [`crate::source::reduce`] has been over.
pub(crate) fn parse(html: String) -> Tree {
    counted(html).0
}

/// Parses HTML, and tells the steps that it took.
pub(crate) fn counted(html: String) -> (Tree, u64) {
    let sink = Sink {
        steps_max: STEPS_MIN + STEPS_PER_BYTE * html.len() as u64,
        ..Sink::default()
    };
    // Without scripts, so that what a page shows to those who run none is read: forums send all their posts there.
    let options = TreeBuilderOpts {
        drop_doctype: true,
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let builder = TreeBuilder::new(sink, options);
    let guard = Guard {
        builder,
        dropped: RefCell::default(),
        markers: Cell::new(0),
        tokens: Cell::new(0),
    };
    let tokenizer = Tokenizer::new(guard, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    // What the source declares of its encoding was heard before. No script is let in: it is the guard that wants no more.
    while let TokenizerResult::EncodingIndicator(_) = tokenizer.feed(&input) {}
    tokenizer.end();
    let sink = tokenizer.sink.builder.sink;
    let steps = sink.steps.get();
    (sink.finish(), steps)
}

struct Guard {
    builder: TreeBuilder<Id, Sink>,
    /// Names of the start tags that were dropped and are not ended yet.
    dropped: RefCell<Vec<html5ever::LocalName>>,
    /// Elements that were let in and left a mark.
    markers: Cell<u32>,
    tokens: Cell<usize>,
}

impl Guard {
    /// Whether the page ends here for its reader.
    fn is_over(&self) -> bool {
        let sink = &self.builder.sink;
        sink.is_full() || sink.steps.get() > sink.steps_max || self.tokens.get() > TOKENS_MAX
    }

    /// Counts what no look at the tree tells: that the parser sorts the attributes of a formatting element, and those of each
    /// open one of its name, to compare them. Of links one is open.
    fn count(&self, token: &Token) {
        self.tokens.set(self.tokens.get() + 1);
        let sink = &self.builder.sink;
        if let Token::TagToken(tag) = token
            && tag.kind == TagKind::StartTag
            && is_formatting(&tag.name)
            && &*tag.name != "a"
        {
            let open = sink.depth.get().clamp(1, FORMATTING_DEPTH_MAX);
            sink.step(STEPS_PER_COMPARISON * u64::from(open) * tag.attrs.len() as u64);
        }
    }

    fn drops(&self, tag: &TagToken) -> bool {
        let sink = &self.builder.sink;
        // What such a tag begins its end tag must end, or the parser takes markup for text and panics.
        if is_raw(&tag.name) {
            return false;
        }
        let mut dropped = self.dropped.borrow_mut();
        match tag.kind {
            TagKind::StartTag => {
                let depth = sink.depth.get();
                let is_marker = leaves_marker(&tag.name);
                if is_marker {
                    self.markers.set(self.markers.get() + 1);
                }
                let too_deep = is_marker && self.markers.get() > MARKERS_MAX
                    || depth >= DEPTH_MAX
                    || (depth >= FORMATTING_DEPTH_MAX && is_formatting(&tag.name));
                if too_deep && !VOID.contains(&&*tag.name) && dropped.len() < NODES_MAX {
                    dropped.push(tag.name.clone());
                }
                too_deep
            }
            TagKind::EndTag => {
                let is_of_dropped = dropped.last() == Some(&tag.name);
                if is_of_dropped {
                    dropped.pop();
                }
                is_of_dropped
            }
        }
    }
}

impl TokenSink for Guard {
    type Handle = Id;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Id> {
        self.count(&token);
        match &token {
            Token::EOFToken => self.builder.process_token(token, line),
            Token::CharacterTokens(text) if self.is_over() => {
                self.builder.sink.cut(!text.trim().is_empty());
                TokenSinkResult::Continue
            }
            // At a tag the parser can be stopped, as if a script were to run.
            Token::TagToken(_) if self.is_over() => {
                self.builder.sink.cut(true);
                TokenSinkResult::Script(ROOT)
            }
            _ if self.is_over() => TokenSinkResult::Continue,
            Token::TagToken(tag) if self.drops(tag) => TokenSinkResult::Continue,
            Token::CommentToken(_) | Token::ParseError(_) => TokenSinkResult::Continue,
            _ => self.builder.process_token(token, line),
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder
            .adjusted_current_node_present_but_not_in_html_namespace()
    }
}

fn is_formatting(name: &str) -> bool {
    matches!(
        name,
        "a" | "b" | "code" | "em" | "i" | "s" | "small" | "strike" | "strong" | "tt" | "u"
    )
}

fn leaves_marker(name: &str) -> bool {
    matches!(name, "applet" | "marquee" | "object")
}

/// Elements whose content is text up to their end tag.
fn is_raw(name: &str) -> bool {
    matches!(
        name,
        "title" | "textarea" | "style" | "script" | "xmp" | "iframe" | "noembed" | "noframes"
    )
}

/// Elements without content.
const VOID: [&str; 12] = [
    "br", "hr", "img", "input", "link", "meta", "source", "col", "base", "embed", "wbr", "area",
];

/// The tree while it is built.
struct Sink {
    nodes: RefCell<Vec<Node>>,
    /// Depth of the open element, near enough.
    depth: Cell<u32>,
    /// Steps that the parser took, and those that it may take.
    steps: Cell<u64>,
    steps_max: u64,
    /// Something of the page was left out.
    is_cut: Cell<bool>,
}

impl Default for Sink {
    fn default() -> Self {
        let sink = Self {
            nodes: RefCell::default(),
            depth: Cell::new(0),
            steps: Cell::new(0),
            steps_max: 0,
            is_cut: Cell::new(false),
        };
        sink.create(NodeContent::Hidden);
        sink
    }
}

impl Sink {
    fn step(&self, steps: u64) {
        self.steps.set(self.steps.get() + steps);
    }

    fn cut(&self, is_cut: bool) {
        self.is_cut.set(self.is_cut.get() | is_cut);
    }

    fn is_full(&self) -> bool {
        self.nodes.borrow().len() >= NODES_MAX
    }

    fn create(&self, content: NodeContent) -> Id {
        let mut nodes = self.nodes.borrow_mut();
        let id = Id::try_from(nodes.len()).expect("far fewer nodes than 2^32 are let in");
        nodes.push(Node {
            parent: NONE,
            previous: NONE,
            next: NONE,
            first: NONE,
            last: NONE,
            depth: 0,
            content,
        });
        id
    }

    /// Puts a child before `before`, or last.
    fn insert(&self, parent: Id, before: Id, child: NodeOrText<Id>) {
        let child = match child {
            NodeOrText::AppendNode(child) => child,
            NodeOrText::AppendText(text) => {
                let mut nodes = self.nodes.borrow_mut();
                let neighbour = match before {
                    NONE => nodes[parent as usize].last,
                    sibling => nodes[sibling as usize].previous,
                };
                if let Some(Node {
                    content: NodeContent::Text(present),
                    ..
                }) = nodes.get_mut(neighbour as usize)
                {
                    present.push_tendril(&text);
                    return;
                }
                drop(nodes);
                self.create(NodeContent::Text(text))
            }
        };
        self.remove_from_parent(&child);
        self.step(1);
        let mut nodes = self.nodes.borrow_mut();
        let previous = match before {
            NONE => std::mem::replace(&mut nodes[parent as usize].last, child),
            sibling => std::mem::replace(&mut nodes[sibling as usize].previous, child),
        };
        match previous {
            NONE => nodes[parent as usize].first = child,
            previous => nodes[previous as usize].next = child,
        }
        let depth = nodes[parent as usize].depth + 1;
        let node = &mut nodes[child as usize];
        (node.parent, node.previous, node.next, node.depth) = (parent, previous, before, depth);
        if let NodeContent::Element(element) = &node.content
            && element.template != NONE
        {
            let template = element.template;
            nodes[template as usize].depth = depth;
        }
        self.depth.set(depth);
    }
}

impl TreeSink for Sink {
    type Handle = Id;
    type Output = Tree;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Tree {
        Tree {
            nodes: self.nodes.into_inner(),
            is_cut: self.is_cut.get(),
        }
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> Id {
        ROOT
    }

    fn elem_name<'a>(&'a self, target: &'a Id) -> Ref<'a, QualName> {
        self.step(1);
        Ref::map(self.nodes.borrow(), |nodes| {
            match &nodes[*target as usize].content {
                NodeContent::Element(element) => &element.name,
                NodeContent::Hidden | NodeContent::Text(_) => {
                    unreachable!("the parser asks elements for their names")
                }
            }
        })
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Id {
        self.step(1 + attributes.len() as u64);
        let template = if flags.template {
            self.create(NodeContent::Hidden)
        } else {
            NONE
        };
        let tag = Tag::of(&name.local);
        self.create(NodeContent::Element(Box::new(Element {
            name,
            tag,
            attributes,
            template,
        })))
    }

    fn create_comment(&self, _text: StrTendril) -> Id {
        self.create(NodeContent::Hidden)
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> Id {
        self.create(NodeContent::Hidden)
    }

    fn append(&self, parent: &Id, child: NodeOrText<Id>) {
        self.insert(*parent, NONE, child);
    }

    fn append_before_sibling(&self, sibling: &Id, new_node: NodeOrText<Id>) {
        let parent = self.nodes.borrow()[*sibling as usize].parent;
        if parent != NONE {
            self.insert(parent, *sibling, new_node);
        }
    }

    fn append_based_on_parent_node(&self, element: &Id, previous: &Id, child: NodeOrText<Id>) {
        let has_parent = self.nodes.borrow()[*element as usize].parent != NONE;
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn append_doctype_to_document(
        &self,
        _name: StrTendril,
        _public_id: StrTendril,
        _system_id: StrTendril,
    ) {
    }

    fn get_template_contents(&self, target: &Id) -> Id {
        match &self.nodes.borrow()[*target as usize].content {
            NodeContent::Element(element) => element.template,
            NodeContent::Hidden | NodeContent::Text(_) => {
                unreachable!("the parser asks templates for their contents")
            }
        }
    }

    fn same_node(&self, x: &Id, y: &Id) -> bool {
        self.step(1);
        x == y
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn pop(&self, node: &Id) {
        self.depth
            .set(self.nodes.borrow()[*node as usize].depth.saturating_sub(1));
    }

    fn add_attrs_if_missing(&self, target: &Id, attributes: Vec<Attribute>) {
        if let NodeContent::Element(element) =
            &mut self.nodes.borrow_mut()[*target as usize].content
        {
            for attribute in attributes {
                if element.attributes.len() < 64
                    && element
                        .attributes
                        .iter()
                        .all(|known| known.name != attribute.name)
                {
                    element.attributes.push(attribute);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Id) {
        let mut nodes = self.nodes.borrow_mut();
        let (parent, previous, next) = {
            let node = &mut nodes[*target as usize];
            let links = (node.parent, node.previous, node.next);
            (node.parent, node.previous, node.next) = (NONE, NONE, NONE);
            links
        };
        if parent == NONE {
            return;
        }
        match previous {
            NONE => nodes[parent as usize].first = next,
            previous => nodes[previous as usize].next = next,
        }
        match next {
            NONE => nodes[parent as usize].last = previous,
            next => nodes[next as usize].previous = previous,
        }
    }

    fn reparent_children(&self, node: &Id, new_parent: &Id) {
        // It comes to stand in the node that it takes the children of.
        let depth = self.nodes.borrow()[*node as usize].depth + 1;
        self.nodes.borrow_mut()[*new_parent as usize].depth = depth;
        loop {
            let child = self.nodes.borrow()[*node as usize].first;
            if child == NONE {
                return;
            }
            self.insert(*new_parent, NONE, NodeOrText::AppendNode(child));
        }
    }
}
