//! Instagram: pictures and reels by their shortcode. Stories are none: they pass.

use super::graph;
use super::{Link, Naming, Network, Place, Post, Provider, is_made_of};
use crate::markup::Rules;

pub(super) static NETWORK: Network = Network {
    name: "instagram",
    title: "Instagram",
    home: "https://www.instagram.com",
    hosts: &[
        "instagram.com",
        "www.instagram.com",
        "m.instagram.com",
        "instagr.am",
        "www.instagr.am",
    ],
    tracking: &["igsh", "igshid", "img_index", "hl"],
    place,
    provider: Provider {
        base_url: "https://graph.facebook.com/",
        version: Some("v25.0"),
        query: &[],
        atom: "http:GET https://graph.facebook.com/",
        trouble: graph::trouble,
    },
    pictures: &["*.cdninstagram.com", "*.fbcdn.net"],
    markup: Some(Rules {
        scripts: &["https://www.instagram.com/embed.js"],
        frames: &[
            "https://www.instagram.com/p/",
            "https://www.instagram.com/reel/",
        ],
        data: &["data-instgrm-"],
    }),
    named_by: &[Naming::Url("data-instgrm-permalink")],
    author_page: None,
    walks: &[
        "http:GET,HEAD https://instagram.com/",
        "http:GET,HEAD https://*.instagram.com/",
        "http:GET,HEAD https://instagr.am/",
        "http:GET,HEAD https://*.instagr.am/",
    ],
};

fn place(link: &Link<'_>) -> Place {
    match link.path.as_slice() {
        ["accounts", "login", ..] | ["challenge", ..] => Place::Login,
        ["share", code] | ["share", "p" | "reel", code] if is_shortcode(code) => Place::Short,
        [kind, code] => post(kind, code),
        [user, kind, code] if is_made_of(user, "._", 1..=30) => post(kind, code),
        _ => Place::Other,
    }
}

fn post(kind: &str, code: &str) -> Place {
    let kind = match kind {
        "p" | "tv" => "p",
        "reel" | "reels" => "reel",
        _ => return Place::Other,
    };
    // The sounds of reels have pages of their own.
    if is_shortcode(code) && code != "audio" {
        Place::Post(Post::new(
            "instagram_oembed",
            code,
            format!("https://www.instagram.com/{kind}/{code}/"),
        ))
    } else {
        Place::Other
    }
}

fn is_shortcode(text: &str) -> bool {
    is_made_of(text, "_-", 5..=64)
}
