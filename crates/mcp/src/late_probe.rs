//! A transport that keeps a handshake alive when the server's first answer is late.
//!
//! The library begins with the probe `server/discover`. After 10 s without an answer it sends `initialize`, and
//! it fails when the answer to the probe comes before the answer to `initialize`. A server that is downloaded
//! when it is started is often that slow. This transport hides a late answer from the library: an error is
//! dropped, since the answer to `initialize` follows, and a result is passed on as the answer to `initialize`.

use std::{
    future::{Ready, ready},
    mem,
};

use futures_util::future::Either;
use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, InitializeResult, JsonRpcMessage,
        ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    transport::Transport,
};

/// A transport that passes all messages on unchanged, unless the server answers the probe too late.
pub(crate) struct LateProbe<T> {
    inner: T,
    /// True if `initialize` waits for the answer to the probe.
    holds_back: bool,
    probe: Probe,
    /// The message `initialize` while it waits for the answer to the probe.
    held: Option<ClientJsonRpcMessage>,
}

/// The state of the probe.
enum Probe {
    /// No answer to a probe is awaited.
    Settled,
    /// The probe with this id has no answer yet.
    Sent(RequestId),
    /// `initialize` came before the answer to the probe.
    Late { probe: RequestId, initialize: RequestId },
    /// The answer to the probe was passed on as the answer to `initialize`.
    Used,
}

impl<T> LateProbe<T> {
    /// Wraps a transport. If `holds_back` is true, `initialize` is not sent until the server has answered the
    /// probe with an error. This is for a transport that switches to the older revisions as soon as
    /// `initialize` is sent. Otherwise `initialize` is sent at once, because some servers never answer the
    /// probe.
    pub(crate) fn new(inner: T, holds_back: bool) -> Self {
        Self { inner, holds_back, probe: Probe::Settled, held: None }
    }

    /// Updates the state for a message of the handshake. Returns the message if it must be sent now.
    fn outgoing(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        let request = match &message {
            JsonRpcMessage::Request(request) => request,
            JsonRpcMessage::Notification(sent)
                if matches!(self.probe, Probe::Used)
                    && matches!(sent.notification, ClientNotification::InitializedNotification(_)) =>
            {
                // The newest revision has no such message.
                return None;
            }
            _ => return Some(message),
        };
        let id = request.id.clone();
        match &request.request {
            ClientRequest::DiscoverRequest(_) => self.probe = Probe::Sent(id),
            ClientRequest::InitializeRequest(_) => {
                if let Probe::Sent(probe) = mem::replace(&mut self.probe, Probe::Settled) {
                    self.probe = Probe::Late { probe, initialize: id };
                    if self.holds_back {
                        self.held = Some(message);
                        return None;
                    }
                }
            }
            _ => {}
        }
        Some(message)
    }

    /// Ends the wait for the probe's answer if a message answers `initialize`.
    fn settle(&mut self, message: &ServerJsonRpcMessage) {
        let JsonRpcMessage::Response(response) = message else { return };
        if matches!(&self.probe, Probe::Late { initialize, .. } if *initialize == response.id) {
            self.probe = Probe::Settled;
        }
    }

