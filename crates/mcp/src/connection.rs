//! One connection to a server, from its start to its end. Each phase has a time limit, and nothing outlives it.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon_process::KeptProcess;
use archon_types::{BoxFuture, CancellationToken, Clock, Json, ProcessGroup};
use futures_util::future::{Either, select};
use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ListToolsRequest,
        PaginatedRequestParams, ProtocolVersion, ServerResult,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RequestHandle, RunningService,
        serve_client_with_lifecycle_and_ct,
    },
    transport::{DynamicTransportError, async_rw::AsyncRwTransport},
};
use tokio::sync::Mutex;

use crate::{
    Definition, McpError, McpProblem, McpServer, Phase, Transport,
    handler::{Handler, OnProgress},
    stdio::{self, Tail},
    text::plain,
};

/// Most pages of a list of tools.
const PAGES: usize = 100;
/// Most tools of a server.
const TOOLS: usize = 2_000;
/// Characters of a server's error message that are passed on.
const MESSAGE: usize = 2_000;
/// Longest time to tell a server that a call was given up.
const TELL: Duration = Duration::from_secs(1);

/// A connected server. Dropping it kills the server's processes.
pub(crate) struct Connection {
    name: String,
    limits: crate::Timeouts,
    clock: Arc<dyn Clock>,
    peer: Peer<RoleClient>,
    handler: Handler,
    group: Option<ProcessGroup>,
    far: Mutex<FarEnd>,
    /// Ends the connection.
    end: CancellationToken,
    /// Fires when the connection has ended, for whatever reason.
    ended: CancellationToken,
    calls: AtomicUsize,
}

impl Connection {
    /// Starts the server and shakes hands, unless `end` fires before. Then, as after a failure, its processes are
    /// ended first.
    pub(crate) async fn open(
        name: &str,
        server: &McpServer,
        clock: Arc<dyn Clock>,
        lifecycle: ClientLifecycleMode,
        end: CancellationToken,
    ) -> Result<Self, McpError> {
        let handler = Handler::default();
        let mut link = Link::new(server, handler.clone(), lifecycle, end.clone())
            .map_err(|problem| McpError::new(name, Phase::Start, problem))?;
        let limit = server.timeouts.initialize;
        let shaken = within(&*clock, limit, &mut link.handshake).await;
        let shaken =
            shaken.map_or(Err(McpProblem::Timeout(limit)), |shaken| shaken.map_err(initialize_problem));
        let service = match shaken {
            Ok(service) => service,
            Err(problem) => {
                // Its end of the pipes is closed first, so that the server can end by itself.
                drop(link.handshake);
                let problem = link.far.explained(problem, &*clock).await;
                link.far.end(server.timeouts.close, &*clock).await;
                let output = link.far.errors.text();
                return Err(McpError::new(name, Phase::Initialize, problem).with_output(output));
            }
        };
        let (peer, ended) = (service.peer().clone(), CancellationToken::new());
        let tell = ended.clone().drop_guard();
        tokio::spawn(async move {
            let _ = service.waiting().await;
            drop(tell);
        });
        Ok(Self {
            name: name.to_owned(),
            limits: server.timeouts,
            clock,
            peer,
            handler,
            group: link.far.process.as_ref().map(|process| process.group().clone()),
            far: Mutex::new(link.far),
            end,
            ended,
            calls: AtomicUsize::new(0),
        })
    }

    /// Lists the tools, all pages.
    pub(crate) async fn list(&self) -> Result<Vec<Definition>, McpError> {
        let listed = within(&*self.clock, self.limits.list, Box::pin(self.pages())).await;
        match listed.unwrap_or(Err(McpProblem::Timeout(self.limits.list))) {
            Ok(definitions) => Ok(definitions),
            Err(problem) => Err(self.failed(Phase::List, problem).await),
        }
    }

