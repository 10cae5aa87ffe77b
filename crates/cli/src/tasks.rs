//! The tasks that start runs when nobody is there: the file of the tasks, and the channels that they may name.

use std::sync::Arc;

use archon::{
    SystemClock,
    store::SqliteTaskStore,
    triggers::{TriggerEngine, TriggerError, TriggerParts},
    types::{BoxFuture, Notification, NotificationChannel, RunService, TaskStoreError},
};

use crate::{app::App, config::ChannelSettings, failure::Failure};

#[cfg(feature = "serve")]
pub(crate) mod channels;
#[cfg(feature = "serve")]
pub(crate) mod delivery;
#[cfg(feature = "serve")]
pub(crate) mod served;
#[cfg(feature = "serve")]
pub(crate) mod sources;
#[cfg(feature = "serve")]
mod telegram;

/// The file of the tasks, in the data folder.
pub(crate) const TASKS: &str = "tasks.db";

/// The file of the outbox, in the data folder.
pub(crate) const OUTBOX: &str = "outbox.db";

/// The channel that every server has: its own output.
pub(crate) const CONSOLE: &str = "console";

/// The tenant of the tasks of this command.
#[cfg(feature = "serve")]
const LOCAL: &str = "local";

/// The pause between two looks at whether another process still serves the tasks.
#[cfg(feature = "serve")]
const PAUSE: std::time::Duration = std::time::Duration::from_secs(2);

/// Returns true if there is a file of tasks.
pub(crate) fn exist(app: &App) -> bool {
    app.data_dir.join(TASKS).exists()
}

/// Opens the file of the tasks.
///
/// # Errors
/// [`Failure`] if the file cannot be opened.
pub(crate) fn open(app: &App) -> Result<SqliteTaskStore, Failure> {
    SqliteTaskStore::open(app.data_dir.join(TASKS)).map_err(|e| of_store(e, TASKS))
}

/// Returns the engine over the file of the tasks, with channels. Those of the settings are for the tasks of their tenants, the
/// console is for all.
///
/// # Errors
/// As [`open`].
pub(crate) fn engine(
    app: &App,
    runs: Arc<dyn RunService>,
    channels: Vec<Arc<dyn NotificationChannel>>,
) -> Result<TriggerEngine, Failure> {
    let settings = app.config.settings.channels.as_ref();
    let parts = channels.into_iter().fold(TriggerParts::new(), |parts, channel| match channel.name() {
        CONSOLE => parts.channel_of_all(channel),
        name => match settings.and_then(|all| all.get(name)).and_then(ChannelSettings::tenant) {
            Some(tenant) => parts.channel_of(tenant, channel),
            None => parts.channel(channel),
        },
    });
    Ok(TriggerEngine::new(runs, Arc::new(open(app)?), Arc::new(SystemClock), parts))
}

/// Returns the channels of the settings by their names alone, for a process that sends nothing.
pub(crate) fn names_of_channels(app: &App) -> Vec<Arc<dyn NotificationChannel>> {
    let named = app.config.settings.channels.iter().flatten().map(|(name, _)| name.clone());
    named.chain([CONSOLE.to_owned()]).map(|name| Arc::new(OnlyName(name)) as _).collect()
}

/// Returns the place of an entry of the settings: the file, and the table.
#[cfg(feature = "serve")]
fn place(app: &App, table: &str, name: &str) -> String {
    let file = app.config.origin(table).map(|origin| format!("{origin}: ")).unwrap_or_default();
    format!("{file}[{table}.{name}]")
}

/// Returns the secret of an entry of the settings: a variable of the environment, or a stored one.
///
/// # Errors
/// [`Failure`] if there is none.
#[cfg(feature = "serve")]
fn secret(app: &App, table: &str, name: &str, variable: &str) -> Result<archon::types::Secret, Failure> {
    match app.env(variable).map(str::trim) {
        Some(secret) if !secret.is_empty() => Ok(archon::types::Secret::from(secret)),
        _ => Err(Failure::usage(
            format!("{} needs the variable {variable}, which is not set", place(app, table, name)),
            format!(
                "store it: archon credentials add {variable}, or set it before `archon serve`: export {variable}=…"
            ),
        )),
    }
}

/// Notes a problem of a source or a channel in the history of the tasks that it concerns, and prints it.
#[cfg(feature = "serve")]
async fn note(
    app: &App,
    engine: &TriggerEngine,
    problem: &str,
    is_meant: impl Fn(&archon::triggers::TriggerTask) -> bool + Send,
) {
    app.output.warn(problem);
    if let Err(error) = engine.note_problem(problem, is_meant).await {
        app.output.warn_again(format!("the problem is not in the history of the tasks: {error}"));
    }
}

/// The name of a channel of `archon serve`.
struct OnlyName(String);

impl NotificationChannel for OnlyName {
    fn name(&self) -> &str {
        &self.0
    }

    fn send<'a>(&'a self, _: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(Err("only `archon serve` sends notifications".to_owned())))
    }
}

/// Returns the failure of a store in one of the files: [`TASKS`] or [`OUTBOX`].
pub(crate) fn of_store(error: TaskStoreError, file: &str) -> Failure {
    let what = error.to_string();
    let what = if file == OUTBOX { what.replacen("the tasks", "the outbox", 1) } else { what };
    Failure::failed(what, format!("make the data folder and its file {file} writable for you"))
}

impl From<TriggerError> for Failure {
    fn from(error: TriggerError) -> Self {
        match error {
            TriggerError::Store(error) => of_store(error, TASKS),
            TriggerError::Runs(error) => error.into(),
            TriggerError::Unknown(id) => {
                Self::usage(format!("there is no task {id}"), "`archon triggers list` shows the tasks")
            }
            TriggerError::Exists(id) => Self::usage(
                format!("there is a task {id} already"),
                format!("choose another name, or delete it: archon triggers delete {id}"),
            ),
            error => Self::usage(error.to_string(), "`archon triggers add --help` shows the forms"),
        }
    }
}
