//! One connection to a server, from its start to its end. Each phase has a time limit, and no process of the
//! server outlives its connection.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon_process::ServerProcess;
use archon_types::{CancellationToken, Clock, ProcessGroup, Redactor};
use futures_util::future::{Either, select};
use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, GetPromptRequest,
        GetPromptRequestParams, GetPromptResult, InputRequiredResult, JsonObject, ListPromptsRequest,
        ListResourcesRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ReadResourceRequest,
        ReadResourceRequestParams, ReadResourceResult, RequestMetaObject, ServerResult,
    },
    service::{ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RequestHandle},
    transport::{DynamicTransportError, async_rw::AsyncRwTransport},
};
use tokio::sync::{Mutex, OnceCell};

use crate::{
    Definition, McpError, McpOptions, McpProblem, McpServer, Phase, SignInBy, Transport,
    handler::{Handler, OnProgress, OnQuestion},
    handshake::{Handshake, Shake},
    http::{self, Access},
    input,
    person_time::PersonTime,
    stdio::{self, Tail},
    text::{MESSAGE, plain, with_causes},
};

/// Maximum number of pages of one list of a server, for instance of its tools.
const PAGES: usize = 100;
/// Maximum number of tools, resources or prompts of a server.
const LISTED: usize = 2_000;
/// Maximum time to tell a server that a call was cancelled.
const TELL: Duration = Duration::from_secs(1);

/// A connected server. Dropping it kills the server's processes.
pub(crate) struct Connection {
    name: String,
    limits: crate::McpTimeouts,
    clock: Arc<dyn Clock>,
    /// Removes secrets from the texts of failures.
    redactor: Redactor,
    sign_in: Option<SignInBy>,
    peer: Peer<RoleClient>,
    handler: Handler,
    group: Option<ProcessGroup>,
    far: FarEnd,
    /// The connection ends when this token is cancelled.
    end: CancellationToken,
    /// This token is cancelled when the connection has ended, for whatever reason.
    ended: CancellationToken,
    calls: AtomicUsize,
}

impl Connection {
    /// Signs in, starts the server and performs the handshake. If that fails, or if `end` is cancelled before, the
    /// server's processes are ended first.
    pub(crate) async fn open(
        name: &str,
        settings: &McpServer,
        options: &McpOptions,
        redactor: &Redactor,
        lifecycle: ClientLifecycleMode,
        end: CancellationToken,
    ) -> Result<Self, McpError> {
        let (clock, limit) = (options.clock.clone(), settings.timeouts.initialize);
        let sign_in = http::sign_in(settings, options.tokens.as_ref(), redactor);
        let signed_in = tokio::select! {
            done = within(&*clock, limit, Box::pin(sign_in)) => {
                done.unwrap_or(Err(McpProblem::Timeout(limit)))
            }
            () = end.cancelled() => Err(McpProblem::Closed),
        };
        let access = signed_in.map_err(|problem| McpError::new(name, Phase::SignIn, problem))?;
        let handler = Handler::new(options.questions_during_calls);
        let shake = Shake { handler: handler.clone(), lifecycle, end: end.clone() };
        let mut link = Link::new(settings, access, shake)
            .map_err(|problem| McpError::new(name, Phase::Start, problem))?;
        let shaken = within(&*clock, limit, &mut link.handshake).await;
        let shaken =
            shaken.map_or(Err(McpProblem::Timeout(limit)), |shaken| shaken.map_err(initialize_problem));
        let service = match shaken {
            Ok(service) => service,
            Err(problem) => {
                // Its end of the pipes is closed first, so that the server can end by itself.
                drop(link.handshake);
                let problem = link.far.explained(problem, &*clock).await;
                link.far.end(settings.timeouts.close, &*clock).await;
                let output = link.far.errors.text();
                let (phase, problem) = of_sign_in(Phase::Initialize, problem, by(settings));
                return Err(McpError::new(name, phase, problem).with_output(output));
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
            limits: settings.timeouts,
            clock,
            redactor: redactor.clone(),
            sign_in: by(settings),
            peer,
            handler,
            group: link.far.process.get_mut().as_ref().map(|process| process.group().clone()),
            far: link.far,
            end,
            ended,
            calls: AtomicUsize::new(0),
        })
    }

