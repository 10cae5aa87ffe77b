//! Searches the files of the data folder for texts. It reads a part of a file at a time, and blocks while it reads.

use std::{
    fs::{self, File},
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use archon::types::RunId;

use super::{Traces, is_of_database, lines, tasks, texts::Texts, unless_absent};

/// The folder of the beginnings of prompts that a local model has computed, in the data folder.
pub(super) const PROMPTS: &str = "cache/prompts";

/// Finds the places of a data folder that have one of the texts, but those of the databases.
pub(super) fn in_folder(data_dir: &Path, texts: &Texts) -> io::Result<Traces> {
    let mut traces = Traces::default();
    for path in files(data_dir)? {
        let inside = path.strip_prefix(data_dir).unwrap_or(&path);
        let first = inside.iter().next().and_then(|part| part.to_str()).unwrap_or_default();
        if is_searched(first) {
            // A run may have removed it meanwhile.
            add_file(&mut traces, &path, inside, texts).or_else(unless_absent)?;
        }
    }
    Ok(traces)
}

/// Adds a file if it has a text. `inside` is its path in the data folder.
fn add_file(traces: &mut Traces, path: &Path, inside: &Path, texts: &Texts) -> io::Result<()> {
    let file = File::open(path)?;
    let mut parts = inside.iter().filter_map(|part| part.to_str());
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    let run = second.filter(|_| first == "runs").and_then(run_of);
    if is_lines(inside) {
        let marks = lines::with_texts(BufReader::new(file), texts)?;
        if !marks.is_empty() {
            traces.lines.insert(inside.to_owned(), marks);
        }
    } else if let Some(run) = run {
        let is_log = inside.extension().is_some_and(|end| end == "jsonl");
        let records = match is_log {
            true => lines::with_texts(BufReader::new(file), texts)?.len(),
            false => usize::from(texts.are_in_file(file)?),
        };
        if records > 0 {
            *traces.runs.entry(run).or_default() += records;
        }
    } else if texts.are_in_file(file)? {
        match (first, second) {
            ("snapshots", Some(workspace)) => {
                *traces.snapshots.entry(Path::new(first).join(workspace)).or_default() += 1;
            }
            _ => _ = traces.files.insert(inside.to_owned()),
        }
    }
    Ok(())
}

/// Returns the number of prompts that a local model has kept.
pub(super) fn prompts(data_dir: &Path) -> usize {
    fs::read_dir(data_dir.join(PROMPTS)).into_iter().flatten().count()
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
    !is_of_database(name, "memory.db")
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
