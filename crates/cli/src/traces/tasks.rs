//! The tasks of `archon triggers` and the notifications of `archon serve` among the places that have a text.

use std::{fs::File, sync::Arc};

use archon::{
    store::SqliteTaskStore,
    types::{StoredTasks, TaskChange, TaskStore as _},
};

use super::{TaskTraces, in_thread, is_of_database, texts::Texts, unless_absent};
use crate::{
    app::App,
    failure::Failure,
    tasks::{self, OUTBOX, TASKS},
};

/// The databases. That of the outbox keeps notifications where the other keeps tasks.
const DATABASES: [&str; 2] = [TASKS, OUTBOX];

/// Returns true for the files of the databases, in which long rows are in pieces.
pub(super) fn is_file(name: &str) -> bool {
    DATABASES.iter().any(|database| is_of_database(name, database))
}

/// Opens a database; `None` if there is none.
fn open(app: &App, database: &str) -> Result<Option<SqliteTaskStore>, Failure> {
    let path = app.data_dir.join(database);
    path.exists().then(|| SqliteTaskStore::open(path).map_err(|e| tasks::of_store(e, database))).transpose()
}

/// Finds the rows that have one of the texts, and the databases of which only deleted rows have one.
pub(super) async fn find(app: &App, texts: &Arc<Texts>) -> Result<TaskTraces, Failure> {
    let mut found = TaskTraces::default();
    for database in DATABASES {
        let Some(store) = open(app, database)? else { continue };
        let stored = store.list().await.map_err(|e| tasks::of_store(e, database))?;
        let has_text = |row: &serde_json::Value| texts.are_in(row.to_string().as_bytes());
        let rows = stored.tasks.into_iter().filter(|row| has_text(&row.definition) || has_text(&row.state));
        let rows = rows.map(|row| row.id).collect();
        let is_outbox = database == OUTBOX;
        *(if is_outbox { &mut found.notifications } else { &mut found.tasks }) = rows;
        let requests = stored.requests.iter().filter(|(_, request)| has_text(request));
        found.requests.extend(requests.map(|(number, _)| *number));
        let has_none = match is_outbox {
            true => found.notifications.is_empty(),
            false => found.tasks.is_empty() && found.requests.is_empty(),
        };
        if has_none && is_in_bytes(app, database, texts).await? {
            found.deleted_in.insert(database.to_owned());
        }
    }
    Ok(found)
}

/// Returns true if the bytes of a database's files have one of the texts.
async fn is_in_bytes(app: &App, database: &str, texts: &Arc<Texts>) -> Result<bool, Failure> {
    let path = app.data_dir.join(database);
    let (files, texts) = (["", "-wal", "-shm"].map(|end| format!("{}{end}", path.display())), texts.clone());
    let is_in = in_thread(move || {
        for file in files {
            match File::open(file) {
                Ok(file) if texts.are_in_file(&file)? => return Ok(true),
                Ok(_) => {}
                Err(e) => unless_absent(e)?,
            }
        }
        Ok(false)
    });
    is_in.await.map_err(|e| Failure::unreadable(&path, &e, "make it readable"))
}

/// Returns those of the rows that are still there.
pub(super) async fn present(app: &App, mut found: TaskTraces) -> Result<TaskTraces, Failure> {
    for database in DATABASES {
        let stored = match open(app, database)? {
            Some(store) => store.list().await.map_err(|e| tasks::of_store(e, database))?,
            None => {
                found.deleted_in.remove(database);
                StoredTasks::default()
            }
        };
        let is_outbox = database == OUTBOX;
        let rows = if is_outbox { &mut found.notifications } else { &mut found.tasks };
        rows.retain(|id| stored.tasks.iter().any(|row| row.id == *id));
        if !is_outbox {
            found.requests.retain(|number| stored.requests.iter().any(|(other, _)| other == number));
        }
    }
    Ok(found)
}

/// Deletes the rows, and removes the bytes of deleted rows from the files. Returns the problems.
pub(super) async fn erase(app: &App, found: &TaskTraces) -> Vec<String> {
    let mut problems = Vec::new();
    for database in DATABASES {
        let rows = if database == OUTBOX { &found.notifications } else { &found.tasks };
        let requests = found.requests.iter().filter(|_| database != OUTBOX);
        let rows = rows.iter().cloned().map(TaskChange::Delete);
        let changes: Vec<_> = rows.chain(requests.copied().map(TaskChange::Forget)).collect();
        if !changes.is_empty() || found.deleted_in.contains(database) {
            problems.extend(erase_in(app, database, changes).await.err().map(|failure| failure.line()));
        }
    }
    problems
}

async fn erase_in(app: &App, database: &str, changes: Vec<TaskChange>) -> Result<(), Failure> {
    let Some(store) = open(app, database)? else { return Ok(()) };
    store.change(changes).await.map_err(|e| tasks::of_store(e, database))?;
    store.erase_deleted().await.map_err(|e| tasks::of_store(e, database))
}
