//! Reads an archon.toml, and adds the line to an error.

use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::{KEYS, Settings, events::EventSettings, resolve};
use crate::{failure::Failure, own_file};

pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) settings: Settings,
}

/// A problem of a settings file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(crate) struct Problem {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The problem, one line.
    pub(crate) problem: String,
    /// The remedy, one line.
    pub(crate) advice: String,
}

/// Reads a file; `None` if it does not exist.
pub(super) fn read(path: Option<&Path>) -> Result<Option<File>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let Some(text) = own_file::read_settings(path)? else { return Ok(None) };
    let mut settings = parse(path, &text)?;
    resolve_paths(path, &mut settings);
    Ok(Some(File { path: path.to_owned(), text, settings }))
}

/// Makes the paths in a file relative to that file.
pub(crate) fn resolve_paths(path: &Path, settings: &mut Settings) {
    resolve(path, &mut settings.workspace);
    resolve(path, &mut settings.project_file);
    resolve(path, &mut settings.data_dir);
    if let Some(apis) = &mut settings.openapi {
        apis.resolve_paths(path);
    }
    if let Some(serve) = &mut settings.serve {
        resolve(path, &mut serve.socket);
        resolve(path, &mut serve.tls_cert);
        resolve(path, &mut serve.tls_key);
    }
    for events in settings.events.iter_mut().flat_map(|events| events.values_mut()) {
        if let (EventSettings::Folder { path: folder, .. }, Some(dir)) = (events, path.parent()) {
            *folder = dir.join(&*folder);
        }
    }
}

/// Returns the number of the line at an offset, from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text[..text.floor_char_boundary(offset)].matches('\n').count() + 1
}

pub(crate) fn parse(path: &Path, text: &str) -> Result<Settings, Failure> {
    let wrong = |offset: usize, problem: &str, advice: String| {
        let line = line_at(text, offset);
        Failure::usage(format!("{}:{line}: {}", path.display(), problem.trim_end()), advice)
    };
    let at = |e: &toml::de::Error| e.span().map_or(0, |span| span.start);
    let advice = || format!("known settings: {}", KEYS.join(", "));
    let table = DeTable::parse(text).map_err(|e| wrong(at(&e), e.message(), advice()))?;
    // Checked here because serde does not give the position of an unknown key.
    for key in table.get_ref().keys() {
        let name: &str = key.get_ref();
        if !KEYS.contains(&name) {
            let advice = match archon::types::nearest(name, KEYS.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => advice(),
            };
            return Err(wrong(key.span().start, &format!("there is no setting `{name}`"), advice));
        }
    }
    toml::from_str(text).map_err(|e| wrong(at(&e), e.message(), advice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_server_are_relative_to_their_file() {
        let path = Path::new("/c/archon.toml");
        let text = "[serve]\nsocket = 'a.sock'\ntls_cert = 'server.pem'\ntls_key = '/keys/server.key'";
        let mut settings = parse(path, text).unwrap();
        resolve_paths(path, &mut settings);
        let serve = settings.serve.unwrap();
        assert_eq!(serve.socket, Some("/c/a.sock".into()));
        assert_eq!(serve.tls_cert, Some("/c/server.pem".into()));
        assert_eq!(serve.tls_key, Some("/keys/server.key".into()));
    }
}
