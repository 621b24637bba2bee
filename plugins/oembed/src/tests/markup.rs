//! Markup as providers send it, and what is passed on of it.

use crate::markup::{clean, first_paragraph};
use crate::networks;

/// What the markup of a network becomes: the markup, and the scripts that it wants.
fn cleaned(network: &str, html: &str) -> (String, Vec<String>) {
    let network = networks::ALL
        .into_iter()
        .find(|one| one.name == network)
        .expect("a network");
    let clean = clean(
        html,
        network.markup.as_ref().expect("it has markup"),
        network.pictures,
    );
    let flags =
        |name: &str, flag: Option<bool>| flag.map(|_| format!(" {name}")).unwrap_or_default();
    let scripts = clean.scripts.into_iter().map(|script| {
        format!(
            "{}{}{}",
            script.src,
            flags("async", script.is_async),
            flags("defer", script.is_deferred)
        )
    });
    (clean.html, scripts.collect())
}

#[track_caller]
fn check(network: &str, html: &str, expected: &str, scripts: &[&str]) {
    let (html, found) = cleaned(network, html);
    assert_eq!(html, expected);
    assert_eq!(found, scripts);
}

const REL: &str = " rel=\"noopener noreferrer nofollow\"";

#[test]
fn a_tiktok_video_keeps_what_its_widget_reads() {
    check(
        "tiktok",
        "<blockquote class=\"tiktok-embed\" cite=\"https://www.tiktok.com/@scout2015/video/6718335390845095173\" \
         data-video-id=\"6718335390845095173\" data-embed-from=\"oembed\" style=\"max-width:605px; min-width:325px;\"> \
         <section> <a target=\"_blank\" title=\"@scout2015\" href=\"https://www.tiktok.com/@scout2015?refer=embed\">\
         @scout2015</a> <p>Scramble &amp; fetch</p> </section> </blockquote> \
         <script async src=\"https://www.tiktok.com/embed.js\"></script>",
        &format!(
            "<blockquote cite=\"https://www.tiktok.com/@scout2015/video/6718335390845095173\" class=\"tiktok-embed\" \
             data-embed-from=\"oembed\" data-video-id=\"6718335390845095173\"> <section> \
             <a href=\"https://www.tiktok.com/@scout2015?refer=embed\" target=\"_blank\" title=\"@scout2015\"{REL}>\
             @scout2015</a> <p>Scramble &amp; fetch</p> </section> </blockquote> "
        ),
        &["https://www.tiktok.com/embed.js async"],
    );
}

#[test]
fn an_instagram_post_loses_its_styles_and_pictures_of_nobody() {
    check(
        "instagram",
        "<blockquote class=\"instagram-media\" data-instgrm-captioned data-instgrm-permalink=\
         \"https://www.instagram.com/p/abcde/?utm_source=ig_embed\" data-instgrm-version=\"14\" style=\"background:#FFF\">\
         <div style=\"padding:16px;\"><svg width=\"50\"><g stroke=\"none\"></g></svg><a href=\"//www.instagram.com/p/abcde/\">\
         View</a><img src=\"https://scontent.cdninstagram.com/a.jpg\" alt=\"a\"><img src=\"https://evil.org/a.gif\"></div>\
         </blockquote>\n<script async src=\"//www.instagram.com/embed.js\"></script>",
        &format!(
            "<blockquote class=\"instagram-media\" data-instgrm-captioned=\"\" data-instgrm-permalink=\
             \"https://www.instagram.com/p/abcde/?utm_source=ig_embed\" data-instgrm-version=\"14\"><div>\
             <a href=\"https://www.instagram.com/p/abcde/\"{REL}>View</a>\
             <img alt=\"a\" src=\"https://scontent.cdninstagram.com/a.jpg\"></div></blockquote>\n"
        ),
        &["https://www.instagram.com/embed.js async"],
    );
}

