//! What a provider says, and what becomes of it: whole answers of all six.

use serde_json::{Value, json};

use super::{House, tiktok_video, x_post};
use crate::lab::Reply;
use crate::support::LAB_TOKEN;

const REL: &str = " rel=\"noopener noreferrer nofollow\"";

fn capabilities(html: bool, thumbnail: bool, scripts: bool) -> Value {
    json!({ "html": html, "thumbnail": thumbnail, "nativeEmbed": html && scripts, "requiresHydration": scripts })
}

#[tokio::test]
async fn a_post_on_x_has_its_words_and_no_markup() {
    let house = House::shared();
    house
        .lab
        .answer("status%2F8001", Reply::json(200, &x_post("8001")));
    let expected = json!({
        "provider": "x",
        "type": "rich",
        "originalUrl": "https://twitter.com/i/web/status/8001?lang=en",
        "resolvedUrl": "https://x.com/jack/status/8001",
        "title": "just setting up my twttr",
        "author": { "name": "jack", "url": "https://twitter.com/jack" },
        "providerInfo": { "name": "X", "url": "https://x.com" },
        "thumbnail": null,
        "embed": { "html": null, "width": 550, "height": null, "scripts": [] },
        "capabilities": capabilities(false, false, false),
    });
    assert_eq!(
        house
            .resolved(" http://twitter.com/i/web/status/8001?s=20&lang=en#m\n")
            .await,
        expected
    );
    let asked = house.lab.asked("status%2F8001");
    assert_eq!(
        asked[0].address(),
        "publish.x.com/oembed?url=https%3A%2F%2Fx.com%2Fi%2Fstatus%2F8001&omit_script=1&dnt=true"
    );
    assert_eq!((asked.len(), asked[0].method.as_str()), (1, "GET"));
    assert!(
        asked[0].header("user-agent").starts_with("switchbay/"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_video_on_tiktok_has_its_picture_and_script() {
    let (house, id) = (House::shared(), "7000000000000000001");
    house
        .lab
        .answer(id, Reply::json(200, &tiktok_video("scout2015", id)));
    let html = format!(
        "<blockquote cite=\"https://www.tiktok.com/@scout2015/video/{id}\" class=\"tiktok-embed\" \
         data-embed-from=\"oembed\" data-video-id=\"{id}\"> <section> <a href=\"https://www.tiktok.com/@scout2015?refer=embed\" \
         target=\"_blank\" title=\"@scout2015\"{REL}>@scout2015</a> </section> </blockquote> "
    );
    let picture =
        "https://p16-sign.tiktokcdn-us.com/obj/a~tplv.jpeg?x-expires=1700000000&x-signature=abc%3D";
    let expected = json!({
        "provider": "tiktok",
        "type": "video",
        "originalUrl": format!("https://m.tiktok.com/v/{id}.html"),
        "resolvedUrl": format!("https://www.tiktok.com/@scout2015/video/{id}"),
        "title": "Scramble up ur name #fyp",
        "author": { "name": "Scout & Suki", "url": "https://www.tiktok.com/@scout2015" },
        "providerInfo": { "name": "TikTok", "url": "https://www.tiktok.com" },
        "thumbnail": { "url": picture, "width": 576, "height": 1024 },
        "embed": {
            "html": html,
            "width": null,
            "height": null,
            "scripts": [{ "src": "https://www.tiktok.com/embed.js", "async": true }],
        },
        "capabilities": capabilities(true, true, true),
    });
    assert_eq!(
        house
            .resolved(&format!("https://m.tiktok.com/v/{id}.html?_t=1"))
            .await,
        expected
    );
    // A photo post is asked for as a video, and stays what it is.
    let photo = house
        .resolved(&format!("https://www.tiktok.com/@scout2015/photo/{id}"))
        .await;
    assert_eq!(
        photo["resolvedUrl"],
        format!("https://www.tiktok.com/@scout2015/photo/{id}")
    );
    let asked = house.lab.asked(id);
    assert!(asked[1].address().ends_with(&format!(
        "url=https%3A%2F%2Fwww.tiktok.com%2F%40scout2015%2Fvideo%2F{id}"
    )));
}

#[tokio::test]
async fn a_post_on_reddit_has_a_height_and_no_width() {
    let house = House::shared();
    let said = json!({
        "provider_url": "https://www.reddit.com/",
        "title": "A title",
        "html": "<blockquote class=\"reddit-embed-bq\" style=\"height:316px\" >\n\
                 <a href=\"https://www.reddit.com/r/rust/comments/8a001/a_title/\">A title</a><br> by\n\
                 <a href=\"https://www.reddit.com/user/ferris/\">u/ferris</a></blockquote>\n\
                 <script async src=\"https://embed.reddit.com/widgets.js\" charset=\"UTF-8\"></script>",
        "provider_name": "reddit",
        "type": "rich",
        "author_name": "ferris",
        "height": 316,
    });
    house
        .lab
        .answer("comments%2F8a001", Reply::json(200, &said));
    let html = format!(
        "<blockquote class=\"reddit-embed-bq\">\n<a href=\"https://www.reddit.com/r/rust/comments/8a001/a_title/\"{REL}>\
         A title</a><br> by\n<a href=\"https://www.reddit.com/user/ferris/\"{REL}>u/ferris</a></blockquote>\n"
    );
    let expected = json!({
        "provider": "reddit",
        "type": "rich",
        "originalUrl": "https://redd.it/8a001",
        "resolvedUrl": "https://www.reddit.com/r/rust/comments/8a001/",
        "title": "A title",
        "author": { "name": "ferris", "url": "https://www.reddit.com/user/ferris" },
        "providerInfo": { "name": "Reddit", "url": "https://www.reddit.com" },
        "thumbnail": null,
        "embed": {
            "html": html,
            "width": null,
            "height": 316,
            "scripts": [{ "src": "https://embed.reddit.com/widgets.js", "async": true }],
        },
        "capabilities": capabilities(true, false, true),
    });
    assert_eq!(
        house.resolved("https://redd.it/8a001?share_id=x").await,
        expected
    );
    house.check_asked("redd.it/8a001", 0);
}

#[tokio::test]
async fn meta_is_asked_with_the_token_that_nobody_sees() {
    let house = House::shared();
    let facebook = json!({
        "width": 552,
        "html": format!(
            "<div id=\"fb-root\"></div>\n<script async=\"1\" defer=\"1\" crossorigin=\"anonymous\" \
             src=\"https://connect.facebook.net/en_US/sdk.js#xfbml=1&amp;version=v25.0\" nonce=\"{LAB_TOKEN}\"></script>\
             <div class=\"fb-video\" data-href=\"https://www.facebook.com/rust/videos/8001/\" data-width=\"552\">\
             <blockquote cite=\"https://www.facebook.com/rust/videos/8001/\">{LAB_TOKEN}</blockquote></div>"
        ),
        "version": "1.0",
        "provider_name": "Facebook",
        "provider_url": "https://www.facebook.com",
        "type": "video",
        "height": "280",
    });
    house
        .lab
        .answer("videos%2F8001", Reply::json(200, &facebook));
    let told = house
        .resolved("https://www.facebook.com/rust/videos/words/8001/?mibextid=x")
        .await;
    let html = "<div></div>\n<div class=\"fb-video\" data-href=\"https://www.facebook.com/rust/videos/8001/\" \
                data-width=\"552\"><blockquote cite=\"https://www.facebook.com/rust/videos/8001/\">[secret]</blockquote></div>";
    let script = "https://connect.facebook.net/en_US/sdk.js#xfbml=1&version=v25.0";
    let expected = json!({
        "provider": "facebook",
        "type": "video",
        "originalUrl": "https://www.facebook.com/rust/videos/words/8001/",
        "resolvedUrl": "https://www.facebook.com/rust/videos/8001",
        "title": null,
        "author": { "name": null, "url": null },
        "providerInfo": { "name": "Facebook", "url": "https://www.facebook.com" },
        "thumbnail": null,
        "embed": {
            "html": html,
            "width": 552,
            "height": null,
            "scripts": [{ "src": script, "async": true, "defer": true }],
        },
        "capabilities": capabilities(true, false, true),
    });
    assert_eq!(told, expected);
    let asked = house.lab.asked("videos%2F8001");
    let url = "https%3A%2F%2Fwww.facebook.com%2Frust%2Fvideos%2F8001";
    let token = "lab%2Ftoken%260123456789";
    assert_eq!(
        asked[0].address(),
        format!("graph.facebook.com/v25.0/oembed_video?url={url}&access_token={token}")
    );
}

#[tokio::test]
async fn instagram_and_threads_are_asked_by_resources_of_their_own() {
    let house = House::shared();
    let instagram = json!({
        "version": "1.0",
        "provider_name": "Instagram",
        "provider_url": "https://www.instagram.com/",
        "type": "rich",
        "width": 658,
        "html": "<blockquote class=\"instagram-media\" data-instgrm-captioned data-instgrm-permalink=\
                 \"https://www.instagram.com/reel/Lab8001/?utm_source=ig_embed\" data-instgrm-version=\"14\"></blockquote>\n\
                 <script async src=\"//www.instagram.com/embed.js\"></script>",
        "thumbnail_url": "https://scontent.cdninstagram.com/v/a.jpg?oh=1",
        "thumbnail_width": 640,
        "thumbnail_height": -1,
    });
    house
        .lab
        .answer("reel%2FLab8001", Reply::json(200, &instagram));
    let told = house
        .resolved("https://www.instagram.com/somebody/reel/Lab8001/?igsh=x")
        .await;
    assert_eq!(
        told["resolvedUrl"],
        "https://www.instagram.com/reel/Lab8001/"
    );
    let picture = json!({ "url": "https://scontent.cdninstagram.com/v/a.jpg?oh=1", "width": 640, "height": null });
    assert_eq!(told["thumbnail"], picture);
    assert_eq!(
        told["embed"]["scripts"],
        json!([{ "src": "https://www.instagram.com/embed.js", "async": true }])
    );
    let asked = house.lab.asked("reel%2FLab8001");
    assert!(
        asked[0]
            .address()
            .starts_with("graph.facebook.com/v25.0/instagram_oembed?url="),
        "{asked:?}"
    );

    let threads = json!({
        "version": "1.0",
        "provider_name": "Threads",
        "provider_url": "https://www.threads.com/",
        "width": 658,
        "html": "<blockquote class=\"text-post-media\" data-text-post-permalink=\"https://www.threads.com/@zuck/post/Lab8002\" \
                 data-text-post-version=\"0\" id=\"ig-tp-Lab8002\"></blockquote>\
                 <script async src=\"https://www.threads.com/embed.js\"></script>",
        "type": "rich",
    });
    house.lab.answer("t%2FLab8002", Reply::json(200, &threads));
    let told = house.resolved("https://www.threads.net/t/Lab8002").await;
    assert_eq!(
        told["resolvedUrl"],
        "https://www.threads.com/@zuck/post/Lab8002"
    );
    assert_eq!(
        told["author"],
        json!({ "name": "zuck", "url": "https://www.threads.com/@zuck" })
    );
    let asked = house.lab.asked("t%2FLab8002");
    assert_eq!(
        asked[0].address(),
        "graph.threads.com/v1.0/oembed?url=https%3A%2F%2Fwww.threads.com%2Ft%2FLab8002"
    );
}

#[tokio::test]
async fn nothing_of_a_hostile_answer_is_passed_on() {
    let (house, id) = (House::shared(), "7000000000000000002");
    let mut said = tiktok_video("a", id);
    said["type"] = json!("<script>");
    said["author_url"] = json!("javascript:alert(1)");
    said["provider_name"] = json!("Evil");
    said["provider_url"] = json!("https://evil.org");
    said["thumbnail_url"] = json!("https://evil.org/tiktokcdn.com/a.gif");
    said["width"] = json!(-5);
    said["height"] = json!({ "a": 1 });
    said["title"] = json!(["a"]);
    said["html"] = json!(
        "<blockquote onclick=alert(1)>a<img src=x onerror=alert(1)><svg onload=alert(1)></svg></blockquote>\
         <script src=https://evil.org/embed.js></script><iframe src=https://evil.org/></iframe>"
    );
    house.lab.answer(id, Reply::json(200, &said));
    let told = house
        .resolved(&format!("https://www.tiktok.com/@a/video/{id}"))
        .await;
    let expected = json!({
        "provider": "tiktok",
        "type": "rich",
        "originalUrl": format!("https://www.tiktok.com/@a/video/{id}"),
        "resolvedUrl": format!("https://www.tiktok.com/@a/video/{id}"),
        "title": null,
        "author": { "name": "Scout & Suki", "url": "https://www.tiktok.com/@a" },
        "providerInfo": { "name": "TikTok", "url": "https://www.tiktok.com" },
        "thumbnail": null,
        "embed": { "html": "<blockquote>a</blockquote>", "width": null, "height": null, "scripts": [] },
        "capabilities": capabilities(true, false, false),
    });
    assert_eq!(told, expected);
}
