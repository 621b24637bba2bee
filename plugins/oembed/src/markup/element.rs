//! Which elements are passed on, and what becomes of the others.
//!
//! None of those that are kept has content that a browser reads otherwise than as markup.

/// What becomes of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// It is kept, with what is in it.
    Kept(&'static str),
    /// It is kept and has no content.
    Void(&'static str),
    Picture,
    /// Kept if it is the provider's own.
    Frame,
    /// Left out, and told of.
    Script,
    /// Left out with everything in it.
    LeftOut,
    /// Left out; what is in it is kept.
    Unwrapped,
}

const KEPT: [&str; 32] = [
    "a",
    "abbr",
    "b",
    "blockquote",
    "cite",
    "code",
    "del",
    "div",
    "em",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "i",
    "li",
    "ol",
    "p",
    "q",
    "s",
    "section",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "time",
    "u",
    "ul",
];

pub(super) fn kind(name: &[u8]) -> ElementKind {
    match name {
        b"img" => ElementKind::Picture,
        b"iframe" => ElementKind::Frame,
        b"script" => ElementKind::Script,
        b"br" => ElementKind::Void("br"),
        b"hr" => ElementKind::Void("hr"),
        // What is not text of the post, whatever it says.
        b"applet" | b"audio" | b"button" | b"canvas" | b"head" | b"math" | b"noembed"
        | b"noframes" | b"noscript" | b"object" | b"plaintext" | b"select" | b"style" | b"svg"
        | b"template" | b"textarea" | b"title" | b"video" | b"xmp" => ElementKind::LeftOut,
        _ => KEPT
            .into_iter()
            .find(|known| known.as_bytes() == name)
            .map_or(ElementKind::Unwrapped, ElementKind::Kept),
    }
}
