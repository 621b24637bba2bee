//! Posts of social networks, before providers and sites that answer as the real ones do.
//!
//! A test has posts of its own, so that all share one service and its cache. How long an outcome is kept is a number of the
//! plugin's, tested there, because no test waits for it; here it shows whether it is kept at all.

mod kept;
mod mapping;
mod statuses;
mod walks;

use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::{Reply, Sites};
use crate::support::{LAB_TOKEN, Options, Post, Service, build, failure, outcome, workspace};

const RESOLVE: &str = "/api/v1/oembed/resolve";
const TOOL: &str = "resolve_social_embed";

/// Every host that the plugin's requests may be for.
const HOSTS: [&str; 17] = [
    "publish.x.com",
    "graph.facebook.com",
    "graph.threads.com",
    "www.tiktok.com",
    "vm.tiktok.com",
    "vt.tiktok.com",
    "www.reddit.com",
    "reddit.com",
    "v.redd.it",
    "www.facebook.com",
    "m.facebook.com",
    "fb.watch",
    "www.instagram.com",
    "instagram.com",
    "www.threads.com",
    "x.com",
    "provider.lab.test",
];

/// The networks and a service that reaches them.
struct House {
    lab: Sites,
    service: Service,
    /// Holds the manifest.
    _folder: TempDir,
}

impl House {
    /// The service of the tests that need no settings of their own.
    fn shared() -> &'static Self {
        static SHARED: OnceLock<House> = OnceLock::new();
        SHARED.get_or_init(|| {
            let start = || {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(Self::start("", ""))
            };
            std::thread::spawn(start).join().expect("it starts")
        })
    }

    /// A service of its own: the product's entry with more of its limits, and more lines.
    async fn start(limits: &str, lines: &str) -> Self {
        Self::start_by_names(limits, lines, "").await
    }

    /// The same with more lines of `[egress]`.
    async fn start_by_names(limits: &str, lines: &str, egress: &str) -> Self {
        tokio::task::spawn_blocking(build)
            .await
            .expect("it is built");
        let (lab, folder) = (
            Sites::start(&HOSTS, false),
            TempDir::new().expect("a folder"),
        );
        let product = std::fs::read_to_string(workspace().join("plugin-manifest.toml"))
            .expect("the manifest");
        let entry = product
            .split("[[plugin]]")
            .find(|entry| entry.contains("name = \"oembed\""))
            .expect("an entry");
        let component = workspace().join("target/components/wasm32-wasip2/plugin/oembed.wasm");
        let entry = entry
            .replace("\"plugins/oembed\"", &format!("{component:?}"))
            .replace("limits = { ", &format!("limits = {{ {limits}"));
        let secret = "{ env = \"LAB_TOKEN\", query = \"access_token\", for = \"https://graph.facebook.com/\" }";
        let manifest = folder.path().join("plugin-manifest.toml");
        let text = format!("[[plugin]]{entry}\nsecrets = [{secret}]\n{lines}\n");
        std::fs::write(&manifest, text).expect("it is written");
        let config = format!("{}{egress}", lab.configuration());
        let options = Options {
            config,
            manifest: Some(manifest),
            ..Options::default()
        };
        let service = Service::start(options).await;
        Self {
            lab,
            service,
            _folder: folder,
        }
    }

    /// The `data` of a success, the same on both faces.
    async fn resolved(&self, url: &str) -> Value {
        let answer = self.service.post(RESOLVE, &json!({ "url": url })).await;
        assert_eq!(answer.status, 200, "{url}: {answer:?}");
        let called = Post::call(TOOL, &json!({ "url": url }))
            .bearer(self.service.key())
            .send(&self.service)
            .await;
        assert_eq!(outcome(&called), "200 result #7", "{url}");
        assert_eq!(
            called.json()["result"]["structuredContent"],
            answer.json(),
            "{url}"
        );
        answer.json()["data"].clone()
    }

    /// Status and code of a failure, the same on both faces, with the members of its `data` beside the request id.
    async fn refused(&self, url: &str) -> (u16, String, Value) {
        let answer = self.service.post(RESOLVE, &json!({ "url": url })).await;
        let (status, code) = answer.refusal();
        let called = Post::call(TOOL, &json!({ "url": url }))
            .bearer(self.service.key())
            .send(&self.service)
            .await;
        assert_eq!(outcome(&called), format!("200 isError {code} #7"), "{url}");
        let mut bodies = [answer.json(), failure(&called.json()["result"]).1];
        for body in &mut bodies {
            body["data"]
                .as_object_mut()
                .expect("data")
                .remove("requestId");
            assert!(!body.to_string().contains(LAB_TOKEN), "{body}");
        }
        // What is left of a wait gets shorter.
        let retry_after = bodies.each_mut().map(|body| {
            body["data"]
                .as_object_mut()
                .expect("data")
                .remove("retryAfter")
        });
        let seconds = retry_after
            .each_ref()
            .map(|wait| wait.as_ref().and_then(Value::as_u64));
        assert!(
            seconds[0] >= seconds[1] && seconds[0].is_some() == seconds[1].is_some(),
            "{seconds:?}"
        );
        assert_eq!(bodies[0], bodies[1], "{url}");
        let mut data = bodies[0]["data"].clone();
        if let Some(seconds) = seconds[0] {
            assert_eq!(answer.header("retry-after"), seconds.to_string(), "{url}");
            data["retryAfter"] = json!(seconds);
        }
        (status, code, data)
    }

    #[track_caller]
    fn check_asked(&self, holds: &str, expected: usize) {
        let asked = self.lab.asked(holds);
        assert_eq!(asked.len(), expected, "{asked:?}");
    }
}

