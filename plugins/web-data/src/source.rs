//! The source of a page, brought down to what extraction reads, in one pass over its bytes.
//!
//! It must know nothing of content: it drops what no reader sees (scripts, styles, comments, drawings) and every attribute
//! that nothing here asks for. Two thirds of a usual page go, and parsing is what a page costs.
//!
//! Surprising: it also makes the parser safe. A tag's attributes are compared with one another as they are parsed, so a tag
//! of a megabyte of attributes would take minutes; at most [`ATTRIBUTES_MAX`] are let through.

use memchr::{memchr, memmem};

/// Attributes of one tag; what is beyond is dropped.
const ATTRIBUTES_MAX: usize = 32;
/// Bytes of an attribute's value; a longer one is dropped with its attribute (data URIs, inlined state).
const VALUE_BYTES_MAX: usize = 4096;
/// Bytes of what a `<meta>` declares, as they are written; what is beyond is cut. A description of 10,000 characters fits,
/// if each of them is written as a reference.
const CONTENT_BYTES_MAX: usize = 512 * 1024;
/// Bytes of structured data that are kept of a page, and its pieces.
const STRUCTURED_BYTES_MAX: usize = 512 * 1024;
const STRUCTURED_MAX: usize = 1000;

/// What of a page is worth parsing.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// HTML without scripts, styles, comments, drawings and unread attributes.
    pub(crate) html: String,
    /// The bodies of its `application/ld+json` scripts.
    pub(crate) structured: Vec<String>,
    /// Bytes of all its scripts.
    pub(crate) script_bytes: usize,
    /// Whether it is made of frames. The tags of their sets are dropped, so that what the page says without them is read.
    pub(crate) has_frames: bool,
}

/// Reduces a page.
pub(crate) fn reduce(page: &str) -> Source {
    let mut reader = SourceReader {
        page,
        at: 0,
        source: Source::default(),
        structured_bytes: 0,
        no_more_drawings: false,
    };
    reader.source.html.reserve(page.len() / 2);
    while reader.step() {}
    reader.source
}

struct SourceReader<'a> {
    page: &'a str,
    at: usize,
    source: Source,
    structured_bytes: usize,
    /// No drawing ends behind `at`: asked once, or a page of `<svg>` alone is read as often as it has any.
    no_more_drawings: bool,
}

impl<'a> SourceReader<'a> {
    /// Copies text up to the next `<` and reads what begins there. False at the end.
    fn step(&mut self) -> bool {
        let bytes = self.page.as_bytes();
        let Some(open) = memchr(b'<', &bytes[self.at..]).map(|found| self.at + found) else {
            self.source.html.push_str(&self.page[self.at..]);
            return false;
        };
        self.source.html.push_str(&self.page[self.at..open]);
        self.at = open;
        match bytes.get(open + 1) {
            Some(b'!') if bytes[open..].starts_with(b"<!--") => self.comment(),
            Some(b'!' | b'?') => self.declaration(),
            Some(b'/') if bytes.get(open + 2).is_some_and(u8::is_ascii_alphabetic) => {
                self.tag(open + 2);
            }
            Some(letter) if letter.is_ascii_alphabetic() => self.tag(open + 1),
            Some(_) | None => {
                self.source.html.push('<');
                self.at = open + 1;
            }
        }
        true
    }

    fn comment(&mut self) {
        // `<!-->` and `<!--->` are whole comments.
        let from = self.at + 2;
        self.at = match memmem::find(&self.page.as_bytes()[from..], b"-->") {
            Some(found) => from + found + 3,
            None => self.page.len(),
        };
    }

    fn declaration(&mut self) {
        let rest = &self.page.as_bytes()[self.at..];
        if rest.len() >= 9 && rest[..9].eq_ignore_ascii_case(b"<!doctype") {
            self.source.html.push_str("<!DOCTYPE html>");
        }
        self.at = memchr(b'>', rest).map_or(self.page.len(), |found| self.at + found + 1);
    }

