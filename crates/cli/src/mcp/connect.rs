//! The servers of a command: started together when a tool of theirs is first needed, closed at the command's
//! end.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use archon::{
    SystemClock,
    mcp::{
        FirstUse, McpError, McpOptions, McpServer, McpServers, Pins, ServerState, ServerStatus, SignInBy,
        TokenStore, model_name,
    },
    store::InMemoryCredentials,
    types::CredentialStore,
};

use super::{
    entry::all,
    is_meant,
    pins::Folders,
    standing::{Standing, TIMEOUT, failed, late, unreadable_pins, warning},
};
use crate::{
    app::App,
    command_line::in_data_dir,
    credentials,
    failure::Failure,
    servers::{Entry, LeftOut, Running, Tools},
    text::one_line,
};

/// The time that a command waits for a server beyond the server's timeouts, so that the error of the server's
/// own timeout comes first.
const MARGIN: Duration = Duration::from_secs(5);

/// Returns the tools of all servers that are known now, and writes warnings about servers that are left out.
/// Starts the servers at the first call, and does not wait for them: [`close`] reports those that failed.
pub(crate) async fn tools(app: &App) -> Tools {
    let running = running(app);
    running.is_used.store(true, Ordering::Relaxed);
    if let Some(e) = &running.unreadable {
        app.output.warn(format!("{}: its servers are not used; {}", e.what(), e.advice_line()));
    }
    for (entry, standing) in running.standings() {
        if let Standing::LeftOut(_) = standing {
            warn(app, &entry, &standing);
        }
    }
    running.current_tools()
}

/// Returns the known tools of all servers. Waits, as [`settle`], if one of the names is not known. `SERVER__*` is
/// known if a tool of the server is.
pub(crate) async fn named(app: &App, names: &[&str]) -> Tools {
    let known = tools(app).await;
    let is_known = |name: &&&str| known.iter().any(|tool| is_meant(name, &tool.spec().name));
    let unknown: Vec<&str> = names.iter().filter(|name| !is_known(name)).copied().collect();
    if unknown.is_empty() {
        return known;
    }
    settle(app, &unknown).await;
    running(app).current_tools()
}

/// Waits for the servers of these tools until 2 s after the start of the servers. If a name has no server in it, waits
/// for all servers.
pub(crate) async fn settle(app: &App, tools: &[&str]) {
    let servers: Option<Vec<&str>> = tools.iter().map(|tool| Some(tool.split_once("__")?.0)).collect();
    match servers {
        Some(servers) => wait_for(app, &servers).await,
        None => settle_all(app).await,
    }
}

/// Waits for all servers until 2 s after their start.
pub(crate) async fn settle_all(app: &App) {
    let all: Vec<&str> = running(app).entries.iter().map(|(entry, _)| entry.name.as_str()).collect();
    wait_for(app, &all).await;
}

async fn wait_for(app: &App, servers: &[&str]) {
    let running = running(app);
    let limit = TIMEOUT.saturating_sub(running.started.map_or(TIMEOUT, |started| started.elapsed()));
    let settled = running.locked().as_ref().map(|started| started.settled(servers, limit));
    if let Some(settled) = settled {
        app.output.wait("connecting MCP servers");
        settled.await;
        app.output.stop_waiting();
    }
}

/// Returns all servers with their standings. Starts the servers at the first call, and waits for them at most 2 s.
///
/// # Errors
/// The second value is the problem with the project's file, if it cannot be read.
pub(crate) async fn survey(app: &App) -> (Vec<(Entry, Standing)>, Option<Failure>) {
    settle_all(app).await;
    let running = running(app);
    (running.standings(), running.unreadable.clone())
}

/// Removes the tools that connected servers changed or do not offer any more: a session keeps them, but their calls
/// are refused.
pub(crate) fn retain_callable(app: &App, tools: &mut Tools) {
    let standings = app.mcp.0.get().map(Running::standings).unwrap_or_default();
    for (_, standing) in standings {
        if let Standing::Connected(status) = standing {
            retain_offered(&status, tools);
        }
    }
}

fn retain_offered(status: &ServerStatus, tools: &mut Tools) {
    if status.state == ServerState::Ready {
        let of_server = format!("{}__", status.name);
        tools.retain(|tool| {
            let name = &tool.spec().name;
            // `SERVER__*` stands for a server that had not answered yet.
            !name.starts_with(&of_server) || name.ends_with('*') || status.tools.contains(name)
        });
    }
}

