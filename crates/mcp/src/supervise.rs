//! One server over its life: connect, offer its tools, notice when it is gone, and try again later.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use archon_types::{CancellationToken, Redactor, Timestamp};
use futures_util::future::{Either, select};
use tokio::sync::watch;

use crate::{
    Definition, FirstUse, Held, McpError, McpOptions, McpProblem, McpServer, Phase, ServerPins,
    connection::{Connection, lifecycle, within},
    held::{Judged, hold_all, judge},
};

/// Duration of a connection from which it counts as a success: when it ends, the count of failures begins
/// again, so the next pause is the shortest one.
const STEADY: Duration = Duration::from_secs(60);

/// Maximum time that a call waits for a server that failed and is being connected again.
const RECONNECT_WAIT: Duration = Duration::from_secs(2);

/// Minimum time between two lists of tools, because a server may report changes without end.
const BETWEEN_LISTS: Duration = Duration::from_secs(1);

/// Maximum number of addresses of resources that are noted for a server.
const MOST_NAMED: usize = 10_000;

/// A configured server.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) settings: McpServer,
    pub(crate) identity: String,
    /// Removes the values of the server's variables and the tokens of its sign-in from the server's texts.
    pub(crate) redactor: Redactor,
    pub(crate) options: McpOptions,
    state: watch::Sender<State>,
    /// Locked while pins are read or written and the state is derived from them.
    judging: Mutex<()>,
    /// The addresses of resources that the server named.
    named: Mutex<BTreeSet<String>>,
}

/// The state of a server.
#[derive(Clone)]
pub(crate) enum State {
    /// The server is being connected; the failure of the last attempt, if there was one.
    Connecting(Option<McpError>),
    Ready(Arc<Ready>),
    Down {
        error: McpError,
        until: Timestamp,
    },
    Closed,
}

/// The time that the phases of a connection took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Took {
    /// Time from the start of the attempt, with its sign-in, to the end of the handshake.
    pub initialize: Duration,
    /// Time from the end of the handshake until the first list of tools was complete.
    pub list: Duration,
}

/// A connected server with its tools.
pub(crate) struct Ready {
    pub(crate) connection: Arc<Connection>,
    pub(crate) took: Took,
    /// The definitions of all tools that a model can use, also of those that are held back.
    definitions: Vec<Definition>,
    pub(crate) judged: Judged,
    /// Tools that no model can use, with the reasons.
    pub(crate) unusable: Vec<(String, String)>,
}

