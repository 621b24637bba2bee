//! The elements that extraction tells apart.
//!
//! It must know nothing of a page: only names and what HTML says of them.

macro_rules! tags {
    ($($variant:ident $name:literal $kind:ident),* $(,)?) => {
        /// An element's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Tag {
            /// No element.
            None,
            /// An element that is treated as its content alone.
            Other,
            $($variant),*
        }

        impl Tag {
            /// The tag of a name in lower case.
            pub(crate) fn of(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    _ => Self::Other,
                }
            }

            /// The name of a tag.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    Self::None | Self::Other => "",
                    $(Self::$variant => $name),*
                }
            }

            fn kind(self) -> TagKind {
                match self {
                    Self::None | Self::Other => TagKind::Inline,
                    $(Self::$variant => TagKind::$kind),*
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

tags! {
    A "a" Inline, Abbr "abbr" Inline, Address "address" Block, Article "article" Block, Aside "aside" Block,
    B "b" Inline, Base "base" Unread, Blockquote "blockquote" Block, Body "body" Block, Br "br" Inline,
    Button "button" Block, Caption "caption" Block, Center "center" Block, Cite "cite" Inline, Code "code" Inline,
    Col "col" Unread, Datalist "datalist" Unread, Dd "dd" Block, Del "del" Inline, Details "details" Block,
    Dialog "dialog" Block, Dir "dir" Block, Div "div" Block, Dl "dl" Block, Dt "dt" Block, Em "em" Inline,
    Embed "embed" Unread, Fieldset "fieldset" Block, Figcaption "figcaption" Block, Figure "figure" Block,
    Footer "footer" Block, Form "form" Block, Frame "frame" Unread, Frameset "frameset" Block, H1 "h1" Block,
    H2 "h2" Block, H3 "h3" Block, H4 "h4" Block, H5 "h5" Block, H6 "h6" Block, Head "head" Unread,
    Header "header" Block, Hgroup "hgroup" Block, Hr "hr" Block, Html "html" Block, I "i" Inline,
    Iframe "iframe" Unread, Img "img" Inline, Input "input" Unread, Ins "ins" Inline, Kbd "kbd" Inline,
    Label "label" Inline, Legend "legend" Block, Li "li" Block, Link "link" Unread, Listing "listing" Block,
    Main "main" Block, Mark "mark" Inline, Math "math" Inline, Menu "menu" Block, Meta "meta" Unread,
    Nav "nav" Block, Noscript "noscript" Block, Object "object" Unread, Ol "ol" Block, Optgroup "optgroup" Block,
    Option "option" Block, P "p" Block, Picture "picture" Inline, Pre "pre" Block, Q "q" Inline, S "s" Inline,
    Samp "samp" Inline, Script "script" Unread, Section "section" Block, Select "select" Block, Small "small" Inline,
    Source "source" Inline, Span "span" Inline, Strike "strike" Inline, Strong "strong" Inline, Style "style" Unread,
    Sub "sub" Inline, Summary "summary" Block, Sup "sup" Inline, Table "table" Block, Tbody "tbody" Block,
    Td "td" Block, Template "template" Unread, Textarea "textarea" Unread, Tfoot "tfoot" Block, Th "th" Block,
    Thead "thead" Block, Time "time" Inline, Title "title" Unread, Tr "tr" Block, Tt "tt" Inline, Ul "ul" Block,
    U "u" Inline, Var "var" Inline, Video "video" Unread, Audio "audio" Unread, Xmp "xmp" Block,
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
