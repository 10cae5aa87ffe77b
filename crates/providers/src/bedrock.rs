//! Amazon Bedrock's ConverseStream: `POST {base}/model/{model}/converse-stream`, one protocol for the
//! models of many makers.

mod credentials;
mod decode;
mod encode;
mod family;
mod frames;
mod messages;
mod sign;
mod wire;

use std::{fmt, sync::Arc};

use archon_types::{
    BoxStream, CancellationToken, Clock, Json, ModelEvent, Provider, ProviderError, Request, Secret,
};

pub use {
    credentials::{AwsCredentialSource, AwsCredentials, BedrockAuth},
    family::ModelFamily,
    frames::count_event_stream_messages,
};

use crate::{
    anthropic::ThinkingBudgets,
    blocks::Blocks,
    error::SetupError,
    http::{HttpOptions, Transport, events::Exchange, percent_encoded, time_of},
};
use decode::ConverseDecoder;
use encode::Encoder;

/// The choices of a [`Bedrock`], each with a default.
#[derive(Clone)]
#[non_exhaustive]
pub struct BedrockOptions {
    /// The provider's id in messages and records; `bedrock`.
    pub id: String,
    /// How requests are authorised; by their headers only.
    pub auth: BedrockAuth,
    /// The region that signatures name; `us-east-1`.
    pub region: String,
    /// More headers for every request. Values are treated as secrets; they are not signed.
    pub headers: Vec<(String, Secret)>,
    /// Whose models are asked; by default known from their names. For a profile of one's own, whose name
    /// says nothing.
    pub family: ModelFamily,
    /// How an answer of a given form is asked for.
    pub structured: StructuredOutput,
    /// How many tokens each level of thinking may take, on models that take a number.
    pub thinking_budgets: ThinkingBudgets,
    /// More of `additionalModelRequestFields`, an object: what only one maker's models know.
    pub additional_fields: Option<Json>,
    /// How the service is reached.
    pub http: HttpOptions,
    /// What time it is; the system's clock if unset. Signatures depend on it.
    pub clock: Option<Arc<dyn Clock>>,
}

/// How an answer of a given form is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StructuredOutput {
    /// As the arguments of a tool that the model has to call. Works with every model that takes tools;
    /// other tools stay usable.
    #[default]
    Tool,
    /// As a JSON Schema that the service enforces, with the models that it does that for.
    Native,
}

impl Default for BedrockOptions {
    fn default() -> Self {
        Self {
            id: "bedrock".to_owned(),
            auth: BedrockAuth::default(),
            region: "us-east-1".to_owned(),
            headers: Vec::new(),
            family: ModelFamily::default(),
            structured: StructuredOutput::default(),
            thinking_budgets: ThinkingBudgets::default(),
            additional_fields: None,
            http: HttpOptions::default(),
            clock: None,
        }
    }
}

impl BedrockOptions {
    /// The same, authorised so.
    pub fn with_auth(mut self, auth: BedrockAuth) -> Self {
        self.auth = auth;
        self
    }

    /// The same in this region.
    pub fn with_region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same for models of this family, whatever their names.
    pub fn with_family(mut self, family: ModelFamily) -> Self {
        self.family = family;
        self
    }

    /// The same with another way to ask for an answer of a given form.
    pub fn with_structured(mut self, structured: StructuredOutput) -> Self {
        self.structured = structured;
        self
    }

    /// The same with more fields that only one maker's models know.
    pub fn with_additional_fields(mut self, fields: Json) -> Self {
        self.additional_fields = Some(fields);
        self
    }

    /// The same with other ways to reach the service.
    pub fn with_http(mut self, http: HttpOptions) -> Self {
        self.http = http;
        self
    }

    /// The same with this clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
}

/// Amazon Bedrock. Clones share one pool of connections.
#[derive(Clone)]
pub struct Bedrock(Arc<Inner>);

struct Inner {
    options: BedrockOptions,
    transport: Arc<Transport>,
}

