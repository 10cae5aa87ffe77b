//! The places of the data folder that still have a text that was forgotten: found, shown, and erased when a person
//! agrees.
//!
//! Without the feature `triggers`, the file of the tasks is a file like others.

#[cfg(not(feature = "triggers"))]
mod absent;
mod lines;
mod runs;
#[cfg(feature = "triggers")]
mod tasks;
mod texts;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
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

/// The tasks of `archon triggers`, and the requests to their server by number, that have a text.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct TaskTraces {
    tasks: BTreeSet<TaskId>,
    requests: BTreeSet<u64>,
}

impl TaskTraces {
    fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.requests.is_empty()
    }
}

impl Traces {
    /// Finds the places that have one of the texts. Memories, keys, models and engines are left out.
    ///
    /// # Errors
    /// A file or a folder cannot be read.
    pub(crate) async fn find(app: &App, texts: &Texts) -> Result<Self, Failure> {
        let failed = |e: io::Error| Failure::unreadable(&app.data_dir, &e, "make its files readable");
        let mut traces = Self::default();
        if texts.are_none() {
            return Ok(traces);
        }
        for path in files(&app.data_dir).map_err(failed)? {
            let inside = path.strip_prefix(&app.data_dir).unwrap_or(&path);
            let first = inside.iter().next().and_then(|part| part.to_str()).unwrap_or_default();
            if is_searched(first) {
                match fs::read(&path) {
                    Ok(bytes) => traces.add_file(inside, &bytes, texts),
                    Err(e) => unless_absent(e).map_err(failed)?,
                }
            }
        }
        traces.tasks = tasks::find(app, texts).await?;
        Ok(traces)
    }

    fn add_file(&mut self, path: &Path, bytes: &[u8], texts: &Texts) {
        let mut parts = path.iter().filter_map(|part| part.to_str());
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        let run = second.filter(|_| first == "runs").and_then(run_of);
        if is_lines(path) {
            let marks = lines::with_texts(bytes, texts);
            if !marks.is_empty() {
                self.lines.insert(path.to_owned(), marks);
            }
        } else if let Some(run) = run {
            let is_log = path.extension().is_some_and(|end| end == "jsonl");
            let records =
                if is_log { lines::with_texts(bytes, texts).len() } else { usize::from(texts.are_in(bytes)) };
            if records > 0 {
                *self.runs.entry(run).or_default() += records;
            }
        } else if texts.are_in(bytes) {
            match (first, second) {
                ("snapshots", Some(workspace)) => {
                    *self.snapshots.entry(Path::new(first).join(workspace)).or_default() += 1;
                }
                _ => _ = self.files.insert(path.to_owned()),
            }
        }
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

    /// Adds those of other places that are still there.
    ///
    /// # Errors
    /// The tasks cannot be read.
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
            let marks = lines::present(&app.data_dir.join(&file), &marks);
            if !marks.is_empty() {
                self.lines.entry(file).or_default().extend(marks);
            }
        }
        self.files.extend(other.files.into_iter().filter(|file| app.data_dir.join(file).exists()));
        let TaskTraces { tasks, requests } = tasks::present(app, other.tasks).await?;
        self.tasks.tasks.extend(tasks);
        self.tasks.requests.extend(requests);
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
        rows.extend(
            self.tasks.tasks.iter().map(|task| format!("task {task}  it is deleted, with its times")),
        );
        rows.extend(
            self.tasks.requests.iter().map(|number| format!("request {number} to the server of the tasks")),
        );
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
            "files": self.files,
        }))
    }

    /// Erases the runs, the snapshots, the lines and the tasks, and the prompts that a local model has kept. Returns the
    /// erased runs, and the problems. What could not be erased can be tried again.
    pub(crate) async fn erase(&self, app: &App) -> (Vec<RunId>, Vec<String>) {
        let (erased, mut problems) = runs::erase(app, self.runs.keys()).await;
        let mut note = |path: &Path, done: io::Result<()>| {
            problems.extend(done.or_else(unless_absent).err().map(|e| format!("{}: {e}", path.display())));
        };
        for folder in self.snapshots.keys().map(|folder| app.data_dir.join(folder)) {
            note(&folder, fs::remove_dir_all(&folder));
        }
        for (file, marks) in &self.lines {
            let file = app.data_dir.join(file);
            note(&file, lines::overwrite(&file, marks));
        }
        // The prompts are numbers of a vocabulary, so no text can be found in them.
        let prompts = app.data_dir.join("cache").join("prompts");
        note(&prompts, fs::remove_dir_all(&prompts));
        problems.extend(tasks::erase(app, &self.tasks).await.err().map(|e| e.line()));
        (erased, problems)
    }

    /// Returns a line about each place that [`erase`](Self::erase) removes.
    pub(crate) fn names(&self) -> Vec<String> {
        let runs = self.runs.keys().map(|run| format!("run {run}"));
        let paths = self.snapshots.keys().chain(self.lines.keys());
        let tasks = self.tasks.tasks.iter().map(|task| format!("task {task}"));
        let requests = self.tasks.requests.iter().map(|number| format!("request {number}"));
        runs.chain(paths.map(|path| path.display().to_string())).chain(tasks).chain(requests).collect()
    }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Returns the run of a file or a folder in the folder of the runs.
fn run_of(name: &str) -> Option<RunId> {
    let ends = ["jsonl", "blobs", "inbox", "lock"];
    let run = ends.iter().find_map(|end| name.strip_suffix(end)?.strip_suffix('.'));
    run.map(RunId::new)
}

/// Returns true for a file whose lines stand by themselves: the drafts of the chat, what is left of pruned runs, and the
/// logs of the chat and of the server.
fn is_lines(path: &Path) -> bool {
    let names = ["history.jsonl", "summaries.jsonl", "requests.jsonl"];
    names.iter().any(|name| path == Path::new(name)) || path.starts_with("logs")
}

fn is_searched(name: &str) -> bool {
    let is_memory = name.strip_prefix("memory.db").is_some_and(|end| end.is_empty() || end.starts_with('-'));
    !is_memory
        && !tasks::is_file(name)
        && !["models", "engines", "cache", "credentials.db", "openapi"].contains(&name)
}

/// Returns the files in a folder and in the folders in it. Links are not followed.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // A run may have removed it meanwhile.
            Err(e) => {
                unless_absent(e)?;
                continue;
            }
        };
        for entry in entries {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    Ok(files)
}

/// Returns an error, unless it is that a file is absent.
fn unless_absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
