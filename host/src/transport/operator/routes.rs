//! Every route of the operator's API, in one table: requests are led by it and its OpenAPI document is printed from it.

use std::sync::LazyLock;

use http::Method;

/// What answers a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Host(HostEndpoint),
    Plugin(PluginEndpoint),
    Customer(CustomerEndpoint),
}

/// About the process, and about what happened in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostEndpoint {
    Status,
    Config,
    OpenApi,
    Metrics,
    History,
    Events,
    Follow,
    Audit,
    Usage,
}

/// About plugins and their revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PluginEndpoint {
    Plugins,
    Plugin,
    Revisions,
    Stage,
    Revision,
    Compare,
    Approve,
    Reject,
    Activate,
    Rollback,
    Disable,
    Enable,
    Revoke,
    LendProxy,
}

/// About keys and accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CustomerEndpoint {
    Keys,
    IssueKey,
    RotateKey,
    RevokeKey,
    Accounts,
    OpenAccount,
    Account,
    Entries,
    Entitle,
    Withdraw,
}

/// What a route's body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyForm {
    None,
    Key,
    Account,
    Entitlement,
    /// A component, or JSON that says where one is.
    Component,
    /// JSON with these members, beside `by` and `why`.
    Act(&'static [(&'static str, &'static str)]),
}

impl BodyForm {
    /// The members of a body that says what is to be done to a plugin, with what they mean.
    pub(crate) fn members(self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let own: &[_] = match self {
            BodyForm::Act(members) => members,
            BodyForm::Component => &OF_COMPONENT,
            BodyForm::None | BodyForm::Key | BodyForm::Account | BodyForm::Entitlement => &[],
        };
        OF_ACT.iter().chain(own)
    }
}

/// What every act may say.
const OF_ACT: [(&str, &str); 2] = [("by", "Who does it."), ("why", "Why.")];
const OF_COMPONENT: [(&str, &str); 3] = [
    (
        "path",
        "A file that the server can read; the manifest entry's source where it is absent.",
    ),
    ("digest", "The component's SHA-256, in hexadecimal."),
    ACTIVATE,
];

/// What a route answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// 200 and an envelope.
    Data,
    /// 201 and an envelope.
    Created,
    /// 202 and an envelope: what was asked for goes on.
    Accepted,
    /// This media type, without an envelope.
    Plain(&'static str),
}

/// One route.
pub(crate) struct OperatorRoute {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) endpoint: Endpoint,
    pub(crate) summary: &'static str,
    /// Names with what they mean.
    pub(crate) query: &'static [(&'static str, &'static str)],
    pub(crate) body: BodyForm,
    pub(crate) answers: AnswerForm,
}

const AGAINST: (&str, &str) = (
    "against",
    "The revision to compare with; the active one where it is absent.",
);
const AFTER: (&str, &str) = ("after", "Only events with a higher number.");
const OF_PLUGIN: (&str, &str) = ("plugin", "Only events of this plugin.");
const ACTIVATE: (&str, &str) = (
    "activate",
    "Serve it as soon as everything that it wants is granted.",
);

const fn get(path: &'static str, endpoint: Endpoint, summary: &'static str) -> OperatorRoute {
    let (query, body) = (&[] as &[(&str, &str)], BodyForm::None);
    OperatorRoute {
        method: "GET",
        path,
        endpoint,
        summary,
        query,
        body,
        answers: AnswerForm::Data,
    }
}

const fn act(
    path: &'static str,
    endpoint: Endpoint,
    summary: &'static str,
    members: &'static [(&'static str, &'static str)],
) -> OperatorRoute {
    OperatorRoute {
        method: "POST",
        body: BodyForm::Act(members),
        ..get(path, endpoint, summary)
    }
}