    /// Lists the tools, all pages.
    pub(crate) async fn list(&self) -> Result<Vec<Definition>, McpError> {
        let request = |page| ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
        let pages = self.pages("tools", request, |answer| match answer {
            ServerResult::ListToolsResult(page) => Some((page.tools, page.next_cursor)),
            _ => None,
        });
        let listed = self.timed(Phase::List, self.limits.list, pages).await?;
        Ok(listed.iter().map(Definition::new).collect())
    }

    /// Lists the resources, all pages; none if the server offers no resources.
    pub(crate) async fn resources(&self) -> Result<Vec<rmcp::model::Resource>, McpError> {
        if !self.offers_resources() {
            return Ok(Vec::new());
        }
        let request = |page| ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page));
        let pages = self.pages("resources", request, |answer| match answer {
            ServerResult::ListResourcesResult(page) => Some((page.resources, page.next_cursor)),
            _ => None,
        });
        self.timed(Phase::Read, self.limits.call, pages).await
    }

    /// Lists the prompts, all pages; none if the server offers no prompts.
    pub(crate) async fn prompts(&self) -> Result<Vec<rmcp::model::Prompt>, McpError> {
        if self.peer.peer_info().is_none_or(|server| server.capabilities.prompts.is_none()) {
            return Ok(Vec::new());
        }
        let request = |page| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page));
        let pages = self.pages("prompts", request, |answer| match answer {
            ServerResult::ListPromptsResult(page) => Some((page.prompts, page.next_cursor)),
            _ => None,
        });
        self.timed(Phase::Read, self.limits.call, pages).await
    }

    /// Returns whether the server offers resources.
    pub(crate) fn offers_resources(&self) -> bool {
        self.peer.peer_info().is_some_and(|server| server.capabilities.resources.is_some())
    }

    /// Reads a resource.
    pub(crate) async fn read(&self, uri: &str) -> Result<ReadResourceResult, McpError> {
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        match self.read_answer(ClientRequest::ReadResourceRequest(request)).await? {
            ServerResult::ReadResourceResult(result) => Ok(result),
            other => Err(self.failed(Phase::Read, unexpected("a resource", &other)).await),
        }
    }

    /// Returns a prompt with its arguments filled in.
    pub(crate) async fn prompt(
        &self,
        name: &str,
        arguments: JsonObject,
    ) -> Result<GetPromptResult, McpError> {
        let parameters = GetPromptRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(parameters));
        match self.read_answer(request).await? {
            ServerResult::GetPromptResult(result) => Ok(result),
            other => Err(self.failed(Phase::Read, unexpected("a prompt", &other)).await),
        }
    }

    async fn read_answer(&self, request: ClientRequest) -> Result<ServerResult, McpError> {
        self.timed(Phase::Read, self.limits.call, self.exchange(request)).await
    }

    async fn pages<T>(
        &self,
        what: &str,
        request: impl Fn(PaginatedRequestParams) -> ClientRequest,
        page: impl Fn(ServerResult) -> Option<(Vec<T>, Option<String>)>,
    ) -> Result<Vec<T>, McpProblem> {
        let (mut listed, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES {
            let request = request(PaginatedRequestParams::default().with_cursor(cursor));
            let Some((items, next)) = page(self.exchange(request).await?) else {
                return Err(McpProblem::Protocol(format!("the server's answer is not a list of {what}")));
            };
            listed.extend(items);
            if listed.len() > LISTED {
                return Err(McpProblem::Protocol(format!("the server offers more than {LISTED} {what}")));
            }
            match next.filter(|next| !next.is_empty()) {
                Some(next) => cursor = Some(next),
                None => return Ok(listed),
            }
        }
        Err(McpProblem::Protocol(format!("the server's list of {what} has more than {PAGES} pages")))
    }

    /// Calls a tool. If the future is dropped, the server is told that the call is cancelled.
    pub(crate) async fn call(
        &self,
        call: CallToolRequestParams,
        way: CallWay<'_>,
    ) -> Result<Called, McpError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call));
        self.calls.fetch_add(1, Ordering::Relaxed);
        let _counted = Counted(&self.calls);
        let _talking = (!self.asks_in_results()).then(|| self.handler.talk(way.on_question));
        let mut options = PeerRequestOptions::no_options();
        if way.may_ask && self.asks_in_results() {
            let mut meta = RequestMetaObject::new();
            meta.set_client_capabilities(input::asking());
            options = options.with_meta(meta);
        }
        let answer = Box::pin(self.exchange_with(request, Some(way.on_progress), options));
        let done = self.without_waits(answer, way.person_time).await;
        match done.unwrap_or(Err(McpProblem::Timeout(self.limits.call))) {
            Ok(ServerResult::CallToolResult(result)) => Ok(Called::Done(result)),
            Ok(ServerResult::EmptyResult(_)) => Ok(Called::Done(CallToolResult::default())),
            Ok(ServerResult::InputRequiredResult(asked)) if way.may_ask || asks_nobody(&asked) => {
                Ok(Called::Asks(asked))
            }
            Ok(other) => Err(self.failed(Phase::Call, unexpected("a result of a tool", &other)).await),
            Err(problem) => Err(self.failed(Phase::Call, problem).await),
        }
    }

    /// Returns true if the server asks for input in the result of a call (since revision 2026-07-28); false
    /// if it asks while the call is open.
    fn asks_in_results(&self) -> bool {
        self.peer.peer_info().is_some_and(|server| !server.protocol_version.has_initialize())
    }

    /// Waits for the result of a call, at most for the time limit of calls. The time in which a person is
    /// asked does not count.
    async fn without_waits<T>(
        &self,
        mut work: impl Future<Output = T> + Unpin,
        person_time: &PersonTime,
    ) -> Option<T> {
        /// Shortest time between two checks of the time limit while a person is asked.
        const LOOK: Duration = Duration::from_millis(50);
        let began = self.clock.now();
        let mut left = self.limits.call;
        loop {
            if let Some(done) = within(&*self.clock, left, &mut work).await {
                return Some(done);
            }
            let now = self.clock.now();
            let spent = now.since(began).saturating_sub(person_time.total(now));
            left = self.limits.call.saturating_sub(spent);
            if left.is_zero() {
                return None;
            }
            left = left.max(LOOK);
        }
    }

    /// Sends a request and waits for its answer. If the future is dropped, the server is told that the
    /// request is cancelled.
    async fn exchange(&self, request: ClientRequest) -> Result<ServerResult, McpProblem> {
        self.exchange_with(request, None, PeerRequestOptions::no_options()).await
    }

    async fn exchange_with(
        &self,
        request: ClientRequest,
        on_progress: Option<OnProgress>,
        options: PeerRequestOptions,
    ) -> Result<ServerResult, McpProblem> {
        let handle = self.peer.send_request_with_option(request, options).await.map_err(service_problem)?;
        let _listening = on_progress.map(|on| self.handler.listen(handle.progress_token.clone(), on));
        let mut pending = Pending(Some(handle));
        let Some(handle) = &mut pending.0 else { return Err(McpProblem::ConnectionClosed(None)) };
        let answer = match select(&mut handle.rx, pin!(self.ended.cancelled())).await {
            Either::Left((answer, _)) => answer.unwrap_or(Err(ServiceError::TransportClosed)),
            Either::Right(_) => Err(ServiceError::TransportClosed),
        };
        pending.0 = None;
        answer.map_err(service_problem)
    }

    /// Does the work of a phase, at most for the time `limit`.
    async fn timed<T>(
        &self,
        phase: Phase,
        limit: Duration,
        work: impl Future<Output = Result<T, McpProblem>>,
    ) -> Result<T, McpError> {
        let done = within(&*self.clock, limit, Box::pin(work)).await;
        match done.unwrap_or(Err(McpProblem::Timeout(limit))) {
            Ok(done) => Ok(done),
            Err(problem) => Err(self.failed(phase, problem).await),
        }
    }

    /// Returns the process group of the server, if this program started the server.
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

    /// Ends the connection and all processes of the server. Tells a server at a web address that its session
    /// ends, and waits for that at most for the limit [`close`](crate::McpTimeouts::close). Takes at most a few
    /// times this limit.
    pub(crate) async fn close(&self) {
        self.end.cancel();
        if self.group.is_none() {
            // This program may end at once after the close, and with it the request that ends the session.
            within(&*self.clock, self.limits.close, Box::pin(self.ended())).await;
        }
        if !self.far.end(self.limits.close, &*self.clock).await {
            tracing::error!(target: "archon::mcp", server = %self.name, "processes of a server are left");
        }
    }

    async fn failed(&self, phase: Phase, problem: McpProblem) -> McpError {
        let is_answer = matches!(problem, McpProblem::JsonRpc { .. });
        let problem = self.far.explained(problem, &*self.clock).await;
        let output = if is_answer { None } else { self.far.errors.text() };
        let (phase, problem) = of_sign_in(phase, problem, self.sign_in);
        McpError::new(&self.name, phase, problem).with_output(output).cleaned(&self.redactor)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// Callbacks and settings of one call of a tool.
pub(crate) struct CallWay<'c> {
    pub(crate) on_progress: OnProgress,
    /// True if the call can wait for a person; the server is then told that it may ask for input in the
    /// result of the call.
    pub(crate) may_ask: bool,
    /// Answers a server that asks during the call.
    pub(crate) on_question: OnQuestion,
    /// Time that the call waits for a person.
    pub(crate) person_time: &'c PersonTime,
}

