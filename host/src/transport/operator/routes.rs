//! Every endpoint of the operator's API, in one table: requests are led by it, its OpenAPI document is printed from it, and the
//! command line's client asks by it.

use std::pin::Pin;
use std::sync::LazyLock;
use std::time::SystemTime;

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::accounts::{AccountList, AccountRequest, AccountView, EntitlementTerms};
use super::endpoint::{
    ArrivedRequest, Endpoint, EndpointParameters, EndpointReply, EndpointRequest, EndpointSchemas,
    Enveloped, JsonBody, NoBody, NoParameters, PlainAnswer, PlainForm, PrintedAnswer,
};
use super::events::{EventList, EventsQuery};
use super::keys::{IssuedKey, KeyList, KeyRequest, KeyView};
use super::openapi::EndpointDescription;
use super::operations::{CalledOperation, OperationPath};
use super::overview::ServiceStatus;
use super::plugins::{
    ActRequest, ApproveOrder, CompareQuery, ComparisonView, FollowReport, PlainOrder, PluginList,
    PluginPath, PluginView, RevisionList, RevisionPath, RevisionView, RevokeOrder, RollbackOrder,
    StageQuery, StagedComponent,
};
use super::usage::{AuditReport, EntriesQuery, EntryPage, MonthUsage, UsageQuery};
use super::way_out::{LendOrder, LentProxy};
use super::{OperatorApi, accounts, keys, openapi, operations, overview, plugins, usage};
use crate::config::Config;
use crate::contract::error::Refusal;
use crate::observe::exposition;
use crate::registry::PluginAction;
use crate::transport::http::connection::HttpResponse;

/// One endpoint, as the table holds it.
pub(crate) struct EndpointRow {
    pub(crate) id: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    /// What it takes and tells, for the documents.
    pub(crate) describe: fn(&mut EndpointSchemas) -> EndpointDescription,
    answer: for<'a> fn(&'a OperatorApi, ArrivedRequest) -> AnswerFuture<'a>,
}

type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, Refusal>> + Send + 'a>>;

impl EndpointRow {
    const fn of<E: Endpoint>() -> Self {
        Self {
            id: E::ID,
            method: E::METHOD,
            path: E::PATH,
            summary: E::SUMMARY,
            describe: EndpointDescription::of::<E>,
            answer: answer::<E>,
        }
    }

    /// Reads the request and does what it asks for.
    pub(super) fn answer<'a>(
        &self,
        api: &'a OperatorApi,
        arrived: ArrivedRequest,
    ) -> AnswerFuture<'a> {
        (self.answer)(api, arrived)
    }
}

fn answer<E: Endpoint>(api: &OperatorApi, arrived: ArrivedRequest) -> AnswerFuture<'_> {
    Box::pin(async move { E::answer(api, EndpointRequest::read(api, arrived).await?).await })
}

/// Which key or account.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct RecordPath {
    /// Its id.
    pub(crate) id: String,
}

impl EndpointParameters for RecordPath {
    const RULE: &'static str = "must be an id";
}

/// `text/event-stream`.
pub(crate) struct EventText;

impl PlainForm for EventText {
    const MEDIA_TYPE: &'static str = "text/event-stream";
}

/// The metrics.
pub(crate) struct MetricsText;

impl PlainForm for MetricsText {
    const MEDIA_TYPE: &'static str = "application/openmetrics-text";
}

/// An OpenAPI document.
pub(crate) struct DocumentText;

impl PlainForm for DocumentText {
    const MEDIA_TYPE: &'static str = "application/json";
    const JSON_TYPE: &'static str = "object";
}

/// What was given, or else the default.
macro_rules! given {
    ($given:ty, $default:ty) => {
        $given
    };
    (, $default:ty) => {
        $default
    };
}

