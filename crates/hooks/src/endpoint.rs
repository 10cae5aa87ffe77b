//! Sends an event to the endpoint of a hook.

use std::{pin::pin, time::Duration};

use archon_types::{Clock, Timestamp};
use reqwest::{
    Client, Url,
    header::{CONTENT_TYPE, HeaderMap},
    redirect,
};

use crate::answer::{MOST_BYTES, Output};

/// A bound on connecting, below which the deadline of the hook counts.
const CONNECT: Duration = Duration::from_secs(30);

/// Makes the client of all endpoints of one program. It follows no redirect, because an event is for one address.
pub(crate) fn client() -> Result<Client, String> {
    let client = Client::builder().redirect(redirect::Policy::none()).connect_timeout(CONNECT);
    // A proxy would see what is meant for this machine.
    client.no_proxy().build().map_err(|e| format!("cannot make an HTTP client: {}", chain(&e)))
}

/// Posts the event. Returns `None` if there was no whole answer before the deadline.
///
/// # Errors
/// The endpoint cannot be reached, or answers with a status other than 2xx.
pub(crate) async fn post(
    client: &Client,
    url: &Url,
    headers: &HeaderMap,
    (input, deadline): (Vec<u8>, Timestamp),
    clock: &dyn Clock,
) -> Result<Option<Output>, String> {
    let mut answered = pin!(async {
        let request =
            client.post(url.clone()).headers(headers.clone()).header(CONTENT_TYPE, "application/json");
        // The address may hold a key, so errors come without it.
        let sent = request.body(input).send().await;
        let mut response = sent.map_err(|e| format!("cannot be reached: {}", chain(&e.without_url())))?;
        if !response.status().is_success() {
            return Err(format!("answered with status {}", response.status().as_u16()));
        }
        let mut body = Vec::new();
        let broken = |e: reqwest::Error| format!("broke off its answer: {}", chain(&e.without_url()));
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            body.extend_from_slice(&piece);
            if body.len() > MOST_BYTES {
                break;
            }
        }
        Ok(Output { code: Some(0), stdout: body, stderr: Vec::new() })
    });
    clock.before(deadline, |task| answered.as_mut().poll(task)).await.transpose()
}

/// Returns an error with its causes.
fn chain(e: &dyn std::error::Error) -> String {
    let mut text = e.to_string();
    let mut cause = e.source();
    while let Some(e) = cause {
        text = format!("{text}: {e}");
        cause = e.source();
    }
    text
}
