//! `archon serve`: serves runs over HTTP, to programs and browsers.

mod agents;
mod by_log;
mod by_token;
mod listen;
#[cfg(all(unix, feature = "mcp-serve"))]
mod mcp;
mod models;
mod own_folder;
mod tasks;
mod tls;
mod tokens;
mod unfinished;

use std::{
    io::{self, IsTerminal as _},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use archon::{
    Runs, SystemClock,
    server::{RequestLog, ServeOptions, Server, ServerOptions, axum::Router},
    types::Collection,
};
use serde_json::json;

use self::{
    agents::Agents,
    listen::{Bound, Place},
    tasks::{SettledTasks, Tasks},
    tokens::Tokens,
};
use super::{MemoryFlags, RecordedFlags};
use crate::{
    app::App,
    config::{ServeSettings, Settings},
    exit::Exit,
    failure::Failure,
    interrupt,
};

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    listen: ListenFlags,
    /// An agent of the settings that clients may start, besides the default one; may be given again
    /// [default: all of them]
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// Offer tools that change nothing and the agents also to MCP clients, at /mcp
    #[arg(long)]
    mcp: bool,
    #[command(flatten)]
    flags: RecordedFlags,
    #[command(flatten)]
    memory: MemoryFlags,
}

/// Flags of the place at which a server listens.
#[derive(Debug, clap::Args)]
pub(crate) struct ListenFlags {
    /// Listen at this address [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "socket")]
    listen: Option<SocketAddr>,
    /// Listen at this Unix socket, in place of an address
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// A name by which clients reach the server, as agents.example; may be given again
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// A proxy with TLS is before the server, so that it may listen beyond this machine
    #[arg(long)]
    behind_proxy: bool,
    /// A PEM file with the certificate of the server, which may then listen beyond this machine
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// A PEM file with the private key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// The agents that a server offers.
pub(crate) enum Offered {
    /// The agents of the settings. The default agent has a memory with this collection.
    Settings(Option<Collection>),
    /// The agents of an assistant's folder.
    #[cfg(all(feature = "skills", feature = "triggers"))]
    Assistant(crate::assistant::Folder),
}

/// The file in the data folder that records the write requests of the access tokens.
const REQUESTS: &str = "requests.jsonl";
/// The maximum time for the runs to stop at their next await point when the server ends.
const STOP: Duration = Duration::from_secs(2);

impl ServeArgs {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = self.flags.settings();
        self.memory.vectors.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let mut settings = self.listen.over(app.config.settings.serve.clone().unwrap_or_default());
        if !self.agents.is_empty() {
            settings.agents = Some(self.agents);
        }
        settings.mcp |= self.mcp;
        let collection = match (self.memory.memory, &settings.memory) {
            (Some(collection), _) => Some(collection),
            (None, Some(name)) => {
                Some(name.parse::<Collection>().map_err(|e| Failure::from(e).at("[serve] memory"))?)
            }
            (None, None) => None,
        };
        serve(app, settings, Offered::Settings(collection)).await
    }
}

impl ListenFlags {
    /// Returns these settings, in which the flags replace the values that they set. `--host` adds names.
    pub(crate) fn over(&self, mut settings: ServeSettings) -> ServeSettings {
        if self.listen.is_some() || self.socket.is_some() {
            (settings.listen, settings.socket) = (self.listen, self.socket.clone());
        }
        settings.hosts.extend(self.hosts.iter().cloned());
        settings.behind_proxy |= self.behind_proxy;
        if self.tls_cert.is_some() {
            (settings.tls_cert, settings.tls_key) = (self.tls_cert.clone(), self.tls_key.clone());
        }
        settings
    }
}

