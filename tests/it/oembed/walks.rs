//! Short links: where they lead, how far they are followed, and what they may not lead to.

use serde_json::json;

use super::{House, tiktok_video};
use crate::egress::names;
use crate::lab::Reply;

const UNSAFE: (u16, &str) = (400, "OEMBED_SECURITY_REJECTED");
const PRIVATE: (u16, &str) = (403, "OEMBED_PRIVATE_CONTENT");
const LIMITED: (u16, &str) = (429, "OEMBED_RATE_LIMITED");
const UNRESOLVED: (u16, &str) = (422, "OEMBED_URL_UNRESOLVED");
const UPSTREAM: (u16, &str) = (502, "OEMBED_UPSTREAM_ERROR");

#[tokio::test]
async fn a_short_link_is_followed_to_the_post_and_no_further() {
    let (house, id) = (House::shared(), "7000000000000000301");
    house.lab.answer(
        &format!("url=https%3A%2F%2Fwww.tiktok.com%2F%40a%2Fvideo%2F{id}"),
        Reply::json(200, &tiktok_video("a", id)),
    );
    house.lab.answer(
        "vm.tiktok.com/ZMlab1/",
        Reply::redirect(301, "http://www.tiktok.com/t/ZTlab2/?_r=1"),
    );
    let to = format!("/@a/video/{id}?_t=8&_r=1#x");
    house
        .lab
        .answer("www.tiktok.com/t/ZTlab2/", Reply::redirect(302, &to));
    let told = house.resolved("https://vm.tiktok.com/ZMlab1/?k=1").await;
    assert_eq!(told["originalUrl"], "https://vm.tiktok.com/ZMlab1/?k=1");
    assert_eq!(
        told["resolvedUrl"],
        format!("https://www.tiktok.com/@a/video/{id}")
    );
    let hops: Vec<String> = house
        .lab
        .asked("lab")
        .into_iter()
        .map(|asked| format!("{} {}", asked.method, asked.address()))
        .collect();
    let hops: Vec<&String> = hops
        .iter()
        .filter(|hop| hop.contains("ZMlab1") || hop.contains("ZTlab2"))
        .collect();
    // Once for both faces: where a short link leads is kept as well.
    assert_eq!(
        hops,
        [
            "HEAD vm.tiktok.com/ZMlab1/",
            "HEAD www.tiktok.com/t/ZTlab2/"
        ]
    );
    house.check_asked(&format!("www.tiktok.com/@a/video/{id}"), 0);
}

#[tokio::test]
async fn each_networks_short_links_lead_to_its_posts() {
    let house = House::shared();
    let said = json!({ "html": "<blockquote>a</blockquote>" });
    for (short, location, resolved) in [
        (
            "https://fb.watch/Lab_fb1/",
            "https://www.facebook.com/watch/?v=9601&extid=x",
            "https://www.facebook.com/watch/?v=9601",
        ),
        (
            "https://www.facebook.com/share/p/Labfb2/",
            "https://www.facebook.com/a/posts/pfbid0Lab9602?rdid=x",
            "https://www.facebook.com/a/posts/pfbid0Lab9602",
        ),
        (
            "https://m.facebook.com/share/Labfb3",
            "/groups/4/permalink/9603/",
            "https://www.facebook.com/groups/4/posts/9603",
        ),
        (
            "https://www.instagram.com/share/reel/Labig1",
            "https://www.instagram.com/reel/Lab9604/?igsh=x",
            "https://www.instagram.com/reel/Lab9604/",
        ),
        (
            "https://www.reddit.com/r/rust/s/Labre1",
            "https://www.reddit.com/r/rust/comments/9d005/a/?share_id=x",
            "https://www.reddit.com/r/rust/comments/9d005/",
        ),
        (
            "https://www.reddit.com/u/ferris/s/Labre2",
            "/user/ferris/comments/9d006/a/",
            "https://www.reddit.com/user/ferris/comments/9d006/",
        ),
        (
            "https://v.redd.it/labv1",
            "https://www.reddit.com/video/labv1",
            "https://www.reddit.com/r/rust/comments/9d007/",
        ),
        (
            "https://vt.tiktok.com/ZSlab3",
            "https://m.tiktok.com/v/7000000000000000311.html",
            "https://www.tiktok.com/@/video/7000000000000000311",
        ),
    ] {
        let asked = short.strip_prefix("https://").expect("https");
        house.lab.answer(asked, Reply::redirect(302, location));
        house.lab.answer(
            "www.reddit.com/video/labv1",
            Reply::redirect(301, "https://www.reddit.com/r/rust/comments/9d007/"),
        );
        let encoded: String = url_encoded(resolved);
        house
            .lab
            .answer(&format!("url={encoded}"), Reply::json(200, &said));
        let told = house.resolved(short).await;
        assert_eq!(told["resolvedUrl"], resolved, "{short}");
    }
}

fn url_encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// A short link that is answered so, to both methods.
async fn check(code: &str, reply: Reply, expected: (u16, &str)) {
    let house = House::shared();
    house
        .lab
        .answer(&format!("vt.tiktok.com/{code}"), reply.clone());
    let (status, told, _) = house
        .refused(&format!("https://vt.tiktok.com/{code}"))
        .await;
    assert_eq!((status, told.as_str()), expected, "{reply:?}");
}

