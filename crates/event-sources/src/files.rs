//! Files of a folder. Looks from time to time are the same on each file system, also on one that other machines share.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use archon_triggers::{TriggerEngine, TriggerEvent};
use archon_types::{CancellationToken, Clock, TenantId};
use serde_json::json;
use wildmatch::WildMatch;

use crate::problem::OnProblem;

/// The time between two looks.
const LOOK: Duration = Duration::from_secs(2);

/// The most files of a folder.
const MOST_FILES: usize = 10_000;

/// Publishes the files of a folder that appear, change and go, as events with the types `file.created`, `file.changed` and
/// `file.removed`. The data has `path`, `name` and `bytes`; a run reads the file with a tool.
///
/// It looks into the folder every two seconds. A new or changed file is published once two looks in a row find the same
/// size and time, so a file that is still being written waits. Files that are there at the start, and changes while the
/// program is stopped, are not published. Subfolders are left out. The folder may have at most 10,000 files that match.
///
/// ```
/// use archon_event_sources::FileSource;
///
/// let source = FileSource::new("invoices", "/srv/invoices").matching("*.pdf").tenant("anna");
/// # let _ = source;
/// ```
#[derive(Clone, Debug)]
pub struct FileSource {
    name: String,
    folder: PathBuf,
    pattern: WildMatch,
    tenant: Option<TenantId>,
    on_problem: OnProblem,
}

/// A folder cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileSourceError {
    /// The folder cannot be read at the start.
    #[error("the folder {} cannot be watched: {problem}; create it, or name another", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The problem.
        problem: io::Error,
    },
}

/// The files at a look, by name.
type Look = BTreeMap<String, Seen>;

/// The state of a file by which a change is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    bytes: u64,
    changed: SystemTime,
}

impl FileSource {
    /// Creates a source that watches `folder`. Its events have the source `name`.
    pub fn new(name: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        let (pattern, on_problem) = (WildMatch::new("*"), OnProblem::default());
        Self { name: name.into(), folder: folder.into(), pattern, tenant: None, on_problem }
    }

    /// Publishes only files whose name matches a pattern, in which `*` stands for any text and `?` for one character.
    /// Default: all files.
    #[must_use]
    pub fn matching(mut self, pattern: &str) -> Self {
        self.pattern = WildMatch::new(pattern);
        self
    }

    /// Sets the tenant whose tasks get the events; by default `local`.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<TenantId>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Calls `note` with each problem that does not end [`serve`](Self::serve), such as a folder that is gone; the text
    /// is for a person. Default: problems are only logged.
    #[must_use]
    pub fn on_problem(mut self, note: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_problem = OnProblem::new(note);
        self
    }