/// The answer to a call of a tool.
pub(crate) enum Called {
    /// The call is done.
    Done(CallToolResult),
    /// The server wants input, and then the same call again with the input.
    Asks(InputRequiredResult),
}

/// Returns true if the server wants the same call again, but requests no input from a person.
fn asks_nobody(asked: &InputRequiredResult) -> bool {
    asked.input_requests.as_ref().is_none_or(|requests| requests.is_empty())
}

/// A call under way; dropping the value subtracts the call from the number of calls under way.
struct Counted<'c>(&'c AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that the server has not answered. When this value is dropped, the server is told that the
/// request is cancelled.
struct Pending(Option<RequestHandle<RoleClient>>);

impl Drop for Pending {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            // A server that reads nothing would let this wait for ever.
            runtime.spawn(tokio::time::timeout(TELL, handle.cancel(Some("given up".to_owned()))));
        }
    }
}

/// Returns the kind of handshake for the next attempt, after this number of failures in a row. Usually it
/// begins with the newest revision, and uses the older ones if the server does not know that revision. Every
/// second attempt begins with the older revisions, because some servers exit if they do not know the first
/// message.
pub(crate) fn lifecycle(failures: u32) -> ClientLifecycleMode {
    match failures % 2 {
        0 => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        _ => ClientLifecycleMode::Initialize,
    }
}

