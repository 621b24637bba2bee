//! Posts of social networks as metadata and embed markup (docs/api.md, "Social posts").
//!
//! This file is the index: the operation and its road. The road: `address` reads the URL (with `tracking`), `walk` follows a
//! short link, `provider` asks, `resolved` reads the answer (with `markup`), `kept` remembers it, and `trouble` says what went
//! wrong. What differs between networks stands in `networks`, one file each.

mod address;
mod kept;
mod markup;
mod networks;
mod provider;
mod resolved;
mod settings;
mod tracking;
mod trouble;
mod walk;

#[cfg(test)]
mod tests;

use serde::Deserialize;
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Deadline, Failure, Operation, Plugin, Reply, Rest, Tool, plugin};

use address::Address;
use networks::{Place, Post};
use resolved::Resolved;
use settings::Settings;
use trouble::Trouble;

/// What resolving one URL may take, in milliseconds (docs/api.md, "Social posts").
const DEADLINE_MS: u32 = 12_000;

/// The plugin.
pub fn plugin() -> Plugin {
    let plugin = plugin!("Posts of six social networks as metadata and embed markup")
        .wants(
            "cache:16MiB",
            "to avoid asking a provider twice about the same post",
        )
        .wants(
            "config",
            "to read provider addresses and API versions that the operator sets",
        )
        .wants("logging", "to log which provider refuses requests");
    let providers = networks::ALL.iter().map(|network| network.provider.atom);
    let walks = networks::ALL.iter().flat_map(|network| network.walks);
    let plugin = providers.fold(plugin, |plugin, atom| {
        plugin.wants(atom, "to ask a network's provider about a post")
    });
    let plugin = walks.fold(plugin, |plugin, atom| {
        plugin.wants(atom, "to follow a network's short links")
    });
    plugin.operation(
        Operation::new("resolve", resolve)
            .errors_of::<Trouble>()
            .title("Resolve a social post")
            .description(
                "Resolves the public URL of a post on X, Facebook, Instagram, Threads, TikTok or \
                 Reddit into normalized metadata and safe embed markup. Accepts permalinks and the \
                 networks' own short links; profiles and other sites are not supported. \
                 `embed.html` contains no scripts: add those in `embed.scripts` to the page. For \
                 X, `embed.html` is null.",
            )
            .rest(Rest::post("/api/v1/oembed/resolve", "oembed:read"))
            .tool(Tool::lookup("resolve_social_embed", "oembed:read"))
            .deadline_ms(DEADLINE_MS)
            .on_deadline(&trouble::TIMEOUT, None)
            .judges(&["url"])
            .example("A post", r#"{ "url": "https://x.com/jack/status/20" }"#),
    )
}

#[cfg(target_family = "wasm")]
switchbay_sdk::export!(plugin);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Resolve {
    /// The http or https URL of a post, or a short link to one. Surrounding white space is ignored and not counted.
    #[schemars(length(min = 1, max = 2048), extend("format" = "uri"))]
    url: String,
}

async fn resolve(call: Call, input: Resolve) -> Result<Reply<Resolved>, Failure> {
    let asked = Address::read(&input.url)?;
    let original_url = asked.url.to_string();
    let network = asked.network;
    let settings = Settings::read(network)?;
    let deadline = call.deadline();
    let post = match asked.place {
        Place::Post(post) => post,
        Place::Short => behind(asked, &settings, deadline).await?,
        Place::Login | Place::Other => return Err(Trouble::UnsupportedUrl.into()),
    };
    let key = format!("{} {}", network.name, post.url);
    let resolved = kept::or_made(&key, provider::ask(network, &post, &settings, deadline)).await?;
    Ok(Reply::ok(resolved.asked_for(original_url)))
}

/// The post that a short link leads to.
async fn behind(short: Address, settings: &Settings, deadline: Deadline) -> Result<Post, Trouble> {
    let (network, host) = (short.network, short.url.host_str().unwrap_or_default());
    let key = format!("{} {host}{}", network.name, short.url.path());
    let url = kept::or_made(&key, walk::follow(short, settings, deadline)).await?;
    match network.read(&url) {
        Some(Place::Post(post)) => Ok(post),
        Some(Place::Short | Place::Login | Place::Other) | None => Err(Trouble::Unresolved),
    }
}