    /// Returns whether a message answers the probe.
    fn answers_probe(&self, message: &ServerJsonRpcMessage) -> bool {
        let (Probe::Sent(probe) | Probe::Late { probe, .. }) = &self.probe else { return false };
        // Some servers send the number of a request back as a text, and an error may have no id.
        let is_it = |id: &RequestId| id.to_string() == probe.to_string();
        match message {
            JsonRpcMessage::Response(response) => is_it(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().is_none_or(is_it),
            _ => false,
        }
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for LateProbe<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match self.outgoing(item) {
            Some(item) => Either::Left(self.inner.send(item)),
            None => {
                let done: Ready<Result<(), T::Error>> = ready(Ok(()));
                Either::Right(done)
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            if !self.answers_probe(&message) {
                self.settle(&message);
                return Some(message);
            }
            let Probe::Late { initialize, .. } = mem::replace(&mut self.probe, Probe::Settled) else {
                return Some(message);
            };
            if let Some(answer) = as_initialized(message, initialize) {
                self.probe = Probe::Used;
                self.held = None;
                return Some(answer);
            }
            if let Some(held) = self.held.take() {
                self.inner.send(held).await.ok()?;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// Converts the result of the probe to the answer to the request `initialize` with this id. Returns `None` if
/// the message is not a result of the probe, or if the server does not know the newest revision.
fn as_initialized(message: ServerJsonRpcMessage, id: RequestId) -> Option<ServerJsonRpcMessage> {
    let (ServerResult::DiscoverResult(found), _) = message.into_response()? else { return None };
    if !found.supported_versions.contains(&ProtocolVersion::LATEST) {
        return None;
    }
    let result = InitializeResult::new(found.capabilities).with_protocol_version(ProtocolVersion::LATEST);
    Some(JsonRpcMessage::response(ServerResult::InitializeResult(result), id))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::time::Duration;

    use archon_types::{CancellationToken, Json};
    use rmcp::{
        model::{ListToolsRequest, PaginatedRequestParams},
        transport::async_rw::AsyncRwTransport,
    };
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

    use super::*;
    use crate::{connection::lifecycle, handler::Handler, handshake::Shake};

    /// Reads nothing for the time `delay`, and then answers as a server of this kind. Returns the methods of
    /// the received requests.
    async fn serve(far: DuplexStream, kind: &'static str, delay: Duration) -> Vec<String> {
        let (read, mut write) = tokio::io::split(far);
        tokio::time::sleep(delay).await;
        let (mut lines, mut methods) = (BufReader::new(read).lines(), Vec::new());
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Json = serde_json::from_str(&line).unwrap();
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            let (part, value) = match (&*method, kind) {
                ("server/discover", "stateless") => (
                    "result",
                    json!({
                        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                        "cacheScope": "private", "capabilities": { "tools": {} },
                    }),
                ),
                ("initialize", "legacy" | "mute") => (
                    "result",
                    json!({
                        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                        "serverInfo": { "name": "fake", "version": "1" },
                    }),
                ),
                // Each request of the newest revision names it.
                ("tools/list", kind) if (kind == "stateless") == line.contains("2026-07-28") => {
                    ("result", json!({ "tools": [] }))
                }
                _ => ("error", json!({ "code": -32601, "message": "no such method" })),
            };
            let is_mute = kind == "mute" && method == "server/discover";
            if !is_mute && !message["id"].is_null() {
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], part: value });
                write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            }
            methods.push(method);
        }
        methods
    }

    /// Connects to a server of this kind and lists its tools. Returns the revision, and the methods that the
    /// server received.
    async fn connect(kind: &'static str, delay: u64, holds_back: bool) -> (ProtocolVersion, Vec<String>) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let serving = tokio::spawn(serve(far, kind, Duration::from_secs(delay)));
        let (read, write) = tokio::io::split(near);
        let shake =
            Shake { handler: Handler::new(false), lifecycle: lifecycle(0), end: CancellationToken::new() };
        let service = shake.over(AsyncRwTransport::new_client(read, write), holds_back).await.unwrap();
        let version = service.peer().peer_info().unwrap().protocol_version.clone();
        let list = ListToolsRequest::with_param(PaginatedRequestParams::default());
        service.peer().send_request(ClientRequest::ListToolsRequest(list)).await.unwrap();
        service.cancel().await.unwrap();
        (version, serving.await.unwrap())
    }

    // spec: MC-03
    #[tokio::test(start_paused = true)]
    async fn handshake_with_a_server_of_an_older_revision_succeeds_however_late_it_answers() {
        for (kind, delay, holds_back) in [
            ("legacy", 0, false),
            ("legacy", 11, false),
            ("legacy", 29, false),
            ("legacy", 11, true),
            ("mute", 0, false),
            ("mute", 11, false),
        ] {
            let (version, methods) = connect(kind, delay, holds_back).await;
            assert_eq!(version, ProtocolVersion::V_2025_11_25, "{kind} {delay}");
            let expected = "server/discover initialize notifications/initialized tools/list";
            assert_eq!(methods.join(" "), expected, "{kind} {delay}");
        }
    }

    // spec: MC-03
    #[tokio::test(start_paused = true)]
    async fn handshake_with_a_server_of_the_newest_revision_succeeds_however_late_it_answers() {
        for (delay, holds_back, expected) in [
            (0, false, "server/discover tools/list"),
            (11, false, "server/discover initialize tools/list"),
            (29, false, "server/discover initialize tools/list"),
            (11, true, "server/discover tools/list"),
        ] {
            let (version, methods) = connect("stateless", delay, holds_back).await;
            assert_eq!(version, ProtocolVersion::LATEST, "{delay}");
            assert_eq!(methods.join(" "), expected, "{delay}");
        }
    }
}
