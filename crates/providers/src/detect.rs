//! Finds servers that run models on this machine, by requests to their default ports.

use std::time::Duration;

use archon_types::CancellationToken;
use futures_util::future::join_all;
use serde::Deserialize;

use crate::{
    http::{
        HttpOptions, Timeouts, Transport,
        body::{Body, BodyError},
        watch::Watch,
    },
    profile::Profile,
};

/// A server on this machine that may run models: its profile and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalServer {
    /// The name of the server's [`Profile`](crate::Profile), for instance `ollama`.
    pub profile: &'static str,
    /// The address without `/models`, for instance `http://127.0.0.1:11434/v1`.
    pub base_url: String,
}

impl LocalServer {
    /// Creates the description of a server from its profile and its address. Nothing is started or contacted.
    pub fn new(profile: &'static str, base_url: impl Into<String>) -> Self {
        Self { profile, base_url: base_url.into() }
    }

    /// Returns Ollama, LM Studio and llama.cpp's server on their default ports.
    pub fn defaults() -> Vec<Self> {
        let known = LOCAL.iter().filter_map(|name| Profile::named(name));
        known.map(|profile| Self::new(profile.name, profile.base_url)).collect()
    }
}

/// The profiles of servers on this machine.
const LOCAL: [&str; 3] = ["ollama", "lmstudio", "llamacpp"];

/// A server's answer to the request for its models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerAnswer {
    /// The names of the server's models, in the server's order.
    Models(Vec<String>),
    /// The server did not answer completely in time: it may be busy, for instance with loading a model.
    Late,
    /// No server listens at the address, or the answer is not a list of models.
    Absent,
}

/// Asks all servers at the same time for the names of their models, with this `timeout` for each request.
/// Returns each server with its answer, in the given order.
///
/// A port without a server refuses the connection at once, so only a slow server takes the full time. A
/// caller that cannot wait long can use a short timeout and ask the servers with [`ServerAnswer::Late`]
/// again.
///
/// ```
/// use std::time::Duration;
///
/// use archon_providers::{LocalServer, ServerAnswer, ask_local_servers};
///
/// # async fn example() {
/// for (server, answer) in ask_local_servers(LocalServer::defaults(), Duration::from_millis(300)).await {
///     if let ServerAnswer::Models(models) = answer {
///         println!("{}: {}", server.profile, models.join(", "));
///     }
/// }
/// # }
/// ```
pub async fn ask_local_servers(
    servers: Vec<LocalServer>,
    timeout: Duration,
) -> Vec<(LocalServer, ServerAnswer)> {
    let asked = servers.into_iter().map(async |server| {
        let answer = ask(&server, timeout).await;
        (server, answer)
    });
    join_all(asked).await
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

async fn ask(server: &LocalServer, timeout: Duration) -> ServerAnswer {
    use ServerAnswer::{Absent, Late, Models};
    let timeouts = Timeouts { connect: timeout, first_byte: timeout, idle: timeout, total: Some(timeout) };
    let options = HttpOptions::default().with_timeouts(timeouts);
    let Ok(transport) = Transport::new(&server.base_url, "/models", options) else { return Absent };
    let Ok(sent) = transport.send(transport.get()) else { return Absent };
    let response = match tokio::time::timeout(timeout, sent).await {
        Ok(Ok(response)) if response.status().is_success() => response,
        Ok(Err(e)) if e.is_timeout() => return Late,
        Ok(_) => return Absent,
        Err(_) => return Late,
    };
    let (text, end) = Body::new(response, Watch::new(CancellationToken::new(), timeouts)).text().await;
    match (end, serde_json::from_str::<ModelList>(&text)) {
        (Ok(()), Ok(list)) => Models(list.data.into_iter().map(|model| model.id).collect()),
        (Err(BodyError::Interrupted(_)), _) => Late,
        _ => Absent,
    }
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
        let answers = ask_local_servers(servers.clone(), PATIENCE).await;
        let (asked, answers): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
        let models = ServerAnswer::Models(vec!["qwen3".to_owned(), "gemma3".to_owned()]);
        let absent = ServerAnswer::Absent;
        assert_eq!((asked, answers), (servers, vec![absent.clone(), models, absent.clone(), absent]));
        assert_eq!(running.requests()[0].path, "/v1/models");
        assert_eq!(running.requests()[0].method, "GET");
    }

    #[tokio::test]
    async fn ask_local_servers_tells_a_hanging_server_from_an_absent_one() {
        for hangs in [MockResponse::new(200).hang(), MockResponse::new(200).chunk("{\"data\":").hang()] {
            let server = MockServer::start([hangs]).await;
            let gone = MockServer::start([]).await.url();
            let servers = vec![LocalServer::new("ollama", server.url()), LocalServer::new("lmstudio", gone)];
            let short = Duration::from_millis(50);
            let answers = ask_local_servers(servers, short).await;
            let answers: Vec<_> = answers.into_iter().map(|(_, answer)| answer).collect();
            assert_eq!(answers, [ServerAnswer::Late, ServerAnswer::Absent]);
            server.until_gone(1).await;
        }
    }

    #[test]
    fn the_default_ports_are_those_of_the_profiles() {
        let urls: Vec<_> = LocalServer::defaults().into_iter().map(|s| s.base_url).collect();
        let ports = ["11434", "1234", "8080"].map(|port| format!("http://127.0.0.1:{port}/v1"));
        assert_eq!(urls, ports);
    }
}
