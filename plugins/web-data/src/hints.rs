//! What the markup around a text says of it: its elements' names, roles, and the words in their classes and ids.
//!
//! It must know nothing of how much a hint weighs. Words are whole words of a class (`nav-item` has two), because a part of
//! a word is a hint as often as an accident (`nav` in `unavailable`).

use crate::tag::Tag;
use crate::tree::Element;

macro_rules! hints {
    ($($name:ident: $($word:literal)|*;)*) => {
        /// What a hint is about. Each is a bit of [`Hints`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Hint { $($name),* }

        /// All hints, in the order of their bits.
        pub(crate) const ALL: &[Hint] = &[$(Hint::$name),*];

        /// The hint of a word in lower case, without the s of a plural.
        fn of_word(word: &str) -> Option<Hint> {
            match word {
                $($($word)|* => Some(Hint::$name),)*
                _ => None,
            }
        }
    };
}

hints! {
    Navigation: "nav" | "navbar" | "navigation" | "menu" | "submenu" | "megamenu" | "topbar" | "subnav" | "sitemap"
        | "hamburger" | "dropdown" | "toolbar" | "skip" | "navbox" | "offcanvas";
    Header: "header" | "masthead" | "banner" | "logo" | "brand" | "announcement" | "topnav";
    Footer: "footer" | "foot" | "copyright" | "colophon" | "legal" | "bottom" | "disclaimer";
    Side: "sidebar" | "side" | "aside" | "rail" | "widget" | "secondary" | "sidenav" | "right" | "left";
    Comment: "comment" | "respond" | "disqu" | "disquss" | "commentlist" | "feedback";
    Advert: "ad" | "advert" | "advertisement" | "sponsor" | "sponsored" | "promo" | "promotion" | "adsense" | "dfp"
        | "outbrain" | "taboola" | "affiliate" | "upsell";
    Share: "share" | "sharing" | "social" | "follow" | "facebook" | "twitter" | "sharedaddy" | "addtoany";
    Related: "related" | "recommended" | "recommendation" | "recommend" | "more" | "popular" | "trending"
        | "similar" | "readnext" | "crosssell" | "cross" | "latest" | "recent" | "youmaylike" | "suggested"
        | "recently" | "also";
    Signup: "newsletter" | "subscribe" | "subscription" | "signup" | "login" | "signin" | "register" | "optin"
        | "account" | "paywall" | "email" | "contact";
    Overlay: "cookie" | "consent" | "gdpr" | "modal" | "popup" | "overlay" | "lightbox" | "tooltip" | "drawer"
        | "toast" | "popover" | "onetrust" | "dialog" | "notification" | "cart" | "minicart";
    Byline: "byline" | "author" | "meta" | "date" | "timestamp" | "publish" | "published" | "tag" | "category"
        | "categorie" | "postmeta" | "info" | "bio" | "time";
    Content: "content" | "article" | "post" | "entry" | "story" | "body" | "main" | "text" | "page" | "copy"
        | "richtext" | "wysiwyg" | "rte" | "prose" | "paragraph" | "blog" | "section";
    Product: "product" | "price" | "sku" | "pdp" | "variant" | "spec" | "specification" | "feature" | "ingredient"
        | "detail" | "size" | "swatch" | "shipping" | "stock" | "quantity" | "option";
    Card: "card" | "item" | "grid" | "tile" | "list" | "listing" | "result" | "collection" | "row" | "teaser"
        | "catalog" | "shelf" | "plp" | "feed" | "archive" | "loop" | "summary";
    Review: "review" | "rating" | "star" | "testimonial" | "bazaarvoice" | "yotpo" | "stamped" | "okendo";
    Thread: "thread" | "message" | "topic" | "reply" | "replie" | "discussion" | "forum" | "answer" | "question"
        | "postbody" | "bbwrapper" | "cooked" | "conversation" | "bbcode" | "postcontent";
    Reference: "doc" | "documentation" | "markdown" | "code" | "highlight" | "api" | "example" | "wiki" | "rst"
        | "mdx" | "guide" | "tutorial" | "reference" | "parsed" | "md";
    Hidden: "hidden" | "hide" | "collapsed" | "noprint" | "print" | "template" | "skeleton" | "placeholder" | "mobile"
        | "clone" | "cloned" | "duplicate";
    Spoken: "invisible" | "sr" | "visually" | "screen" | "offscreen" | "visuallyhidden" | "reader" | "assistive";
    Filter: "filter" | "facet" | "sort" | "sorting" | "refine" | "search" | "searchbar" | "compare" | "checkbox"
        | "select" | "input" | "form" | "field" | "control";
    Trail: "breadcrumb" | "crumb" | "trail" | "bread";
    Pager: "pagination" | "pager" | "paging" | "pagenav" | "next" | "prev" | "previous" | "loadmore" | "load"
        | "paginate";
    Hero: "hero" | "jumbotron" | "intro" | "lead" | "subtitle" | "tagline" | "standfirst" | "dek" | "deck" | "lede"
        | "headline" | "title" | "heading" | "eyebrow" | "heading1";
    Gallery: "gallery" | "carousel" | "slider" | "swiper" | "slide" | "slick" | "thumbnail" | "thumb" | "image"
        | "media" | "video" | "player" | "photo" | "picture" | "img" | "figure";
    Folded: "faq" | "accordion" | "tab" | "tabpanel" | "collapsible" | "toggle" | "expandable" | "panel"
        | "accordian" | "collapse" | "tabbed" | "expand" | "expander" | "disclosure";
    Contents: "toc" | "contents" | "outline" | "jump" | "anchor" | "onthispage" | "scrollspy";
    Action: "btn" | "button" | "cta" | "action" | "link" | "download" | "buy" | "addtocart" | "add" | "permalink"
        | "edit" | "vote" | "like" | "report";
    Excerpt: "description" | "desc" | "excerpt" | "abstract" | "overview" | "bullet" | "highlights" | "blurb"
        | "caption" | "about" | "longdescription" | "synopsis" | "snippet";
    Member: "user" | "avatar" | "profile" | "member" | "username" | "userinfo" | "signature" | "badge" | "poster"
        | "postprofile" | "contributor" | "stat" | "rank" | "reputation" | "karma";
    Quotation: "quote" | "blockquote" | "pullquote" | "quoted" | "quotes" | "notice" | "alert" | "callout"
        | "admonition" | "note";
    Language: "language" | "lang" | "locale" | "country" | "region" | "currency" | "translate" | "store"
        | "location" | "version";
    Site: "site" | "global" | "utility" | "util" | "app" | "shopify" | "elementor" | "wp" | "wrapper" | "container"
        | "layout";
    InMain: "role-main";
    InArticle: "role-article";
    InNav: "role-navigation";
    InHeader: "role-banner";
    InFooter: "role-contentinfo";
    InAside: "role-complementary";
    InForm: "role-form";
    InTable: "role-table";
    InList: "role-list";
    InFigure: "role-figure";
    InDialog: "role-dialog";
    InControl: "role-control";
    InDetails: "role-details";
    Unseen: "role-unseen";
    InSection: "role-region";
    InNoscript: "role-noscript";
}

