//! POST requests of channels.

use std::{pin::pin, sync::Arc, time::Duration};

use archon_types::{Clock, Json};
use reqwest::{Client, RequestBuilder, StatusCode, Url, redirect};

/// The number of times that a request is sent.
const TRIES: u32 = 4;

/// The pause before the second try. It grows fourfold with each further try.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest time for one try.
const LIMIT: Duration = Duration::from_secs(30);

/// An address that gets JSON.
pub(crate) struct Poster {
    client: Client,
    url: Url,
    clock: Arc<dyn Clock>,
}

impl Poster {
    /// Creates a poster for an https address, or an http address of this machine.
    pub(crate) fn new(url: &str, clock: Arc<dyn Clock>) -> Result<Self, String> {
        // The address may hold a key, so errors come without it.
        let url: Url = url.parse().map_err(|error| format!("its address is no URL: {error}"))?;
        let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if url.scheme() != "https" && !(url.scheme() == "http" && is_here) {
            return Err("its address must begin with https://, or name this machine".to_owned());
        }
        let client = Client::builder().redirect(redirect::Policy::none()).connect_timeout(LIMIT).build();
        let client = client.map_err(|error| format!("there is no web client: {}", error.without_url()))?;
        Ok(Self { client, url, clock })
    }

    /// Returns the current time in whole seconds since the Unix epoch.
    pub(crate) fn seconds(&self) -> u64 {
        self.clock.now().as_millis() / 1000
    }

    /// Sends JSON until the service takes it: again after a failed connection and the statuses 408, 429 and 5xx.
    pub(crate) async fn send(
        &self,
        body: &Json,
        with: impl Fn(RequestBuilder) -> RequestBuilder + Send + Sync,
    ) -> Result<(), String> {
        let body = body.to_string();
        let mut pause = PAUSE;
        for number in 1.. {
            let problem = match self.send_once(&body, &with).await {
                Ok(()) => return Ok(()),
                Err(Failure::Final(problem)) => return Err(problem),
                Err(Failure::Passing(problem)) => problem,
            };
            if number == TRIES {
                return Err(format!("{problem}, {TRIES} times"));
            }
            tracing::debug!("a notification is sent again: {problem}");
            self.clock.sleep_until(self.clock.now() + pause).await;
            pause *= 4;
        }
        Ok(())
    }

    async fn send_once(
        &self,
        body: &str,
        with: &(impl Fn(RequestBuilder) -> RequestBuilder + Sync),
    ) -> Result<(), Failure> {
        let request = self.client.post(self.url.clone()).header("content-type", "application/json");
        let request = with(request.body(body.to_owned()));
        let mut sent = pin!(async {
            let answer = request.send().await.map_err(|error| {
                Failure::Passing(format!("the service cannot be reached: {}", error.without_url()))
            })?;
            let status = answer.status();
            if status.is_success() {
                return Ok(());
            }
            // The answer is not repeated: a service may echo the address or a header.
            let problem = format!("the service answered with status {}", status.as_u16());
            let is_passing = status.is_server_error()
                || status == StatusCode::TOO_MANY_REQUESTS
                || status == StatusCode::REQUEST_TIMEOUT;
            Err(if is_passing { Failure::Passing(problem) } else { Failure::Final(problem) })
        });
        let deadline = self.clock.now() + LIMIT;
        let in_time = self.clock.before(deadline, |task| sent.as_mut().poll(task)).await;
        in_time.unwrap_or_else(|| {
            Err(Failure::Passing(format!("the service did not answer within {} s", LIMIT.as_secs())))
        })
    }
}

/// The reason why a try failed.
enum Failure {
    /// A later try may succeed.
    Passing(String),
    /// The service refused the request.
    Final(String),
}
