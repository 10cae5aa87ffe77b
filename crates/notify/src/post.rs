//! POST requests of channels.

use std::{pin::pin, sync::Arc, time::Duration};

use archon_types::{Clock, Ids, Json, RetryConfig};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{HeaderMap, RETRY_AFTER},
    redirect,
};

use crate::error::ChannelError;

/// The longest time for one try.
const LIMIT: Duration = Duration::from_secs(30);

/// The longest pause that a service can ask for. A longer one is cut to it, so that a notification does not wait for hours.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The most bytes of an answer that is read.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// An address that gets JSON.
pub(crate) struct Poster {
    client: Client,
    url: Url,
    clock: Arc<dyn Clock>,
    retries: RetryConfig,
}

impl Poster {
    /// Creates a poster of a channel for an https address, or an http address of this machine.
    pub(crate) fn new(channel: &str, url: &str, clock: Arc<dyn Clock>) -> Result<Self, ChannelError> {
        // The address may hold a key, so errors come without it.
        let wrong = |problem: String| ChannelError::Address { channel: channel.to_owned(), problem };
        let url: Url = url
            .parse()
            .map_err(|error| wrong(format!("its address is no URL: {error}; write https://HOST/PATH")))?;
        let is_here = url.host_str().is_some_and(archon_types::is_this_machine);
        match url.scheme() {
            "https" if cfg!(feature = "tls") => {}
            "https" => {
                let text = "its address begins with https://, which needs the cargo feature `tls`; it is off in \
                            this build";
                return Err(wrong(text.to_owned()));
            }
            "http" if is_here => {}
            _ => return Err(wrong("its address must begin with https://, or name this machine".to_owned())),
        }
        let client = Client::builder().redirect(redirect::Policy::none()).connect_timeout(LIMIT).build();
        let client = client.map_err(|error| ChannelError::Client {
            channel: channel.to_owned(),
            problem: error.without_url().to_string(),
        })?;
        let mut retries = RetryConfig::default();
        retries.backoff_multiplier = 4.0;
        Ok(Self { client, url, clock, retries })
    }

    /// Returns the current time in whole seconds since the Unix epoch.
    pub(crate) fn seconds(&self) -> u64 {
        self.clock.now().as_millis() / 1000
    }

    /// Sends JSON until the service takes it: again after a failed connection and the statuses 408, 429 and 5xx. The pause is
    /// that of the retries, or the longer one that the service asks for. `with` adds the headers of each try.
    pub(crate) async fn send(
        &self,
        body: &str,
        with: impl Fn(RequestBuilder) -> RequestBuilder + Send + Sync,
    ) -> Result<(), String> {
        let mut retry = 0;
        loop {
            let (problem, asked) = match self.send_once(body, &with, None).await {
                Ok(_) => return Ok(()),
                Err(Failure::Final(problem)) => return Err(problem),
                Err(Failure::Passing(problem, asked)) => (problem, asked),
            };
            if retry == self.retries.max_retries {
                return Err(format!("{problem}, {} times", retry + 1));
            }
            tracing::debug!("a notification is sent again: {problem}");
            let now = self.clock.now();
            let jitter = RetryConfig::draw_jitter(&Seed(format!("{}/{body}", now.as_millis())));
            let pause = self.retries.delay_for_attempt(retry, jitter).max(asked.min(LONGEST_PAUSE));
            self.clock.sleep_until(now + pause).await;
            retry += 1;
        }
    }

    /// Sends JSON once, and returns the JSON of the answer, which may have at most [`MOST_BYTES`].
    pub(crate) async fn fetch(&self, body: &str) -> Result<Json, String> {
        let plain = |request| request;
        let answer = self.send_once(body, &plain, Some(MOST_BYTES)).await;
        let answer = answer.map_err(|failure| match failure {
            Failure::Final(problem) | Failure::Passing(problem, _) => problem,
        })?;
        serde_json::from_slice(&answer)
            .map_err(|error| format!("the service did not answer with JSON: {error}"))
    }

    /// Sends JSON once. Returns the answer with up to `most` bytes; nothing of it without `most`.
    async fn send_once(
        &self,
        body: &str,
        with: &(impl Fn(RequestBuilder) -> RequestBuilder + Sync),
        most: Option<usize>,
    ) -> Result<Vec<u8>, Failure> {
        let request = self.client.post(self.url.clone()).header("content-type", "application/json");
        let request = with(request.body(body.to_owned()));
        let mut sent = pin!(async {
            let answer = request.send().await.map_err(|error| {
                Failure::transient(format!("the service cannot be reached: {}", error.without_url()))
            })?;
            let status = answer.status();
            if status.is_success() {
                return read(answer, most).await;
            }
            // The answer is not repeated: a service may echo the address or a header.
            let problem = format!("the service answered with status {}", status.as_u16());
            let is_passing = status.is_server_error()
                || status == StatusCode::TOO_MANY_REQUESTS
                || status == StatusCode::REQUEST_TIMEOUT;
            let asked = pause_in(answer.headers());
            Err(if is_passing { Failure::Passing(problem, asked) } else { Failure::Final(problem) })
        });
        let deadline = self.clock.now() + LIMIT;
        let in_time = self.clock.before(deadline, |task| sent.as_mut().poll(task)).await;
        in_time.unwrap_or_else(|| {
            Err(Failure::transient(format!("the service did not answer within {} s", LIMIT.as_secs())))
        })
    }
}

/// Reads a body of up to `most` bytes; nothing for `None`.
async fn read(mut answer: Response, most: Option<usize>) -> Result<Vec<u8>, Failure> {
    let (mut bytes, Some(most)) = (Vec::new(), most) else { return Ok(Vec::new()) };
    let broken = |error: reqwest::Error| {
        Failure::transient(format!("the answer of the service broke off: {}", error.without_url()))
    };
    while let Some(part) = answer.chunk().await.map_err(broken)? {
        if bytes.len() + part.len() > most {
            return Err(Failure::Final("the answer of the service is too large".to_owned()));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// The reason why a try failed.
enum Failure {
    /// A later try may succeed, after the pause that the service asks for.
    Passing(String, Duration),
    /// The service refused the request.
    Final(String),
}

impl Failure {
    fn transient(problem: String) -> Self {
        Self::Passing(problem, Duration::ZERO)
    }
}

/// Returns the pause in `Retry-After`, which Slack and Telegram give in seconds; zero for none, or for a date.
fn pause_in(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// The seed of a jitter: a time and a body, so that notifications of the same time are not sent again at once.
struct Seed(String);

impl Ids for Seed {
    fn fresh(&self, prefix: &str) -> String {
        format!("{prefix}_{}", self.0)
    }
}
