//! Words that tell what a short text is for: buying, signing in, filtering, sharing.
//!
//! It must know nothing of pages. The words are English with some of the commonest of other languages; a text without any
//! of them is judged by its shape alone.

macro_rules! topics {
    ($($name:ident: $($word:literal)|*;)*) => {
        /// What a word is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Topic { $($name),* }

        /// The number of topics.
        pub(crate) const TOPICS: usize = [$(Topic::$name),*].len();

        /// The topic of a word in lower case.
        fn of(word: &str) -> Option<Topic> {
            match word {
                $($($word)|* => Some(Topic::$name),)*
                _ => None,
            }
        }
    };
}

topics! {
    Trade: "cart" | "bag" | "basket" | "buy" | "checkout" | "wishlist" | "stock" | "quantity" | "qty" | "sale"
        | "add" | "shop" | "sold" | "warenkorb" | "panier" | "carrito";
    Delivery: "shipping" | "delivery" | "returns" | "return" | "ship" | "ships" | "warranty" | "guarantee"
        | "refund" | "pickup" | "versand" | "livraison";
    Legal: "privacy" | "terms" | "cookies" | "cookie" | "copyright" | "©" | "reserved" | "policy" | "trademark"
        | "trademarks" | "imprint" | "impressum" | "datenschutz" | "disclaimer" | "conditions" | "accessibility"
        | "sitemap" | "preferences";
    Account: "sign" | "log" | "login" | "signup" | "signin" | "register" | "account" | "password" | "subscribe"
        | "newsletter" | "email" | "inbox" | "join" | "unsubscribe" | "anmelden" | "connexion" | "waitlist"
        | "notify";
    Social: "share" | "follow" | "tweet" | "facebook" | "instagram" | "twitter" | "linkedin" | "pinterest"
        | "youtube" | "whatsapp" | "reddit" | "tiktok" | "print" | "copy" | "link";
    Related: "related" | "similar" | "recommended" | "also" | "popular" | "recent" | "recently" | "latest"
        | "trending" | "viewed" | "bought" | "customers" | "picks" | "featured" | "might" | "explore" | "discover"
        | "editor's";
    Thread: "reply" | "replies" | "posted" | "joined" | "views" | "member" | "members" | "thread" | "threads"
        | "votes" | "answer" | "answers" | "answered" | "posts" | "likes" | "op" | "wrote" | "said" | "topic"
        | "topics" | "discussion" | "forum";
    Comment: "comment" | "comments" | "leave" | "kommentare" | "commentaires";
    Review: "review" | "reviews" | "rating" | "ratings" | "stars" | "star" | "verified" | "helpful" | "purchase"
        | "testimonials";
    Filter: "filter" | "filters" | "sort" | "clear" | "results" | "showing" | "apply" | "reset" | "refine"
        | "availability" | "relevance" | "hide";
    More: "more" | "view" | "see" | "show" | "load" | "next" | "previous" | "prev" | "page" | "less" | "all"
        | "read" | "back" | "skip" | "continue" | "learn" | "click" | "here";
    Search: "search" | "menu" | "close" | "open" | "toggle" | "navigation" | "home" | "language" | "select"
        | "choose" | "suche" | "loading";
    Company: "careers" | "press" | "contact" | "help" | "support" | "faq" | "faqs" | "blog" | "investors" | "jobs"
        | "advertise" | "partners" | "about" | "company" | "us" | "locations" | "store" | "stores" | "resources";
    Time: "ago" | "jan" | "feb" | "mar" | "apr" | "may" | "jun" | "jul" | "aug" | "sep" | "oct" | "nov" | "dec"
        | "january" | "february" | "march" | "april" | "june" | "july" | "august" | "september" | "october"
        | "november" | "december" | "min" | "minutes" | "hours" | "days" | "updated" | "published" | "am" | "pm";
    Detail: "description" | "details" | "features" | "specifications" | "ingredients" | "specs" | "overview"
        | "dimensions" | "weight" | "material" | "materials" | "includes" | "benefits" | "sku" | "brand" | "model"
        | "color" | "size";
    You: "you" | "your" | "we" | "our" | "i" | "my";
    Bind: "the" | "of" | "and" | "to" | "in" | "is" | "that" | "for" | "with" | "was" | "der" | "die" | "und" | "le"
        | "la" | "les" | "et" | "de" | "que" | "el" | "en" | "y" | "das" | "il" | "di";
}

/// The topic of a word as it stands in a text.
pub(crate) fn topic(word: &str) -> Option<Topic> {
    if word.len() > 24 {
        return None;
    }
    let word = match word {
        "©" => word,
        _ => word.trim_matches(|c: char| !c.is_alphanumeric()),
    };
    let mut lower = [0_u8; 24];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    of(std::str::from_utf8(lower).ok()?)
}