    /// Reads a tag whose name begins at `name_at`, and the text that belongs to it alone.
    fn tag(&mut self, name_at: usize) {
        let bytes = self.page.as_bytes();
        let name_length = bytes[name_at..]
            .iter()
            .position(|byte| is_space(*byte) || matches!(byte, b'>' | b'/'));
        let name_end = name_length.map_or(bytes.len(), |length| name_at + length);
        let name = &self.page[name_at..name_end];
        let is_end = name_at == self.at + 2;
        let written = self.source.html.len();
        // A parser knows frames in frame sets alone, and those are dropped.
        let is_frame = !is_end && name.eq_ignore_ascii_case("frame");
        self.source
            .html
            .push_str(match (is_frame, is_preformatted(name), is_end) {
                (true, _, _) => "<iframe",
                (false, true, false) => "<pre",
                (false, true, true) => "</pre",
                (false, false, _) => &self.page[self.at..name_end],
            });
        let mut is_structured = false;
        self.at = self.attributes(name_end, &mut |attribute, value| {
            is_structured |= says_structured(attribute, value);
            !is_end && is_read(attribute)
        });
        self.source.html.push('>');
        if is_end {
            if is_dropped(name) {
                self.source.html.truncate(written);
            }
            return;
        }
        if is_frame {
            return self.source.html.push_str("</iframe>");
        }
        self.source.has_frames |= name.eq_ignore_ascii_case("frameset");
        match Body::of(name) {
            Body::Markup if is_dropped(name) => self.source.html.truncate(written),
            Body::Markup => {}
            Body::Script => {
                self.source.html.truncate(written);
                self.script(is_structured);
            }
            Body::Drawing => {
                self.source.html.truncate(written);
                self.drawing();
            }
            Body::Frame => {
                self.source.html.push_str("</iframe>");
                let (_, after) = self.raw("iframe");
                self.at = after;
            }
            Body::Unseen(name) => {
                self.source.html.truncate(written);
                (_, self.at) = self.raw(name);
            }
            Body::Text(name, written_as) => {
                let (body, after) = match name {
                    // Nothing ends it.
                    "plaintext" => (self.page.len(), self.page.len()),
                    name => self.raw(name),
                };
                self.text(&self.page[self.at..body], is_preformatted(name));
                for piece in ["</", written_as, ">"] {
                    self.source.html.push_str(piece);
                }
                self.at = after;
            }
        }
    }

    /// Writes text that is no markup so that it is none wherever it stands: inside of formulas, the parser would read it.
    fn text(&mut self, text: &str, is_literal: bool) {
        for c in text.chars() {
            match c {
                '<' => self.source.html.push_str("&lt;"),
                '&' if is_literal => self.source.html.push_str("&amp;"),
                c => self.source.html.push(c),
            }
        }
    }

    /// Copies the attributes that `keep` answers for, from behind a tag's name. The place behind its `>`.
    fn attributes(&mut self, mut at: usize, keep: &mut dyn FnMut(&str, &str) -> bool) -> usize {
        let page = self.page;
        let bytes = page.as_bytes();
        let mut kept = 0;
        loop {
            while bytes
                .get(at)
                .is_some_and(|byte| is_space(*byte) || *byte == b'/')
            {
                at += 1;
            }
            let name_at = at;
            match bytes.get(at) {
                None => return at,
                Some(b'>') => return at + 1,
                Some(_) => at += 1,
            }
            while bytes
                .get(at)
                .is_some_and(|byte| !is_space(*byte) && !matches!(byte, b'=' | b'>' | b'/'))
            {
                at += 1;
            }
            let name = &page[name_at..at];
            let mut ahead = at;
            while bytes.get(ahead).is_some_and(|byte| is_space(*byte)) {
                ahead += 1;
            }
            let (mut value, mut quoted) = ("", false);
            if bytes.get(ahead) == Some(&b'=') {
                at = ahead + 1;
                while bytes.get(at).is_some_and(|byte| is_space(*byte)) {
                    at += 1;
                }
                (value, at, quoted) = self.value(at);
            }
            let is_declared = name.eq_ignore_ascii_case("content");
            let value = if is_declared {
                &value[..value.floor_char_boundary(CONTENT_BYTES_MAX)]
            } else {
                value
            };
            if kept < ATTRIBUTES_MAX
                && (is_declared || value.len() <= VALUE_BYTES_MAX)
                && keep(name, value)
            {
                kept += 1;
                let quote = match (quoted, value.contains('"')) {
                    (true, true) => "'",
                    (true, false) | (false, _) => "\"",
                };
                // An unquoted value with a double quote in it is broken markup, and is not worth an escape.
                let value = if !quoted && value.contains('"') {
                    ""
                } else {
                    value
                };
                for piece in [" ", name, "=", quote, value, quote] {
                    self.source.html.push_str(piece);
                }
            }
        }
    }

