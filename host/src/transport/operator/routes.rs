//! Every route of the operator's API, in one table: requests are led by it and its OpenAPI document is printed from it.

use std::sync::LazyLock;

use http::Method;

use crate::contract::faces::path_parameters;

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

/// The name of a parameter or a member, with what it means.
pub(crate) type NamedMeaning = (&'static str, &'static str);

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
    Act(&'static [NamedMeaning]),
}

impl BodyForm {
    /// The members of a body that says what is to be done to a plugin, with what they mean.
    pub(crate) fn members(self) -> impl Iterator<Item = &'static NamedMeaning> {
        let own: &[_] = match self {
            BodyForm::Act(members) => members,
            BodyForm::Component => &OF_COMPONENT,
            BodyForm::None | BodyForm::Key | BodyForm::Account | BodyForm::Entitlement => &[],
        };
        OF_ACT.iter().chain(own)
    }
}

/// What every act may say.
const OF_ACT: [NamedMeaning; 2] = [("by", "Who does it, for the history."), ("why", "Why.")];
const OF_COMPONENT: [NamedMeaning; 3] = [
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
    pub(crate) query: &'static [NamedMeaning],
    pub(crate) body: BodyForm,
    pub(crate) answers: AnswerForm,
}

const AGAINST: NamedMeaning = (
    "against",
    "The revision to compare with. Default: the active one.",
);
const AFTER: NamedMeaning = ("after", "Only events with a number above this one.");
const OF_PLUGIN: NamedMeaning = ("plugin", "Only events of this plugin.");
const ACTIVATE: NamedMeaning = (
    "activate",
    "Serve it as soon as everything that it wants is granted.",
);

/// The rows of the table, of which each says where it is and what it does. Unless it says otherwise, it is asked with GET and
/// nothing else, and answers with data.
const fn row(endpoint: RouteEndpoint) -> OperatorRoute {
    OperatorRoute {
        method: "GET",
        path: "",
        endpoint,
        summary: "",
        query: &[],
        body: BodyForm::None,
        answers: AnswerForm::Data,
    }
}

const fn host(endpoint: HostEndpoint) -> OperatorRoute {
    row(RouteEndpoint::Host(endpoint))
}

const fn plugin(endpoint: PluginEndpoint) -> OperatorRoute {
    row(RouteEndpoint::Plugin(endpoint))
}

const fn customer(endpoint: CustomerEndpoint) -> OperatorRoute {
    row(RouteEndpoint::Customer(endpoint))
}

impl OperatorRoute {
    const fn at(self, path: &'static str) -> Self {
        Self { path, ..self }
    }