/// Returns the reason why a tool of a server is missing; `None` if the tool's name belongs to no server.
pub(crate) fn missing(app: &App, tool: &str) -> Option<Failure> {
    let of_server = |(entry, _): &(Entry, Standing)| {
        tool.strip_prefix(&entry.name).is_some_and(|rest| rest.starts_with("__"))
    };
    let (entry, standing) = app.mcp.0.get()?.standings().into_iter().find(of_server)?;
    let name = &entry.name;
    let test = format!("test the server: {}", in_data_dir(app, &format!("archon mcp test {name}")));
    let status = match standing {
        Standing::LeftOut(left_out) => return Some(left_out.failure(app, &entry)),
        Standing::Connected(status) => status,
    };
    if let Some(held) = status.held.iter().find(|held| model_name(name, &held.tool) == tool) {
        let command = in_data_dir(app, &format!("archon mcp approve {name}"));
        let to_approve = || {
            Failure::usage(
                format!("{tool} is held back: {}", held.reason()),
                format!("show the difference and approve the tool: {command}"),
            )
        };
        return Some(unreadable_pins(app, &entry, &status.held).unwrap_or_else(to_approve));
    }
    Some(match status.state {
        ServerState::Ready => {
            Failure::usage(format!("the MCP server '{name}' has no tool for {tool:?}"), test)
        }
        ServerState::Down(error) => failed(app, &error),
        _ => Failure::failed(format!("{}, so {tool} is not known", late(name, TIMEOUT)), test),
    })
}

/// Closes the servers and waits for the ends of their processes. Before that, writes a note about each server that
/// was pinned for the first time, and warnings about servers that could not be used, if an agent was given the
/// tools.
pub(crate) async fn close(app: &App) {
    let Some(running) = app.mcp.0.get() else { return };
    if running.is_used.load(Ordering::Relaxed) {
        for (entry, standing) in running.standings() {
            let Standing::Connected(status) = &standing else { continue };
            // A server that had little time to start is no problem.
            let had_time = running.started.is_some_and(|started| started.elapsed() >= TIMEOUT);
            if had_time || status.state != ServerState::Connecting {
                warn(app, &entry, &standing);
            }
        }
    }
    let pins = Folders::of(app, running.entries.iter().map(|(entry, _)| entry));
    running.first.iter().for_each(|name| note_first_use(app, &pins, name));
    let servers = running.locked().take();
    if let Some(servers) = servers {
        servers.close().await;
    }
}

fn warn(app: &App, entry: &Entry, standing: &Standing) {
    if let Some(warning) = warning(app, entry, standing) {
        app.output.warn(warning);
    }
}

/// Returns true if the server has no pins, so that its first tools will be trusted unseen.
fn is_first_use(pins: &Folders, name: &str, server: &McpServer) -> bool {
    server.first_use != Some(FirstUse::HoldBack) && matches!(pins.read(name), Ok(None))
}

/// Writes a note about a server that this command uses for the first time, if the server was pinned.
fn note_first_use(app: &App, pins: &Folders, name: &str) {
    if let Ok(Some(pinned)) = pins.read(name) {
        let count = pinned.tools.len();
        app.output.note_once(format!(
            "MCP server '{name}': its {count} tools are trusted unseen and pinned; a change will be held back"
        ));
    }
}

/// Starts one server and waits until it is connected or has failed, at most for its timeouts. Writes a note if the
/// server was pinned for the first time.
///
/// # Errors
/// [`Failure`] if the server is not used, or if it failed.
pub(crate) async fn alone(app: &App, entry: &Entry) -> Result<(McpServers, ServerStatus, Tools), Failure> {
    let server = entry.server(app).map_err(|left_out| left_out.failure(app, entry))?;
    let limit = server.timeouts.initialize + server.timeouts.list + MARGIN;
    let (name, pins) = (&entry.name, || Folders::of(app, std::iter::once(entry)));
    let is_first = is_first_use(&pins(), name, &server);
    app.output.wait(name);
    let servers = launch(app, vec![(name.clone(), server)], pins(), false).map_err(|e| failed(app, &e))?;
    let mut tools = servers.tools(limit).await;
    app.output.stop_waiting();
    let status = servers.status().pop();
    match status {
        Some(status) if status.state == ServerState::Ready => {
            retain_offered(&status, &mut tools);
            if is_first {
                note_first_use(app, &pins(), name);
            }
            Ok((servers, status, tools))
        }
        status => {
            servers.close().await;
            Err(match status.map(|status| status.state) {
                Some(ServerState::Down(e)) => failed(app, &e),
                _ => Failure::failed(late(name, limit), "start its command by hand and read its output"),
            })
        }
    }
}

