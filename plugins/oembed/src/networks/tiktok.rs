//! TikTok: videos and photo posts by their number.

use serde_json::Value;

use super::{
    Answered, Link, Naming, Network, Place, Post, Provider, by_status, is_made_of, is_number,
};
use crate::markup::Rules;
use crate::trouble::Trouble;

pub(super) static NETWORK: Network = Network {
    name: "tiktok",
    title: "TikTok",
    home: "https://www.tiktok.com",
    hosts: &[
        "tiktok.com",
        "www.tiktok.com",
        "m.tiktok.com",
        "t.tiktok.com",
        "vt.tiktok.com",
        "vm.tiktok.com",
    ],
    tracking: &[
        "_t",
        "_r",
        "_d",
        "u_code",
        "preview_pb",
        "timestamp",
        "user_id",
        "sec_user_id",
        "share_*",
        "is_copy_url",
        "is_from_webapp",
        "sender_device",
        "sender_web_id",
        "checksum",
        "tt_from",
        "source",
        "lang",
        "refer",
        "embed_source",
        "web_id",
    ],
    place,
    provider: Provider {
        base_url: "https://www.tiktok.com/",
        version: None,
        query: &[],
        atom: "http:GET https://www.tiktok.com/oembed",
        trouble,
    },
    pictures: &[
        "*.tiktokcdn.com",
        "*.tiktokcdn-us.com",
        "*.tiktokcdn-eu.com",
        "*.tiktokcdn-in.com",
    ],
    markup: Some(Rules {
        scripts: &["https://www.tiktok.com/embed.js"],
        frames: &[
            "https://www.tiktok.com/embed/",
            "https://www.tiktok.com/player/",
        ],
        data: &[
            "data-video-id",
            "data-unique-id",
            "data-embed-type",
            "data-embed-from",
        ],
    }),
    named_by: &[Naming::Id("data-video-id"), Naming::Url("cite")],
    author_page: Some(("author_unique_id", "https://www.tiktok.com/@")),
    walks: &[
        "http:GET,HEAD https://tiktok.com/",
        "http:GET,HEAD https://*.tiktok.com/",
    ],
};

fn place(link: &Link<'_>) -> Place {
    let path = link.path.as_slice();
    if matches!(link.host, "vt.tiktok.com" | "vm.tiktok.com") {
        return match path {
            [code] if is_code(code) => Place::Short,
            _ => Place::Other,
        };
    }
    let post = match path {
        ["login", ..] => return Place::Login,
        ["t", code] if is_code(code) => return Place::Short,
        [user, kind @ ("video" | "photo"), id] => {
            user.strip_prefix('@').and_then(|user| post(user, kind, id))
        }
        ["v", page] => page
            .strip_suffix(".html")
            .and_then(|id| post("", "video", id)),
        ["i18n", "share", "video", id] | ["embed", id] | ["embed", "v2" | "v3", id] => {
            post("", "video", id)
        }
        _ => None,
    };
    post.map_or(Place::Other, Place::Post)
}

fn post(user: &str, kind: &str, id: &str) -> Option<Post> {
    if !is_number(id) || id.len() < 15 || !is_made_of(user, "._-", 0..=24) {
        return None;
    }
    let page = format!("https://www.tiktok.com/@{user}");
    let mut post = Post::new("oembed", id, format!("{page}/{kind}/{id}"));
    // The provider knows photo posts by the URL that a video would have.
    post.asked = (kind == "photo").then(|| format!("{page}/video/{id}"));
    post.partial = user.is_empty();
    post.author = (!user.is_empty()).then(|| (user.to_owned(), page));
    Some(post)
}

fn is_code(text: &str) -> bool {
    is_made_of(text, "_-", 5..=32)
}

/// It says the same 400 of what is gone, hidden or never was, and sometimes with the status 200.
fn trouble(answered: &Answered<'_>) -> Option<Trouble> {
    let said = serde_json::from_slice::<Value>(answered.body).ok();
    let code = said
        .as_ref()
        .and_then(|said| said.get("code"))
        .and_then(Value::as_u64);
    match (answered.status, code) {
        (400, _) | (200, Some(400 | 404)) => Some(Trouble::NotFound),
        _ => by_status(answered),
    }
}