    /// An attribute's value at `at`, the place behind it, and whether it was quoted.
    fn value(&self, at: usize) -> (&'a str, usize, bool) {
        let page = self.page;
        let bytes = page.as_bytes();
        match bytes.get(at) {
            Some(quote @ (b'"' | b'\'')) => {
                let end =
                    memchr(*quote, &bytes[at + 1..]).map_or(bytes.len(), |found| at + 1 + found);
                (&page[at + 1..end], (end + 1).min(bytes.len()), true)
            }
            Some(_) | None => {
                let length = bytes[at..]
                    .iter()
                    .position(|byte| is_space(*byte) || *byte == b'>');
                let end = length.map_or(bytes.len(), |length| at + length);
                (&page[at..end], end, false)
            }
        }
    }

    fn script(&mut self, is_structured: bool) {
        let (end, after) = self.raw("script");
        let body = &self.page[self.at..end];
        self.source.script_bytes += body.len();
        if is_structured
            && self.structured_bytes + body.len() <= STRUCTURED_BYTES_MAX
            && self.source.structured.len() < STRUCTURED_MAX
        {
            self.structured_bytes += body.len();
            self.source.structured.push(body.to_owned());
        }
        self.at = after;
    }

    /// Passes over a drawing. One without an end is passed over by its tag alone, as a browser shows what follows.
    fn drawing(&mut self) {
        if self.no_more_drawings {
            return;
        }
        match find_end(self.page.as_bytes(), self.at, "svg") {
            Some((_, after)) => self.at = after,
            None => self.no_more_drawings = true,
        }
    }

    /// Where the text that begins at `at` ends, and the place behind its end tag: all that is left, if there is none.
    fn raw(&self, name: &str) -> (usize, usize) {
        find_end(self.page.as_bytes(), self.at, name).unwrap_or((self.page.len(), self.page.len()))
    }
}

