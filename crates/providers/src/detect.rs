//! Finds servers that run models on this machine, by asking the ports that they listen on.

use std::time::Duration;

use archon_types::CancellationToken;
use futures_util::future::join_all;
use serde::Deserialize;

use crate::http::{HttpOptions, Timeouts, Transport, body::Body, watch::Watch};

/// Where a kind of server listens unless it was told otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalServer {
    /// The profile's name.
    pub profile: &'static str,
    /// The address, up to `/models`.
    pub base_url: String,
}

impl LocalServer {
    /// A server of this profile at this address.
    pub fn new(profile: &'static str, base_url: impl Into<String>) -> Self {
        Self { profile, base_url: base_url.into() }
    }

    /// Ollama, LM Studio and llama.cpp's server on their default ports.
    pub fn defaults() -> Vec<Self> {
        LOCAL_SERVERS.iter().map(|(profile, url)| Self::new(profile, *url)).collect()
    }
}

/// Profile and address of the servers that are looked for.
pub const LOCAL_SERVERS: &[(&str, &str)] = &[
    ("ollama", "http://127.0.0.1:11434/v1"),
    ("lmstudio", "http://127.0.0.1:1234/v1"),
    ("llamacpp", "http://127.0.0.1:8080/v1"),
];

/// A server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundServer {
    /// Which one.
    pub server: LocalServer,
    /// The models that it has, as it names and orders them.
    pub models: Vec<String>,
}

/// Asks all servers at once for their models and keeps those that answer within `patience`, in the
/// order in which they were given. What listens on the port and is something else is left out.
pub async fn find_local_servers(servers: Vec<LocalServer>, patience: Duration) -> Vec<FoundServer> {
    let asked = servers.into_iter().map(async |server| {
        let models = models(&server, patience).await?;
        Some(FoundServer { server, models })
    });
    join_all(asked).await.into_iter().flatten().collect()
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

async fn models(server: &LocalServer, patience: Duration) -> Option<Vec<String>> {
    let timeouts =
        Timeouts { connect: patience, first_byte: patience, idle: patience, total: Some(patience) };
    let options = HttpOptions { timeouts, ..HttpOptions::default() };
    let transport = Transport::new(&server.base_url, "/models", options).ok()?;
    let response = tokio::time::timeout(patience, transport.send(None).ok()?).await.ok()?.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let (text, end) = Body::new(response, Watch::new(CancellationToken::new(), timeouts)).text().await;
    end.ok()?;
    let list: ModelList = serde_json::from_str(&text).ok()?;
    Some(list.data.into_iter().map(|model| model.id).collect())
}
