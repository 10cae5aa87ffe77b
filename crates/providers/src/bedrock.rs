//! Amazon Bedrock's ConverseStream: `POST {base}/model/{model}/converse-stream`, one protocol for the models
//! of many vendors.

mod credentials;
mod decode;
mod encode;
mod family;
mod frames;
mod messages;
mod sign;
mod wire;

use std::{mem, sync::Arc};

use archon_types::{CancellationToken, Json, Provider, ProviderError, Request};

pub use {
    credentials::{AwsCredentialSource, AwsCredentials, BedrockAuth},
    family::ModelFamily,
    frames::count_event_stream_messages,
};

use crate::{
    Events,
    answer::time_of,
    anthropic::ThinkingBudgets,
    blocks::Blocks,
    connect::{ConnectOptions, SentAs, Service, connect_choices, service_methods},
    error::SetupError,
    http::{events::Exchange, percent_encoded},
};
use decode::ConverseDecoder;
use encode::Encoder;

/// Options of [`Bedrock`].
///
/// ```
/// use archon_providers::{AwsCredentials, BedrockAuth, BedrockOptions, ModelFamily, StructuredOutput};
///
/// let credentials = AwsCredentials::new("AKIDEXAMPLE", "secret").with_session_token("token");
/// let options = BedrockOptions::default()
///     .with_auth(BedrockAuth::Signed(credentials))
///     .with_region("eu-central-1")
///     .with_family(ModelFamily::Nova)
///     .with_structured(StructuredOutput::Native)
///     .with_additional_fields(serde_json::json!({ "top_k": 20 }));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BedrockOptions {
    /// The connection to the service. Its headers are not signed; its clock gives the time of each
    /// signature.
    pub connect: ConnectOptions,
    /// The authorisation of requests. Default: the key of [`connect`](Self::connect), sent as a bearer
    /// token.
    pub auth: BedrockAuth,
    /// The region for which requests are signed. Default `us-east-1`.
    pub region: String,
    /// The vendor of the models, which decides about parameters. Default: derived from the model's name. Set
    /// it if the name does not show the vendor, as with some inference profiles.
    pub family: ModelFamily,
    /// The way in which a request asks for an answer that fits a JSON Schema. Default [`StructuredOutput::Tool`].
    pub structured: StructuredOutput,
    /// The thinking budget in tokens for each thinking level. Used only for Claude models whose thinking is limited by
    /// a budget.
    pub thinking_budgets: ThinkingBudgets,
    /// Additional fields for `additionalModelRequestFields` in requests: parameters that only one vendor's models
    /// know. Must be a JSON object; any other value is ignored.
    pub additional_fields: Option<Json>,
}

/// The way in which a request asks for structured output: an answer that fits a JSON Schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StructuredOutput {
    /// As the arguments of a tool that the model must call. Works with every model that supports tools;
    /// other tools stay usable. Text next to the call is dropped; see
    /// [`ResponseFormat`](archon_types::ResponseFormat).
    #[default]
    Tool,
    /// As a JSON Schema that the service enforces, on the models that support it.
    Native,
}

impl Default for BedrockOptions {
    fn default() -> Self {
        Self {
            connect: ConnectOptions::default(),
            auth: BedrockAuth::default(),
            region: "us-east-1".to_owned(),
            family: ModelFamily::default(),
            structured: StructuredOutput::default(),
            thinking_budgets: ThinkingBudgets::default(),
            additional_fields: None,
        }
    }
}

connect_choices!(BedrockOptions with a key);

