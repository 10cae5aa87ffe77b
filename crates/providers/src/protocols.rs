//! The protocols that a model string can name, and the functions that create their providers. A new protocol
//! needs one line in [`PROTOCOLS`] and one function below it.

use std::{fmt, sync::Arc};

use archon_types::{Provider, Secret};

use crate::{connect::ConnectOptions, error::SetupError, profile::Profile};

/// A protocol for requests to a model service, with the name that comes before a model.
#[non_exhaustive]
pub struct Protocol {
    /// The name: `anthropic` in `anthropic:claude-sonnet-4-5`.
    pub name: &'static str,
    /// A second name that means the same protocol: `google` for `gemini`, which is also the id of the provider in
    /// records. `None` if there is no second name.
    pub alias: Option<&'static str>,
    /// The cargo feature of this crate for the protocol.
    pub feature: &'static str,
    /// The environment variables for the key; the first one that is set is used. For a service with a
    /// [`Profile`], the variable in the profile is used instead.
    pub key_variables: &'static [&'static str],
    connect: Option<Connect>,
}

type Connect = fn(Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError>;

/// The function that creates the provider; `None` if the feature is off.
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

/// The protocol of all [profiles](crate::PROFILES), and of services that are known only by their address.
pub(crate) const OPENAI_COMPATIBLE: &Protocol = &PROTOCOLS[0];

/// Creates a protocol with the name of its feature.
const fn protocol(
    name: &'static str,
    key_variables: &'static [&'static str],
    connect: Option<Connect>,
) -> Protocol {
    Protocol { name, alias: None, feature: name, key_variables, connect }
}

/// All protocols, including those that are not in this build.
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
    /// Returns the protocol with this name or alias.
    pub fn named(name: &str) -> Option<&'static Self> {
        PROTOCOLS.iter().find(|protocol| protocol.name == name || protocol.alias == Some(name))
    }

    /// Returns true if the protocol's cargo feature is on, so that the protocol can be used.
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

/// The input for a new provider.
pub(crate) struct Wanted<'a> {
    pub(crate) profile: Option<&'static Profile>,
    /// The address, if the model string has one.
    pub(crate) base_url: Option<&'a str>,
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) options: ConnectOptions,
}

impl Wanted<'_> {
    /// Returns an environment variable that is set and not blank.
    fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }

    /// Returns the value of a variable that a protocol requires.
    fn needed(
        &self,
        protocol: &'static str,
        what: &'static str,
        variable: &'static str,
    ) -> Result<String, SetupError> {
        self.variable(variable).ok_or(SetupError::MissingVariable { protocol, what, variable })
    }

    /// Returns the key of the options; without one, the key in the first variable that is set.
    fn key(&self, variables: &[&str]) -> Option<Secret> {
        let set = || variables.iter().find_map(|name| self.variable(name)).map(Secret::from);
        self.options.api_key.clone().or_else(set)
    }

    /// Returns the key for a service that needs one at its own address. At another address, for instance of
    /// a gateway, the key may be missing.
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

    /// Returns the options with the key that the service needs.
    fn with_needed_key(
        self,
        name: &'static str,
        variables: &[&'static str],
    ) -> Result<ConnectOptions, SetupError> {
        let api_key = self.needed_key(name, variables)?;
        Ok(ConnectOptions { api_key, ..self.options })
    }
}

#[cfg(feature = "openai-compatible")]
fn openai_compatible(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::openai_compatible::{OpenAiCompatible, OpenAiOptions};
    let key = match wanted.profile {
        Some(profile) => wanted.needed_key(profile.name, profile.key_variable.as_slice())?,
        None => wanted.key(OPENAI_COMPATIBLE.key_variables),
    };
    let own = wanted.profile.map_or("", |profile| profile.base_url);
    let mut options = wanted.profile.map_or_else(OpenAiOptions::default, OpenAiOptions::of);
    let id = options.connect.id.take();
    options.connect = wanted.options;
    options.connect.api_key = key;
    options.connect.id = options.connect.id.or(id);
    Ok(Arc::new(OpenAiCompatible::new(wanted.base_url.unwrap_or(own), options)?))
}

#[cfg(feature = "openai-responses")]
fn openai_responses(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::openai_responses::{OpenAiResponses, ResponsesOptions};
    let url = wanted.base_url.unwrap_or("https://api.openai.com/v1");
    let connect = wanted.with_needed_key("openai-responses", &["OPENAI_API_KEY"])?;
    Ok(Arc::new(OpenAiResponses::new(url, ResponsesOptions::default().with_connect(connect))?))
}

