//! Writes content as HTML that may stand in any page: a few elements, a few attributes, absolute addresses.
//!
//! It must know nothing of what was chosen. What is not on the lists here is left out, its text stays.

use url::Url;

use crate::address::Addresses;
use crate::code;
use crate::tag::Tag;
use crate::tree::{Id, ROOT, Step, Tree};

/// Writes the kept nodes, and says whether they are cut: what is written has at most so many characters and is whole.
pub(crate) fn write(
    tree: &Tree,
    kept: &[bool],
    base: Option<&Url>,
    characters_max: usize,
) -> (String, bool) {
    let mut writer = HtmlWriter {
        tree,
        addresses: Addresses::new(base),
        out: String::new(),
        left: characters_max,
        open: Vec::new(),
        is_parted: true,
        parts: false,
        is_cut: false,
    };
    let mut walk = tree.walk(ROOT);
    while let Some(step) = walk.next().filter(|_| !writer.is_cut) {
        match step {
            Step::Enter(id) if !kept[id as usize] => {
                writer.pass(id);
                // What an inline element holds parts texts too, a rule within emphasis for one.
                if tree.tag(id).is_block() {
                    walk.skip_children();
                }
            }
            Step::Enter(id) => {
                if writer.enter(id) {
                    walk.skip_children();
                }
            }
            Step::Leave(id) => writer.leave(id),
        }
    }
    while let Some((_, name)) = writer.open.pop() {
        writer.end(name);
    }
    (writer.out.trim().to_owned(), writer.is_cut)
}

struct HtmlWriter<'a> {
    tree: &'a Tree,
    addresses: Addresses<'a>,
    out: String,
    /// Characters that there is room for besides the end tags of what is open.
    left: usize,
    open: Vec<(Id, &'static str)>,
    /// What is written last is the begin or the end of a block.
    is_parted: bool,
    /// The next text is of another block than the last, and nothing that is written says so.
    parts: bool,
    is_cut: bool,
}