    const fn method(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    const fn does(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    const fn query(self, query: &'static [NamedMeaning]) -> Self {
        Self { query, ..self }
    }

    const fn body(self, body: BodyForm) -> Self {
        Self { body, ..self }
    }

    /// Something is done, for which the body may have these members.
    const fn act(self, members: &'static [NamedMeaning]) -> Self {
        self.method("POST").body(BodyForm::Act(members))
    }

    const fn answers(self, answers: AnswerForm) -> Self {
        Self { answers, ..self }
    }
}

/// All of them.
pub(crate) static ROUTES: [OperatorRoute; 33] = [
    host(HostEndpoint::Status)
        .at("/admin/v1/status")
        .does("Show whether everything is serving and what is waiting for an operator"),
    plugin(PluginEndpoint::Plugins)
        .at("/admin/v1/plugins")
        .does("List the plugins of the manifest with their state"),
    plugin(PluginEndpoint::Plugin)
        .at("/admin/v1/plugins/{plugin}")
        .does("Show one plugin with its revisions"),
    plugin(PluginEndpoint::Revisions)
        .at("/admin/v1/plugins/{plugin}/revisions")
        .does("List a plugin's revisions, newest first"),
    plugin(PluginEndpoint::Stage)
        .at("/admin/v1/plugins/{plugin}/revisions")
        .method("POST")
        .does("Stage a component as a new revision; its record shows the progress")
        .query(&[
            ("by", "Who stages an uploaded component, for the history."),
            ("why", "Why."),
            ("digest", "Its SHA-256, in hexadecimal."),
            ACTIVATE,
        ])
        .body(BodyForm::Component)
        .answers(AnswerForm::Accepted),
    plugin(PluginEndpoint::Revision)
        .at("/admin/v1/plugins/{plugin}/revisions/{revision}")
        .does("Show one revision"),
    plugin(PluginEndpoint::Compare)
        .at("/admin/v1/plugins/{plugin}/revisions/{revision}/difference")
        .does(
            "Compare a revision with another: their rights, and the changes that clients \
             would see",
        )
        .query(&[AGAINST]),
    plugin(PluginEndpoint::Approve)
        .at("/admin/v1/plugins/{plugin}/revisions/{revision}/approve")
        .does("Grant a revision the rights that it wants but does not have")
        .act(&[
            (
                "grants",
                "The atoms that were reviewed; nothing else is granted.",
            ),
            ACTIVATE,
        ]),
    plugin(PluginEndpoint::Reject)
        .at("/admin/v1/plugins/{plugin}/revisions/{revision}/reject")
        .does("Reject a revision that has never served, even while it is being prepared")
        .act(&[]),
    plugin(PluginEndpoint::Activate)
        .at("/admin/v1/plugins/{plugin}/revisions/{revision}/activate")
        .does("Serve a staged or kept revision")
        .act(&[]),
    plugin(PluginEndpoint::Rollback)
        .at("/admin/v1/plugins/{plugin}/rollback")
        .does("Serve a revision that served before")
        .act(&[(
            "to",
            "The revision's number. Default: the one before the active one.",
        )]),
    plugin(PluginEndpoint::Disable)
        .at("/admin/v1/plugins/{plugin}/disable")
        .does("Disable a plugin: its routes return 503")
        .act(&[]),
    plugin(PluginEndpoint::Enable)
        .at("/admin/v1/plugins/{plugin}/enable")
        .does("Enable a plugin again")
        .act(&[]),
    plugin(PluginEndpoint::Revoke)
        .at("/admin/v1/plugins/{plugin}/revoke")
        .does(
            "Take back an approval: running calls keep the right until they end, later calls \
             do not have it",
        )
        .act(&[("atom", "The approved atom to take back.")]),
    plugin(PluginEndpoint::LendProxy)
        .at("/admin/v1/plugins/{plugin}/proxy")
        .does(
            "Issue a credential for the forward proxy with exactly the rights of the active \
             revision; only this response shows it",
        )
        .act(&[(
            "seconds",
            "How long the credential is valid, from 1 to 600. Default: 60.",
        )])
        .answers(AnswerForm::Created),
    host(HostEndpoint::Follow)
        .at("/admin/v1/manifest/follow")
        .does("Read the manifest again and apply its changes")
        .act(&[]),
    host(HostEndpoint::History)
        .at("/admin/v1/history")
        .does("List what happened to the plugins, oldest first")
        .query(&[OF_PLUGIN, AFTER]),
    host(HostEndpoint::Events)
        .at("/admin/v1/events")
        .does("Stream what happens to the plugins")
        .query(&[OF_PLUGIN, AFTER])
        .answers(AnswerForm::Plain("text/event-stream")),
    customer(CustomerEndpoint::Keys)
        .at("/admin/v1/keys")
        .does("List the API keys, without their secrets"),
    customer(CustomerEndpoint::IssueKey)
        .at("/admin/v1/keys")
        .method("POST")
        .does("Issue an API key; only this response shows it")
        .body(BodyForm::Key)
        .answers(AnswerForm::Created),
    customer(CustomerEndpoint::RevokeKey)
        .at("/admin/v1/keys/{id}")
        .method("DELETE")
        .does("Revoke an API key permanently"),
    customer(CustomerEndpoint::RotateKey)
        .at("/admin/v1/keys/{id}/rotate")
        .method("POST")
        .does("Issue a key with the settings of an existing one, and revoke that one")
        .answers(AnswerForm::Created),
    customer(CustomerEndpoint::Accounts)
        .at("/admin/v1/accounts")
        .does("List the accounts of self-service keys"),
    customer(CustomerEndpoint::OpenAccount)
        .at("/admin/v1/accounts")
        .method("POST")
        .does("Open an account")
        .body(BodyForm::Account)
        .answers(AnswerForm::Created),
    customer(CustomerEndpoint::Account)
        .at("/admin/v1/accounts/{id}")
        .does("Show one account with the credits that it spent and reserved this month"),
    customer(CustomerEndpoint::Entries)
        .at("/admin/v1/accounts/{id}/entries")
        .does("List an account's credit entries in order")
        .query(&[("after", "Only entries after this one.")]),
    customer(CustomerEndpoint::Entitle)
        .at("/admin/v1/accounts/{id}/entitlement")
        .method("PUT")
        .does("Give an account a plan, replacing the one it has")
        .body(BodyForm::Entitlement),
    customer(CustomerEndpoint::Withdraw)
        .at("/admin/v1/accounts/{id}/entitlement")
        .method("DELETE")
        .does("Take an account's plan away: its keys are refused"),
    host(HostEndpoint::Usage)
        .at("/admin/v1/usage")
        .does("Show a month's calls and credits by key, account and operation")
        .query(&[
            (
                "month",
                "The calendar month, such as 2026-11. Default: the current one.",
            ),
            ("account", "Only this account."),
            ("format", "`json` (the default) or `csv`."),
        ]),
    host(HostEndpoint::Audit)
        .at("/admin/v1/audit")
        .does("Check the balances of credits against their entries"),
    host(HostEndpoint::Config)
        .at("/admin/v1/config")
        .does("Show the settings in effect, with secrets masked"),
    host(HostEndpoint::OpenApi)
        .at("/admin/v1/openapi.json")
        .does("Get this document"),
    host(HostEndpoint::Metrics)
        .at("/metrics")
        .does("Get the metrics in Prometheus text format")
        .answers(AnswerForm::Plain("application/openmetrics-text")),
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
    let parameters = path_parameters(route.path)
        .filter_map(|name| Some((name, decoded(matched.params.get(name)?))));
    EndpointMatch::Route(route, parameters.collect())
}