    async fn pages(&self) -> Result<Vec<Definition>, McpProblem> {
        let (mut definitions, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES {
            let request = ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
            let answer = self.peer.send_request(ClientRequest::ListToolsRequest(request)).await;
            let page = match answer.map_err(service_problem)? {
                ServerResult::ListToolsResult(page) => page,
                _ => return Err(McpProblem::Protocol("the answer is no list of tools".to_owned())),
            };
            definitions.extend(page.tools.iter().map(Definition::new));
            if definitions.len() > TOOLS {
                return Err(McpProblem::Protocol(format!("it offers more than {TOOLS} tools")));
            }
            match page.next_cursor.filter(|next| !next.is_empty()) {
                Some(next) => cursor = Some(next),
                None => return Ok(definitions),
            }
        }
        Err(McpProblem::Protocol(format!("its list of tools has more than {PAGES} pages")))
    }

    /// Calls a tool. If this is dropped, the server is told that the answer is not wanted any more.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Json,
        on_progress: OnProgress,
    ) -> Result<CallToolResult, McpError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let _counted = Counted(&self.calls);
        let answer =
            within(&*self.clock, self.limits.call, Box::pin(self.answer(tool, arguments, on_progress)));
        match answer.await.unwrap_or(Err(McpProblem::Timeout(self.limits.call))) {
            Ok(result) => Ok(result),
            Err(problem) => Err(self.failed(Phase::Call, problem).await),
        }
    }

    async fn answer(
        &self,
        tool: &str,
        arguments: Json,
        on_progress: OnProgress,
    ) -> Result<CallToolResult, McpProblem> {
        let mut parameters = CallToolRequestParams::new(tool.to_owned());
        if let Json::Object(fields) = arguments {
            parameters = parameters.with_arguments(fields);
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        let options = PeerRequestOptions::no_options();
        let handle = self.peer.send_request_with_option(request, options).await.map_err(service_problem)?;
        let _listening = self.handler.listen(handle.progress_token.clone(), on_progress);
        let mut pending = Pending(Some(handle));
        let Some(handle) = &mut pending.0 else { return Err(McpProblem::ConnectionClosed(None)) };
        let answer = match select(&mut handle.rx, pin!(self.ended.cancelled())).await {
            Either::Left((answer, _)) => answer.unwrap_or(Err(ServiceError::TransportClosed)),
            Either::Right(_) => Err(ServiceError::TransportClosed),
        };
        pending.0 = None;
        match answer.map_err(service_problem)? {
            ServerResult::CallToolResult(result) => Ok(result),
            ServerResult::EmptyResult(_) => Ok(CallToolResult::default()),
            ServerResult::InputRequiredResult(_) => Err(McpProblem::Protocol(
                "it asks for input during the call, which we did not offer".to_owned(),
            )),
            _ => Err(McpProblem::Protocol("the answer is no result of a tool".to_owned())),
        }
    }

    /// Returns the group of the server's processes, if it is a process of ours.
    pub(crate) fn group(&self) -> Option<&ProcessGroup> {
        self.group.as_ref()
    }

    /// Returns whether calls are under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    /// Waits until the server reports that its tools changed.
    pub(crate) async fn changed(&self) {
        self.handler.changed().await;
    }

    /// Waits until the connection has ended.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns the failure of a connection that ended by itself.
    pub(crate) async fn loss(&self) -> McpError {
        self.failed(Phase::Call, McpProblem::ConnectionClosed(None)).await
    }

    /// Ends the connection and all processes of the server. Takes at most a few times the limit
    /// [`close`](crate::Timeouts::close).
    pub(crate) async fn close(&self) {
        self.end.cancel();
        if !self.far.lock().await.end(self.limits.close, &*self.clock).await {
            tracing::error!(target: "archon::mcp", server = %self.name, "processes of a server are left");
        }
    }

    async fn failed(&self, phase: Phase, problem: McpProblem) -> McpError {
        let is_answer = matches!(problem, McpProblem::JsonRpc { .. });
        let mut far = self.far.lock().await;
        let problem = far.explained(problem, &*self.clock).await;
        let output = if is_answer { None } else { far.errors.text() };
        McpError::new(&self.name, phase, problem).with_output(output)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// A call under way; counts down when it ends, in whatever way.
struct Counted<'c>(&'c AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request without an answer. When it is dropped, the server is told that the answer is not wanted.
struct Pending(Option<RequestHandle<RoleClient>>);

impl Drop for Pending {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            // A server that reads nothing would let this wait for ever.
            runtime.spawn(tokio::time::timeout(TELL, handle.cancel(Some("given up".to_owned()))));
        }
    }
}

/// Returns the handshake for a server that failed so often in a row: the newest revision, and the older ones if
/// the server does not know it. Every second attempt begins with the older ones, because some servers end when
/// their first message is another one than they know.
pub(crate) fn lifecycle(failures: u32) -> ClientLifecycleMode {
    match failures % 2 {
        0 => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        _ => ClientLifecycleMode::Initialize,
    }
}

/// Waits for a result, at most `limit`.
pub(crate) async fn within<T>(
    clock: &dyn Clock,
    limit: Duration,
    work: impl Future<Output = T> + Unpin,
) -> Option<T> {
    match select(work, clock.sleep_until(clock.now() + limit)).await {
        Either::Left((result, _)) => Some(result),
        Either::Right(_) => None,
    }
}