/// What stands between an element's tags.
enum Body {
    Markup,
    Script,
    Drawing,
    Frame,
    /// Text that no reader sees.
    Unseen(&'static str),
    /// Text that ends at the element's end tag alone, and the element that it is written as.
    Text(&'static str, &'static str),
}

impl Body {
    fn of(name: &str) -> Self {
        const RAW: [(&str, Body); 9] = [
            ("script", Body::Script),
            ("style", Body::Unseen("style")),
            ("noembed", Body::Unseen("noembed")),
            ("svg", Body::Drawing),
            ("iframe", Body::Frame),
            ("title", Body::Text("title", "title")),
            ("textarea", Body::Text("textarea", "textarea")),
            ("xmp", Body::Text("xmp", "pre")),
            ("plaintext", Body::Text("plaintext", "pre")),
        ];
        RAW.into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map_or(Body::Markup, |(_, body)| body)
    }
}

/// Elements that only colour text: the parser opens each again in every paragraph that they reach over.
fn is_dropped(name: &str) -> bool {
    ["font", "big", "nobr", "frameset", "frame", "noframes"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}

/// Elements of old that are written as `<pre>`: what is in them is text, and only browsers know which of them end where.
fn is_preformatted(name: &str) -> bool {
    ["xmp", "listing", "plaintext"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether an attribute of a script says that it holds data about the page.
fn says_structured(attribute: &str, value: &str) -> bool {
    attribute.eq_ignore_ascii_case("type") && value.to_ascii_lowercase().contains("ld+json")
}

fn is_read(name: &str) -> bool {
    READ.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Attributes that something here asks for.
pub(crate) const READ: [&str; 34] = [
    "class",
    "id",
    "href",
    "src",
    "alt",
    "title",
    "role",
    "lang",
    "rel",
    "content",
    "name",
    "property",
    "style",
    "hidden",
    "aria-hidden",
    "aria-label",
    "aria-modal",
    "type",
    "colspan",
    "rowspan",
    "start",
    "itemprop",
    "itemtype",
    "http-equiv",
    "charset",
    "srcset",
    "data-src",
    "data-lazy-src",
    "data-original",
    "data-srcset",
    "data-lang",
    "data-language",
    "data-testid",
    "value",
];

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

/// The next end tag of this name at or behind `from`: its begin, and the place behind its `>`.
fn find_end(bytes: &[u8], from: usize, name: &str) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        let open = at + memmem::find(bytes.get(at..)?, b"</")?;
        let behind = open + 2 + name.len();
        if bytes
            .get(open + 2..behind)
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
            && bytes
                .get(behind)
                .is_none_or(|byte| is_space(*byte) || matches!(byte, b'>' | b'/'))
        {
            let after = memchr(b'>', &bytes[behind.min(bytes.len())..]);
            return Some((open, after.map_or(bytes.len(), |found| behind + found + 1)));
        }
        at = open + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expected: &str) {
        assert_eq!(reduce(page).html, expected);
    }

    #[test]
    fn what_no_reader_sees_is_dropped() {
        check("a<!-- b --><script>c</script><style>d</style>e", "ae");
        check("a<svg><title>b</title></svg>c<svg>d", "acd");
        check(
            "<p onclick='x()' class='y' data-z=1>a</p >",
            "<p class=\"y\">a</p>",
        );
        check("<img src='a\"b' alt=c/d>", "<img src='a\"b' alt=\"c/d\">");
        check("<font color=red>a</font> < 3 <3", "a < 3 <3");
        check("<title>a <b> c</title>d", "<title>a &lt;b> c</title>d");
        check(
            "<xmp class=x>a<b>&lt;</xmp><LISTING>c</listing>",
            "<pre class=\"x\">a&lt;b>&amp;lt;</pre><pre>c</pre>",
        );
        check(
            "a<plaintext>b<script>c</plaintext>",
            "a<pre>b&lt;script>c&lt;/plaintext></pre>",
        );
        check("a<noembed><p>b</noembed>c", "ac");
        check(
            "<frameset cols=1><frame src=x noresize></frameset>a",
            "<iframe src=\"x\"></iframe>a",
        );
        check(
            "<iframe src=x>old</iframe>a",
            "<iframe src=\"x\"></iframe>a",
        );
        check(
            "<!doctype html><?php x ?>a<!-->b<div",
            "<!DOCTYPE html>ab<div>",
        );
    }

    #[test]
    fn structured_data_is_kept_apart() {
        let source =
            reduce("<script type=\"application/ld+json\">{}</script><script>12345</script>");
        assert_eq!(
            (source.structured, source.script_bytes),
            (vec!["{}".to_owned()], 7)
        );
    }

    #[test]
    fn a_tag_keeps_only_so_many_attributes_and_no_long_value() {
        let tag = format!("<p {} id='{}'>", "class=a ".repeat(100), "x".repeat(5000));
        assert_eq!(reduce(&tag).html.matches("class").count(), ATTRIBUTES_MAX);
        assert_eq!(
            reduce(&format!("<p id='{}'>", "x".repeat(5000))).html,
            "<p>"
        );
        let declared = format!("<meta content='{}'>", "é".repeat(CONTENT_BYTES_MAX));
        assert_eq!(
            reduce(&declared).html,
            format!("<meta content=\"{}\">", "é".repeat(CONTENT_BYTES_MAX / 2))
        );
    }
}
