//! The protocols that a model string can name, and how each becomes a provider. A new one is one line in
//! [`PROTOCOLS`] and one function below it.

use std::{fmt, sync::Arc};

use archon_types::{Clock, Provider, Secret};

use crate::{error::SetupError, http::HttpOptions, profile::Profile};

/// A wire protocol, by the name that stands in front of a model.
#[non_exhaustive]
pub struct Protocol {
    /// `anthropic` in `anthropic:claude-sonnet-4-5`.
    pub name: &'static str,
    /// Another name that it answers to: what its provider calls itself in records.
    pub alias: Option<&'static str>,
    /// The cargo feature of this crate that builds it.
    pub feature: &'static str,
    /// Environment variables that may hold its key; the first that is set counts. Those of
    /// `openai-compatible` are the profiles' own.
    pub key_variables: &'static [&'static str],
    connect: Option<Connect>,
}

type Connect = fn(Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError>;

/// The function, if its feature is on.
macro_rules! built {
    ($feature:literal, $connect:ident) => {{
        #[cfg(feature = $feature)]
        {
            Some($connect as Connect)
        }
        #[cfg(not(feature = $feature))]
        {
            None
        }
    }};
}

/// The protocol of services that are known by their address only, and of all [profiles](crate::PROFILES).
pub(crate) const OPENAI_COMPATIBLE: &Protocol = &PROTOCOLS[0];

/// A protocol that is named after its feature.
const fn protocol(
    name: &'static str,
    key_variables: &'static [&'static str],
    connect: Option<Connect>,
) -> Protocol {
    Protocol { name, alias: None, feature: name, key_variables, connect }
}

/// Every protocol, whether it is in this build or not.
pub const PROTOCOLS: &[Protocol] = &[
    protocol(
        "openai-compatible",
        &["OPENAI_COMPATIBLE_API_KEY"],
        built!("openai-compatible", openai_compatible),
    ),
    protocol("openai-responses", &["OPENAI_API_KEY"], built!("openai-responses", openai_responses)),
    protocol("anthropic", &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"], built!("anthropic", anthropic)),
    Protocol {
        alias: Some("google"),
        ..protocol("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], built!("gemini", gemini))
    },
    protocol(
        "vertex",
        &["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"],
        built!("vertex", vertex),
    ),
    protocol("azure", &["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"], built!("azure", azure)),
    protocol("bedrock", &["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"], built!("bedrock", bedrock)),
];

impl Protocol {
    /// The protocol of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PROTOCOLS.iter().find(|protocol| protocol.name == name || protocol.alias == Some(name))
    }

    /// Whether it is in this build.
    pub fn is_built(&self) -> bool {
        self.connect.is_some()
    }

    pub(crate) fn connect(&self, wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
        let missing = || SetupError::MissingFeature { protocol: self.name, feature: self.feature };
        self.connect.ok_or_else(missing)?(wanted)
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Protocol {}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protocol").field("name", &self.name).field("is_built", &self.is_built()).finish()
    }
}

/// What a model string does not say. Everything has a default.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The provider's id in messages and records; the name in front of the model if unset.
    pub id: Option<String>,
    /// The key; the environment's if unset.
    pub api_key: Option<Secret>,
    /// More headers for every request. Values are treated as secrets.
    pub headers: Vec<(String, Secret)>,
    /// How the service is reached. Providers that are given clones share one pool of connections.
    pub http: HttpOptions,
    /// What time it is; the system's clock if unset.
    pub clock: Option<Arc<dyn Clock>>,
}

impl ConnectOptions {
    /// The same with this id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The same with this key.
    pub fn with_api_key(mut self, key: impl Into<Secret>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
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

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("id", &self.id)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

/// What a provider is made from.
pub(crate) struct Wanted<'a> {
    pub(crate) profile: Option<&'static Profile>,
    /// The address, if the model string holds one.
    pub(crate) base_url: Option<&'a str>,
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) options: ConnectOptions,
}

