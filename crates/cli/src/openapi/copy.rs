//! Copies of documents in the data folder, each named by its SHA-256. So no run fetches a document, or reads a document
//! other than the one that a person has seen.

use std::path::{Path, PathBuf};

use archon::openapi::OpenApiDocument;

use super::entry::{place, wrong};
use crate::{
    app::App,
    command_line::{in_data_dir, quoted},
    config::{ApiSettings, is_address, sha256},
    failure::Failure,
    own_file,
    text::{visible_line, visible_path},
};

/// Maximum size of a document of a project, in bytes; the same as for a document that is fetched.
const LARGEST: u64 = 64 << 20;

/// Returns the document of an API: the copy, else the file that the settings name. It must have the digest of the
/// settings.
pub(super) fn read(app: &App, name: &str, settings: &ApiSettings) -> Result<OpenApiDocument, Failure> {
    let ApiSettings { document, digest, .. } = settings;
    let copy = path(app, digest);
    let text = match own_file::read(&copy) {
        Ok(Some(text)) => text,
        Ok(None) if is_address(document) => return Err(without_copy(app, name, settings)),
        Ok(None) => {
            let file = Path::new(document);
            let advice = format!("import it again: archon openapi import FILE --name {name} --replace");
            if settings.is_of_project {
                check_inside(app, file).map_err(|why| {
                    let what = format!("{}: its document {} {why}", place(name), visible_path(file));
                    Failure::usage(what, "put the document itself into the folder of the project")
                })?;
            }
            let text = own_file::read(file).map_err(|e| Failure::unreadable(file, &e, &advice))?;
            text.ok_or_else(|| without_copy(app, name, settings))?
        }
        Err(e) => {
            return Err(Failure::unreadable(&copy, &e, "make it readable, or remove it and import it again"));
        }
    };
    if sha256(&text) != *digest {
        let what =
            format!("{}: {} is not the document that was imported", place(name), visible_line(document));
        return Err(Failure::failed(what, look_and_replace(app, name, document)));
    }
    OpenApiDocument::from_text(text, document).map_err(|e| wrong(name, &e))
}

/// Checks that a document of a project is a file of the project, which can be read before a person agreed.
///
/// # Errors
/// The reason why it is not read: it is outside, no file, or too large.
fn check_inside(app: &App, file: &Path) -> Result<(), String> {
    let folder = app.sources.project.as_deref().and_then(Path::parent);
    let folder = folder.and_then(|folder| folder.canonicalize().ok());
    // A missing file is reported later.
    let (Ok(real), Some(folder)) = (file.canonicalize(), folder) else { return Ok(()) };
    if !real.starts_with(folder) {
        return Err("is outside of the project".to_owned());
    }
    match real.metadata() {
        Ok(found) if !found.is_file() => Err("is no file".to_owned()),
        Ok(found) if found.len() > LARGEST => Err(format!("has more than {} MiB", LARGEST >> 20)),
        _ => Ok(()),
    }
}

fn without_copy(app: &App, name: &str, settings: &ApiSettings) -> Failure {
    let what = format!("{}: there is no copy of its document in {}", place(name), visible_path(&folder(app)));
    Failure::failed(what, look_and_replace(app, name, &settings.document))
}

/// Returns the advice for a document that has to be imported again.
fn look_and_replace(app: &App, name: &str, document: &str) -> String {
    let command = format!("archon openapi import {} --name {name} --replace", quoted(document));
    format!("look at it and import it again: {}", in_data_dir(app, &command))
}

/// Keeps a copy of a document with this text and digest. Returns its path.
#[cfg(feature = "setup")]
pub(crate) fn keep(app: &App, text: &str, digest: &str) -> Result<PathBuf, Failure> {
    let path = path(app, digest);
    match own_file::replace(&path, text) {
        Ok(()) => Ok(path),
        Err(e) => Err(Failure::unwritable(&path, &e, "make the data folder writable: archon doctor")),
    }
}

/// Removes the copy of a document, if there is one.
#[cfg(feature = "setup")]
pub(crate) fn remove(app: &App, digest: &str) -> Result<(), Failure> {
    let path = path(app, digest);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::unwritable(&path, &e, "remove it by hand"))
        }
        _ => Ok(()),
    }
}

fn path(app: &App, digest: &str) -> PathBuf {
    folder(app).join(digest)
}

fn folder(app: &App) -> PathBuf {
    app.data_dir.join("openapi")
}
