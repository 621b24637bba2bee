//! X: posts by their number. The card is drawn elsewhere, so its markup is not passed on.

use super::{Answered, Link, Network, Place, Post, Provider, by_status, is_made_of, is_number};
use crate::trouble::Trouble;

pub(super) static NETWORK: Network = Network {
    name: "x",
    title: "X",
    home: "https://x.com",
    hosts: &[
        "x.com",
        "www.x.com",
        "mobile.x.com",
        "m.x.com",
        "twitter.com",
        "www.twitter.com",
        "mobile.twitter.com",
        "m.twitter.com",
    ],
    tracking: &["s", "t", "src", "ref_src", "ref_url", "cn", "cxt"],
    place,
    provider: Provider {
        base_url: "https://publish.x.com/",
        version: None,
        query: &[("omit_script", "1"), ("dnt", "true")],
        atom: "http:GET https://publish.x.com/oembed",
        trouble,
    },
    pictures: &["pbs.twimg.com"],
    markup: None,
    named_by: &[],
    author_page: None,
    walks: &[],
};

fn place(link: &Link<'_>) -> Place {
    let post = match link.path.as_slice() {
        ["i", "web", "status", id] | ["statuses", id] => post(None, id),
        [user, "status" | "statuses", id, rest @ ..] if is_view(rest) => post(Some(user), id),
        ["login", ..] | ["i", "flow", "login", ..] => return Place::Login,
        _ => None,
    };
    post.map_or(Place::Other, Place::Post)
}

/// What may follow a post's number: one of its pictures, in a page of its own.
fn is_view(rest: &[&str]) -> bool {
    match rest {
        [] | ["mediaviewer" | "mediaViewer"] => true,
        ["photo" | "video", number] => is_number(number),
        _ => false,
    }
}

fn post(user: Option<&str>, id: &str) -> Option<Post> {
    let user = user.filter(|user| *user != "i");
    if !is_number(id) || user.is_some_and(|user| !is_made_of(user, "_", 1..=20)) {
        return None;
    }
    let mut post = Post::new(
        "oembed",
        id,
        format!("https://x.com/{}/status/{id}", user.unwrap_or("i")),
    );
    post.partial = user.is_none();
    Some(post)
}

/// Its 404 and 403 are pages; the second says by its words whether the author hides the post or is gone.
fn trouble(answered: &Answered<'_>) -> Option<Trouble> {
    match answered.status {
        403 => {
            let text = String::from_utf8_lossy(answered.body).to_ascii_lowercase();
            Some(if text.contains("suspended") {
                Trouble::NotFound
            } else {
                Trouble::Private
            })
        }
        _ => by_status(answered),
    }
}
