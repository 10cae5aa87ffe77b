//! `AGENTS.md` of a project, or `CLAUDE.md` without one: instructions that the model reads, after a person agreed to
//! the file.

use std::path::{Path, PathBuf};

use archon::{
    ArchonBuilder, ProjectFile,
    types::{BoxFuture, Instructions},
};

use crate::{
    app::App,
    config::{AgreedTable, sha256},
    project_parts::{Agreement, ProjectPart, folder, lines_to_show, read_inside, trust_command},
    text::visible_path,
};

/// The names of the file; the first that exists is used.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The file as it was read.
struct Found {
    path: PathBuf,
    text: String,
    agreement: Agreement,
}

/// Reads the file; `None` if there is none.
fn find(app: &App) -> Option<Result<Found, String>> {
    let folder = folder(app)?;
    let path = NAMES.map(|name| folder.join(name)).into_iter().find(|path| path.exists())?;
    let text = match read(&folder, &path) {
        Ok(text) => text?,
        Err(why) => return Some(Err(format!("{}:1: {why}", visible_path(&path)))),
    };
    let agreement = Agreement::to(app, AgreedTable::Files, &path, &sha256(&text));
    Some(Ok(Found { path, text, agreement }))
}

/// Reads a file. A file that is too long is refused, because a part of it may have the opposite meaning.
fn read(folder: &Path, path: &Path) -> Result<Option<String>, String> {
    match read_inside(folder, path)? {
        Some(text) if text.len() as u64 > ProjectFile::MAX_BYTES => {
            Err(format!("the file has more than {} bytes: shorten it", ProjectFile::MAX_BYTES))
        }
        text => Ok(text),
    }
}

/// Lets the model read the file if a person agreed to it, and writes a note about that. If the settings or a flag name
/// a `project_file`, this file is not used.
pub(crate) fn with_instructions(app: &App, builder: ArchonBuilder) -> ArchonBuilder {
    if app.config.settings.project_file.is_some() {
        return builder;
    }
    let Found { path, text, agreement } = match find(app) {
        None => return builder,
        Some(Err(problem)) => {
            app.output.warn(problem);
            return builder;
        }
        Some(Ok(found)) => found,
    };
    let (file, trust) = (visible_path(&path), trust_command(app));
    match agreement {
        Agreement::Holds => {
            if !app.json {
                app.output.note_once(format!("the model reads the instructions in {file}"));
            }
            let folder = folder(app).unwrap_or_default();
            builder.instructions(std::sync::Arc::new(AgreedFile { folder, path, hash: sha256(&text) }))
        }
        Agreement::Changed => {
            app.output.warn(format!(
                "{file} has changed since you agreed to it, so the model does not read it. Show it and agree again: {trust}"
            ));
            builder
        }
        Agreement::Missing => {
            if !app.json {
                app.output.note_once(format!(
                    "the model does not read {file}, because no person has agreed to it. Show it and agree: {trust}"
                ));
            }
            builder
        }
    }
}

/// Returns the file if no person has agreed to its current text, and no setting `project_file` is used in its place.
pub(crate) fn waiting(app: &App) -> Option<ProjectPart> {
    let Found { path, text, agreement } = find(app)?.ok()?;
    if agreement == Agreement::Holds || app.config.settings.project_file.is_some() {
        return None;
    }
    Some(ProjectPart {
        table: AgreedTable::Files,
        about: format!("{} has instructions for the model:", visible_path(&path)),
        hash: sha256(&text),
        lines: lines_to_show(&text, &path),
        path,
    })
}

/// Describes the file for `archon doctor`; `None` without a file.
pub(crate) fn finding(app: &App) -> Option<(bool, String)> {
    let found = match find(app)? {
        Ok(found) => found,
        Err(problem) => return Some((false, problem)),
    };
    let (file, trust) = (visible_path(&found.path), trust_command(app));
    Some(match found.agreement {
        Agreement::Holds => (true, format!("the model reads {file}")),
        Agreement::Changed => {
            (false, format!("{file} has changed since you agreed to it; show it and agree again: {trust}"))
        }
        Agreement::Missing => (false, format!("no person has agreed to {file}; show it and agree: {trust}")),
    })
}

/// The file that a person agreed to. It is read again before each request. If its text is not the one that the person
/// agreed to, the reading fails.
struct AgreedFile {
    folder: PathBuf,
    path: PathBuf,
    hash: String,
}

impl Instructions for AgreedFile {
    fn read(&self) -> BoxFuture<'_, Result<Option<String>, String>> {
        let (folder, path, hash) = (self.folder.clone(), self.path.clone(), self.hash.clone());
        Box::pin(async move {
            let named = path.display().to_string();
            let text = tokio::task::spawn_blocking(move || read(&folder, &path)).await;
            match text.unwrap_or_else(|e| Err(e.to_string())).map_err(|why| format!("{named}: {why}"))? {
                Some(text) if sha256(&text) != hash => Err(format!(
                    "{named}: the file has changed since a person agreed to it; agree again: archon trust"
                )),
                text => Ok(text),
            }
        })
    }
}