impl Bedrock {
    /// Bedrock at `base_url`, which ends before `/model/…`. Nothing is sent, and no certificate is read,
    /// before the first request.
    ///
    /// # Errors
    /// [`SetupError`] when the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, options: BedrockOptions) -> Result<Self, SetupError> {
        let mut transport = Transport::new(base_url, "/model", options.http.clone())?;
        transport.send_json();
        match &options.auth {
            BedrockAuth::Bearer(key) => transport.set_bearer(key)?,
            BedrockAuth::Signed(credentials) => {
                transport.redactor.add(&credentials.secret_access_key);
                credentials.session_token.iter().for_each(|token| transport.redactor.add(token));
            }
            _ => {}
        }
        for (name, value) in &options.headers {
            transport.set_header(name, value)?;
        }
        Ok(Self(Arc::new(Inner { options, transport: Arc::new(transport) })))
    }

    /// Amazon's own service in a region, for instance `eu-central-1`.
    ///
    /// # Errors
    /// [`SetupError`] when the region makes no address, or as [`Bedrock::new`] does.
    pub fn in_region(region: &str, options: BedrockOptions) -> Result<Self, SetupError> {
        let known = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if region.is_empty() || !region.chars().all(known) {
            let reason = "is no name of a region, as eu-central-1 is".to_owned();
            return Err(SetupError::Setting { what: format!("region {region:?}"), reason });
        }
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        Self::new(&format!("https://bedrock-runtime.{region}.{domain}"), options.with_region(region))
    }
}

impl Provider for Bedrock {
    fn id(&self) -> &str {
        &self.0.options.id
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let inner = self.0.clone();
        let options = &inner.options;
        let encoder = Encoder::new(&request, options);
        let blocks = Blocks::new(&request, &options.id, options.clock.clone());
        let decoder = ConverseDecoder::new(blocks, encoder.answer_tool().map(str::to_owned));
        let transport = inner.transport.clone();
        if let Some(error) = encoder.refusal() {
            return Box::pin(Exchange::failed(transport, error, decoder));
        }
        let path = format!("/{}/converse-stream", percent_encoded(&request.model));
        let sent = transport.post_below(&path, None, encoder.body());
        Box::pin(match &options.auth {
            BedrockAuth::Headers | BedrockAuth::Bearer(_) => Exchange::new(transport, sent, cancel, decoder),
            _ => {
                let signed = signed(inner.clone(), sent);
                Exchange::prepared(transport, signed, cancel, decoder)
            }
        })
    }

    fn capabilities(&self, model: &str) -> archon_types::Capabilities {
        crate::catalogue::capabilities(self.id(), model)
    }
}

/// The request with its signature, made when it is about to be sent: an old one is refused.
async fn signed(inner: Arc<Inner>, mut request: reqwest::Request) -> Result<reqwest::Request, ProviderError> {
    let options = &inner.options;
    let fetched;
    let credentials = match &options.auth {
        BedrockAuth::Signed(credentials) => credentials,
        BedrockAuth::SignedBy(source) => {
            fetched = source().await?;
            inner.transport.redactor.add_later(&fetched.secret_access_key);
            fetched.session_token.iter().for_each(|token| inner.transport.redactor.add_later(token));
            &fetched
        }
        _ => return Ok(request),
    };
    let now = time_of(options.clock.as_ref());
    sign::sign_request(&mut request, credentials, &options.region, now)?;
    Ok(request)
}

impl fmt::Debug for Bedrock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bedrock")
            .field("options", &self.0.options)
            .field("transport", &self.0.transport)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BedrockOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BedrockOptions")
            .field("id", &self.id)
            .field("auth", &self.auth)
            .field("region", &self.region)
            .field("headers", &self.headers)
            .field("family", &self.family)
            .field("structured", &self.structured)
            .field("thinking_budgets", &self.thinking_budgets)
            .field("additional_fields", &self.additional_fields)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "bedrock/exchange_tests.rs"]
mod exchange_tests;
#[cfg(test)]
#[path = "bedrock/request_tests.rs"]
mod request_tests;
#[cfg(test)]
#[path = "bedrock/stream_tests.rs"]
mod stream_tests;
