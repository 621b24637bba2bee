//! What is known of a post: the operation's answer, read from what a provider said.
//!
//! Of the provider's text nothing is passed on unread: addresses are parsed, numbers are numbers, markup is written anew, and
//! what the provider calls itself is not asked for. An answer about another post is none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use switchbay_sdk::public_url::web_url;
use switchbay_sdk::schemars;
use url::Url;

use crate::markup::{self, Script};
use crate::networks::{self, Answered, Naming, Network, Place, Post};
use crate::trouble::Trouble;

/// The largest markup that is passed on, in bytes.
const HTML_BYTES_MAX: usize = 512 * 1024;

/// A post's metadata and markup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resolved {
    /// The network.
    #[schemars(extend("enum" = networks::names()))]
    provider: String,
    /// The type of the post.
    #[serde(rename = "type")]
    kind: Kind,
    /// The requested URL with https, without fragment and tracking parameters.
    #[schemars(extend("format" = "uri"))]
    original_url: String,
    /// The post's own URL, after redirects.
    #[schemars(extend("format" = "uri"))]
    resolved_url: String,
    /// The post's title or, on networks without titles, its first words.
    title: Option<String>,
    /// The author of the post.
    author: Author,
    /// The network's name and page, for display.
    provider_info: ProviderInfo,
    /// A preview image from the provider's own hosts.
    thumbnail: Option<Thumbnail>,
    /// What is needed to embed the post.
    embed: Embed,
    /// What the result contains.
    capabilities: Capabilities,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Rich,
    Video,
    Photo,
    Link,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Author {
    /// The author's name, from the provider or the URL.
    name: Option<String>,
    /// The author's page on the network.
    #[schemars(extend("format" = "uri"))]
    url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct ProviderInfo {
    /// The network's name.
    name: String,
    /// The network's page.
    #[schemars(extend("format" = "uri"))]
    url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Thumbnail {
    /// The URL of the image. It may expire.
    #[schemars(extend("format" = "uri"))]
    url: String,
    /// In pixels, if the provider reports it.
    #[schemars(with = "Option<f64>", range(min = 0))]
    width: Option<Number>,
    /// In pixels, if the provider reports it.
    #[schemars(with = "Option<f64>", range(min = 0))]
    height: Option<Number>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Embed {
    /// Safe markup without scripts; null for networks whose markup is not passed on.
    html: Option<String>,
    /// In pixels, if the provider reports it.
    #[schemars(with = "Option<f64>")]
    width: Option<Number>,
    /// In pixels, if the provider reports it.
    #[schemars(with = "Option<f64>")]
    height: Option<Number>,
    /// The provider's scripts, which turn the markup into its widget.
    scripts: Vec<Script>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    /// Markup is available.
    html: bool,
    /// A thumbnail is available.
    thumbnail: bool,
    /// The provider's own widget is available.
    native_embed: bool,
    /// The markup needs the scripts to work.
    requires_hydration: bool,
}

impl Resolved {
    /// As the answer to a request for this URL.
    pub(crate) fn asked_for(self, original_url: String) -> Self {
        Self {
            original_url,
            ..self
        }
    }
}

/// Reads what a provider answered about a post. `originalUrl` is left empty: it is the caller's.
///
/// # Errors
/// It is no answer about this post.
pub(crate) fn read(
    network: &Network,
    post: &Post,
    answered: &Answered<'_>,
) -> Result<Resolved, Trouble> {
    if let Some(trouble) = (network.provider.trouble)(answered) {
        return Err(trouble);
    }
    let invalid = |what: &str| Trouble::InvalidResponse(what.to_owned());
    let said: Value =
        serde_json::from_slice(answered.body).map_err(|_| invalid("it is not valid JSON"))?;
    if !said.is_object() {
        return Err(invalid("it is not a JSON object"));
    }
    let html = text(&said, "html");
    let named = named(network, &said, html.as_deref().unwrap_or_default());
    if named
        .iter()
        .any(|named| !named.id.is_empty() && !post.id.is_empty() && named.id != post.id)
    {
        return Err(invalid("it is about another post"));
    }
    let embed = embed(network, &said, html.as_deref())?;
    let thumbnail = thumbnail(network, &said);
    let whole = named
        .iter()
        .find(|named| post.partial && !named.partial && !named.id.is_empty())
        .unwrap_or(post);
    let has_scripts = !embed.scripts.is_empty();
    let capabilities = Capabilities {
        html: embed.html.is_some(),
        thumbnail: thumbnail.is_some(),
        native_embed: embed.html.is_some() && has_scripts,
        requires_hydration: has_scripts,
    };
    Ok(Resolved {
        provider: network.name.to_owned(),
        kind: kind(&said),
        original_url: String::new(),
        resolved_url: whole.url.clone(),
        title: text(&said, "title").or_else(|| title(network, html.as_deref())),
        author: author(network, &said, whole),
        provider_info: ProviderInfo {
            name: network.title.to_owned(),
            url: Some(network.home.to_owned()),
        },
        thumbnail,
        embed,
        capabilities,
    })
}

/// A member that is text with something in it.
fn text(said: &Value, name: &str) -> Option<String> {
    let text = said.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The posts that an answer names: by its own address, and within its markup.
fn named(network: &Network, said: &Value, html: &str) -> Vec<Post> {
    let read = |url: &str| match network.read(url) {
        Some(Place::Post(post)) => Some(post),
        Some(Place::Short | Place::Login | Place::Other) | None => None,
    };
    let own = text(said, "url").and_then(|url| read(&url));
    let within = markup::named(html, network.named_by)
        .into_iter()
        .filter_map(|(naming, value)| match naming {
            Naming::Url(_) => read(&value),
            Naming::Id(_) => Some(Post::named_by_id(&value)),
        });
    own.into_iter().chain(within).collect()
}

fn kind(said: &Value) -> Kind {
    match said.get("type").and_then(Value::as_str) {
        Some("video") => Kind::Video,
        Some("photo") => Kind::Photo,
        Some("link") => Kind::Link,
        Some(_) | None => Kind::Rich,
    }
}

/// Of a network whose markup is not passed on, because what it says would be lost.
fn title(network: &Network, html: Option<&str>) -> Option<String> {
    match network.markup {
        None => markup::first_paragraph(html?),
        Some(_) => None,
    }
}

fn author(network: &Network, said: &Value, post: &Post) -> Author {
    let page = text(said, "author_url").and_then(|url| {
        let mut url = web_url(&url)?;
        url.set_scheme("https").ok()?;
        network.has(url.host_str()?).then(|| url.to_string())
    });
    let (name, url) = post.author.clone().unzip();
    Author {
        name: text(said, "author_name").or(name),
        url: page.or(url).or_else(|| network.page_of(said)),
    }
}

fn thumbnail(network: &Network, said: &Value) -> Option<Thumbnail> {
    let url = Url::parse(&text(said, "thumbnail_url")?).ok()?;
    let is_plain = url.scheme() == "https" && url.port().is_none() && url.username().is_empty();
    (is_plain && network.has_pictures(url.host_str()?)).then(|| Thumbnail {
        url: url.to_string(),
        width: size(said, "thumbnail_width"),
        height: size(said, "thumbnail_height"),
    })
}

/// A size in pixels: `"100%"` is none.
fn size(said: &Value, name: &str) -> Option<Number> {
    let number = said.get(name)?.as_number()?;
    (number.as_f64()? >= 0.0).then(|| number.clone())
}

fn embed(network: &Network, said: &Value, html: Option<&str>) -> Result<Embed, Trouble> {
    let mut embed = Embed {
        html: None,
        width: size(said, "width"),
        height: size(said, "height"),
        scripts: Vec::new(),
    };
    let Some(rules) = &network.markup else {
        return Ok(embed);
    };
    let invalid = |what: &str| Trouble::InvalidResponse(what.to_owned());
    let html = html.ok_or_else(|| invalid("it has no markup"))?;
    let clean = markup::clean(html, rules, network.pictures);
    if clean.html.trim().is_empty() {
        return Err(invalid("its markup has no content that is safe to show"));
    }
    if clean.html.len() > HTML_BYTES_MAX {
        return Err(invalid("its markup is too large"));
    }
    (embed.html, embed.scripts) = (Some(clean.html), clean.scripts);
    Ok(embed)
}
