//! The places of the data folder that still have a text that was forgotten: found, shown, and erased when a person
//! agrees.
//!
//! Without the feature `triggers`, the databases of the tasks and of the outbox are files like others.

#[cfg(not(feature = "triggers"))]
mod absent;
mod lines;
mod runs;
mod search;
#[cfg(feature = "triggers")]
mod tasks;
mod texts;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon::types::{Json, RunId, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[cfg(not(feature = "triggers"))]
use absent as tasks;

use crate::{
    app::App,
    failure::Failure,
    output::Look,
    text::{one_line, visible},
};
use lines::LineMark;
use runs::AllRuns;
pub(crate) use texts::Texts;

/// The places that still have a text. Paths are relative to the data folder.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Traces {
    /// The number of records, large records and messages with the text, by run. It is 0 for a run that stored the text
    /// or that needs another of these runs.
    runs: BTreeMap<RunId, usize>,
    /// The number of files with the text, by the folder of a workspace's snapshots for undo.
    snapshots: BTreeMap<PathBuf, usize>,
    /// The lines with the text, by file.
    lines: BTreeMap<PathBuf, BTreeSet<LineMark>>,
    tasks: TaskTraces,
    /// Other files with the text, which only a person can judge.
    files: BTreeSet<PathBuf>,
}

/// The rows of the databases of `archon triggers` and `archon serve` that have a text.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct TaskTraces {
    tasks: BTreeSet<TaskId>,
    /// The requests to the server of the tasks, by number.
    requests: BTreeSet<u64>,
    /// The notifications of the outbox, by key.
    notifications: BTreeSet<TaskId>,
    /// The databases of which no row has a text, but bytes of deleted rows.
    deleted_in: BTreeSet<String>,
}

impl TaskTraces {
    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
            && self.requests.is_empty()
            && self.notifications.is_empty()
            && self.deleted_in.is_empty()
    }
}

impl Traces {
    /// Finds the places that have one of the texts, and changes nothing. Memories, keys, models and engines are left out.
    ///
    /// # Errors
    /// A file or a folder cannot be read.
    pub(crate) async fn find(app: &App, texts: &Arc<Texts>) -> Result<Self, Failure> {
        if texts.are_none() {
            return Ok(Self::default());
        }
        let (folder, searched) = (app.data_dir.clone(), texts.clone());
        let found = in_thread(move || search::in_folder(&folder, &searched)).await;
        let mut traces =
            found.map_err(|e| Failure::unreadable(&app.data_dir, &e, "make its files readable"))?;
        traces.tasks = tasks::find(app, texts).await?;
        Ok(traces)
    }

    /// Adds runs that stored a text, unless they are gone.
    pub(crate) fn add_runs(&mut self, app: &App, stored_by: impl IntoIterator<Item = RunId>) {
        for run in stored_by.into_iter().filter(|run| runs::is_there(app, run)) {
            self.runs.entry(run).or_default();
        }
    }

    /// Adds the runs that must be erased before the runs that have the text.
    ///
    /// # Errors
    /// The runs cannot be listed.
    pub(crate) async fn add_needing_runs(&mut self, app: &App) -> Result<(), Failure> {
        if !self.runs.is_empty() {
            let needing = AllRuns::read(app).await?.needing(self.runs.keys()).await?;
            self.runs.extend(needing.into_iter().map(|run| (run, 0)));
        }
        Ok(())
    }

    /// Adds the places of `other` that still exist.
    ///
    /// # Errors
    /// A file or the tasks cannot be read.
    pub(crate) async fn add(&mut self, app: &App, other: Self) -> Result<(), Failure> {
        for (run, records) in other.runs.into_iter().filter(|(run, _)| runs::is_there(app, run)) {
            self.runs.entry(run).or_insert(records);
        }
        for (folder, files) in
            other.snapshots.into_iter().filter(|(folder, _)| app.data_dir.join(folder).exists())
        {
            self.snapshots.entry(folder).or_insert(files);
        }
        for (file, marks) in other.lines {
            let path = app.data_dir.join(&file);
            let marks = in_thread(move || lines::present(&path, &marks)).await;
            let marks = marks.map_err(|e| Failure::unreadable(&file, &e, "make it readable"))?;
            if !marks.is_empty() {
                self.lines.entry(file).or_default().extend(marks);
            }
        }
        self.files.extend(other.files.into_iter().filter(|file| app.data_dir.join(file).exists()));
        let there = tasks::present(app, other.tasks).await?;
        self.tasks.tasks.extend(there.tasks);
        self.tasks.requests.extend(there.requests);
        self.tasks.notifications.extend(there.notifications);
        self.tasks.deleted_in.extend(there.deleted_in);
        Ok(())
    }