#[cfg(feature = "anthropic")]
fn anthropic(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::anthropic::{ANTHROPIC_URL, Anthropic, AnthropicOptions};
    let url = wanted.base_url.unwrap_or(ANTHROPIC_URL);
    let mut options = AnthropicOptions::default();
    options.connect = match (wanted.key(&["ANTHROPIC_API_KEY"]), wanted.key(&["ANTHROPIC_AUTH_TOKEN"])) {
        (None, Some(token)) => {
            options.bearer_token = Some(token);
            wanted.options
        }
        _ => wanted.with_needed_key("anthropic", &["ANTHROPIC_API_KEY"])?,
    };
    Ok(Arc::new(Anthropic::new(url, options)?))
}

#[cfg(feature = "gemini")]
fn gemini(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::gemini::{GEMINI_URL, Gemini, GeminiOptions};
    let url = wanted.base_url.unwrap_or(GEMINI_URL);
    let connect = wanted.with_needed_key("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"])?;
    Ok(Arc::new(Gemini::new(url, GeminiOptions::default().with_connect(connect))?))
}

/// Creates a provider for Vertex AI. Project and location come from the variables of Google's own tools; the
/// token is read once and used until the process ends.
#[cfg(feature = "vertex")]
fn vertex(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::vertex::{Vertex, VertexOptions, VertexPlace};
    const TOKENS: &[&str] = &["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"];
    let missing = || SetupError::MissingKey { profile: "vertex", variable: TOKENS[0] };
    let token = wanted.key(TOKENS).ok_or_else(missing)?;
    let project = wanted.needed("vertex", "the project", "GOOGLE_CLOUD_PROJECT")?;
    let location = ["GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION"].iter().find_map(|v| wanted.variable(v));
    let place = VertexPlace::new(project, location.unwrap_or_else(|| "global".to_owned()));
    let mut options = VertexOptions::default();
    options.base_url = wanted.base_url.map(str::to_owned);
    options.connect = wanted.options;
    let source = Arc::new(move || -> archon_types::BoxFuture<'static, _> {
        Box::pin(std::future::ready(Ok(token.clone())))
    });
    Ok(Arc::new(Vertex::new(&place, source, options)?))
}

/// Creates a provider for Azure. The model string names the deployment.
#[cfg(feature = "azure")]
fn azure(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::azure::{AzureAuth, AzureOpenAi, AzureOptions};
    let mut options = AzureOptions::default();
    let key = match (wanted.key(&["AZURE_OPENAI_API_KEY"]), wanted.key(&["AZURE_OPENAI_AD_TOKEN"])) {
        (None, Some(token)) => {
            options.auth = AzureAuth::Bearer;
            Some(token)
        }
        _ => wanted.needed_key("azure", &["AZURE_OPENAI_API_KEY"])?,
    };
    let endpoint = match wanted.base_url {
        Some(url) => url.to_owned(),
        None => wanted.needed("azure", "the resource's address", "AZURE_OPENAI_ENDPOINT")?,
    };
    if let Some(version) = wanted.variable("OPENAI_API_VERSION") {
        options = options.with_api_version(version);
    }
    options.connect = wanted.options;
    options.connect.api_key = key;
    Ok(Arc::new(AzureOpenAi::new(&endpoint, options)?))
}

#[cfg(feature = "bedrock")]
fn bedrock(wanted: Wanted<'_>) -> Result<Arc<dyn Provider>, SetupError> {
    use crate::bedrock::{Bedrock, BedrockOptions};
    let region = ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| wanted.variable(name));
    let region = region.unwrap_or_else(|| "us-east-1".to_owned());
    let mut options = match wanted.options.api_key {
        Some(_) => BedrockOptions::default(),
        None => match (BedrockOptions::from_variables(wanted.variable), wanted.base_url) {
            // At another address, for instance behind a gateway, no key may be needed.
            (Err(SetupError::MissingKey { .. }), Some(_)) => BedrockOptions::default(),
            (options, _) => options?,
        },
    };
    let key = options.connect.api_key.take();
    options.connect = wanted.options;
    options.connect.api_key = options.connect.api_key.or(key);
    Ok(Arc::new(match wanted.base_url {
        Some(url) => Bedrock::new(url, options.with_region(region))?,
        None => Bedrock::in_region(&region, options)?,
    }))
}
