//! Every route of the operator's API, in one table: requests are led by it and its OpenAPI document is printed from it.

use std::sync::LazyLock;

use http::Method;

/// What answers a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteEndpoint {
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
const OF_ACT: [(&str, &str); 2] = [("by", "Who does it, for the history."), ("why", "Why.")];
const OF_COMPONENT: [(&str, &str); 3] = [
    (
        "path",
        "A file that the server can read. Default: the source in the manifest entry.",
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
    pub(crate) endpoint: RouteEndpoint,
    pub(crate) summary: &'static str,
    /// Names with what they mean.
    pub(crate) query: &'static [(&'static str, &'static str)],
    pub(crate) body: BodyForm,
    pub(crate) answers: AnswerForm,
}

const AGAINST: (&str, &str) = (
    "against",
    "The revision to compare with. Default: the active one.",
);
const AFTER: (&str, &str) = ("after", "Only events with a number above this one.");
const OF_PLUGIN: (&str, &str) = ("plugin", "Only events of this plugin.");
const ACTIVATE: (&str, &str) = (
    "activate",
    "Serve it as soon as everything that it wants is granted.",
);

const fn get(path: &'static str, endpoint: RouteEndpoint, summary: &'static str) -> OperatorRoute {
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
    endpoint: RouteEndpoint,
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
        RouteEndpoint::Host(HostEndpoint::Status),
        "Show whether everything is serving and what is waiting for an operator",
    ),
    get(
        "/admin/v1/plugins",
        RouteEndpoint::Plugin(PluginEndpoint::Plugins),
        "List the plugins of the manifest with their state",
    ),
    get(
        "/admin/v1/plugins/{plugin}",
        RouteEndpoint::Plugin(PluginEndpoint::Plugin),
        "Show one plugin with its revisions",
    ),
    get(
        "/admin/v1/plugins/{plugin}/revisions",
        RouteEndpoint::Plugin(PluginEndpoint::Revisions),
        "List a plugin's revisions, newest first",
    ),
    OperatorRoute {
        method: "POST",
        query: &[
            ("by", "Who stages an uploaded component, for the history."),
            ("why", "Why."),
            ("digest", "Its SHA-256, in hexadecimal."),
            ACTIVATE,
        ],
        body: BodyForm::Component,
        answers: AnswerForm::Accepted,
        ..get(
            "/admin/v1/plugins/{plugin}/revisions",
            RouteEndpoint::Plugin(PluginEndpoint::Stage),
            "Stage a component as a new revision; its record shows the progress",
        )
    },
    get(
        "/admin/v1/plugins/{plugin}/revisions/{revision}",
        RouteEndpoint::Plugin(PluginEndpoint::Revision),
        "Show one revision",
    ),
    OperatorRoute {
        query: &[AGAINST],
        ..get(
            "/admin/v1/plugins/{plugin}/revisions/{revision}/difference",
            RouteEndpoint::Plugin(PluginEndpoint::Compare),
            "Compare a revision with another: their rights, and the changes that clients would see",
        )
    },
    act(
        "/admin/v1/plugins/{plugin}/revisions/{revision}/approve",
        RouteEndpoint::Plugin(PluginEndpoint::Approve),
        "Grant a revision the rights that it wants but does not have",
        &[
            (
                "grants",
                "The atoms that were reviewed; nothing else is granted.",
            ),
            ACTIVATE,
        ],
    ),
    act(
        "/admin/v1/plugins/{plugin}/revisions/{revision}/reject",
        RouteEndpoint::Plugin(PluginEndpoint::Reject),
        "Reject a revision that has never served, even while it is being prepared",
        &[],
    ),
    act(
        "/admin/v1/plugins/{plugin}/revisions/{revision}/activate",
        RouteEndpoint::Plugin(PluginEndpoint::Activate),
        "Serve a staged or kept revision",
        &[],
    ),
    act(
        "/admin/v1/plugins/{plugin}/rollback",
        RouteEndpoint::Plugin(PluginEndpoint::Rollback),
        "Serve a revision that served before",
        &[(
            "to",
            "The revision's number. Default: the one before the active one.",
        )],
    ),
    act(
        "/admin/v1/plugins/{plugin}/disable",
        RouteEndpoint::Plugin(PluginEndpoint::Disable),
        "Disable a plugin: its routes return 503",
        &[],
    ),
    act(
        "/admin/v1/plugins/{plugin}/enable",
        RouteEndpoint::Plugin(PluginEndpoint::Enable),
        "Enable a plugin again",
        &[],
    ),
    act(
        "/admin/v1/plugins/{plugin}/revoke",
        RouteEndpoint::Plugin(PluginEndpoint::Revoke),
        "Take back an approval: running calls keep the right until they end, later calls do not have it",
        &[("atom", "The approved atom to take back.")],
    ),
    OperatorRoute {
        answers: AnswerForm::Created,
        ..act(
            "/admin/v1/plugins/{plugin}/proxy",
            RouteEndpoint::Plugin(PluginEndpoint::LendProxy),
            "Issue a credential for the forward proxy with exactly the rights of the active revision; only this \
             response shows it",
            &[(
                "seconds",
                "How long the credential is valid, from 1 to 600. Default: 60.",
            )],
        )
    },
    act(
        "/admin/v1/manifest/follow",
        RouteEndpoint::Host(HostEndpoint::Follow),
        "Read the manifest again and apply its changes",
        &[],
    ),
    OperatorRoute {
        query: &[OF_PLUGIN, AFTER],
        ..get(
            "/admin/v1/history",
            RouteEndpoint::Host(HostEndpoint::History),
            "List what happened to the plugins, oldest first",
        )
    },
    OperatorRoute {
        query: &[OF_PLUGIN, AFTER],
        answers: AnswerForm::Plain("text/event-stream"),
        ..get(
            "/admin/v1/events",
            RouteEndpoint::Host(HostEndpoint::Events),
            "Stream what happens to the plugins",
        )
    },
    get(
        "/admin/v1/keys",
        RouteEndpoint::Customer(CustomerEndpoint::Keys),
        "List the API keys, without their secrets",
    ),
    OperatorRoute {
        method: "POST",
        body: BodyForm::Key,
        answers: AnswerForm::Created,
        ..get(
            "/admin/v1/keys",
            RouteEndpoint::Customer(CustomerEndpoint::IssueKey),
            "Issue an API key; only this response shows it",
        )
    },
    OperatorRoute {
        method: "DELETE",
        ..get(
            "/admin/v1/keys/{id}",
            RouteEndpoint::Customer(CustomerEndpoint::RevokeKey),
            "Revoke an API key permanently",
        )
    },
    OperatorRoute {
        method: "POST",
        answers: AnswerForm::Created,
        ..get(
            "/admin/v1/keys/{id}/rotate",
            RouteEndpoint::Customer(CustomerEndpoint::RotateKey),
            "Issue a key with the settings of an existing one, and revoke that one",
        )
    },
    get(
        "/admin/v1/accounts",
        RouteEndpoint::Customer(CustomerEndpoint::Accounts),
        "List the accounts of self-service keys",
    ),
    OperatorRoute {
        method: "POST",
        body: BodyForm::Account,
        answers: AnswerForm::Created,
        ..get(
            "/admin/v1/accounts",
            RouteEndpoint::Customer(CustomerEndpoint::OpenAccount),
            "Open an account",
        )
    },
    get(
        "/admin/v1/accounts/{id}",
        RouteEndpoint::Customer(CustomerEndpoint::Account),
        "Show one account with the credits that it spent and reserved this month",
    ),
    OperatorRoute {
        query: &[("after", "Only entries after this one.")],
        ..get(
            "/admin/v1/accounts/{id}/entries",
            RouteEndpoint::Customer(CustomerEndpoint::Entries),
            "List an account's credit entries in order",
        )
    },
    OperatorRoute {
        method: "PUT",
        body: BodyForm::Entitlement,
        ..get(
            "/admin/v1/accounts/{id}/entitlement",
            RouteEndpoint::Customer(CustomerEndpoint::Entitle),
            "Give an account a plan, replacing the one it has",
        )
    },
    OperatorRoute {
        method: "DELETE",
        ..get(
            "/admin/v1/accounts/{id}/entitlement",
            RouteEndpoint::Customer(CustomerEndpoint::Withdraw),
            "Take an account's plan away: its keys are refused",
        )
    },
    OperatorRoute {
        query: &[
            (
                "month",
                "The calendar month, such as 2026-11. Default: the current one.",
            ),
            ("account", "Only this account."),
            ("format", "`json` (the default) or `csv`."),
        ],
        ..get(
            "/admin/v1/usage",
            RouteEndpoint::Host(HostEndpoint::Usage),
            "Show a month's calls and credits by key, account and operation",
        )
    },
    get(
        "/admin/v1/audit",
        RouteEndpoint::Host(HostEndpoint::Audit),
        "Check the balances of credits against their entries",
    ),
    get(
        "/admin/v1/config",
        RouteEndpoint::Host(HostEndpoint::Config),
        "Show the settings in effect, with secrets masked",
    ),
    get(
        "/admin/v1/openapi.json",
        RouteEndpoint::Host(HostEndpoint::OpenApi),
        "Get this document",
    ),
    OperatorRoute {
        answers: AnswerForm::Plain("application/openmetrics-text"),
        ..get(
            "/metrics",
            RouteEndpoint::Host(HostEndpoint::Metrics),
            "Get the metrics in Prometheus text format",
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