/// Returns the server of an entry, and the options with the store of its tokens.
///
/// # Errors
/// [`Failure`] if the server is not used, or the store cannot be opened.
#[cfg(feature = "mcp-sign-in")]
pub(crate) fn sign_in(app: &App, entry: &Entry) -> Result<(McpServer, McpOptions), Failure> {
    let server = entry.server(app).map_err(|left_out| left_out.failure(app, entry))?;
    let store = credentials::open(&app.data_dir, &app.sources)?;
    let pins = Folders::of(app, std::iter::once(entry));
    let options = McpOptions::new(Arc::new(SystemClock), Arc::new(pins));
    Ok((server, options.with_tokens(TokenStore::new(store, credentials::owner()))))
}

fn running(app: &App) -> &Running {
    app.mcp.0.get_or_init(|| start(app))
}

fn start(app: &App) -> Running {
    let (entries, unreadable) = all(app);
    let mut usable: Vec<(String, McpServer)> = Vec::new();
    let mut judged = Vec::new();
    for entry in entries {
        let left_out = match entry.server(app) {
            Ok(server) => {
                usable.push((entry.name.clone(), server));
                None
            }
            Err(left_out) => Some(left_out),
        };
        judged.push((entry, left_out));
    }
    let mut running = Running { entries: judged, unreadable, ..Running::default() };
    if usable.is_empty() {
        return running;
    }
    let pins = Folders::of(app, running.entries.iter().map(|(entry, _)| entry));
    let is_first = |(name, server): &&(String, McpServer)| is_first_use(&pins, name, server);
    running.first = usable.iter().filter(is_first).map(|(name, _)| name.clone()).collect();
    match launch(app, usable, pins, app.output.asks) {
        Ok(servers) => {
            running.servers = Mutex::new(Some(servers));
            running.started = Some(Instant::now());
        }
        Err(e) => app.output.warn(one_line(&e.to_string(), usize::MAX)),
    }
    running
}

/// Starts servers. `asks` is true if a person at the terminal answers at once, so that servers may ask during
/// a call.
fn launch(
    app: &App,
    servers: Vec<(String, McpServer)>,
    pins: Folders,
    asks: bool,
) -> Result<McpServers, McpError> {
    let options = McpOptions::new(Arc::new(SystemClock), Arc::new(pins));
    let mut options = if asks { options.with_questions_during_calls() } else { options };
    let is_person = |(_, server): &(String, McpServer)| {
        server.sign_in.as_ref().is_some_and(|sign_in| sign_in.by == SignInBy::Person)
    };
    let store = match credentials::open_store(&app.data_dir, &app.sources) {
        // Without a store, the error of such a server would be the missing store, and not the missing login.
        Ok(None) if cfg!(feature = "mcp-sign-in") && servers.iter().any(is_person) => {
            let empty: Arc<dyn CredentialStore> = Arc::new(InMemoryCredentials::new(Arc::new(SystemClock)));
            Some(empty)
        }
        Ok(store) => store,
        Err(e) => {
            app.output.warn(e.line());
            None
        }
    };
    if let Some(store) = store {
        options = options.with_tokens(TokenStore::new(store, credentials::owner()));
    }
    McpServers::start(servers, &options)
}

impl Running {
    fn locked(&self) -> MutexGuard<'_, Option<McpServers>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current_tools(&self) -> Tools {
        self.locked().as_ref().map(McpServers::current_tools).unwrap_or_default()
    }

    fn standings(&self) -> Vec<(Entry, Standing)> {
        let servers = self.locked();
        let mut statuses = servers.as_ref().map(McpServers::status).unwrap_or_default();
        let standing = |(entry, left_out): &(Entry, Option<LeftOut>)| {
            let standing = match left_out {
                Some(left_out) => Standing::LeftOut(left_out.clone()),
                None => {
                    let at = statuses.iter().position(|status| status.name == entry.name)?;
                    Standing::Connected(statuses.swap_remove(at))
                }
            };
            Some((entry.clone(), standing))
        };
        self.entries.iter().filter_map(standing).collect()
    }
}

/// Describes the servers for `archon doctor`: for each server true if it can be used, and a line about it.
pub(crate) async fn findings(app: &App) -> Vec<(bool, String)> {
    let (standings, unreadable) = survey(app).await;
    let unreadable = unreadable.map(|e| (false, e.line()));
    let line = |(entry, standing): &(Entry, Standing)| {
        let (ok, line) = standing.line(app, entry);
        (ok, format!("{}: {line}", entry.name))
    };
    standings.iter().map(line).chain(unreadable).collect()
}