impl Server {
    pub(crate) fn new(name: String, settings: McpServer, options: McpOptions) -> Self {
        let redactor = settings.redactor();
        let (state, _) = watch::channel(State::Connecting(None));
        let identity = settings.identity();
        Self {
            name,
            settings,
            identity,
            redactor,
            options,
            state,
            judging: Mutex::new(()),
            named: Mutex::default(),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits until the server is not connecting any more.
    pub(crate) async fn settled(&self) -> State {
        let mut states = self.state.subscribe();
        match states.wait_for(|state| !matches!(state, State::Connecting(_))).await {
            Ok(state) => state.clone(),
            // The sender is in `self`, so it is there.
            Err(_) => State::Closed,
        }
    }

    /// Waits for the connection. A server that is down fails at once, and one that failed and is being connected
    /// again fails after 2 s, so that a model does not wait for a dead server in each call.
    pub(crate) async fn ready(&self) -> Result<Arc<Ready>, McpError> {
        let clock = &self.options.clock;
        let state = match self.state() {
            State::Connecting(Some(error)) => {
                let settled = within(&**clock, RECONNECT_WAIT, Box::pin(self.settled())).await;
                settled.unwrap_or_else(|| State::Down { error, until: clock.now() })
            }
            _ => self.settled().await,
        };
        match state {
            State::Ready(ready) => Ok(ready),
            State::Down { error, until } => {
                let retry_in = until.since(clock.now());
                Err(self.error(Phase::Call, McpProblem::NotConnected { retry_in, because: Box::new(error) }))
            }
            State::Connecting(_) | State::Closed => Err(self.error(Phase::Call, McpProblem::Closed)),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(*self.state.borrow(), State::Ready(_))
    }

    /// Remembers addresses of resources that the server named.
    pub(crate) fn names(&self, addresses: impl IntoIterator<Item = String>) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        for address in addresses {
            if named.len() < MOST_NAMED {
                named.insert(address);
            }
        }
    }

    /// Returns whether the server named this address, in a list of resources or in a result.
    pub(crate) fn has_named(&self, address: &str) -> bool {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).contains(address)
    }

    pub(crate) fn error(&self, phase: Phase, problem: McpProblem) -> McpError {
        McpError::new(&self.name, phase, problem)
    }

    /// Pins a definition that is held back with this hash, and offers the tool. Returns `false` if the
    /// server does not offer this definition now.
    pub(crate) fn approve(&self, tool: &str, hash: &str) -> Result<bool, crate::PinError> {
        let _judging = self.judging.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Ready(ready) = self.state() else { return Ok(false) };
        let is_it =
            |definition: &&Definition| definition.name == tool && definition.hash(&self.identity) == hash;
        let Some(definition) = ready.definitions.iter().find(is_it) else { return Ok(false) };
        let mut pins = self.options.pins.read(&self.name)?.unwrap_or_default();
        if pins.identity != self.identity {
            // Pins of another command say nothing about this one.
            pins = ServerPins { identity: self.identity.clone(), ..ServerPins::default() };
        }
        pins.add(definition, true);
        pins.resources = ready.connection.offers_resources();
        // A renamed tool leaves its old name behind, which the server must not give to another one.
        let is_offered = |name: &String| ready.definitions.iter().any(|definition| definition.name == *name);
        pins.tools.retain(|name, _| is_offered(name));
        self.options.pins.write(&self.name, &pins)?;
        let judged = judge(&self.name, &self.identity, &pins, &ready.definitions);
        let (connection, definitions) = (ready.connection.clone(), ready.definitions.clone());
        let unusable = ready.unusable.clone();
        self.publish(Ready { connection, took: ready.took, definitions, judged, unusable });
        Ok(true)
    }

    /// Compares the tools of a connection with the pins, and offers the tools that were agreed to.
    fn offer(&self, connection: Arc<Connection>, took: Took, listed: Vec<Definition>) {
        let _judging = self.judging.lock().unwrap_or_else(PoisonError::into_inner);
        let (definitions, unusable) = usable(listed);
        let first_use = self.settings.first_use.unwrap_or(self.options.first_use);
        let resources = connection.offers_resources();
        let judged = match (self.options.pins.read(&self.name), first_use) {
            (Ok(Some(mut pins)), _) => {
                if pins.identity == self.identity && pins.resources != resources {
                    pins.resources = resources;
                    if let Err(e) = self.options.pins.write(&self.name, &pins) {
                        tracing::warn!(target: "archon::mcp", "{e}");
                    }
                }
                judge(&self.name, &self.identity, &pins, &definitions)
            }
            (Ok(None), FirstUse::Trust) => {
                let mut pins = ServerPins::first(&self.identity, &definitions);
                pins.resources = resources;
                tracing::warn!(
                    target: "archon::mcp", server = %self.name, tools = definitions.len(),
                    "the first tools of this server are trusted unseen, and pinned"
                );
                match self.options.pins.write(&self.name, &pins) {
                    Ok(()) => judge(&self.name, &self.identity, &pins, &definitions),
                    Err(e) => hold_all(&self.name, &self.identity, &e.to_string(), &definitions),
                }
            }
            (Ok(None), FirstUse::HoldBack) => {
                let pins = ServerPins { identity: self.identity.clone(), ..ServerPins::default() };
                judge(&self.name, &self.identity, &pins, &definitions)
            }
            (Err(e), _) => hold_all(&self.name, &self.identity, &e.to_string(), &definitions),
        };
        self.warn_of(&judged.held);
        self.publish(Ready { connection, took, definitions, judged, unusable });
    }

    /// Logs the tools that are held back, except for those that were held back before this list.
    fn warn_of(&self, held: &[Held]) {
        let before = self.state();
        let known: BTreeSet<(&str, &str)> = match &before {
            State::Ready(ready) => ready.judged.held.iter().map(|held| (&*held.tool, &*held.hash)).collect(),
            _ => BTreeSet::new(),
        };
        for held in held.iter().filter(|held| !known.contains(&(&*held.tool, &*held.hash))) {
            tracing::warn!(target: "archon::mcp", server = %self.name, tool = %held.tool, "held back: {}", held.reason());
        }
    }

    fn publish(&self, ready: Ready) {
        self.state.send_replace(State::Ready(Arc::new(ready)));
    }
}

/// Separates the tools that a model can use from the others.
fn usable(listed: Vec<Definition>) -> (Vec<Definition>, Vec<(String, String)>) {
    let (mut names, mut definitions, mut unusable) = (BTreeSet::new(), Vec::new(), Vec::new());
    for definition in listed {
        let problem = match names.insert(definition.name.clone()) {
            true => definition.problem(),
            false => Some("the server lists this name twice".to_owned()),
        };
        match problem {
            Some(why) => unusable.push((crate::text::one_line(&definition.name, 100), why)),
            None => definitions.push(definition),
        }
    }
    (definitions, unusable)
}

/// Keeps a server connected until `end` is cancelled, then ends its processes.
pub(crate) async fn supervise(server: Arc<Server>, end: CancellationToken) {
    let mut failures: u32 = 0;
    let mut last = None;
    while !end.is_cancelled() {
        server.state.send_replace(State::Connecting(last.take()));
        let clock = &server.options.clock;
        let began = clock.now();
        let error = match connect(&server, failures, &end).await {
            Err(error) => error,
            Ok((connection, took)) => {
                let lost = unless(&end, watch(&server, &connection, took)).await;
                if let Some(error) = &lost {
                    // Calls fail at once, and do not wait for the end of the processes.
                    server.down(error.clone(), clock.now() + server.options.first_retry);
                }
                connection.close().await;
                let Some(error) = lost else { break };
                if clock.now().since(began) >= STEADY {
                    failures = 0;
                }
                error
            }
        };
        if end.is_cancelled() {
            break;
        }
        failures = failures.saturating_add(1);
        tracing::warn!(target: "archon::mcp", "{error}");
        let until = clock.now() + pause(&server.options, failures);
        server.down(error.clone(), until);
        last = Some(error);
        unless(&end, clock.sleep_until(until)).await;
    }
    server.state.send_replace(State::Closed);
}

impl Server {
    fn down(&self, error: McpError, until: Timestamp) {
        self.state.send_replace(State::Down { error, until });
    }
}

/// Returns the pause after this number of failures in a row. The pause doubles each time, up to the
/// maximum.
fn pause(options: &McpOptions, failures: u32) -> Duration {
    let doubled = options.first_retry.saturating_mul(1 << (failures - 1).min(16));
    doubled.min(options.longest_retry)
}

async fn connect(
    server: &Arc<Server>,
    failures: u32,
    end: &CancellationToken,
) -> Result<(Arc<Connection>, Took), McpError> {
    let clock = &server.options.clock;
    let Server { name, settings, options, redactor, .. } = &**server;
    let open = |failures| {
        Connection::open(name, settings, options, redactor, lifecycle(failures), end.child_token())
    };
    let began = clock.now();
    let connection = match open(failures).await {
        // It may be one that ends at a first message of the newest revision. So a short program gets its tools, too.
        Err(error) if failures == 0 && matches!(error.problem, McpProblem::ConnectionClosed(_)) => {
            open(1).await
        }
        opened => opened,
    };
    let connection = connection.map_err(|error| error.cleaned(&server.redactor))?;
    let (connection, opened) = (Arc::new(connection), clock.now());
    let closed = || Err(server.error(Phase::List, McpProblem::Closed));
    match unless(end, connection.list()).await.unwrap_or_else(closed) {
        Ok(listed) => {
            let took = Took { initialize: opened.since(began), list: clock.now().since(opened) };
            server.offer(connection.clone(), took, listed);
            Ok((connection, took))
        }
        Err(error) => {
            connection.close().await;
            Err(error)
        }
    }
}

/// Watches a connection until it fails, and returns the failure. Requests the list of tools again when the
/// server reports a change, and from time to time to check that the server answers.
async fn watch(server: &Server, connection: &Arc<Connection>, took: Took) -> McpError {
    let clock = &server.options.clock;
    let mut next_list = clock.now();
    loop {
        let mut due = clock.sleep_until(clock.now() + server.options.check_every);
        let pause = clock.sleep_until(next_list);
        // Changes during the pause are one change after it.
        let changed = async {
            pause.await;
            connection.changed().await;
        };
        tokio::select! {
            () = connection.ended() => return connection.loss().await,
            () = changed => {}
            () = &mut due => if connection.is_busy() {
                continue;
            }
        }
        match connection.list().await {
            Ok(listed) => server.offer(connection.clone(), took, listed),
            // A server that does one thing at a time answers after the calls.
            Err(error) if connection.is_busy() && matches!(error.problem, McpProblem::Timeout(_)) => {}
            Err(error) => return error,
        }
        next_list = clock.now() + BETWEEN_LISTS;
    }
}

/// Does the work; `None` if `end` is cancelled before the work is done.
async fn unless<T>(end: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    match select(std::pin::pin!(work), std::pin::pin!(end.cancelled())).await {
        Either::Left((result, _)) => Some(result),
        Either::Right(_) => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use archon_testkit::{VirtualClock, drive, poll_until_idle};
    use archon_types::Clock as _;

    use super::*;
    use crate::InMemoryPins;

    #[test]
    fn call_of_a_failed_server_that_is_being_connected_again_fails_after_two_seconds() {
        let clock = VirtualClock::new();
        let began = clock.now();
        let options = McpOptions::new(Arc::new(clock.clone()), Arc::new(InMemoryPins::default()));
        let server = Server::new("fake".to_owned(), McpServer::stdio("fake", ["silent"]), options);
        let error = server.error(Phase::Initialize, McpProblem::Timeout(Duration::from_secs(30)));
        server.state.send_replace(State::Connecting(Some(error)));
        let failed = drive(&clock, server.ready()).err().unwrap();
        assert_eq!(clock.now().since(began), RECONNECT_WAIT);
        assert!(
            failed.to_string().contains(
                "the server is not connected, and the next attempt is under way; the last attempt failed in \
                 the phase handshake: the server did not answer within 30 s"
            ),
            "{failed}"
        );
    }

    #[test]
    fn call_of_a_server_at_its_first_connection_waits_for_the_connection() {
        let clock = VirtualClock::new();
        let options = McpOptions::new(Arc::new(clock.clone()), Arc::new(InMemoryPins::default()));
        let server = Server::new("fake".to_owned(), McpServer::stdio("fake", ["silent"]), options);
        let mut call = Box::pin(server.ready());
        assert!(poll_until_idle(&mut call).is_none());
        assert_eq!(clock.next_deadline(), None);
    }
}
