//! The tasks that start runs when nobody is there: the file of the tasks, and the parts that they may name.

use std::sync::Arc;

use archon::{
    SystemClock,
    store::SqliteTaskStore,
    triggers::{TriggerEngine, TriggerError, TriggerParts},
    types::{BoxFuture, Notification, NotificationChannel, RunService, TaskStoreError},
};

use crate::{app::App, failure::Failure, text::visible};

/// The file of the tasks, in the data folder.
const FILE: &str = "tasks.db";

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

/// Returns the engine over the file of the tasks.
///
/// # Errors
/// As [`open`].
pub(crate) fn engine(app: &App, runs: Arc<dyn RunService>) -> Result<TriggerEngine, Failure> {
    let parts = TriggerParts::new().channel(Arc::new(Console(app.clone())));
    Ok(TriggerEngine::new(runs, Arc::new(open(app)?), Arc::new(SystemClock), parts))
}

/// Prints notifications of `archon serve`: as lines of JSON for programs, or as notes for people.
struct Console(App);

impl NotificationChannel for Console {
    fn name(&self) -> &str {
        "console"
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        let task = notification.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
        let text = format!("{task}{}: {}", notification.about.as_str(), visible(&notification.text));
        self.0.report(&serde_json::json!({ "notification": notification }), text);
        Box::pin(std::future::ready(Ok(())))
    }
}

fn of_store(error: TaskStoreError) -> Failure {
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
