//! Reddit: posts, and single comments of them, by their id in base 36.

use serde_json::Value;

use super::{Answered, Link, Naming, Network, Place, Post, Provider, by_status, is_made_of};
use crate::markup::Rules;
use crate::trouble::Trouble;

pub(super) static NETWORK: Network = Network {
    name: "reddit",
    title: "Reddit",
    home: "https://www.reddit.com",
    hosts: &[
        "reddit.com",
        "www.reddit.com",
        "old.reddit.com",
        "new.reddit.com",
        "np.reddit.com",
        "m.reddit.com",
        "amp.reddit.com",
        "sh.reddit.com",
        "i.reddit.com",
        "redd.it",
        "www.redd.it",
        "v.redd.it",
    ],
    tracking: &[
        "share_id",
        "rdt",
        "ref_source",
        "ref_campaign",
        "correlation_id",
        "$deep_link",
        "$3p",
        "$original_url",
        "_branch_match_id",
        "context",
        "sort",
        "st",
        "sh",
    ],
    place,
    provider: Provider {
        base_url: "https://www.reddit.com/",
        version: None,
        query: &[],
        atom: "http:GET https://www.reddit.com/oembed",
        trouble,
    },
    pictures: &["*.redd.it", "*.redditmedia.com", "*.redditstatic.com"],
    markup: Some(Rules {
        scripts: &[
            "https://embed.reddit.com/widgets.js",
            "https://embed.redditmedia.com/widgets/platform.js",
        ],
        frames: &["https://embed.reddit.com/", "https://www.redditmedia.com/"],
        data: &["data-embed-"],
    }),
    named_by: &[Naming::Url("href")],
    author_page: Some(("author_name", "https://www.reddit.com/user/")),
    walks: &[
        "http:GET,HEAD https://reddit.com/",
        "http:GET,HEAD https://*.reddit.com/",
        "http:GET,HEAD https://v.redd.it/",
    ],
};

fn place(link: &Link<'_>) -> Place {
    let path = link.path.as_slice();
    match (link.host, path) {
        ("v.redd.it", [code]) if is_made_of(code, "", 1..=32) => return Place::Short,
        ("v.redd.it", _) => return Place::Other,
        ("redd.it" | "www.redd.it", [id]) => {
            return at("", id, None).map_or(Place::Other, Place::Post);
        }
        _ => {}
    }
    let post = match path {
        ["login", ..] | ["account", "login", ..] => return Place::Login,
        ["r" | "u" | "user", owner, "s", code]
            if is_name(owner) && is_made_of(code, "_-", 4..=32) =>
        {
            return Place::Short;
        }
        [
            kind @ ("r" | "u" | "user"),
            owner,
            "comments",
            id,
            rest @ ..,
        ] if is_name(owner) => {
            let kind = if *kind == "r" { "r" } else { "user" };
            comment(rest).and_then(|comment| at(&format!("{kind}/{owner}/"), id, comment))
        }
        ["comments", id, rest @ ..] => comment(rest).and_then(|comment| at("", id, comment)),
        ["gallery", id] => at("", id, None),
        _ => None,
    };
    post.map_or(Place::Other, Place::Post)
}

/// The comment that a path names behind the post's id, if it names any.
fn comment<'p>(rest: &[&'p str]) -> Option<Option<&'p str>> {
    match rest {
        [] | [_] => Some(None),
        [_, comment] if is_id(comment) => Some(Some(comment)),
        _ => None,
    }
}

fn at(owner: &str, id: &str, comment: Option<&str>) -> Option<Post> {
    if !is_id(id) {
        return None;
    }
    let mut url = format!("https://www.reddit.com/{owner}comments/{id}/");
    if let Some(comment) = comment {
        url.push_str(&format!("comment/{comment}/"));
    }
    let mut post = Post::new("oembed", id, url);
    post.partial = owner.is_empty();
    if let Some(user) = owner
        .strip_prefix("user/")
        .and_then(|user| user.strip_suffix('/'))
    {
        post.author = Some((
            user.to_owned(),
            format!("https://www.reddit.com/user/{user}"),
        ));
    }
    Some(post)
}

fn is_id(text: &str) -> bool {
    is_made_of(text, "", 1..=16) && !text.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_name(text: &str) -> bool {
    is_made_of(text, "_-", 1..=32)
}

/// A 403 with a reason is of the post, and so is one without: the provider denies access either way.
fn trouble(answered: &Answered<'_>) -> Option<Trouble> {
    let reason = || {
        let said: Value = serde_json::from_slice(answered.body).ok()?;
        said.get("reason")?.as_str().map(str::to_owned)
    };
    match answered.status {
        404 if reason()
            .is_some_and(|reason| matches!(&*reason, "private" | "quarantined" | "gold_only")) =>
        {
            Some(Trouble::Private)
        }
        _ => by_status(answered),
    }
}