/// One row for each endpoint: its type, by which handlers and clients name it, its id, method and path; what its path, its query
/// and its body may hold; what it answers with, and what makes that answer of a request.
macro_rules! endpoints {
    ($(
        $endpoint:ident $id:literal $method:ident $path:literal
            $summary:literal
            $(path $parameters:ty,)? $(query $query:ty,)? $(body $body:ty,)?
            -> $answer:ty
            = |$api:ident, $request:ident| $reply:expr;
    )*) => {
        $(
            #[doc = $summary]
            pub(crate) struct $endpoint;

            impl Endpoint for $endpoint {
                type Path = given!($($parameters)?, NoParameters);
                type Query = given!($($query)?, NoParameters);
                type Body = given!($($body)?, NoBody);
                type Answer = $answer;

                const ID: &'static str = $id;
                const METHOD: &'static str = stringify!($method);
                const PATH: &'static str = $path;
                const SUMMARY: &'static str = $summary;

                async fn answer(
                    $api: &OperatorApi,
                    $request: EndpointRequest<Self>,
                ) -> Result<HttpResponse, Refusal> {
                    Ok(EndpointReply::<Self::Answer>::response($reply?))
                }
            }
        )*

        /// All of them.
        pub(crate) static ENDPOINTS: &[EndpointRow] = &[$(EndpointRow::of::<$endpoint>()),*];
    };
}

