//! The elements that extraction tells apart.
//!
//! It must know nothing of a page: only names, what HTML says of them, and which of them content keeps.

macro_rules! tags {
    ($($kind:ident $is_written:literal: $($variant:ident $name:literal),*;)*) => {
        /// An element's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Tag {
            /// No element.
            None,
            /// An element that is treated as its content alone.
            Other,
            $($($variant),*),*
        }

        impl Tag {
            /// The tag of a name in lower case.
            pub(crate) fn of(name: &str) -> Self {
                match name {
                    $($($name => Self::$variant,)*)*
                    _ => Self::Other,
                }
            }

            /// The name of a tag.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    Self::None | Self::Other => "",
                    $($(Self::$variant => $name),*),*
                }
            }

            fn kind(self) -> TagKind {
                match self {
                    Self::None | Self::Other => TagKind::Inline,
                    $($(Self::$variant)|* => TagKind::$kind),*
                }
            }

            /// Whether content that is written as HTML keeps it, and not its text alone.
            pub(crate) fn is_written(self) -> bool {
                match self {
                    Self::None | Self::Other => false,
                    $($(Self::$variant)|* => $is_written),*
                }
            }
        }
    };
}

#[derive(PartialEq, Eq)]
enum TagKind {
    Inline,
    Block,
    /// Never shown, or not as text.
    Unread,
}

// By what they are, and by whether content that is written as HTML keeps them.
tags! {
    Inline true:
        A "a", Abbr "abbr", B "b", Cite "cite", Code "code", Del "del", Em "em", I "i", Img "img", Ins "ins", Kbd "kbd",
        Mark "mark", Q "q", S "s", Samp "samp", Strike "strike", Strong "strong", Sub "sub", Sup "sup", Tt "tt", U "u",
        Var "var";
    Inline false:
        Br "br", Label "label", Math "math", Picture "picture", Small "small", Source "source", Span "span",
        Time "time";
    Block true:
        Article "article", Blockquote "blockquote", Caption "caption", Dd "dd", Div "div", Dl "dl", Dt "dt",
        Figcaption "figcaption", Figure "figure", H1 "h1", H2 "h2", H3 "h3", H4 "h4", H5 "h5", H6 "h6", Li "li",
        Ol "ol", P "p", Pre "pre", Section "section", Table "table", Tbody "tbody", Td "td", Tfoot "tfoot", Th "th",
        Thead "thead", Tr "tr", Ul "ul";
    Block false:
        Address "address", Aside "aside", Body "body", Button "button", Center "center", Details "details",
        Dialog "dialog", Dir "dir", Fieldset "fieldset", Footer "footer", Form "form", Frameset "frameset",
        Header "header", Hgroup "hgroup", Hr "hr", Html "html", Legend "legend", Listing "listing", Main "main",
        Menu "menu", Nav "nav", Noscript "noscript", Optgroup "optgroup", Option "option", Select "select",
        Summary "summary", Xmp "xmp";
    Unread false:
        Base "base", Col "col", Datalist "datalist", Embed "embed", Frame "frame", Head "head", Iframe "iframe",
        Input "input", Link "link", Meta "meta", Object "object", Script "script", Style "style", Template "template",
        Textarea "textarea", Title "title", Video "video", Audio "audio";
}

impl Tag {
    /// Whether it begins and ends a block of text.
    pub(crate) fn is_block(self) -> bool {
        self.kind() == TagKind::Block
    }

    /// Whether nothing in it is text of the page.
    pub(crate) fn is_unread(self) -> bool {
        self.kind() == TagKind::Unread
    }

    /// Its level, if it is a heading.
    pub(crate) fn heading(self) -> Option<usize> {
        [Self::H1, Self::H2, Self::H3, Self::H4, Self::H5, Self::H6]
            .iter()
            .position(|tag| *tag == self)
            .map(|at| at + 1)
    }

    /// Whether white space in it counts.
    pub(crate) fn is_preformatted(self) -> bool {
        matches!(self, Self::Pre | Self::Listing | Self::Xmp)
    }
}
