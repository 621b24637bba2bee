//! Threads: posts by their code, with or without their author.

use super::graph;
use super::{Link, Naming, Network, Place, Post, Provider, is_made_of};
use crate::markup::Rules;

pub(super) static NETWORK: Network = Network {
    name: "threads",
    title: "Threads",
    home: "https://www.threads.com",
    hosts: &[
        "threads.com",
        "www.threads.com",
        "threads.net",
        "www.threads.net",
    ],
    tracking: &["xmt", "slof", "igshid"],
    place,
    provider: Provider {
        base_url: "https://graph.threads.com/",
        version: Some("v1.0"),
        query: &[],
        atom: "http:GET https://graph.threads.com/",
        trouble: graph::trouble,
    },
    pictures: &["*.cdninstagram.com", "*.fbcdn.net"],
    markup: Some(Rules {
        scripts: &[
            "https://www.threads.com/embed.js",
            "https://www.threads.net/embed.js",
        ],
        frames: &["https://www.threads.com/", "https://www.threads.net/"],
        data: &["data-text-post-"],
    }),
    named_by: &[Naming::Url("data-text-post-permalink")],
    author_page: None,
    walks: &[],
};

fn place(link: &Link<'_>) -> Place {
    let post = match link.path.as_slice() {
        ["login", ..] => return Place::Login,
        [user, "post", code] => user
            .strip_prefix('@')
            .and_then(|user| post(Some(user), code)),
        ["t", code] => post(None, code),
        _ => None,
    };
    post.map_or(Place::Other, Place::Post)
}

fn post(user: Option<&str>, code: &str) -> Option<Post> {
    if !is_made_of(code, "_-", 5..=64) || user.is_some_and(|user| !is_made_of(user, "._", 1..=30)) {
        return None;
    }
    let Some(user) = user else {
        let mut post = Post::new("oembed", code, format!("https://www.threads.com/t/{code}"));
        post.partial = true;
        return Some(post);
    };
    let page = format!("https://www.threads.com/@{user}");
    let mut post = Post::new("oembed", code, format!("{page}/post/{code}"));
    post.author = Some((user.to_owned(), page));
    Some(post)
}