endpoints! {
    ShowStatus "showStatus" GET "/admin/v1/status"
        "Show whether everything is serving and what is waiting for an operator"
        -> Enveloped<ServiceStatus>
        = |api, _request| overview::status(api).await;

    ListPlugins "listPlugins" GET "/admin/v1/plugins"
        "List the plugins of the manifest with their state"
        -> Enveloped<PluginList>
        = |api, _request| plugins::list(&api.registry).await;

    ShowPlugin "showPlugin" GET "/admin/v1/plugins/{plugin}"
        "Show one plugin with its revisions"
        path PluginPath,
        -> Enveloped<PluginView>
        = |api, request| plugins::show(&api.registry, &request.path.plugin).await;

    ListRevisions "listRevisions" GET "/admin/v1/plugins/{plugin}/revisions"
        "List a plugin's revisions, newest first"
        path PluginPath,
        -> Enveloped<RevisionList>
        = |api, request| plugins::list_revisions(&api.registry, &request.path.plugin).await;

    StageRevision "stageRevision" POST "/admin/v1/plugins/{plugin}/revisions"
        "Stage a component as a new revision; its record shows the progress"
        path PluginPath, query StageQuery, body StagedComponent,
        -> Enveloped<RevisionView, 202>
        = |api, request| {
            plugins::stage(&api.registry, &request.path.plugin, request.query, request.body).await
        };

    ShowRevision "showRevision" GET "/admin/v1/plugins/{plugin}/revisions/{revision}"
        "Show one revision"
        path RevisionPath,
        -> Enveloped<RevisionView>
        = |api, request| {
            plugins::show_revision(&api.registry, &request.path.plugin, request.path.revision).await
        };

    CompareRevision "compareRevision" GET "/admin/v1/plugins/{plugin}/revisions/{revision}/difference"
        "Compare a revision with another: their rights, and the changes that clients would see"
        path RevisionPath, query CompareQuery,
        -> Enveloped<ComparisonView>
        = |api, request| {
            plugins::compare(&api.registry, &request.path, request.query.against).await
        };

    ApproveRevision "approveRevision" POST "/admin/v1/plugins/{plugin}/revisions/{revision}/approve"
        "Grant a revision the rights that it wants but does not have"
        path RevisionPath, body ActRequest<ApproveOrder>,
        -> Enveloped<RevisionView>
        = |api, request| {
            let approval = request.body.approval(request.path.revision)?;
            plugins::change_revision(&api.registry, &request.path, &request.body, approval).await
        };

    RejectRevision "rejectRevision" POST "/admin/v1/plugins/{plugin}/revisions/{revision}/reject"
        "Reject a revision that has never served, even while it is being prepared"
        path RevisionPath, body ActRequest<PlainOrder>,
        -> Enveloped<RevisionView>
        = |api, request| {
            let rejection = PluginAction::Reject { number: request.path.revision };
            plugins::change_revision(&api.registry, &request.path, &request.body, rejection).await
        };

    ActivateRevision "activateRevision" POST "/admin/v1/plugins/{plugin}/revisions/{revision}/activate"
        "Serve a staged or kept revision"
        path RevisionPath, body ActRequest<PlainOrder>,
        -> Enveloped<RevisionView>
        = |api, request| {
            let activation = PluginAction::Activate { number: request.path.revision };
            plugins::change_revision(&api.registry, &request.path, &request.body, activation).await
        };

    RollBackPlugin "rollBackPlugin" POST "/admin/v1/plugins/{plugin}/rollback"
        "Serve a revision that served before"
        path PluginPath, body ActRequest<RollbackOrder>,
        -> Enveloped<PluginView>
        = |api, request| {
            let rollback = PluginAction::Rollback { to: request.body.order.to };
            plugins::change_plugin(&api.registry, &request.path, &request.body, rollback).await
        };

    DisablePlugin "disablePlugin" POST "/admin/v1/plugins/{plugin}/disable"
        "Disable a plugin: its routes return 503"
        path PluginPath, body ActRequest<PlainOrder>,
        -> Enveloped<PluginView>
        = |api, request| {
            let disabling = PluginAction::Disable;
            plugins::change_plugin(&api.registry, &request.path, &request.body, disabling).await
        };

    EnablePlugin "enablePlugin" POST "/admin/v1/plugins/{plugin}/enable"
        "Enable a plugin again"
        path PluginPath, body ActRequest<PlainOrder>,
        -> Enveloped<PluginView>
        = |api, request| {
            let enabling = PluginAction::Enable;
            plugins::change_plugin(&api.registry, &request.path, &request.body, enabling).await
        };

    RevokeApproval "revokeApproval" POST "/admin/v1/plugins/{plugin}/revoke"
        "Take back an approval: running calls keep the right until they end, later calls do not have it"
        path PluginPath, body ActRequest<RevokeOrder>,
        -> Enveloped<PluginView>
        = |api, request| {
            let revocation = request.body.revocation()?;
            plugins::change_plugin(&api.registry, &request.path, &request.body, revocation).await
        };

    CallOperation "callOperation" POST "/admin/v1/plugins/{plugin}/operations/{operation}"
        "Call an operation that a plugin serves to the operator alone"
        path OperationPath, body CalledOperation,
        -> Enveloped<Value>
        = |api, request| operations::call(api, request).await;

    LendProxy "lendProxy" POST "/admin/v1/plugins/{plugin}/proxy"
        "Issue a credential for the forward proxy with exactly the rights of the active revision; only this response shows it"
        path PluginPath, body ActRequest<LendOrder>,
        -> Enveloped<LentProxy, 201>
        = |api, request| api.lender.lend(&request.path.plugin, &request.body);

    FollowManifest "followManifest" POST "/admin/v1/manifest/follow"
        "Read the manifest again and apply its changes"
        body ActRequest<PlainOrder>,
        -> Enveloped<FollowReport>
        = |api, _request| plugins::follow(&api.registry).await;

    ListEvents "listEvents" GET "/admin/v1/history"
        "List what happened to the plugins, oldest first"
        query EventsQuery,
        -> Enveloped<EventList>
        = |api, request| api.events.history(request.query).await;

    StreamEvents "streamEvents" GET "/admin/v1/events"
        "Stream what happens to the plugins"
        query EventsQuery,
        -> PlainAnswer<EventText>
        = |api, request| api.events.stream(&request.headers, request.query).await;

    ListKeys "listKeys" GET "/admin/v1/keys"
        "List the API keys, without their secrets"
        -> Enveloped<KeyList>
        = |api, _request| keys::list(&api.store).await;

    IssueKey "issueKey" POST "/admin/v1/keys"
        "Issue an API key; only this response shows it"
        body JsonBody<KeyRequest>,
        -> Enveloped<IssuedKey, 201>
        = |api, request| keys::issue(&api.store, &request.body.0, SystemTime::now()).await;

    RevokeKey "revokeKey" DELETE "/admin/v1/keys/{id}"
        "Revoke an API key permanently"
        path RecordPath,
        -> Enveloped<KeyView>
        = |api, request| {
            let revoked = keys::revoke(&api.store, &request.path.id, SystemTime::now()).await;
            revoked.inspect(|_| api.jobs.keys_changed())
        };

    RotateKey "rotateKey" POST "/admin/v1/keys/{id}/rotate"
        "Issue a key with the settings of an existing one, and revoke that one"
        path RecordPath,
        -> Enveloped<IssuedKey, 201>
        = |api, request| {
            let rotated = keys::rotate(&api.store, &request.path.id, SystemTime::now()).await;
            rotated.inspect(|_| api.jobs.keys_changed())
        };

    ListAccounts "listAccounts" GET "/admin/v1/accounts"
        "List the accounts of self-service keys"
        -> Enveloped<AccountList>
        = |api, _request| accounts::list(&api.store).await;

    OpenAccount "openAccount" POST "/admin/v1/accounts"
        "Open an account"
        body JsonBody<AccountRequest>,
        -> Enveloped<AccountView, 201>
        = |api, request| accounts::open(&api.store, &request.body.0, SystemTime::now()).await;

    ShowAccount "showAccount" GET "/admin/v1/accounts/{id}"
        "Show one account with the credits that it spent and reserved this month"
        path RecordPath,
        -> Enveloped<AccountView>
        = |api, request| accounts::show(&api.store, &request.path.id, SystemTime::now()).await;

    ListEntries "listEntries" GET "/admin/v1/accounts/{id}/entries"
        "List an account's credit entries in order"
        path RecordPath, query EntriesQuery,
        -> Enveloped<EntryPage>
        = |api, request| usage::entries(&api.store, &request.path.id, request.query.after).await;

    EntitleAccount "entitleAccount" PUT "/admin/v1/accounts/{id}/entitlement"
        "Give an account a plan, replacing the one it has"
        path RecordPath, body JsonBody<EntitlementTerms>,
        -> Enveloped<AccountView>
        = |api, request| {
            let terms = Some(&request.body.0);
            accounts::entitle(&api.store, &request.path.id, terms, SystemTime::now()).await
        };

    WithdrawEntitlement "withdrawEntitlement" DELETE "/admin/v1/accounts/{id}/entitlement"
        "Take an account's plan away: its keys are refused"
        path RecordPath,
        -> Enveloped<AccountView>
        = |api, request| {
            let now = SystemTime::now();
            let withdrawn = accounts::entitle(&api.store, &request.path.id, None, now).await;
            withdrawn.inspect(|_| api.jobs.keys_changed())
        };

    ShowUsage "showUsage" GET "/admin/v1/usage"
        "Show a month's calls and credits by key, account and operation"
        query UsageQuery,
        -> Enveloped<MonthUsage>
        = |api, request| usage::export(api, request.query).await;

    AuditBalances "auditBalances" GET "/admin/v1/audit"
        "Check the balances of credits against their entries"
        -> Enveloped<AuditReport>
        = |api, _request| usage::audit(&api.store).await;

    ShowSettings "showSettings" GET "/admin/v1/config"
        "Show the settings in effect, with secrets masked"
        -> Enveloped<Config>
        = |api, _request| Ok::<_, Refusal>(overview::config(api));

    ShowDocument "showDocument" GET "/admin/v1/openapi.json"
        "Get this document"
        -> PlainAnswer<DocumentText>
        = |api, _request| {
            let document = openapi::document(&api.registry.current().catalogue).to_string();
            Ok::<_, Refusal>(PrintedAnswer::of(document, DocumentText::MEDIA_TYPE))
        };

    ShowMetrics "showMetrics" GET "/metrics"
        "Get the metrics in Prometheus text format"
        -> PlainAnswer<MetricsText>
        = |api, _request| {
            let text = api.metrics.text().await;
            Ok::<_, Refusal>(PrintedAnswer::of(text, exposition::CONTENT_TYPE))
        };
}