/// A way to a server, with the handshake that opens it.
struct Link {
    handshake: BoxFuture<'static, Result<RunningService<RoleClient, Handler>, ClientInitializeError>>,
    far: FarEnd,
}

impl Link {
    fn new(
        server: &McpServer,
        handler: Handler,
        lifecycle: ClientLifecycleMode,
        end: CancellationToken,
    ) -> Result<Self, McpProblem> {
        let stdio = match &server.transport {
            Transport::Stdio(stdio) => stdio,
            Transport::Http(http) => {
                let transport = crate::http::transport(http, server.max_message)?;
                let handshake =
                    Box::pin(serve_client_with_lifecycle_and_ct(handler, transport, lifecycle, end));
                return Ok(Self { handshake, far: FarEnd::default() });
            }
        };
        let running = stdio::start(stdio, server.max_message)
            .map_err(|e| McpProblem::Io(format!("its process cannot be started: {e}")))?;
        let is_too_long = running.output.is_too_long();
        let transport = AsyncRwTransport::new_client(running.output, running.input)
            .with_max_line_length(server.max_message);
        let handshake = Box::pin(serve_client_with_lifecycle_and_ct(handler, transport, lifecycle, end));
        let process = Some(running.process);
        Ok(Self { handshake, far: FarEnd { process, errors: running.errors, is_too_long, code: None } })
    }
}

/// The server behind a connection.
#[derive(Default)]
struct FarEnd {
    /// The process, if it is one of ours and was not ended yet.
    process: Option<KeptProcess>,
    errors: Tail,
    is_too_long: Arc<AtomicBool>,
    /// The exit code of a process that ended by itself.
    code: Option<i32>,
}

impl FarEnd {
    /// Adds why the connection was closed: a message that was too long, or the exit code of a server that ends
    /// soon.
    async fn explained(&mut self, problem: McpProblem, clock: &dyn Clock) -> McpProblem {
        const SOON: Duration = Duration::from_millis(200);
        match (problem, &mut self.process) {
            (McpProblem::ConnectionClosed(_), _) if self.is_too_long.load(Ordering::Relaxed) => {
                McpProblem::Protocol(
                    "it sent a message that is longer than its limit `max_message`".to_owned(),
                )
            }
            (McpProblem::ConnectionClosed(None), Some(process)) => {
                self.code = within(clock, SOON, Box::pin(process.exited())).await.flatten();
                McpProblem::ConnectionClosed(self.code)
            }
            (McpProblem::ConnectionClosed(None), None) => McpProblem::ConnectionClosed(self.code),
            (other, _) => other,
        }
    }

    /// Ends the server's processes; returns false if some are left.
    async fn end(&mut self, grace: Duration, clock: &dyn Clock) -> bool {
        match self.process.take() {
            Some(process) => process.end(grace, clock).await,
            None => true,
        }
    }
}

fn initialize_problem(error: ClientInitializeError) -> McpProblem {
    match error {
        _ if error.is_authorization_required() => McpProblem::SignIn,
        ClientInitializeError::ConnectionClosed(_) => McpProblem::ConnectionClosed(None),
        ClientInitializeError::JsonRpcError(error) => {
            McpProblem::JsonRpc { code: error.code.0, message: plain(&error.message, MESSAGE) }
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => initialize_problem(*fallback),
        ClientInitializeError::Cancelled => McpProblem::Closed,
        ClientInitializeError::TransportError { error, .. } => transport_problem(&error),
        other => McpProblem::Protocol(plain(&other.to_string(), MESSAGE)),
    }
}

fn service_problem(error: ServiceError) -> McpProblem {
    match error {
        _ if error.is_authorization_required() => McpProblem::SignIn,
        ServiceError::McpError(error) => {
            McpProblem::JsonRpc { code: error.code.0, message: plain(&error.message, MESSAGE) }
        }
        ServiceError::TransportClosed => McpProblem::ConnectionClosed(None),
        ServiceError::TransportSend(error) => transport_problem(&error),
        other => McpProblem::Protocol(plain(&other.to_string(), MESSAGE)),
    }
}

fn transport_problem(error: &DynamicTransportError) -> McpProblem {
    // A server that ended breaks the pipe.
    if error.error.downcast_ref::<std::io::Error>().is_some() {
        return McpProblem::ConnectionClosed(None);
    }
    let causes = std::iter::successors(error.error.source(), |cause| cause.source());
    let causes: String = causes.take(CAUSES).map(|cause| format!(": {cause}")).collect();
    McpProblem::Io(plain(&format!("{}{causes}", error.error), MESSAGE))
}

/// Most causes of an error that are shown.
const CAUSES: usize = 4;