#[tokio::test]
async fn a_short_link_that_leads_elsewhere_is_told_so() {
    let to = |location: &str| Reply::redirect(302, location);
    check(
        "ZSbad01",
        to("https://www.tiktok.com/login?redirect_url=x"),
        PRIVATE,
    )
    .await;
    check("ZSbad02", to("https://www.tiktok.com/"), UNRESOLVED).await;
    check(
        "ZSbad03",
        to("https://www.tiktok.com/@somebody"),
        UNRESOLVED,
    )
    .await;
    check(
        "ZSbad04",
        to("https://evil.org/@a/video/7000000000000000401"),
        UNRESOLVED,
    )
    .await;
    check("ZSbad05", to("https://x.com/jack/status/20"), UNRESOLVED).await;
    check("ZSbad06", to("javascript:alert(1)"), UNRESOLVED).await;
    check("ZSbad07", to("http://["), UNRESOLVED).await;
    check(
        "ZSbad08",
        to(&format!("https://www.tiktok.com/{}", "a".repeat(3000))),
        UNRESOLVED,
    )
    .await;
    check("ZSbad09", Reply::page(200, "a page"), UNRESOLVED).await;
    check("ZSbad10", Reply::page(404, "gone"), UNRESOLVED).await;
    check(
        "ZSbad11",
        Reply::body(200, "text/html", "a".repeat(600 * 1024)),
        UNRESOLVED,
    )
    .await;
    check(
        "ZSbad12",
        Reply::page(302, "a redirect to nowhere"),
        UNRESOLVED,
    )
    .await;
    check("ZSbad13", Reply::page(429, ""), LIMITED).await;
    check("ZSbad14", Reply::page(503, ""), UPSTREAM).await;
    check("ZSbad15", Reply::Close, UPSTREAM).await;
    // What is private or has a port or credentials is an attack, and nothing is asked of it.
    check("ZSbad21", to("http://127.0.0.1/"), UNSAFE).await;
    check(
        "ZSbad22",
        to("http://169.254.169.254/latest/meta-data/"),
        UNSAFE,
    )
    .await;
    check("ZSbad23", to("//[::1]/"), UNSAFE).await;
    check("ZSbad24", to("http://2130706433/"), UNSAFE).await;
    check("ZSbad25", to("http://localhost/"), UNSAFE).await;
    check("ZSbad26", to("https://www.tiktok.com:8443/"), UNSAFE).await;
    check("ZSbad27", to("https://me:word@www.tiktok.com/"), UNSAFE).await;
}

#[tokio::test]
async fn a_short_link_is_followed_over_five_hops() {
    let house = House::shared();
    for hop in 1..=6 {
        let next = format!("https://www.tiktok.com/t/ZTchain{}", hop + 1);
        house
            .lab
            .answer(&format!("ZTchain{hop}"), Reply::redirect(302, &next));
    }
    let id = "7000000000000000501";
    house.lab.answer(
        "ZTchain7",
        Reply::redirect(302, format!("https://www.tiktok.com/@a/video/{id}")),
    );
    house.lab.answer(
        &format!("oembed?url=https%3A%2F%2Fwww.tiktok.com%2F%40a%2Fvideo%2F{id}"),
        Reply::json(200, &tiktok_video("a", id)),
    );
    assert_eq!(
        house.resolved("https://www.tiktok.com/t/ZTchain3").await["provider"],
        "tiktok",
        "five hops"
    );
    let (status, code, _) = house.refused("https://www.tiktok.com/t/ZTchain2").await;
    assert_eq!((status, code.as_str()), UNRESOLVED, "six hops");

    house.lab.answer(
        "ZTloop1",
        Reply::redirect(302, "https://www.tiktok.com/t/ZTloop2"),
    );
    house.lab.answer(
        "ZTloop2",
        Reply::redirect(302, "https://www.tiktok.com/t/ZTloop1"),
    );
    let (status, code, _) = house.refused("https://www.tiktok.com/t/ZTloop1").await;
    assert_eq!((status, code.as_str()), UNRESOLVED, "a loop");
    house.check_asked("ZTloop", 2);
}

#[tokio::test]
async fn a_site_that_redirects_pages_alone_is_asked_for_the_page() {
    let house = House::shared();
    let id = "7000000000000000601";
    house.lab.answer("ZTpage1", Reply::Close);
    let (status, code, _) = house.refused("https://www.tiktok.com/t/ZTpage1").await;
    assert_eq!((status, code.as_str()), UPSTREAM);
    let methods: Vec<String> = house
        .lab
        .asked("ZTpage1")
        .into_iter()
        .map(|asked| asked.method)
        .collect();
    assert_eq!(methods[..2], ["HEAD", "GET"]);
    house.lab.answer(
        "GET www.tiktok.com/t/ZTpage2",
        Reply::redirect(301, format!("https://www.tiktok.com/@a/video/{id}")),
    );
    house
        .lab
        .answer("HEAD www.tiktok.com/t/ZTpage2", Reply::page(405, ""));
    house.lab.answer(
        &format!("oembed?url=https%3A%2F%2Fwww.tiktok.com%2F%40a%2Fvideo%2F{id}"),
        Reply::json(200, &tiktok_video("a", id)),
    );
    assert_eq!(
        house.resolved("https://www.tiktok.com/t/ZTpage2").await["provider"],
        "tiktok"
    );
}

#[tokio::test]
async fn a_site_whose_name_leads_to_a_private_address_is_refused_at_the_gate() {
    let names = names::serve(&[("m.tiktok.com", &["10.1.2.3"])]);
    let house = House::start_by_names("", "", &format!("dns_servers = [\"{names}\"]\n")).await;
    house.lab.answer(
        "vt.tiktok.com/ZSdns1",
        Reply::redirect(302, "https://m.tiktok.com/somewhere"),
    );
    let (status, code, _) = house.refused("https://vt.tiktok.com/ZSdns1").await;
    assert_eq!((status, code.as_str()), UNSAFE);
    house.check_asked("m.tiktok.com", 0);
}