/// Waits for a result, at most for the time `limit`; `None` if the time is over.
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

/// A transport to a server, with the handshake that opens the connection.
struct Link {
    handshake: Handshake,
    far: FarEnd,
}

impl Link {
    fn new(server: &McpServer, access: Option<Access>, shake: Shake) -> Result<Self, McpProblem> {
        let max_message = server.max_message;
        let stdio = match &server.transport {
            Transport::Stdio(stdio) => stdio,
            Transport::Http(_) if server.sandbox.is_some() => {
                let why = "the server is at a web address, but only a server that is started with a command \
                           can have a sandbox";
                return Err(McpProblem::Invalid(why.to_owned()));
            }
            Transport::Http(settings) => {
                let handshake = http::handshake(settings, max_message, access, shake)?;
                return Ok(Self { handshake, far: FarEnd::default() });
            }
        };
        let running = stdio::start(stdio, server.sandbox.as_ref(), max_message)?;
        let is_too_long = running.output.is_too_long();
        let transport =
            AsyncRwTransport::new_client(running.output, running.input).with_max_line_length(max_message);
        let handshake = shake.over(transport, false);
        let far = FarEnd {
            process: Mutex::new(Some(running.process)),
            errors: running.errors,
            is_too_long,
            code: OnceCell::new(),
        };
        Ok(Self { handshake, far })
    }
}

/// The server behind a connection.
#[derive(Default)]
struct FarEnd {
    /// The server's process, if this program started the process and has not ended it.
    process: Mutex<Option<ServerProcess>>,
    errors: Tail,
    is_too_long: Arc<AtomicBool>,
    /// The exit code of a process that ended by itself; empty until the first failure that needs the code.
    code: OnceCell<Option<i32>>,
}