/// All of them.
pub(crate) static ROUTES: [OperatorRoute; 33] = [
    get(
        "/admin/v1/status",
        Endpoint::Host(HostEndpoint::Status),
        "Whether everything serves, and what waits for an operator",
    ),
    get(
        "/admin/v1/plugins",
        Endpoint::Plugin(PluginEndpoint::Plugins),
        "The plugins of the manifest, and where each stands",
    ),
    get(
        "/admin/v1/plugins/{plugin}",
        Endpoint::Plugin(PluginEndpoint::Plugin),
        "One plugin with its revisions",
    ),
    get(
        "/admin/v1/plugins/{plugin}/revisions",
        Endpoint::Plugin(PluginEndpoint::Revisions),
        "A plugin's revisions, newest first",
    ),
    OperatorRoute {
        method: "POST",
        query: &[
            ("by", "Who stages an uploaded component."),
            ("why", "Why."),
            ("digest", "Its SHA-256, in hexadecimal."),
            ACTIVATE,
        ],
        body: BodyForm::Component,
        answers: AnswerForm::Accepted,
        ..get(
            "/admin/v1/plugins/{plugin}/revisions",
            Endpoint::Plugin(PluginEndpoint::Stage),
            "Stage a component as a new revision; its record tells how far it is",
        )
    },
    get(
        "/admin/v1/plugins/{plugin}/revisions/{revision}",
        Endpoint::Plugin(PluginEndpoint::Revision),
        "One revision",
    ),
    OperatorRoute {
        query: &[AGAINST],
        ..get(
            "/admin/v1/plugins/{plugin}/revisions/{revision}/difference",
            Endpoint::Plugin(PluginEndpoint::Compare),
            "What a revision would be allowed that another is not, and what clients would see change",
        )
    },
    act(
        "/admin/v1/plugins/{plugin}/revisions/{revision}/approve",
        Endpoint::Plugin(PluginEndpoint::Approve),
        "Grant what a revision wants beyond what is granted",
        &[
            (
                "grants",
                "The atoms that were looked at; nothing else is granted.",
            ),
            ACTIVATE,
        ],
    ),
    act(
        "/admin/v1/plugins/{plugin}/revisions/{revision}/reject",
        Endpoint::Plugin(PluginEndpoint::Reject),
        "Reject a revision that has never served, also while it is prepared",
        &[],
    ),
    act(
        "/admin/v1/plugins/{plugin}/revisions/{revision}/activate",
        Endpoint::Plugin(PluginEndpoint::Activate),
        "Serve a staged or kept revision",
        &[],
    ),
    act(
        "/admin/v1/plugins/{plugin}/rollback",
        Endpoint::Plugin(PluginEndpoint::Rollback),
        "Serve a revision that served before",
        &[(
            "to",
            "Its number; the one before the active one where it is absent.",
        )],
    ),
    act(
        "/admin/v1/plugins/{plugin}/disable",
        Endpoint::Plugin(PluginEndpoint::Disable),
        "Switch a plugin off: its routes answer 503",
        &[],
    ),
    act(
        "/admin/v1/plugins/{plugin}/enable",
        Endpoint::Plugin(PluginEndpoint::Enable),
        "Switch a plugin on again",
        &[],
    ),
    act(
        "/admin/v1/plugins/{plugin}/revoke",
        Endpoint::Plugin(PluginEndpoint::Revoke),
        "Take an approval back; what runs loses the right at once",
        &[("atom", "The approved atom.")],
    ),
    OperatorRoute {
        answers: AnswerForm::Created,
        ..act(
            "/admin/v1/plugins/{plugin}/proxy",
            Endpoint::Plugin(PluginEndpoint::LendProxy),
            "Lend a way out with exactly the rights of what serves; only this answer shows the credential",
            &[(
                "seconds",
                "For how long, from 1 to 600; 60 where it is absent.",
            )],
        )
    },
    act(
        "/admin/v1/manifest/follow",
        Endpoint::Host(HostEndpoint::Follow),
        "Read the manifest again and bring in what it says anew",
        &[],
    ),
    OperatorRoute {
        query: &[OF_PLUGIN, AFTER],
        ..get(
            "/admin/v1/history",
            Endpoint::Host(HostEndpoint::History),
            "What happened to the plugins, oldest first",
        )
    },
    OperatorRoute {
        query: &[OF_PLUGIN, AFTER],
        answers: AnswerForm::Plain("text/event-stream"),
        ..get(
            "/admin/v1/events",
            Endpoint::Host(HostEndpoint::Events),
            "What happens to the plugins, as it happens",
        )
    },
    get(
        "/admin/v1/keys",
        Endpoint::Customer(CustomerEndpoint::Keys),
        "The API keys, without their secrets",
    ),
    OperatorRoute {
        method: "POST",
        body: BodyForm::Key,
        answers: AnswerForm::Created,
        ..get(
            "/admin/v1/keys",
            Endpoint::Customer(CustomerEndpoint::IssueKey),
            "Issue an API key; only this answer shows it",
        )
    },
    OperatorRoute {
        method: "DELETE",
        ..get(
            "/admin/v1/keys/{id}",
            Endpoint::Customer(CustomerEndpoint::RevokeKey),
            "Revoke an API key for ever",
        )
    },
    OperatorRoute {
        method: "POST",
        answers: AnswerForm::Created,
        ..get(
            "/admin/v1/keys/{id}/rotate",
            Endpoint::Customer(CustomerEndpoint::RotateKey),
            "Issue a key with the settings of another, which is revoked",
        )
    },
    get(
        "/admin/v1/accounts",
        Endpoint::Customer(CustomerEndpoint::Accounts),
        "The accounts of self-service keys",
    ),
    OperatorRoute {
        method: "POST",
        body: BodyForm::Account,
        answers: AnswerForm::Created,
        ..get(
            "/admin/v1/accounts",
            Endpoint::Customer(CustomerEndpoint::OpenAccount),
            "Open an account",
        )
    },
    get(
        "/admin/v1/accounts/{id}",
        Endpoint::Customer(CustomerEndpoint::Account),
        "One account, with what it spent and holds reserved this month",
    ),
    OperatorRoute {
        query: &[("after", "Only entries after this one.")],
        ..get(
            "/admin/v1/accounts/{id}/entries",
            Endpoint::Customer(CustomerEndpoint::Entries),
            "An account's entries of credits, in their order",
        )
    },
    OperatorRoute {
        method: "PUT",
        body: BodyForm::Entitlement,
        ..get(
            "/admin/v1/accounts/{id}/entitlement",
            Endpoint::Customer(CustomerEndpoint::Entitle),
            "Entitle an account to calls",
        )
    },
    OperatorRoute {
        method: "DELETE",
        ..get(
            "/admin/v1/accounts/{id}/entitlement",
            Endpoint::Customer(CustomerEndpoint::Withdraw),
            "Take an account's entitlement away: its keys are refused",
        )
    },
    OperatorRoute {
        query: &[
            (
                "month",
                "Such as 2026-11; the current one where it is absent.",
            ),
            ("account", "One account alone."),
            ("format", "json or csv."),
        ],
        ..get(
            "/admin/v1/usage",
            Endpoint::Host(HostEndpoint::Usage),
            "Calls and credits of a month by key, account and operation",
        )
    },
    get(
        "/admin/v1/audit",
        Endpoint::Host(HostEndpoint::Audit),
        "The balances of credits, recomputed from their entries",
    ),
    get(
        "/admin/v1/config",
        Endpoint::Host(HostEndpoint::Config),
        "The settings in effect, secrets masked",
    ),
    get(
        "/admin/v1/openapi.json",
        Endpoint::Host(HostEndpoint::OpenApi),
        "This document",
    ),
    OperatorRoute {
        answers: AnswerForm::Plain("application/openmetrics-text"),
        ..get(
            "/metrics",
            Endpoint::Host(HostEndpoint::Metrics),
            "What the process counts, as Prometheus reads it",
        )
    },
];