/// A set of hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints(u64);

impl Hints {
    pub(crate) fn has(self, hint: Hint) -> bool {
        self.0 >> hint as u8 & 1 == 1
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn add(&mut self, hint: Hint) {
        self.0 |= 1 << hint as u8;
    }

    /// What an element says of itself.
    pub(crate) fn of(element: &Element) -> Self {
        let mut hints = Self::default();
        if let Some(hint) = of_tag(element.tag) {
            hints.add(hint);
        }
        for attribute in &element.attributes {
            match &*attribute.name.local {
                "class" | "id" | "itemprop" | "data-testid" | "aria-label" => {
                    each_word(&attribute.value, |word| {
                        if let Some(hint) = of_word(word) {
                            hints.add(hint);
                        }
                    });
                }
                "role" => {
                    if let Some(hint) = of_role(attribute.value.trim()) {
                        hints.add(hint);
                    }
                }
                "hidden" => hints.add(Hint::Unseen),
                "aria-hidden" if &*attribute.value == "true" => hints.add(Hint::Unseen),
                "style" if is_unseen(&attribute.value) => hints.add(Hint::Unseen),
                _ => {}
            }
        }
        hints
    }
}

fn of_tag(tag: Tag) -> Option<Hint> {
    Some(match tag {
        Tag::Main => Hint::InMain,
        Tag::Article => Hint::InArticle,
        Tag::Nav => Hint::InNav,
        Tag::Header => Hint::InHeader,
        Tag::Footer => Hint::InFooter,
        Tag::Aside => Hint::InAside,
        Tag::Form | Tag::Fieldset => Hint::InForm,
        Tag::Table => Hint::InTable,
        Tag::Ul | Tag::Ol | Tag::Dl => Hint::InList,
        Tag::Figure => Hint::InFigure,
        Tag::Dialog => Hint::InDialog,
        Tag::Button | Tag::Select | Tag::Label | Tag::Option => Hint::InControl,
        Tag::Details => Hint::InDetails,
        Tag::Section => Hint::InSection,
        Tag::Noscript => Hint::InNoscript,
        _ => return None,
    })
}

fn of_role(role: &str) -> Option<Hint> {
    Some(match role {
        "main" => Hint::InMain,
        "article" => Hint::InArticle,
        "navigation" | "menu" | "menubar" | "toolbar" => Hint::InNav,
        "banner" => Hint::InHeader,
        "contentinfo" => Hint::InFooter,
        "complementary" => Hint::InAside,
        "search" | "form" => Hint::InForm,
        "dialog" | "alertdialog" | "alert" => Hint::InDialog,
        "button" | "listbox" | "option" | "tab" => Hint::InControl,
        _ => return None,
    })
}

fn is_unseen(style: &str) -> bool {
    let style: String = style
        .chars()
        .filter(|c| !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect();
    style.contains("display:none") || style.contains("visibility:hidden")
}

/// The words of a class or id in lower case without a plural's s: `postTitle__cards` has `post`, `title` and `card`.
fn each_word(value: &str, mut found: impl FnMut(&str)) {
    let mut word = [0_u8; 24];
    let mut length = 0;
    let mut was_lower = false;
    let mut end = |word: &mut [u8; 24], length: &mut usize| {
        let mut text = std::str::from_utf8(&word[..(*length).min(24)]).unwrap_or_default();
        if *length <= 24 && *length > 0 {
            if text.len() > 3 {
                text = text.strip_suffix('s').unwrap_or(text);
            }
            found(text);
        }
        *length = 0;
    };
    for byte in value.bytes() {
        if !byte.is_ascii_alphabetic() || (byte.is_ascii_uppercase() && was_lower) {
            end(&mut word, &mut length);
        }
        if byte.is_ascii_alphabetic() {
            if let Some(place) = word.get_mut(length) {
                *place = byte.to_ascii_lowercase();
            }
            length += 1;
        }
        was_lower = byte.is_ascii_lowercase();
    }
    end(&mut word, &mut length);
}
