//! The tasks that start runs when nobody is there: the file of the tasks, and the channels that they may name.

use std::sync::Arc;

use archon::{
    SystemClock,
    store::SqliteTaskStore,
    triggers::{TriggerEngine, TriggerError, TriggerParts},
    types::{BoxFuture, Notification, NotificationChannel, RunService, TaskStoreError},
};

use crate::{app::App, failure::Failure};

#[cfg(feature = "serve")]
pub(crate) mod channels;

/// The file of the tasks, in the data folder.
const FILE: &str = "tasks.db";

/// The channel that every server has: its own output.
pub(crate) const CONSOLE: &str = "console";

/// Returns true if there is a file of tasks.
pub(crate) fn exist(app: &App) -> bool {
    app.data_dir.join(FILE).exists()
}

/// Opens the file of the tasks.
///
/// # Errors
/// [`Failure`] if the file cannot be opened.
pub(crate) fn open(app: &App) -> Result<SqliteTaskStore, Failure> {
    SqliteTaskStore::open(app.data_dir.join(FILE)).map_err(of_store)
}

/// Returns the engine over the file of the tasks, with channels.
///
/// # Errors
/// As [`open`].
pub(crate) fn engine(
    app: &App,
    runs: Arc<dyn RunService>,
    channels: Vec<Arc<dyn NotificationChannel>>,
) -> Result<TriggerEngine, Failure> {
    let parts = channels.into_iter().fold(TriggerParts::new(), TriggerParts::channel);
    Ok(TriggerEngine::new(runs, Arc::new(open(app)?), Arc::new(SystemClock), parts))
}

/// Returns the channels of the settings by their names alone, for a process that sends nothing.
pub(crate) fn names_of_channels(app: &App) -> Vec<Arc<dyn NotificationChannel>> {
    let named = app.config.settings.channels.iter().flatten().map(|(name, _)| name.clone());
    named.chain([CONSOLE.to_owned()]).map(|name| Arc::new(OnlyName(name)) as _).collect()
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

pub(crate) fn of_store(error: TaskStoreError) -> Failure {
    Failure::failed(error.to_string(), "make the data folder and its file tasks.db writable for you")
}

impl From<TriggerError> for Failure {
    fn from(error: TriggerError) -> Self {
        match error {
            TriggerError::Store(error) => of_store(error),
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