#[allow(dead_code, reason = "a build may hold no protocol")]
impl Wanted<'_> {
    /// An environment variable that is set and not blank.
    fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }

    /// The key: as it was given, else the first variable's that is set.
    fn key(&self, variables: &[&str]) -> Option<Secret> {
        let set = || variables.iter().find_map(|name| self.variable(name)).map(Secret::from);
        self.options.api_key.clone().or_else(set)
    }

    /// The key of a service that needs one at its own address. Somewhere else, for instance behind a
    /// gateway, none may be needed.
    fn needed_key(
        &self,
        name: &'static str,
        variables: &[&'static str],
    ) -> Result<Option<Secret>, SetupError> {
        match (self.key(variables), variables.first()) {
            (None, Some(variable)) if self.base_url.is_none() => {
                Err(SetupError::MissingKey { profile: name, variable })
            }
            (key, _) => Ok(key),
        }
    }
}

/// A variable that a protocol cannot do without.
#[allow(dead_code, reason = "not every protocol needs one")]
fn needed(
    wanted: &Wanted<'_>,
    protocol: &'static str,
    what: &'static str,
    variable: &'static str,
) -> Result<String, SetupError> {
    wanted.variable(variable).ok_or(SetupError::MissingVariable { protocol, what, variable })
}

#[cfg(feature = "openai-compatible")]
fn openai_compatible(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::openai_compatible::{OpenAiCompatible, OpenAiOptions};
    let mut options = wanted.profile.map_or_else(OpenAiOptions::default, OpenAiOptions::of);
    options.api_key = match wanted.profile {
        Some(profile) => wanted.needed_key(profile.name, profile.key_variable.as_slice())?,
        None => wanted.key(OPENAI_COMPATIBLE.key_variables),
    };
    let ConnectOptions { id, headers, http, clock, .. } = wanted.options;
    (options.headers, options.http, options.clock) = (headers, http, clock);
    if let Some(id) = id {
        options.id = id;
    }
    let own = wanted.profile.map_or("", |profile| profile.base_url);
    Ok(Arc::new(OpenAiCompatible::new(wanted.base_url.unwrap_or(own), options)?))
}

#[cfg(feature = "openai-responses")]
fn openai_responses(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::openai_responses::{OpenAiResponses, ResponsesOptions};
    let api_key = wanted.needed_key("openai-responses", &["OPENAI_API_KEY"])?;
    let mut options = ResponsesOptions { api_key, ..ResponsesOptions::default() };
    let ConnectOptions { id, headers, http, clock, .. } = wanted.options;
    (options.headers, options.http, options.clock) = (headers, http, clock);
    options.id = id.unwrap_or(options.id);
    Ok(Arc::new(OpenAiResponses::new(wanted.base_url.unwrap_or("https://api.openai.com/v1"), options)?))
}

#[cfg(feature = "anthropic")]
fn anthropic(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::anthropic::{ANTHROPIC_URL, Anthropic, AnthropicOptions};
    let mut options = AnthropicOptions::default();
    match (wanted.key(&["ANTHROPIC_API_KEY"]), wanted.key(&["ANTHROPIC_AUTH_TOKEN"])) {
        (None, Some(token)) => options.bearer_token = Some(token),
        _ => options.api_key = wanted.needed_key("anthropic", &["ANTHROPIC_API_KEY"])?,
    }
    let ConnectOptions { id, headers, http, clock, .. } = wanted.options;
    (options.headers, options.http, options.clock) = (headers, http, clock);
    options.id = id.unwrap_or(options.id);
    Ok(Arc::new(Anthropic::new(wanted.base_url.unwrap_or(ANTHROPIC_URL), options)?))
}