impl HtmlWriter<'_> {
    /// Looks at an element that has no kept text.
    fn pass(&mut self, id: Id) {
        let tag = self.tree.tag(id);
        match tag {
            Tag::Br => self.line_break(),
            // An empty cell keeps its row in shape.
            Tag::Td | Tag::Th if !self.open.is_empty() => {
                self.begin(id, tag.name());
                self.leave(id);
            }
            tag => self.parts |= tag.is_block(),
        }
    }

    /// True where the children of the node are written already.
    fn enter(&mut self, id: Id) -> bool {
        if let Some(text) = self.tree.text(id) {
            if !text.trim().is_empty() {
                self.part();
            }
            self.text(text);
            return false;
        }
        let tag = self.tree.tag(id);
        if tag == Tag::Img {
            self.picture(id);
        } else if tag == Tag::Br {
            self.line_break();
        } else if tag.is_preformatted() {
            self.begin(id, "pre");
            self.text(&code::text(self.tree, id));
            self.leave(id);
            return true;
        } else if tag.is_written() && !self.would_end_another(tag) {
            self.begin(id, tag.name());
        } else {
            self.parts |= tag.is_block();
        }
        false
    }

    fn leave(&mut self, id: Id) {
        let is_block = self.tree.tag(id).is_block();
        match self.open.pop_if(|(open, _)| *open == id) {
            Some((_, name)) => {
                self.end(name);
                self.is_parted |= is_block;
                self.parts &= !is_block;
            }
            None => self.parts |= is_block,
        }
    }

    fn line_break(&mut self) {
        if !self.out.is_empty() {
            self.single("<br>");
            (self.is_parted, self.parts) = (true, false);
        }
    }

    /// Parts what is written next from the text before it.
    fn part(&mut self) {
        if std::mem::take(&mut self.parts) && !self.is_parted {
            self.single("<br>");
        }
        self.is_parted = false;
    }

    /// Writes a piece that needs no end, if there is room for it.
    fn single(&mut self, piece: &str) {
        match self.left.checked_sub(piece.chars().count()) {
            Some(left) => {
                self.left = left;
                self.out.push_str(piece);
            }
            None => self.is_cut = true,
        }
    }

    fn text(&mut self, text: &str) {
        for c in text.chars() {
            self.single(escaped(c, &mut [0; 4]));
            if self.is_cut {
                return;
            }
        }
    }

    fn picture(&mut self, id: Id) {
        let tree = self.tree;
        let Some(address) = self.addresses.picture(|name| tree.attribute(id, name)) else {
            return;
        };
        self.part();
        let mut piece = "<img".to_owned();
        attribute(&mut piece, "src", &address);
        attribute(
            &mut piece,
            "alt",
            tree.attribute(id, "alt").map(str::trim).unwrap_or_default(),
        );
        piece.push('>');
        self.single(&piece);
    }

    /// Whether a reader would end an open element at the begin of this one, and so not where it ends (HTML, 13.2.6.4.7).
    fn would_end_another(&self, tag: Tag) -> bool {
        let mut open = self.open.iter().rev().map(|(id, _)| self.tree.tag(*id));
        match tag {
            Tag::Li => open
                .take_while(|open| !is_boundary(*open))
                .any(|open| open == Tag::Li),
            Tag::Dd | Tag::Dt => open
                .take_while(|open| !is_boundary(*open))
                .any(|open| matches!(open, Tag::Dd | Tag::Dt)),
            tag if tag.heading().is_some() => {
                open.next().is_some_and(|open| open.heading().is_some())
            }
            _ => false,
        }
    }

    /// Begins an element, if there is room for its tags.
    fn begin(&mut self, id: Id, name: &'static str) {
        if self.tree.tag(id).is_block() {
            (self.is_parted, self.parts) = (true, false);
        }
        let mut piece = format!("<{name}");
        self.attributes(&mut piece, id);
        piece.push('>');
        let end = name.len() + "</>".len();
        match self.left.checked_sub(piece.chars().count() + end) {
            Some(left) => {
                self.left = left;
                self.out.push_str(&piece);
                self.open.push((id, name));
            }
            None => self.is_cut = true,
        }
    }

    fn end(&mut self, name: &str) {
        for piece in ["</", name, ">"] {
            self.out.push_str(piece);
        }
    }

    fn attributes(&mut self, piece: &mut String, id: Id) {
        let tree = self.tree;
        let written = |name| {
            tree.attribute(id, name)
                .map(str::trim)
                .filter(|value| !value.is_empty())
        };
        match tree.tag(id) {
            Tag::A => {
                if let Some(address) = written("href").and_then(|href| self.addresses.link(href)) {
                    attribute(piece, "href", &address);
                }
            }
            Tag::Td | Tag::Th => {
                for name in ["colspan", "rowspan"] {
                    let span = written(name).and_then(|value| value.parse::<u16>().ok());
                    if let Some(span) = span.filter(|span| *span > 1) {
                        attribute(piece, name, &span.min(1000).to_string());
                    }
                }
            }
            Tag::Ol => {
                if let Some(start) = written("start").and_then(|value| value.parse::<u32>().ok()) {
                    attribute(piece, "start", &start.to_string());
                }
            }
            tag if tag.is_preformatted() => {
                if let Some(language) = code::language(tree, id) {
                    attribute(piece, "class", &format!("language-{language}"));
                }
            }
            _ => {}
        }
    }
}

/// Whether an element in this one ends none around it.
fn is_boundary(tag: Tag) -> bool {
    tag.is_block() && !matches!(tag, Tag::Div | Tag::P | Tag::Li | Tag::Dd | Tag::Dt)
}

fn attribute(piece: &mut String, name: &str, value: &str) {
    for part in [" ", name, "=\""] {
        piece.push_str(part);
    }
    for c in value.chars() {
        match c {
            '"' => piece.push_str("&quot;"),
            c => piece.push_str(escaped(c, &mut [0; 4])),
        }
    }
    piece.push('"');
}

fn escaped(c: char, buffer: &mut [u8; 4]) -> &str {
    match c {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        c => c.encode_utf8(buffer),
    }
}

/// Text as one element of this name without attributes, of at most so many characters, and whether it is cut.
pub(crate) fn element(name: &str, text: &str, characters_max: usize) -> (String, bool) {
    let mut out = format!("<{name}>");
    let mut left = characters_max.saturating_sub(2 * name.len() + "<></>".len());
    let mut is_cut = false;
    for c in text.chars() {
        let mut buffer = [0; 4];
        let written = escaped(c, &mut buffer);
        let Some(rest) = left.checked_sub(written.chars().count()) else {
            is_cut = true;
            break;
        };
        left = rest;
        out.push_str(written);
    }
    for piece in ["</", name, ">"] {
        out.push_str(piece);
    }
    (out, is_cut)
}