impl BedrockOptions {
    /// Sets the authorisation of requests. Default: the key, sent as a bearer token.
    pub fn with_auth(mut self, auth: BedrockAuth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets the region for which requests are signed. Default `us-east-1`.
    pub fn with_region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// Sets the vendor of all models. Without this, it is derived from each model's name.
    pub fn with_family(mut self, family: ModelFamily) -> Self {
        self.family = family;
        self
    }

    /// Sets the way in which a request asks for structured output. Default [`StructuredOutput::Tool`].
    pub fn with_structured(mut self, structured: StructuredOutput) -> Self {
        self.structured = structured;
        self
    }

    /// Sets additional fields of requests: parameters that only one vendor's models know. Must be a JSON object.
    pub fn with_additional_fields(mut self, fields: Json) -> Self {
        self.additional_fields = Some(fields);
        self
    }
}

/// A provider for Amazon Bedrock. Clones share one pool of connections.
///
/// ```no_run
/// use archon_providers::{Bedrock, BedrockOptions};
///
/// let options = BedrockOptions::from_variables(|name| std::env::var(name).ok())?;
/// let provider = Bedrock::in_region("eu-central-1", options)?;
/// # Ok::<(), archon_providers::SetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bedrock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    /// The options; `connect` is empty here, because `service` was made from it.
    options: BedrockOptions,
}

impl Bedrock {
    /// Creates a provider for Bedrock at `base_url`: the address without `/model/…`. Nothing is sent, and no
    /// certificate is read, before the first request.
    ///
    /// # Errors
    /// [`SetupError`] if the address, the key, a header or the proxy cannot be used.
    pub fn new(base_url: &str, mut options: BedrockOptions) -> Result<Self, SetupError> {
        let connect = mem::take(&mut options.connect);
        let key = match options.auth {
            BedrockAuth::ApiKey => SentAs::Bearer,
            BedrockAuth::Signed(_) | BedrockAuth::SignedBy(_) => SentAs::Later,
        };
        let service = connect.service_with("bedrock", base_url, "/model", key, |transport| {
            if let BedrockAuth::Signed(credentials) = &options.auth {
                transport.redactor.add(&credentials.secret_access_key);
                credentials.session_token.iter().for_each(|token| transport.redactor.add(token));
            }
            Ok(())
        })?;
        Ok(Self(Arc::new(Inner { service, options })))
    }

    /// Creates a provider for Amazon's own service in a region, for instance `eu-central-1`, and signs
    /// requests for this region.
    ///
    /// # Errors
    /// [`SetupError`] if the region is no valid name, or as [`Bedrock::new`] does.
    pub fn in_region(region: &str, options: BedrockOptions) -> Result<Self, SetupError> {
        let known = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if region.is_empty() || !region.chars().all(known) {
            let reason = "is not the name of a region such as eu-central-1".to_owned();
            return Err(SetupError::Setting { what: format!("region {region:?}"), reason });
        }
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        Self::new(&format!("https://bedrock-runtime.{region}.{domain}"), options.with_region(region))
    }
}

impl Provider for Bedrock {
    service_methods!(0.service);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let Inner { service, options } = &*self.0;
        let encoder = Encoder::new(&request, options);
        let blocks = Blocks::new(&request, &service.id, service.clock.clone());
        let decoder = ConverseDecoder::new(blocks, encoder.answer_tool().map(str::to_owned));
        let transport = service.transport.clone();
        if let Some(error) = encoder.refusal() {
            return Box::pin(Exchange::failed(transport, error, decoder));
        }
        let path = format!("/{}/converse-stream", percent_encoded(&request.model));
        let sent = transport.post_below(&path, None, encoder.body());
        Box::pin(match &options.auth {
            BedrockAuth::ApiKey => Exchange::new(transport, sent, cancel, decoder),
            _ => {
                let signed = signed(self.0.clone(), sent);
                Exchange::prepared(transport, signed, cancel, decoder)
            }
        })
    }
}

/// Signs the request just before it is sent, since old signatures are refused.
async fn signed(inner: Arc<Inner>, mut request: reqwest::Request) -> Result<reqwest::Request, ProviderError> {
    let Inner { service, options } = &*inner;
    let fetched;
    let credentials = match &options.auth {
        BedrockAuth::Signed(credentials) => credentials,
        BedrockAuth::SignedBy(source) => {
            fetched = source().await?;
            let redactor = &service.transport.redactor;
            redactor.add_expiring(&fetched.secret_access_key);
            fetched.session_token.iter().for_each(|token| redactor.add_expiring(token));
            &fetched
        }
        BedrockAuth::ApiKey => return Ok(request),
    };
    let now = time_of(service.clock.as_ref());
    sign::sign_request(&mut request, credentials, &options.region, now)?;
    Ok(request)
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
