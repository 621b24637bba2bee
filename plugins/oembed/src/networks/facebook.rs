//! Facebook: posts, photos, albums, videos, reels and group posts, each with a URL of its own form.
//!
//! The only network whose posts are named by a query, so its canonical URLs keep the parameters that name them.

use super::graph;
use super::{Link, Naming, Network, Place, Post, Provider, is_made_of, is_number};
use crate::markup::Rules;

pub(super) static NETWORK: Network = Network {
    name: "facebook",
    title: "Facebook",
    home: "https://www.facebook.com",
    hosts: &[
        "facebook.com",
        "www.facebook.com",
        "m.facebook.com",
        "mbasic.facebook.com",
        "web.facebook.com",
        "touch.facebook.com",
        "business.facebook.com",
        "??-??.facebook.com",
        "fb.com",
        "www.fb.com",
        "fb.watch",
        "www.fb.watch",
    ],
    tracking: &[
        "__tn__",
        "__cft__[0]",
        "__xts__[0]",
        "mibextid",
        "rdid",
        "share_url",
        "sfnsn",
        "eav",
        "paipv",
        "idorvanity",
        "wtsid",
        "rdc",
        "rdr",
        "_rdr",
        "_rdc",
        "ref",
        "refid",
        "refsrc",
        "hc_*",
        "comment_tracking",
        "dti",
        "app",
        "video_source",
        "locale",
    ],
    place,
    provider: Provider {
        base_url: "https://graph.facebook.com/",
        version: Some("v25.0"),
        query: &[],
        atom: "http:GET https://graph.facebook.com/",
        trouble: graph::trouble,
    },
    pictures: &["*.fbcdn.net"],
    markup: Some(Rules {
        scripts: &["https://connect.facebook.net/*/sdk.js"],
        frames: &["https://www.facebook.com/plugins/"],
        data: &[
            "data-href",
            "data-width",
            "data-height",
            "data-show-text",
            "data-show-captions",
            "data-allowfullscreen",
            "data-autoplay",
            "data-lazy",
        ],
    }),
    named_by: &[Naming::Url("data-href")],
    author_page: None,
    walks: &[
        "http:GET,HEAD https://facebook.com/",
        "http:GET,HEAD https://*.facebook.com/",
        "http:GET,HEAD https://fb.com/",
        "http:GET,HEAD https://*.fb.com/",
        "http:GET,HEAD https://fb.watch/",
        "http:GET,HEAD https://*.fb.watch/",
    ],
};

const POST: &str = "oembed_post";
const VIDEO: &str = "oembed_video";

fn place(link: &Link<'_>) -> Place {
    let path = link.path.as_slice();
    if link.host.ends_with("fb.watch") {
        return match path {
            [code] if is_code(code) => Place::Short,
            _ => Place::Other,
        };
    }
    match path {
        ["login" | "login.php" | "checkpoint", ..] => Place::Login,
        ["share", code] | ["share", "p" | "v" | "r", code] if is_code(code) => Place::Short,
        _ => by_query(link)
            .or_else(|| by_path(path))
            .map_or(Place::Other, Place::Post),
    }
}

fn by_query(link: &Link<'_>) -> Option<Post> {
    match link.path.as_slice() {
        ["permalink.php" | "story.php"] => {
            let (story, owner) = (link.query("story_fbid")?, link.query("id")?);
            let fits = is_story(&story) && is_number(&owner);
            fits.then(|| {
                post(
                    POST,
                    &story,
                    &format!("permalink.php?story_fbid={story}&id={owner}"),
                )
            })
        }
        ["photo.php" | "photo"] => {
            let photo = link.query("fbid").filter(|photo| is_number(photo))?;
            Some(post(POST, &photo, &format!("photo/?fbid={photo}")))
        }
        ["media", "set"] => {
            let set = link.query("set").filter(|set| is_set(set))?;
            Some(post(POST, &set, &format!("media/set/?set={set}")))
        }
        ["watch"] | ["watch", "live"] | ["video.php"] => {
            let video = link.query("v").filter(|video| is_number(video))?;
            Some(post(VIDEO, &video, &format!("watch/?v={video}")))
        }
        _ => None,
    }
}

fn by_path(path: &[&str]) -> Option<Post> {
    match path {
        ["groups", group, "permalink" | "posts", id] if is_page(group) && is_story(id) => {
            Some(post(POST, id, &format!("groups/{group}/posts/{id}")))
        }
        ["reel", id] if is_number(id) => Some(post(VIDEO, id, &format!("reel/{id}"))),
        ["notes", user, slug, id] if is_page(user) && is_slug(slug) && is_number(id) => {
            Some(post(POST, id, &format!("notes/{user}/{slug}/{id}")))
        }
        [page, "posts", id] if is_page(page) && is_story(id) => {
            Some(post(POST, id, &format!("{page}/posts/{id}")))
        }
        [page, "posts", slug, id] if is_page(page) && is_slug(slug) && is_story(id) => {
            Some(post(POST, id, &format!("{page}/posts/{id}")))
        }
        [page, "photos", id] if is_page(page) && is_number(id) => {
            Some(post(POST, id, &format!("{page}/photos/{id}")))
        }
        [page, "photos", album, id]
            if is_page(page) && (is_set(album) || is_slug(album)) && is_number(id) =>
        {
            Some(post(POST, id, &format!("{page}/photos/{id}")))
        }
        [page, "videos", id] if is_page(page) && is_number(id) => {
            Some(post(VIDEO, id, &format!("{page}/videos/{id}")))
        }
        [page, "videos", slug, id]
            if is_page(page) && (is_set(slug) || is_slug(slug)) && is_number(id) =>
        {
            Some(post(VIDEO, id, &format!("{page}/videos/{id}")))
        }
        _ => None,
    }
}

fn post(resource: &'static str, id: &str, path: &str) -> Post {
    // A hidden id is made anew for each reader, so another one in the answer is no other post.
    let id = if is_number(id) { id } else { "" };
    Post::new(resource, id, format!("https://www.facebook.com/{path}"))
}

/// A number, or the form that hides it.
fn is_story(text: &str) -> bool {
    is_number(text)
        || text
            .strip_prefix("pfbid")
            .is_some_and(|rest| is_made_of(rest, "", 5..=128))
}

/// A page's name or number.
fn is_page(text: &str) -> bool {
    is_made_of(text, ".-_%", 1..=200)
}

/// Words of a title.
fn is_slug(text: &str) -> bool {
    is_made_of(text, ".-_%", 1..=500)
}

/// An album: its kind and numbers, `a.1.2.3`.
fn is_set(text: &str) -> bool {
    let (kind, numbers) = text.split_once('.').unwrap_or(("", text));
    is_made_of(kind, "", 0..=4) && numbers.len() <= 100 && numbers.split('.').all(is_number)
}

fn is_code(text: &str) -> bool {
    is_made_of(text, "_-", 4..=64)
}
