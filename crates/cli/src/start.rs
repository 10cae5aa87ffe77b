//! Starts a command: loads the settings, starts the runtime and runs the command.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use archon::providers::HttpOptions;
use clap::CommandFactory as _;
use tracing_subscriber::EnvFilter;

use crate::{
    agent_files,
    app::App,
    args::{Args, GlobalArgs},
    commands::{self, Command},
    config::{Config, Origin, Sources},
    credentials::StoredKeys,
    exit::Exit,
    failure::Failure,
    output::{Look, Output},
};

/// Runs a command to its end. Without a command, this is a conversation on the terminal; where no person can have
/// one, the help is printed as the answer to wrong usage.
pub(crate) fn run(args: Args) -> Exit {
    let output = Arc::new(Output::system());
    let Some(command) = args.command.or_else(|| commands::alone(&output, args.global.json)) else {
        output.note(Look::Plain, Args::command().render_help().to_string());
        return Exit::Usage;
    };
    keep_log(&args.global, output.clone());
    let result = start(command, &args.global, output.clone());
    output.stop_waiting();
    result.unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit()
    })
}

fn start(command: Command, global: &GlobalArgs, output: Arc<Output>) -> Result<Exit, Failure> {
    let sources = Sources::system();
    let flags = command.settings();
    let is_by_settings = flags.is_some();
    let has_agents = command.has_agents();
    let mut flags = flags.unwrap_or_default();
    flags.data_dir = global.data_dir.clone();
    let is_without = command.is_without_settings();
    let config = match Config::load(&sources, flags.clone()) {
        Err(_) if is_without => Config::of(flags, &Origin::Flag(String::new())),
        config => config?,
    };
    let data_dir = match config.data_dir(&sources) {
        Err(_) if is_without => PathBuf::new(),
        folder => folder?,
    };
    let mut http = HttpOptions::default();
    http.allow_plain_http = config.settings.allow_plain_http == Some(true);
    let (json, ask_later) = (global.json, global.ask_later);
    let mut app = App { json, ask_later, http, ..App::new(output, config, sources, data_dir) };
    if let Some(warning) = commands::warning(&app).filter(|_| is_by_settings) {
        app.output.warn(warning);
    }
    if has_agents {
        agent_files::add(&mut app);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    let runtime = runtime.map_err(|e| {
        Failure::failed(
            format!("cannot start the threads of the command: {e}"),
            "close other programs and try again",
        )
    })?;
    let result = runtime.block_on(async {
        if is_by_settings {
            load_keys(&mut app).await;
        }
        match command.run(&app, Args::command).await {
            Err(failure) => Err(failure.with_repair_advice(&app.journal()).await),
            result => result,
        }
    });
    // Blocking work that cannot be stopped, such as a file system that hangs, must not delay the exit.
    runtime.shutdown_background();
    result
}

/// Loads the stored keys. If that fails, the command continues without them.
async fn load_keys(app: &mut App) {
    match StoredKeys::load(&app.data_dir, &app.sources).await {
        Ok(keys) => app.stored_keys = Arc::new(keys),
        Err(e) => app.output.warn(format!("{}: the stored keys are not used; {}", e.what(), e.advice_line())),
    }
}

/// The number of worker threads. If a tool blocks the thread of the run, the second thread still handles
/// Ctrl-C.
const WORKERS: usize = 2;

/// Writes the log by `output`: by default only errors, and warnings of hooks, memories and stores; the output shows the
/// rest.
fn keep_log(args: &GlobalArgs, output: Arc<Output>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        EnvFilter::new(match args.verbose {
            // What `rmcp` logs as an error stands in the error of the server, with what to do.
            0 => "error,rmcp=off,archon::agent_memory=warn,archon::hooks=warn,archon_memory=warn,archon_store=warn",
            1 => "warn,archon=info,archon_react_loop=info,archon_planner=info,archon_tools=info,archon_providers=info,archon_store=info",
            2 => "info,archon=debug,archon_react_loop=debug,archon_planner=debug,archon_tools=debug,archon_providers=debug,archon_store=debug",
            _ => "trace",
        })
    });
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || LogWriter(output.clone()))
        .without_time()
        .try_init();
}

/// A writer that passes log lines to the output. Each write is a whole line.
struct LogWriter(Arc<Output>);

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.log(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
