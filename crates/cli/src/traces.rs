//! Finds the files of the data folder that still have a text, and removes the text from them.

use std::{
    collections::{BTreeSet, HashMap},
    fs, io,
    path::{Path, PathBuf},
};

use archon::types::{Journal as _, JournalError, RunId};

use crate::{app::App, own_file};

/// Texts in the forms in which files have them.
pub(crate) struct Texts {
    /// The forms, by their first bytes.
    by_start: HashMap<[u8; START], Vec<Vec<u8>>>,
}

/// The number of bytes by which a form is found. A shorter text is not searched for: it would be everywhere.
const START: usize = 8;
/// The length in bytes of the parts of a long text that are searched for one by one, because a prompt may have a
/// part of it.
const PART: usize = 100;

/// The places that still have a text.
#[derive(Default)]
pub(crate) struct Traces {
    /// The runs whose log, large records or inbox have the text.
    pub(crate) runs: BTreeSet<RunId>,
    /// The folders of snapshots for undo that have it.
    pub(crate) snapshots: BTreeSet<PathBuf>,
    /// Other files that have it.
    pub(crate) files: BTreeSet<PathBuf>,
}

impl Texts {
    /// Returns the forms of these texts.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut by_start = HashMap::<_, Vec<_>>::new();
        for form in texts.into_iter().flat_map(forms) {
            if let Some(start) = form.first_chunk() {
                by_start.entry(*start).or_default().push(form);
            }
        }
        Self { by_start }
    }

    fn are_in(&self, bytes: &[u8]) -> bool {
        !self.by_start.is_empty()
            && (0..bytes.len()).any(|at| {
                let rest = &bytes[at..];
                let forms = rest.first_chunk().and_then(|start| self.by_start.get(start));
                forms.is_some_and(|forms| forms.iter().any(|form| rest.starts_with(form)))
            })
    }

    /// Returns the places in the data folder that have one of the texts. Memories, keys, models and engines are left
    /// out.
    ///
    /// # Errors
    /// A file or a folder cannot be read.
    pub(crate) fn find(&self, data_dir: &Path) -> io::Result<Traces> {
        let mut traces = Traces::default();
        for path in files(data_dir)? {
            let inside = path.strip_prefix(data_dir).unwrap_or(&path);
            let mut parts = inside.iter().filter_map(|part| part.to_str());
            let (first, second) = (parts.next().unwrap_or_default(), parts.next());
            if !is_searched(first) || !self.are_in(&fs::read(&path)?) {
                continue;
            }
            match (first, second) {
                ("runs", Some(name)) => {
                    let run = ["jsonl", "blobs", "inbox", "lock"]
                        .iter()
                        .find_map(|end| name.strip_suffix(end)?.strip_suffix('.'));
                    traces.runs.extend(run.map(RunId::new));
                    traces.files.extend(run.is_none().then_some(path));
                }
                ("snapshots", Some(workspace)) => {
                    traces.snapshots.insert(data_dir.join(first).join(workspace));
                }
                _ => _ = traces.files.insert(path),
            }
        }
        Ok(traces)
    }

    /// Removes the lines with one of the texts from a file of lines.
    fn remove_lines(&self, path: &Path) -> io::Result<()> {
        // Of these files only the history of drafts is also replaced by others.
        let lock = path.with_extension("lock");
        let lock = lock.exists().then(|| fs::File::open(lock)).transpose()?;
        if let Some(lock) = &lock {
            lock.lock()?;
        }
        let text = own_file::read(path)?.unwrap_or_default();
        let kept: String = text.split_inclusive('\n').filter(|line| !self.are_in(line.as_bytes())).collect();
        own_file::replace(path, &kept)
    }
}