impl FarEnd {
    /// Adds the reason why the connection was closed: a message that was too long, or the exit code of the
    /// server's process, if the process ends within 200 ms. All failures of a connection share these 200 ms.
    async fn explained(&self, problem: McpProblem, clock: &dyn Clock) -> McpProblem {
        match problem {
            McpProblem::ConnectionClosed(_) if self.is_too_long.load(Ordering::Relaxed) => {
                McpProblem::Protocol(
                    "the server sent a message that is longer than the limit `max_message`".to_owned(),
                )
            }
            McpProblem::ConnectionClosed(None) => {
                McpProblem::ConnectionClosed(*self.code.get_or_init(|| self.exit_code(clock)).await)
            }
            other => other,
        }
    }

    /// Waits at most 200 ms for the end of the process, and returns its exit code.
    async fn exit_code(&self, clock: &dyn Clock) -> Option<i32> {
        const SOON: Duration = Duration::from_millis(200);
        let mut process = self.process.lock().await;
        let exited = Box::pin(process.as_mut()?.exited());
        within(clock, SOON, exited).await.flatten()
    }

    /// Ends the server's processes. Returns `false` if some are left. `process` is not locked during that, so
    /// failures of calls do not have to wait.
    async fn end(&self, grace: Duration, clock: &dyn Clock) -> bool {
        let process = self.process.lock().await.take();
        match process {
            Some(process) => process.end(grace, clock).await,
            None => true,
        }
    }
}

/// Returns the problem for an answer of an unexpected kind; `wanted` describes the expected kind.
fn unexpected(wanted: &str, answer: &ServerResult) -> McpProblem {
    McpProblem::Protocol(match answer {
        ServerResult::InputRequiredResult(_) => {
            "the server asks for input, which this client does not offer".to_owned()
        }
        _ => format!("the server's answer is not {wanted}"),
    })
}

fn initialize_problem(error: ClientInitializeError) -> McpProblem {
    match error {
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
    http::sign_in_problem(&*error.error)
        .unwrap_or_else(|| McpProblem::Io(plain(&with_causes(&*error.error), MESSAGE)))
}

fn by(server: &McpServer) -> Option<SignInBy> {
    server.sign_in.as_ref().map(|sign_in| sign_in.by)
}

/// Returns the phase and the problem of a failure. If the server refused the sign-in, the problem depends
/// on the party that signs in.
fn of_sign_in(phase: Phase, problem: McpProblem, by: Option<SignInBy>) -> (Phase, McpProblem) {
    let problem = match (problem, by) {
        (McpProblem::SignIn, Some(SignInBy::Person)) => {
            McpProblem::LogIn("the server rejected the access token".to_owned())
        }
        (McpProblem::SignIn, Some(SignInBy::Program)) => {
            McpProblem::Invalid("the server does not accept the sign-in of this program".to_owned())
        }
        (McpProblem::Scope(scope), None | Some(SignInBy::Program)) => {
            McpProblem::Invalid(McpProblem::Scope(scope).to_string())
        }
        (problem @ (McpProblem::SignIn | McpProblem::LogIn(_) | McpProblem::Scope(_)), _) => problem,
        (problem, _) => return (phase, problem),
    };
    (Phase::SignIn, problem)
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use archon_testkit::{VirtualClock, drive};
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn fifty_calls_of_a_process_that_closed_its_output_and_lives_fail_after_one_wait() {
        let mut command = std::process::Command::new("sleep");
        command.arg("600");
        let process = ServerProcess::spawn(&command).unwrap();
        let far = FarEnd { process: Mutex::new(Some(process)), ..FarEnd::default() };
        let (clock, closed) = (VirtualClock::new(), || McpProblem::ConnectionClosed(None));
        let began = clock.now();
        let problems = drive(&clock, join_all((0..50).map(|_| far.explained(closed(), &clock))));
        assert!(problems.iter().all(|problem| matches!(problem, McpProblem::ConnectionClosed(None))));
        assert_eq!(clock.now().since(began), Duration::from_millis(200));
    }
}