/// What a method and a path lead to.
pub(crate) enum EndpointMatch {
    Route(&'static OperatorRoute, Vec<(&'static str, String)>),
    /// The value of `Allow`.
    OtherMethods(String),
    Nothing,
}

/// Finds the route of a request; its parameters are decoded.
pub(crate) fn find(method: &Method, path: &str) -> EndpointMatch {
    static PATHS: LazyLock<matchit::Router<&'static str>> = LazyLock::new(|| {
        let mut paths = matchit::Router::new();
        for route in &ROUTES {
            // A path with several methods is there already.
            paths.insert(route.path, route.path).ok();
        }
        paths
    });
    let Ok(matched) = PATHS.at(path) else {
        return EndpointMatch::Nothing;
    };
    let of_path = || ROUTES.iter().filter(|route| route.path == *matched.value);
    let Some(route) = of_path().find(|route| route.method == method.as_str()) else {
        let mut methods: Vec<&str> = of_path().map(|route| route.method).collect();
        methods.sort_unstable();
        return EndpointMatch::OtherMethods(methods.join(", "));
    };
    let decoded = |value: &str| {
        percent_encoding::percent_decode_str(value)
            .decode_utf8_lossy()
            .into_owned()
    };
    let names = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters = names.filter_map(|name| Some((name, decoded(matched.params.get(name)?))));
    EndpointMatch::Route(route, parameters.collect())
}