#[cfg(feature = "gemini")]
fn gemini(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::gemini::{GEMINI_URL, Gemini, GeminiOptions};
    let mut options = GeminiOptions::default();
    options.api_key = wanted.needed_key("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"])?;
    let ConnectOptions { id, headers, http, clock, .. } = wanted.options;
    (options.headers, options.http, options.clock) = (headers, http, clock);
    options.id = id.unwrap_or(options.id);
    Ok(Arc::new(Gemini::new(wanted.base_url.unwrap_or(GEMINI_URL), options)?))
}

/// The project and the place are those of Google's own tools; the token is used until the process ends.
#[cfg(feature = "vertex")]
fn vertex(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::vertex::{Vertex, VertexOptions, VertexPlace};
    const TOKENS: &[&str] = &["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"];
    let missing = || SetupError::MissingKey { profile: "vertex", variable: TOKENS[0] };
    let token = wanted.key(TOKENS).ok_or_else(missing)?;
    let project = needed(&wanted, "vertex", "the project", "GOOGLE_CLOUD_PROJECT")?;
    let location = ["GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION"].iter().find_map(|v| wanted.variable(v));
    let place = VertexPlace::new(project, location.unwrap_or_else(|| "global".to_owned()));
    let mut options =
        VertexOptions { base_url: wanted.base_url.map(str::to_owned), ..VertexOptions::default() };
    let ConnectOptions { id, headers, http, clock, .. } = wanted.options;
    (options.headers, options.http, options.clock) = (headers, http, clock);
    options.id = id.unwrap_or(options.id);
    let source = Arc::new(move || -> archon_types::BoxFuture<'static, _> {
        Box::pin(std::future::ready(Ok(token.clone())))
    });
    Ok(Arc::new(Vertex::new(&place, source, options)?))
}

/// The model is the deployment's name.
#[cfg(feature = "azure")]
fn azure(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::azure::{AzureAuth, AzureOpenAi, AzureOptions};
    let mut options = AzureOptions::default();
    match (wanted.key(&["AZURE_OPENAI_API_KEY"]), wanted.key(&["AZURE_OPENAI_AD_TOKEN"])) {
        (None, Some(token)) => options.auth = AzureAuth::Bearer(token),
        _ => {
            if let Some(key) = wanted.needed_key("azure", &["AZURE_OPENAI_API_KEY"])? {
                options.auth = AzureAuth::ApiKey(key);
            }
        }
    }
    let endpoint = match wanted.base_url {
        Some(url) => url.to_owned(),
        None => needed(&wanted, "azure", "the resource's address", "AZURE_OPENAI_ENDPOINT")?,
    };
    if let Some(version) = wanted.variable("OPENAI_API_VERSION") {
        options = options.with_api_version(version);
    }
    let ConnectOptions { id, headers, http, clock, .. } = wanted.options;
    (options.headers, options.http, options.clock) = (headers, http, clock);
    options.id = id.unwrap_or(options.id);
    Ok(Arc::new(AzureOpenAi::new(&endpoint, options)?))
}

#[cfg(feature = "bedrock")]
fn bedrock(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::bedrock::{Bedrock, BedrockAuth, BedrockOptions};
    let auth = match &wanted.options.api_key {
        Some(key) => Ok(BedrockAuth::Bearer(key.clone())),
        None => BedrockAuth::from_variables(wanted.variable),
    };
    let auth = match (auth, wanted.base_url) {
        // Somewhere else, for instance behind a gateway, no key may be needed.
        (Err(SetupError::MissingKey { .. }), Some(_)) => BedrockAuth::Headers,
        (auth, _) => auth?,
    };
    let region = ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| wanted.variable(name));
    let region = region.unwrap_or_else(|| "us-east-1".to_owned());
    let mut options = BedrockOptions::default().with_auth(auth);
    let ConnectOptions { id, headers, http, clock, .. } = wanted.options;
    (options.headers, options.http, options.clock) = (headers, http, clock);
    options.id = id.unwrap_or(options.id);
    Ok(Arc::new(match wanted.base_url {
        Some(url) => Bedrock::new(url, options.with_region(region))?,
        None => Bedrock::in_region(&region, options)?,
    }))
}
