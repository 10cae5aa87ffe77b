//! The tasks of `archon triggers` among the places that have a text.

use archon::types::{TaskChange, TaskStore as _};

use super::{TaskTraces, texts::Texts};
use crate::{app::App, failure::Failure, tasks};

/// The file of the tasks, and SQLite's files beside it.
const FILES: [&str; 3] = ["tasks.db", "tasks.db-wal", "tasks.db-shm"];

/// Returns true for the files of the tasks, in which long rows are in pieces.
pub(super) fn is_file(name: &str) -> bool {
    FILES.contains(&name)
}

/// Finds what has one of the texts. If only the bytes of deleted rows have it, these are removed.
pub(super) async fn find(app: &App, texts: &Texts) -> Result<TaskTraces, Failure> {
    let mut found = TaskTraces::default();
    if !tasks::exist(app) {
        return Ok(found);
    }
    let store = tasks::open(app)?;
    let stored = store.list().await.map_err(tasks::of_store)?;
    for task in stored.tasks {
        if texts.are_in(task.definition.to_string().as_bytes())
            || texts.are_in(task.state.to_string().as_bytes())
        {
            found.tasks.insert(task.id);
        }
    }
    let has_text = |request: &serde_json::Value| texts.are_in(request.to_string().as_bytes());
    found.requests =
        stored.requests.iter().filter(|(_, request)| has_text(request)).map(|(number, _)| *number).collect();
    let is_in = |name: &&str| texts.are_in(&std::fs::read(app.data_dir.join(name)).unwrap_or_default());
    if found.is_empty() && FILES.iter().any(is_in) {
        store.erase_deleted().await.map_err(tasks::of_store)?;
    }
    Ok(found)
}

/// Returns those of the tasks and requests that are still there.
pub(super) async fn present(app: &App, mut found: TaskTraces) -> Result<TaskTraces, Failure> {
    if !tasks::exist(app) {
        return Ok(TaskTraces::default());
    }
    let stored = tasks::open(app)?.list().await.map_err(tasks::of_store)?;
    found.tasks.retain(|id| stored.tasks.iter().any(|task| task.id == *id));
    found.requests.retain(|number| stored.requests.iter().any(|(other, _)| other == number));
    Ok(found)
}

/// Deletes tasks and requests, and removes their bytes from the file.
pub(super) async fn erase(app: &App, found: &TaskTraces) -> Result<(), Failure> {
    if !tasks::exist(app) {
        return Ok(());
    }
    let store = tasks::open(app)?;
    let tasks = found.tasks.iter().cloned().map(TaskChange::Delete);
    let changes = tasks.chain(found.requests.iter().copied().map(TaskChange::Forget)).collect();
    store.change(changes).await.map_err(tasks::of_store)?;
    store.erase_deleted().await.map_err(tasks::of_store)
}