/// Serves runs of these agents until the process is told to end.
///
/// # Errors
/// [`Failure`] if a setting or an agent cannot be used, or the server ends by an error.
pub(crate) async fn serve(app: &App, settings: ServeSettings, offered: Offered) -> Result<Exit, Failure> {
    if app.ask_later {
        let what = "--ask-later has no effect on a server, whose questions always wait for an answer";
        return Err(Failure::usage(what, "leave the flag out"));
    }
    // Nobody is asked at the terminal: questions wait for an answer over HTTP, or by `archon approvals`.
    let app = App { ask_later: true, ..app.clone() };
    let place = Place::of(&settings)?;
    let tokens = Tokens::of(&settings)?;
    let agents = Agents::build(&app, &settings, offered, &tokens).await?;
    let runs = agents.runs(&app)?;
    let tasks = SettledTasks::read(&app)?;
    let tls = tls::identity(&settings)?;
    // The links of questions need the address.
    let bound = place.bind().await?;
    let tasks = tasks.open(&app, &runs, agents.task_parts(), bound.url(&settings).as_deref())?;
    agents.settle_tasks(&app, &tasks).await?;
    let tokens =
        tokens.access(&app, &runs, |scope, tenant| agents.add_to(tasks.add_to(scope, tenant), tenant))?;

    let mut options = ServerOptions::default().with_dashboard().with_request_log(request_log(&app)?);
    options.secure_cookie = settings.behind_proxy;
    let hosts = bound.hosts(&settings)?;
    let access = tokens.iter().map(|token| token.access.clone());
    let server = Server::new(hosts.clone(), access, Arc::new(SystemClock), options);
    let router = tasks.mount(agents.mount(&app, &server, &runs, &tokens).await?, hosts);
    // Before the address is printed: a program that reads it may end the server at once.
    let listener = interrupt::listen(server.end().clone(), app.output.clone());
    greet(&app, &server, &bound, &settings, &tokens)?;
    let mut options = ServeOptions::default();
    (options.behind_proxy, options.tls) = (settings.behind_proxy, tls);
    let served = work(app, (runs, tasks), server, router, bound, options).await;
    listener.abort();
    served.map(|()| Exit::Finished)
}

/// Opens the file that records the write requests of the access tokens.
fn request_log(app: &App) -> Result<RequestLog, Failure> {
    let path = app.data_dir.join(REQUESTS);
    RequestLog::open(&path)
        .map_err(|e| Failure::unwritable(&path, &e, "make the file writable, or move it away"))
}

/// Prints the address of the server, and the ways to sign in. A one-time link gives access to the server, so it is
/// printed on a terminal but never into the log of a service.
fn greet(
    app: &App,
    server: &Server,
    bound: &Bound,
    settings: &ServeSettings,
    tokens: &[tokens::Access],
) -> Result<(), Failure> {
    let url = bound.url(settings);
    let place = bound.place(settings);
    app.report(&json!({ "listening": place, "url": url }), format!("listening at {place} until Ctrl-C"));
    let shows_links = app.json || io::stderr().is_terminal();
    for token in tokens {
        let (name, role, secret) = (&token.name, token.role, &token.source);
        let link = match &url {
            Some(url) if shows_links => {
                let link = server.one_time_link(name).map_err(|e| {
                    Failure::failed(
                        format!("cannot create a sign-in link for the token {name}: {e}"),
                        "try again",
                    )
                })?;
                Some(format!("{url}{link}"))
            }
            _ => None,
        };
        let item = json!({ "token": name, "role": role, "secret": secret.to_string(), "link": link });
        let browser = link.map(|link| format!(", or in a browser, once and within 10 minutes: {link}"));
        let browser = browser.unwrap_or_default();
        app.report(&item, format!("{name} ({role}): with the token in {secret}{browser}"));
    }
    app.note_if(
        url.is_some() && !shows_links,
        "for a link for browsers, start it on a terminal, or send a token to POST /v1/links",
    );
    Ok(())
}

/// Serves until the server ends. The runs work in a runtime of their own, which is ended before anything else. So the
/// end of the program makes no tool of a run fail, and adds no record to a run.
async fn work(
    app: App,
    (runs, tasks): (Runs, Tasks),
    server: Server,
    router: Router,
    bound: Bound,
    options: ServeOptions,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| {
        Failure::failed(
            format!("cannot start the threads of the server: {e}"),
            "close other programs and try again",
        )
    })?;
    let served = runtime.spawn(async move {
        let tasks = tokio::spawn(tasks.serve(app.clone(), server.end().clone()));
        let looking = tokio::spawn(unfinished::keep_looking(app, runs));
        let served = bound.serve(router, &options, server.end()).await;
        looking.abort();
        tasks.abort();
        served
    });
    let served = served.await;
    // Waits until no run writes any more. The wait blocks, and a task that does not stop must not hold up the end.
    let _ = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(STOP)).await;
    match served {
        Ok(served) => served.map_err(|e| failure(&e.to_string())),
        Err(e) => Err(failure(&e.to_string())),
    }
}

fn failure(e: &str) -> Failure {
    Failure::failed(format!("the server ended: {e}"), "start it again: the runs go on where they were")
}