/// What a method and a path lead to.
pub(crate) enum EndpointMatch {
    /// An endpoint, with the parameters of the path as they are meant.
    Found(&'static EndpointRow, Vec<(String, String)>),
    /// The value of `Allow`.
    OtherMethods(String),
    Nothing,
}

/// Finds the endpoint of a request.
pub(crate) fn find(method: &Method, path: &str) -> EndpointMatch {
    static PATHS: LazyLock<matchit::Router<&'static str>> = LazyLock::new(|| {
        let mut paths = matchit::Router::new();
        for row in ENDPOINTS {
            // A path with several methods is there already.
            paths.insert(row.path, row.path).ok();
        }
        paths
    });
    let Ok(matched) = PATHS.at(path) else {
        return EndpointMatch::Nothing;
    };
    let of_path = || ENDPOINTS.iter().filter(|row| row.path == *matched.value);
    let Some(row) = of_path().find(|row| row.method == method.as_str()) else {
        let mut methods: Vec<&str> = of_path().map(|row| row.method).collect();
        methods.sort_unstable();
        return EndpointMatch::OtherMethods(methods.join(", "));
    };
    let decoded = |(name, value): (&str, &str)| {
        let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
        (name.to_owned(), value.into_owned())
    };
    EndpointMatch::Found(row, matched.params.iter().map(decoded).collect())
}