    /// Returns true if no place has a text.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.can_be_erased()
    }

    /// Returns true if a place has a text that [`erase`](Self::erase) removes.
    pub(crate) fn can_be_erased(&self) -> bool {
        !(self.runs.is_empty() && self.snapshots.is_empty() && self.lines.is_empty() && self.tasks.is_empty())
    }

    /// Shows the places to a person, and returns them for a program.
    ///
    /// # Errors
    /// The runs cannot be listed.
    pub(crate) async fn show(&self, app: &App) -> Result<Json, Failure> {
        let all = AllRuns::read(app).await?;
        let mut rows: Vec<String> = Vec::new();
        for (run, records) in &self.runs {
            let about = match records {
                0 => "it stored the memory, or needs another of these".to_owned(),
                _ => counted(*records, "record"),
            };
            rows.push(format!("run {run}  {about}  {}", one_line(all.task(run), 60)));
        }
        for (folder, files) in &self.snapshots {
            let of = fs::read_to_string(app.data_dir.join(folder).join("workspace")).unwrap_or_default();
            let of = if of.trim().is_empty() { folder.display().to_string() } else { of.trim().to_owned() };
            rows.push(format!("undo of {of}  {}; all of its steps go", counted(*files, "file")));
        }
        let lines = self
            .lines
            .iter()
            .map(|(file, marks)| format!("{}  {}", file.display(), counted(marks.len(), "line")));
        rows.extend(lines);
        rows.extend(self.task_rows());
        let prompts = if self.can_be_erased() { search::prompts(&app.data_dir) } else { 0 };
        rows.extend((prompts > 0).then(|| {
            format!(
                "{}  {} of local models, computed again when needed",
                search::PROMPTS,
                counted(prompts, "prompt")
            )
        }));
        rows.extend(self.files.iter().map(|file| format!("{}  remove it yourself", file.display())));
        if !rows.is_empty() {
            app.note("what was forgotten is still in:");
            rows.iter()
                .filter(|_| !app.json)
                .for_each(|row| app.output.note(Look::Plain, format!("  {}", visible(row))));
        }
        let run =
            |(run, records): (&RunId, &usize)| json!({"run": run, "records": records, "task": all.task(run)});
        let file =
            |(file, marks): (&PathBuf, &BTreeSet<LineMark>)| json!({"file": file, "lines": marks.len()});
        let folder = |(folder, files): (&PathBuf, &usize)| json!({"folder": folder, "files": files});
        Ok(json!({
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
            "snapshots": self.snapshots.iter().map(folder).collect::<Vec<_>>(),
            "lines": self.lines.iter().map(file).collect::<Vec<_>>(),
            "tasks": self.tasks.tasks,
            "requests": self.tasks.requests,
            "notifications": self.tasks.notifications,
            "deleted_in": self.tasks.deleted_in,
            "prompts": prompts,
            "files": self.files,
        }))
    }

    fn task_rows(&self) -> impl Iterator<Item = String> {
        let TaskTraces { tasks, requests, notifications, deleted_in } = &self.tasks;
        let tasks = tasks.iter().map(|task| format!("task {task}  it is deleted, with its times"));
        let requests = requests.iter().map(|number| format!("request {number} to the server of the tasks"));
        let notifications =
            notifications.iter().map(|key| format!("notification {key} in the outbox of the server"));
        let deleted = deleted_in.iter().map(|database| format!("{database}  bytes of deleted rows"));
        tasks.chain(requests).chain(notifications).chain(deleted)
    }

    /// Erases the runs, the snapshots, the lines, the tasks and the notifications, and the prompts that a local model has
    /// kept. Returns the erased runs, and the problems. What could not be erased can be tried again.
    pub(crate) async fn erase(&self, app: &App) -> (Vec<RunId>, Vec<String>) {
        let (erased, mut problems) = runs::erase(app, self.runs.keys()).await;
        let (folder, traces) = (app.data_dir.clone(), self.clone());
        let files = in_thread(move || Ok(traces.erase_files(&folder))).await;
        problems.extend(files.unwrap_or_else(|e| vec![e.to_string()]));
        problems.extend(tasks::erase(app, &self.tasks).await);
        (erased, problems)
    }

    /// Erases the snapshots, the lines and the prompts. Returns the problems.
    fn erase_files(&self, data_dir: &Path) -> Vec<String> {
        let mut problems = Vec::new();
        let mut note = |path: &Path, done: io::Result<()>| {
            problems.extend(done.or_else(unless_absent).err().map(|e| format!("{}: {e}", path.display())));
        };
        for folder in self.snapshots.keys().map(|folder| data_dir.join(folder)) {
            note(&folder, fs::remove_dir_all(&folder));
        }
        for (file, marks) in &self.lines {
            let file = data_dir.join(file);
            note(&file, lines::overwrite(&file, marks));
        }
        // The prompts are numbers of a vocabulary, so no text can be found in them.
        let prompts = data_dir.join(search::PROMPTS);
        note(&prompts, fs::remove_dir_all(&prompts));
        problems
    }

    /// Returns a line about each place that [`erase`](Self::erase) removes.
    pub(crate) fn names(&self) -> Vec<String> {
        let runs = self.runs.keys().map(|run| format!("run {run}"));
        let paths = self.snapshots.keys().chain(self.lines.keys());
        let TaskTraces { tasks, requests, notifications, deleted_in } = &self.tasks;
        let tasks = tasks.iter().map(|task| format!("task {task}"));
        let requests = requests.iter().map(|number| format!("request {number}"));
        let notifications = notifications.iter().map(|key| format!("notification {key}"));
        let tasks = tasks.chain(requests).chain(notifications).chain(deleted_in.iter().cloned());
        runs.chain(paths.map(|path| path.display().to_string())).chain(tasks).collect()
    }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Returns true for the file of a database, and for SQLite's files beside it.
fn is_of_database(name: &str, database: &str) -> bool {
    name.strip_prefix(database).is_some_and(|end| end.is_empty() || end.starts_with('-'))
}

/// Does work on files in a thread in which it holds up nothing else.
async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(io::Error::other(e)))
}

/// Returns an error, unless it is that a file is absent.
fn unless_absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
