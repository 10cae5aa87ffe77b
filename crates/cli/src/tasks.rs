//! The tasks that start runs when nobody is there: the file of the tasks, and the channels that they may name.

use std::sync::Arc;

use archon::{
    SystemClock,
    store::SqliteTaskStore,
    triggers::{TriggerEngine, TriggerError, TriggerParts},
    types::{BoxFuture, Notification, NotificationChannel, RunService, TaskStoreError, Timestamp},
};
use jiff::{civil::DateTime, tz::TimeZone};

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

/// The pause between two looks at whether another process still serves the tasks.
#[cfg(feature = "serve")]
const PAUSE: std::time::Duration = std::time::Duration::from_secs(2);

/// Reads a time: with a zone of its own, or the local time in `zone`.
///
/// # Errors
/// The problem, as the end of a sentence that begins with the text, and what to do.
pub(crate) fn time(text: &str, zone: &str) -> Result<Timestamp, (String, &'static str)> {
    let local = || -> Result<jiff::Timestamp, jiff::Error> {
        let local: DateTime = text.parse()?;
        Ok(local.to_zoned(TimeZone::get(zone)?)?.timestamp())
    };
    // The times of the library without a zone are in UTC.
    let at = text.parse::<jiff::Timestamp>().or_else(|_| local());
    match at.map(|at| u64::try_from(at.as_millisecond())) {
        Ok(Ok(at)) => Ok(Timestamp::from_millis(at)),
        Ok(Err(_)) => Err(("is long past".to_owned(), "choose a later time")),
        Err(error) => Err((
            format!("is not a time: {error}"),
            "write it as in 2026-03-01T08:00, or with a zone as in 2026-03-01T08:00:00Z",
        )),
    }
}

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

/// Returns the engine that starts the runs of the stored tasks. `parts` has the probes of conditions, and `channels`
/// the notification channels: a channel of the settings serves the tasks of its tenant or of all tenants, the console
/// serves all.
///
/// # Errors
/// As [`open`].
pub(crate) fn engine(
    app: &App,
    runs: Arc<dyn RunService>,
    parts: TriggerParts,
    channels: Vec<Arc<dyn NotificationChannel>>,
) -> Result<TriggerEngine, Failure> {
    let settings = app.config.settings.channels.as_ref();
    let parts = channels.into_iter().fold(parts, |parts, channel| match channel.name() {
        CONSOLE => parts.channel_of_all(channel),
        name => match settings.and_then(|all| all.get(name)).map(ChannelSettings::tenant) {
            Some(Some(tenant)) => parts.channel_of(tenant, channel),
            Some(None) => parts.channel_of_all(channel),
            None => parts.channel(channel),
        },
    });
    Ok(TriggerEngine::new(runs, Arc::new(open(app)?), Arc::new(SystemClock), parts))
}

/// Returns channels that have only the names of those in the settings, for a process that sends nothing.
pub(crate) fn names_of_channels(app: &App) -> Vec<Arc<dyn NotificationChannel>> {
    let named = app.config.settings.channels.iter().flatten().map(|(name, _)| name.clone());
    named.chain([CONSOLE.to_owned()]).map(|name| Arc::new(OnlyName(name)) as _).collect()
}

/// Returns the place of an entry in the settings, for messages: the file, and the table.
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

/// Converts the error of a store into a failure that names `file`, [`TASKS`] or [`OUTBOX`].
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

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TR-03
    #[test]
    fn time_without_a_zone_is_a_local_one() {
        let shanghai = |text: &str| time(text, "Asia/Shanghai").map(|at| at.to_string());
        assert_eq!(shanghai("2026-03-01T08:00").as_deref(), Ok("2026-03-01T00:00:00.000Z"));
        assert_eq!(shanghai("2026-03-01T08:00:00Z").as_deref(), Ok("2026-03-01T08:00:00.000Z"));
        assert_eq!(shanghai("2026-03-01T08:00:00+01:00").as_deref(), Ok("2026-03-01T07:00:00.000Z"));
        assert_eq!(shanghai("1960-03-01T08:00").unwrap_err().0, "is long past");
        assert!(shanghai("tomorrow").unwrap_err().0.starts_with("is not a time: "));
        assert!(time("2026-03-01T08:00", "Mars/Olympus").is_err());
    }
}