#[test]
fn a_facebook_video_keeps_the_settings_of_its_script() {
    check(
        "facebook",
        "<div id=\"fb-root\"></div>\n<script async=\"1\" defer=\"1\" crossorigin=\"anonymous\" \
         src=\"https://connect.facebook.net/en_US/sdk.js#xfbml=1&amp;version=v25.0\" nonce=\"x\"></script>\
         <div class=\"fb-video\" data-href=\"https://www.facebook.com/zuck/videos/101/\" data-evil=\"x\"></div>",
        "<div></div>\n<div class=\"fb-video\" data-href=\"https://www.facebook.com/zuck/videos/101/\"></div>",
        &["https://connect.facebook.net/en_US/sdk.js#xfbml=1&version=v25.0 async defer"],
    );
    check(
        "facebook",
        "<iframe src=\"https://www.facebook.com/plugins/post.php?href=x\" width=\"500\" height=\"100%\" \
         style=\"border:none\" allow=\"autoplay\" allowfullscreen=\"true\" onload=\"x()\">inside</iframe>",
        "<iframe allowfullscreen=\"\" src=\"https://www.facebook.com/plugins/post.php?href=x\" width=\"500\"></iframe>",
        &[],
    );
}

#[test]
fn a_script_is_told_once_and_only_if_it_is_the_providers() {
    let scripts = [
        "https://embed.reddit.com/widgets.js",
        "//embed.reddit.com/widgets.js",
        "http://embed.reddit.com/widgets.js",
        "https://embed.reddit.com/widgets.js/../other.js",
        "https://embed.reddit.com.evil.org/widgets.js",
        "https://evil.org/widgets.js",
        "https://embed.reddit.com:8443/widgets.js",
        "https://me@embed.reddit.com/widgets.js",
        "https://embed.reddit.com/widgets.js?cb=<script>",
        "data:text/javascript,alert(1)",
        "javascript:alert(1)",
        "/widgets.js",
        "",
    ];
    let html: String = scripts
        .iter()
        .map(|src| format!("<script src='{src}'></script>"))
        .collect();
    check(
        "reddit",
        &format!("<p>a</p>{html}<script>alert(1)</script>"),
        "<p>a</p>",
        &["https://embed.reddit.com/widgets.js"],
    );
    let many = "<script src=https://connect.facebook.net/l%d_X/sdk.js></script>";
    let many: String = (0..50)
        .map(|n| many.replace("%d", &n.to_string()))
        .collect();
    assert_eq!(cleaned("facebook", &many).1.len(), 8);
}

#[test]
fn what_is_open_is_closed_and_what_is_too_deep_is_flat() {
    check(
        "reddit",
        "<blockquote><p>a<b>b</p>c",
        "<blockquote><p>a<b>b</b></p>c</blockquote>",
        &[],
    );
    check("reddit", "a</p></div>b<br/>c</br>", "ab<br>c", &[]);
    let (deep, _) = cleaned("reddit", &"<div>".repeat(10_000));
    assert_eq!(
        deep,
        format!("{}{}", "<div>".repeat(64), "</div>".repeat(64))
    );
    check(
        "reddit",
        "1 < 2 &amp; \"3\" &lt;b&gt; &#0;",
        "1 &lt; 2 &amp; &quot;3&quot; &lt;b&gt; \u{fffd}",
        &[],
    );
}

#[test]
fn the_first_words_of_a_post_are_its_title() {
    let html = "<blockquote class=\"twitter-tweet\"><p lang=\"en\" dir=\"ltr\">just setting  up<br>my &amp; twttr \
                <a href=\"https://t.co/x\">pic.x.com/x</a></p>&mdash; jack (@jack)</blockquote>";
    assert_eq!(
        first_paragraph(html).as_deref(),
        Some("just setting up my & twttr pic.x.com/x")
    );
    assert_eq!(
        first_paragraph(&format!("<p>{}</p>", "ä".repeat(400))).map(|title| title.chars().count()),
        Some(280)
    );
    for none in [
        "",
        "<p> </p><p>second</p>",
        "text",
        "<script><p>a</p></script>",
    ] {
        assert_eq!(first_paragraph(none), None, "{none}");
    }
}