impl Traces {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.snapshots.is_empty() && self.files.is_empty()
    }

    /// Removes the lines with the texts from the history of drafts, and from what is left of pruned runs. Logs stay as they
    /// are: a server writes its requests into one, which must not lose a line.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn remove_lines(&mut self, texts: &Texts) -> io::Result<()> {
        let is_lines = |path: &&PathBuf| {
            path.file_name().is_some_and(|name| name == "history.jsonl" || name == "summaries.jsonl")
        };
        for path in self.files.iter().filter(is_lines) {
            texts.remove_lines(path)?;
        }
        self.files.retain(|path| !is_lines(&path));
        Ok(())
    }

    /// Erases these runs, the runs that need them, and the snapshots. Returns the erased runs, and the problems.
    pub(crate) async fn erase(&self, app: &App, texts: &Texts) -> (Vec<RunId>, Vec<String>) {
        let (erased, mut problems) = erase_runs(app, &self.runs).await;
        let mut note = |path: &Path, done: io::Result<()>| {
            problems.extend(done.or_else(absent).err().map(|e| format!("{}: {e}", path.display())));
        };
        for folder in &self.snapshots {
            note(folder, fs::remove_dir_all(folder));
        }
        // Prompts that a local model has read, as the numbers of its vocabulary.
        let prompts = app.data_dir.join("cache").join("prompts");
        note(&prompts, fs::remove_dir_all(&prompts));
        match texts.find(&app.data_dir) {
            Ok(left) => {
                let files = left.files.iter().chain(&left.snapshots).map(|path| path.display().to_string());
                let runs = left.runs.iter().map(|run| format!("run {run}"));
                problems.extend(files.chain(runs).map(|place| format!("{place} still has it")));
            }
            Err(e) => problems.push(format!("{}: {e}", app.data_dir.display())),
        }
        (erased, problems)
    }
}

/// Deletes runs, and before them the runs that need them.
async fn erase_runs(app: &App, runs: &BTreeSet<RunId>) -> (Vec<RunId>, Vec<String>) {
    let journal = app.journal();
    let (mut erased, mut problems) = (Vec::new(), Vec::new());
    let mut waiting: Vec<RunId> = runs.iter().cloned().collect();
    while let Some(run) = waiting.pop() {
        match journal.delete(&run).await {
            Ok(()) => erased.push(run),
            // Of a run without a log there may be large records or messages.
            Err(JournalError::UnknownRun { .. }) => {
                for end in ["blobs", "inbox"] {
                    let left = app.data_dir.join("runs").join(format!("{run}.{end}"));
                    if let Err(e) = fs::remove_dir_all(&left).or_else(absent) {
                        problems.push(format!("{}: {e}", left.display()));
                    }
                }
            }
            Err(JournalError::Needed { by, .. }) if by.iter().all(|other| !waiting.contains(other)) => {
                waiting.push(run);
                waiting.extend(by);
            }
            Err(error) => problems.push(format!("{error}; {}", error.advice())),
        }
    }
    (erased, problems)
}

/// Accepts the error that a file is absent.
fn absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Returns the forms of a text: as it is, in one line as in a prompt, and both as in a text of JSON. A long text in one
/// line is cut into parts.
fn forms(text: &str) -> BTreeSet<Vec<u8>> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut forms: Vec<&str> = vec![text.trim()];
    let mut rest = line.as_str();
    while rest.len() >= 2 * PART {
        let (part, others) = rest.split_at(rest.floor_char_boundary(PART));
        forms.push(part);
        rest = others;
    }
    forms.push(rest);
    let json = |form: &str| {
        let quoted = serde_json::to_string(form).unwrap_or_default();
        quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().as_bytes().to_vec()
    };
    forms.iter().flat_map(|form| [form.as_bytes().to_vec(), json(form)]).collect()
}

fn is_searched(name: &str) -> bool {
    let is_memory = name.strip_prefix("memory.db").is_some_and(|end| end.is_empty() || end.starts_with('-'));
    !is_memory && !["models", "engines", "cache", "credentials.db", "openapi"].contains(&name)
}

/// Returns the files in a folder and in the folders in it. Links are not followed.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_each_form_that_a_file_has_of_them() {
        let text = "My \"passport\" is\n  X 4711 0815.";
        let texts = Texts::of([text]);
        let line = r#"{"text":"[Memory] My \"passport\" is X 4711 0815."}"#;
        let json = serde_json::to_string(text).unwrap();
        for place in [text, line, &json, "a My \"passport\" is X 4711 0815. b"] {
            assert!(texts.are_in(place.as_bytes()), "{place}");
        }
        for place in ["", "My passport", "My \"passport\" is X 4711."] {
            assert!(!texts.are_in(place.as_bytes()), "{place}");
        }
        assert!(!Texts::of(["short"]).are_in(b"short"));
        let long: String = (0..500).map(|n| format!("word{n} ")).collect();
        assert!(Texts::of([long.as_str()]).are_in(&long.as_bytes()[1_000..1_800]));
    }
}
