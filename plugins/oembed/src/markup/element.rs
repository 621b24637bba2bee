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

const VOID: [&str; 2] = ["br", "hr"];

/// What is not text of the post, whatever it says.
const LEFT_OUT: [&str; 19] = [
    "applet",
    "audio",
    "button",
    "canvas",
    "head",
    "math",
    "noembed",
    "noframes",
    "noscript",
    "object",
    "plaintext",
    "select",
    "style",
    "svg",
    "template",
    "textarea",
    "title",
    "video",
    "xmp",
];

pub(super) fn kind(name: &[u8]) -> ElementKind {
    let in_list =
        |list: &[&'static str]| list.iter().copied().find(|known| known.as_bytes() == name);
    match name {
        b"img" => ElementKind::Picture,
        b"iframe" => ElementKind::Frame,
        b"script" => ElementKind::Script,
        _ if in_list(&LEFT_OUT).is_some() => ElementKind::LeftOut,
        _ => match (in_list(&KEPT), in_list(&VOID)) {
            (Some(kept), _) => ElementKind::Kept(kept),
            (None, Some(void)) => ElementKind::Void(void),
            (None, None) => ElementKind::Unwrapped,
        },
    }
}
