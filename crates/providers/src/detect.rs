//! Finds servers that run models on this machine, by asking the ports that they listen on.

use std::time::Duration;

use archon_types::CancellationToken;
use futures_util::future::join_all;
use serde::Deserialize;

use crate::{
    http::{HttpOptions, Timeouts, Transport, body::Body, watch::Watch},
    openai_compatible::Profile,
};

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
        let known = LOCAL.iter().filter_map(|name| Profile::named(name));
        known.map(|profile| Self::new(profile.name, profile.base_url)).collect()
    }
}

/// Profiles of the servers that are looked for.
const LOCAL: [&str; 3] = ["ollama", "lmstudio", "llamacpp"];

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

#[cfg(test)]
mod tests {
    use archon_testkit::{MockResponse, MockServer};
    use serde_json::json;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn servers_that_answer_with_models_are_found() {
        let list = json!({"object": "list", "data": [{"id": "qwen3"}, {"id": "gemma3"}]});
        let running = MockServer::start([MockResponse::json(200, &list)]).await;
        let other = MockServer::start([MockResponse::new(200).chunk("<html>a router</html>")]).await;
        let failing = MockServer::start([MockResponse::json(500, &list)]).await;
        let gone = MockServer::start([]).await.url();
        let mut servers = vec![LocalServer::new("ollama", format!("{gone}/v1"))];
        for server in [&running, &other, &failing] {
            servers.push(LocalServer::new("lmstudio", format!("{}/v1", server.url())));
        }
        let expected = servers[1].clone();
        let found = find_local_servers(servers, PATIENCE).await;
        let models = vec!["qwen3".to_owned(), "gemma3".to_owned()];
        assert_eq!(found, [FoundServer { server: expected, models }]);
        assert_eq!(running.requests()[0].path, "/v1/models");
        assert_eq!(running.requests()[0].method, "GET");
    }

    #[tokio::test]
    async fn a_server_that_hangs_is_given_up() {
        let server = MockServer::start([MockResponse::new(200).hang()]).await;
        let servers = vec![LocalServer::new("ollama", server.url())];
        assert_eq!(find_local_servers(servers, Duration::from_millis(50)).await, []);
        server.until_gone(1).await;
    }

    #[test]
    fn the_default_ports_are_those_of_the_profiles() {
        let urls: Vec<_> = LocalServer::defaults().into_iter().map(|s| s.base_url).collect();
        let ports = ["11434", "1234", "8080"].map(|port| format!("http://127.0.0.1:{port}/v1"));
        assert_eq!(urls, ports);
    }
}