    /// Publishes changes until `stop` is cancelled. A folder that cannot be read later, and an event that cannot be stored, are
    /// tried again at the next look.
    ///
    /// # Errors
    /// The folder cannot be read at the start.
    pub async fn serve(
        &self,
        engine: &TriggerEngine,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> Result<(), FileSourceError> {
        let folder = self.folder.clone();
        let first = self.look().await.map_err(|problem| FileSourceError::Folder { folder, problem })?;
        let (mut published, mut last) = (first.clone(), first);
        loop {
            tokio::select! {
                () = clock.sleep_until(clock.now() + LOOK) => {}
                () = stop.cancelled() => return Ok(()),
            }
            let look = match self.look().await {
                Ok(look) => look,
                Err(problem) => {
                    let error = FileSourceError::Folder { folder: self.folder.clone(), problem };
                    self.on_problem.note(&error.to_string());
                    continue;
                }
            };
            for (name, change) in changes(&published, &last, &look) {
                match engine.publish(&self.event(&name, change).at(clock.now())).await {
                    Ok(_) => note(&mut published, name, change),
                    Err(error) => {
                        let file = self.folder.join(&name);
                        self.on_problem
                            .note(&format!("the change of {} is published later: {error}", file.display()));
                    }
                }
            }
            last = look;
        }
    }

    async fn look(&self) -> io::Result<Look> {
        let (folder, pattern) = (self.folder.clone(), self.pattern.clone());
        let look = tokio::task::spawn_blocking(move || read_folder(&folder, &pattern));
        look.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn event(&self, name: &str, change: Change) -> TriggerEvent {
        let path = self.folder.join(name);
        let (kind, seen) = match change {
            Change::Created(seen) => ("file.created", seen),
            Change::Changed(seen) => ("file.changed", seen),
            Change::Removed(seen) => ("file.removed", seen),
        };
        let time = seen.changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let id = format!("{kind}/{}/{}/{}", path.display(), time.as_nanos(), seen.bytes);
        let data = json!({ "path": path.display().to_string(), "name": name, "bytes": seen.bytes });
        let mut event = TriggerEvent::new(id, &self.name, kind, data);
        event.tenant.clone_from(&self.tenant);
        event
    }
}

/// A change of a file, with its new state, or its last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Created(Seen),
    Changed(Seen),
    Removed(Seen),
}

/// Returns the differences between what was published and what two looks found the same, by the name of the file.
fn changes(published: &Look, last: &Look, look: &Look) -> Vec<(String, Change)> {
    let settled = look.iter().filter(|(name, seen)| last.get(*name) == Some(*seen));
    let present = settled.filter_map(|(name, seen)| {
        let change = match published.get(name) {
            None => Change::Created(*seen),
            Some(before) if before != seen => Change::Changed(*seen),
            Some(_) => return None,
        };
        Some((name.clone(), change))
    });
    // A program that replaces a file may remove it for a moment.
    let is_gone = |name: &&String| !look.contains_key(*name) && !last.contains_key(*name);
    let gone = published.keys().filter(is_gone);
    let gone = gone.map(|name| (name.clone(), Change::Removed(published[name])));
    present.chain(gone).collect()
}

fn note(published: &mut Look, name: String, change: Change) {
    match change {
        Change::Created(seen) | Change::Changed(seen) => drop(published.insert(name, seen)),
        Change::Removed(_) => drop(published.remove(&name)),
    }
}

/// Returns the files of a folder whose names match. Links are not followed, and names that are no text are left out.
fn read_folder(folder: &Path, pattern: &WildMatch) -> io::Result<Look> {
    let mut look = Look::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // A file may go between the list and the look at it.
        let Ok(about) = entry.metadata() else { continue };
        if !about.is_file() || !pattern.matches(&name) {
            continue;
        }
        if look.len() == MOST_FILES {
            return Err(io::Error::other(format!("it has more than {MOST_FILES} files: move some away")));
        }
        look.insert(name, Seen { bytes: about.len(), changed: about.modified()? });
    }
    Ok(look)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(files: &[(&str, u64)]) -> Look {
        let seen = |bytes| Seen { bytes, changed: SystemTime::UNIX_EPOCH };
        files.iter().map(|(name, bytes)| ((*name).to_owned(), seen(*bytes))).collect()
    }

    // spec: TR-04
    #[test]
    fn changes_are_those_that_two_looks_found_the_same() {
        let names = |published: &Look, last: &Look, now: &Look| -> Vec<String> {
            let changes = changes(published, last, now).into_iter();
            changes
                .map(|(name, change)| format!("{name} {change:?}").split('(').next().unwrap().to_owned())
                .collect()
        };
        let none = look(&[]);
        let (small, large) = (look(&[("a", 1)]), look(&[("a", 2)]));
        assert_eq!(names(&none, &none, &small), [""; 0], "it may still be written");
        assert_eq!(names(&none, &small, &large), [""; 0]);
        assert_eq!(names(&none, &large, &large), ["a Created"]);
        assert_eq!(names(&small, &large, &large), ["a Changed"]);
        assert_eq!(names(&small, &small, &none), [""; 0], "it may be replaced");
        assert_eq!(names(&small, &none, &none), ["a Removed"]);
    }
}
