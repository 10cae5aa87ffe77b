//! Turns a model string into a provider.
//!
//! `openai:gpt-5-mini` names a model of a known service, `ollama:qwen3` a model of a server on this machine,
//! `vllm@http://gpu:8000/v1:qwen3` a model of a known kind of server at another address, and
//! `openai-compatible@http://host/v1:model` a model of any service with chat completions. Any other name
//! before the colon is a protocol: `anthropic:claude-sonnet-4-5`.

use std::sync::Arc;

use archon_types::{Provider, likeness};

use crate::{
    connect::ConnectOptions,
    error::SetupError,
    profile::{PROFILES, Profile},
    protocols::{OPENAI_COMPATIBLE, PROTOCOLS, Protocol, Wanted},
};

/// The parts of a model string such as `openai:gpt-5-mini`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelRef {
    /// The protocol that requests use.
    pub protocol: &'static Protocol,
    /// The profile of a known service with chat completions; `None` for any other service.
    pub profile: Option<&'static Profile>,
    /// The base URL after `@`; `None` if the string has none.
    pub base_url: Option<String>,
    /// The name by which the service knows the model.
    pub model: String,
}

/// The provider and the model that a model string names.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolved {
    /// The provider that connects to the service.
    pub provider: Arc<dyn Provider>,
    /// The name by which the service knows the model, for `Request::model`.
    pub model: String,
}

impl std::str::FromStr for ModelRef {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Self, SetupError> {
        let wrong = |reason: &str| SetupError::Model { model: text.to_owned(), reason: reason.to_owned() };
        let end =
            text.find([':', '@']).ok_or_else(|| wrong("write PROVIDER:MODEL, as in openai:gpt-5-mini"))?;
        let (name, rest) = (&text[..end], &text[end + 1..]);
        let profile = Profile::named(name);
        let protocol = match profile {
            Some(_) => OPENAI_COMPATIBLE,
            None => Protocol::named(name).ok_or_else(|| unknown(name))?,
        };
        let (base_url, model) = if text[end..].starts_with('@') {
            if let Some(place) = password_end(rest) {
                let model = format!("{name}@{}", &rest[place..]);
                let reason = "contains a user name or a password; send them in a header (an @ in the name of a model must come after a /)";
                return Err(SetupError::Model { model, reason: reason.to_owned() });
            }
            let (url, model) = split_url(rest);
            (Some(url.to_owned()), model)
        } else {
            (None, rest)
        };
        if base_url.is_none() && name == OPENAI_COMPATIBLE.name {
            return Err(wrong("write the address as well: openai-compatible@http://host/v1:MODEL"));
        }
        if model.is_empty() {
            return Err(wrong("names no model; write the model after the last colon"));
        }
        Ok(Self { protocol, profile, base_url, model: model.to_owned() })
    }
}

/// Returns the position after the user name and the password of an address, that is after the last `@` before the
/// path; `None` without such an `@`. A later `@` is a part of the path or of the model.
fn password_end(text: &str) -> Option<usize> {
    let start = text.find("://").map_or(0, |at| at + 3);
    let end = text[start..].find('/').map_or(text.len(), |at| start + at);
    text[start..end].rfind('@').map(|at| start + at + 1)
}

/// Splits `http://host:8000/v1:model:tag` into address and model. The address is a scheme, a host, an
/// optional port and a path without colons; a colon and the model follow.
fn split_url(text: &str) -> (&str, &str) {
    let start = text.find("://").map_or(0, |at| at + 3);
    let host_end = match text[start..].strip_prefix('[') {
        Some(v6) => start + v6.find(']').map_or(v6.len(), |at| at + 1) + 1,
        None => start + text[start..].find([':', '/']).unwrap_or(text.len() - start),
    };
    let host_end = host_end.min(text.len());
    let port = text[host_end..].strip_prefix(':').map_or(0, |rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let ends = matches!(rest.as_bytes().get(digits), None | Some(b':' | b'/'));
        if digits > 0 && ends { digits + 1 } else { 0 }
    });
    let path = host_end + port;
    match text[path..].find(':') {
        Some(colon) => (&text[..path + colon], &text[path + colon + 1..]),
        None => (text, ""),
    }
}

/// Returns the provider and the model of a model string. Sends nothing: a wrong key, or an address without a
/// server, fails at the first call of the provider.
///
/// | argument | value |
/// |---|---|
/// | `model` | `PROVIDER:MODEL`, or `PROVIDER@URL:MODEL` for another address; `PROVIDER` is a name of [`PROFILES`] or [`PROTOCOLS`] |
/// | `variable` | a function from the name of an environment variable, such as `OPENAI_API_KEY`, to its value; it returns `None` if the variable is not set. For the environment of the process: `\|name\| std::env::var(name).ok()` |
/// | `options` | the rest: key, headers, HTTP options, clock. A key here replaces that of the variable. |
///
/// # Errors
/// [`SetupError`] if the string is invalid, or if a variable or a cargo feature is missing.
///
/// ```
/// # #[cfg(all(feature = "openai-compatible", feature = "tls"))] {
/// use archon_providers::{ConnectOptions, resolve};
///
/// let variable = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-secret".to_owned());
/// let found = resolve("openai:gpt-5-mini", variable, ConnectOptions::default()).unwrap();
/// assert_eq!((found.provider.id(), found.model.as_str()), ("openai", "gpt-5-mini"));
///
/// // Another address, which needs no key.
/// let local = "vllm@http://gpu:8000/v1:qwen3";
/// let found = resolve(local, |_| None, ConnectOptions::default()).unwrap();
/// assert_eq!((found.provider.id(), found.model.as_str()), ("vllm", "qwen3"));
///
/// let refused = resolve("openai:gpt-5-mini", |_| None, ConnectOptions::default()).unwrap_err();
/// assert_eq!(refused.to_string(), "openai needs a key: set OPENAI_API_KEY");
/// # }
/// ```
pub fn resolve(
    model: &str,
    variable: impl Fn(&str) -> Option<String>,
    options: ConnectOptions,
) -> Result<Resolved, SetupError> {
    let parts: ModelRef = model.parse()?;
    let provider = connect(&parts, variable, options)?;
    Ok(Resolved { provider, model: parts.model })
}

/// Returns the provider of a parsed model string; see [`resolve`].
///
/// # Errors
/// [`SetupError`] if the address cannot be used, if a key is missing that the service needs at its own
/// address, or if the protocol is not in this build.
pub fn connect(
    parts: &ModelRef,
    variable: impl Fn(&str) -> Option<String>,
    options: ConnectOptions,
) -> Result<Arc<dyn Provider>, SetupError> {
    let base_url = parts.base_url.as_deref();
    parts.protocol.connect(Wanted { profile: parts.profile, base_url, variable: &variable, options })
}

fn unknown(name: &str) -> SetupError {
    let mut names: Vec<&'static str> = all_names().collect();
    names.sort_by(|a, b| likeness(name, b).total_cmp(&likeness(name, a)));
    names.truncate(3);
    SetupError::UnknownProfile { name: name.to_owned(), nearest: names }
}

/// Returns every name that can come before the model in a model string.
fn all_names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|profile| profile.name).chain(PROTOCOLS.iter().map(|protocol| protocol.name))
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