/// What leads the product's examples to a provider.
pub(crate) fn examples() -> String {
    static EXAMPLES: OnceLock<Sites> = OnceLock::new();
    let lab = EXAMPLES.get_or_init(|| Sites::start(&HOSTS, false));
    lab.answer("publish.x.com/oembed", Reply::json(200, &x_post("20")));
    lab.configuration()
}

/// What X says of a post of jack's.
fn x_post(id: &str) -> Value {
    json!({
        "url": format!("https://twitter.com/jack/status/{id}"),
        "author_name": "jack",
        "author_url": "https://twitter.com/jack",
        "html": format!(
            "<blockquote class=\"twitter-tweet\" data-dnt=\"true\"><p lang=\"en\" dir=\"ltr\">just setting up my twttr</p>\
             &mdash; jack (@jack) <a href=\"https://twitter.com/jack/status/{id}?ref_src=twsrc%5Etfw\">March 21, 2006</a>\
             </blockquote>\n"
        ),
        "width": 550,
        "height": null,
        "type": "rich",
        "cache_age": "3153600000",
        "provider_name": "Twitter",
        "provider_url": "https://twitter.com",
        "version": "1.0",
    })
}

/// What TikTok says of a video.
fn tiktok_video(user: &str, id: &str) -> Value {
    json!({
        "version": "1.0",
        "type": "video",
        "title": "Scramble up ur name #fyp",
        "author_url": format!("https://www.tiktok.com/@{user}"),
        "author_name": "Scout & Suki",
        "author_unique_id": user,
        "width": "100%",
        "height": "100%",
        "html": format!(
            "<blockquote class=\"tiktok-embed\" cite=\"https://www.tiktok.com/@{user}/video/{id}\" data-video-id=\"{id}\" \
             data-embed-from=\"oembed\" style=\"max-width:605px; min-width:325px;\"> <section> <a target=\"_blank\" \
             title=\"@{user}\" href=\"https://www.tiktok.com/@{user}?refer=embed\">@{user}</a> </section> </blockquote> \
             <script async src=\"https://www.tiktok.com/embed.js\"></script>"
        ),
        "thumbnail_width": 576,
        "thumbnail_height": 1024,
        "thumbnail_url": "https://p16-sign.tiktokcdn-us.com/obj/a~tplv.jpeg?x-expires=1700000000&x-signature=abc%3D",
        "provider_url": "https://www.tiktok.com",
        "provider_name": "TikTok",
    })
}
