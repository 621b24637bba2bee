//! Questions to DNS resolvers over HTTPS (RFC 8484): a plugin names a resolver, and the operator's configuration says where it is.
//!
//! A question is a request through the gate like any other. The right to a resolver is a grant of its one endpoint, made here
//! from the configuration: nothing else of the plugin's rights and no secret counts on that way, and it leads nowhere else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::audit::HopAudit;
use super::dialer::HttpVersions;
use super::message::{Caps, FetchError, PluginRequest, SizeExcess, within};
use super::policy;
use super::question::{Mismatch, QuestionError, SentQuestion};
use super::{EgressClient, EgressError};
use crate::base::media_type;
use crate::config;
use crate::contract::grants::{Grants, Rights};
use crate::contract::tenant::Tenant;

const MEDIA_TYPE: &str = "application/dns-message";
/// The longest DNS message, in bytes.
const MESSAGE_BYTES_MAX: usize = 65_535;
/// The one status of an answer: whatever else a server says, it is no message of a resolver.
const ANSWERED: u16 = 200;
/// For a whole question, by default and at most.
const TOTAL: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(10));

/// A question as the plugin asked it.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The name in the configuration.
    pub(crate) resolver: String,
    pub(crate) name: String,
    pub(crate) record_type: u16,
    pub(crate) timeout: Option<Duration>,
}

/// Why there is no answer. No message repeats the name that was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueryError {
    #[error("the resolver is not granted: a grant `dns:NAME` is needed")]
    Ungranted,
    #[error("the operator's configuration has no such resolver")]
    Unknown,
    #[error("the question {0}")]
    Invalid(#[from] QuestionError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the answer has the status {0}")]
    Status(u16),
    #[error("the answer's media type is not {MEDIA_TYPE}")]
    MediaType,
    #[error("the answer has more than {MESSAGE_BYTES_MAX} bytes")]
    TooLarge,
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// A resolver of the operator's.
struct DohServer {
    url: String,
    client_subnet: config::ClientSubnet,
    /// Questions there, and nothing else.
    rights: Arc<Rights>,
}

/// All resolvers, by their names in the configuration.
pub(super) struct DohEndpoints(BTreeMap<String, DohServer>);

impl DohEndpoints {
    /// # Errors
    /// A URL is none that could be granted.
    pub(super) fn new(
        resolvers: &BTreeMap<String, config::ResolverSettings>,
    ) -> Result<Self, EgressError> {
        let mut endpoints = BTreeMap::new();
        for (name, config::ResolverSettings { url, client_subnet }) in resolvers {
            let rights = Arc::new(Grants::parse([config::ResolverSettings::grant(url)])?.into());
            // Some resolvers know their customers by the path, so it is not told.
            let host = url.split('/').nth(2).unwrap_or_default();
            tracing::info!(target: "egress", name, host, ?client_subnet, "dns.resolvers: plugins can be granted this one");
            let server = DohServer {
                url: url.clone(),
                client_subnet: *client_subnet,
                rights,
            };
            endpoints.insert(name.clone(), server);
        }
        Ok(Self(endpoints))
    }
}

impl EgressClient {
    /// Asks one question for a tenant and gives back the message that answers it.
    ///
    /// # Errors
    /// It was denied, before anything was looked up or dialled, or there is no such message in time.
    pub(crate) async fn query(
        &self,
        tenant: &Tenant,
        question: Question,
    ) -> Result<Vec<u8>, QueryError> {
        let endpoint = self.egress.endpoints.0.get(&question.resolver);
        if !self.rights.grant_name("dns", &question.resolver) {
            let aim = endpoint.and_then(|endpoint| policy::aim(&endpoint.url));
            HopAudit::denied_at_once(self, aim, "not_granted");
            return Err(QueryError::Ungranted);
        }
        let Some(endpoint) = endpoint else {
            HopAudit::denied_at_once(self, None, "not_acceptable");
            return Err(QueryError::Unknown);
        };
        let asked = SentQuestion::read(&question.name, question.record_type)?;
        let message = asked.message(endpoint.client_subnet);
        let body = message.ok_or(QuestionError::Characters)?;
        let total = Some(within(question.timeout, TOTAL));
        let of_type = |name: &str| (name.to_owned(), MEDIA_TYPE.to_owned());
        let request = PluginRequest {
            method: "POST".to_owned(),
            url: endpoint.url.clone(),
            headers: vec![of_type("content-type"), of_type("accept")],
            body,
            caps: Caps {
                redirects: 0,
                response_bytes: Some(MESSAGE_BYTES_MAX),
                total,
                first_byte: total,
                idle: total,
            },
        };
        let fetched = self.to(endpoint).fetch(tenant, request).await;
        let response = fetched.map_err(|error| match error {
            FetchError::TooLarge(SizeExcess::Body) => QueryError::TooLarge,
            error => QueryError::Fetch(error),
        })?;
        if response.status != ANSWERED {
            return Err(QueryError::Status(response.status));
        }
        let mut headers = response.headers.iter();
        let said = headers.find(|(name, _)| name == "content-type");
        if !said.is_some_and(|(_, value)| media_type::is(value, MEDIA_TYPE)) {
            return Err(QueryError::MediaType);
        }
        asked.check(&response.body)?;
        Ok(response.body)
    }

    /// The same plugin's door to this resolver alone. All the questions of a lookup go out at once, so they share one
    /// connection of HTTP/2, which RFC 8484 recommends as the least; nobody could say before it stands whether it is one, and
    /// each question would dial.
    fn to(&self, endpoint: &DohServer) -> EgressClient {
        EgressClient {
            egress: Arc::clone(&self.egress),
            plugin: Arc::clone(&self.plugin),
            revision: self.revision,
            rights: Arc::clone(&endpoint.rights),
            secrets: [].into(),
            traffic: Arc::clone(&self.questions),
            questions: Arc::clone(&self.questions),
            lines: Arc::clone(&self.lines),
            versions: HttpVersions::Two,
        }
    }
}
