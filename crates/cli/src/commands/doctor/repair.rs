//! The problems that `archon doctor --fix` can repair. Each repair is safe: it loses no data, and does not
//! disturb a command that works at the same time.

use std::{
    collections::HashSet,
    fs::{self, File},
    path::{Path, PathBuf},
};

use archon::types::{Journal as _, RunFilter};

use crate::{
    app::App,
    chosen::PREFIX,
    failure::Failure,
    local, own_file,
    text::{visible, visible_path},
};

/// A problem that can be repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// The data folder is missing.
    Folder(PathBuf),
    /// Other users can read or change a file with secrets, or its owner cannot.
    Permissions(PathBuf),
    /// The index of runs lacks some runs.
    Index(PathBuf),
    /// A lock of a run that never got a log; no process holds the lock.
    Lock(PathBuf),
    /// The settings name a model that was not downloaded.
    Model(String),
}

pub(super) async fn find(app: &App) -> Vec<Repair> {
    let mut found = Vec::new();
    if !app.data_dir.exists() {
        found.push(Repair::Folder(app.data_dir.clone()));
    }
    let secrets = SECRETS.iter().map(|name| app.data_dir.join(name));
    found.extend(secrets.filter(|path| is_open_to_others(path)).map(Repair::Permissions));
    if lacks_runs(app).await {
        found.push(Repair::Index(app.data_dir.join("index")));
    }
    found.extend(stale_locks(&app.data_dir.join("runs")).into_iter().map(Repair::Lock));
    found.extend(missing_models(app).into_iter().map(Repair::Model));
    found
}

/// The files with secrets in the data folder.
const SECRETS: &[&str] = &["credentials.db", "credentials.key", "inbox.key"];

impl Repair {
    pub(super) fn problem(&self) -> String {
        match self {
            Self::Folder(path) => format!("the data folder {} is missing", visible_path(path)),
            Self::Permissions(path) => {
                format!("the permissions of {} do not restrict it to its owner", visible_path(path))
            }
            Self::Index(path) => format!("the index {} lacks runs", visible_path(path)),
            Self::Lock(path) => format!("the lock {} belongs to no run", visible_path(path)),
            Self::Model(name) => format!("the model {} of the settings was not downloaded", visible(name)),
        }
    }

    /// Repairs the problem, and returns a description of the repair.
    pub(super) async fn apply(&self, app: &App) -> Result<String, Failure> {
        let failed = |e: std::io::Error| Failure::failed(e.to_string(), "repair it by hand");
        match self {
            Self::Folder(path) => {
                own_file::create_folder(path).map(|()| "created".to_owned()).map_err(failed)
            }
            Self::Permissions(path) => {
                close(path).map(|()| "now only its owner can read it".to_owned()).map_err(failed)
            }
            Self::Index(path) => {
                // The next list builds it again.
                fs::remove_file(path.join("complete")).map_err(failed)?;
                match lacks_runs(app).await {
                    false => Ok("built again".to_owned()),
                    true => {
                        let advice = format!("remove the folder {} while no run works", visible_path(path));
                        Err(Failure::failed("the index was built again and still lacks runs", advice))
                    }
                }
            }
            Self::Lock(path) => match remove_lock(path).map_err(failed)? {
                true => Ok("removed".to_owned()),
                false => Ok("a run has begun to use it meanwhile".to_owned()),
            },
            Self::Model(name) => match local::fetch(app, Some(name)).await? {
                Some(path) => Ok(format!("downloaded into {}", visible_path(&path))),
                None => {
                    Err(Failure::failed("interrupted", format!("continue with: archon model pull {name}")))
                }
            },
        }
    }
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o777 != 0o600)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn close(path: &Path) -> std::io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
}

#[cfg(not(unix))]
fn close(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Returns true if the list of runs that the index gives lacks a run that has a log.
async fn lacks_runs(app: &App) -> bool {
    if !app.data_dir.join("index").join("complete").exists() {
        return false;
    }
    let journal = app.journal();
    let Ok(all) = journal.list(&RunFilter::all()).await else { return false };
    // A list with a limit uses the index. It comes second, so a run that begins meanwhile is not missed.
    let Ok(page) = journal.list(&RunFilter::all().limit(usize::MAX)).await else { return true };
    let page: HashSet<_> = page.into_iter().map(|head| head.run_id).collect();
    all.iter().any(|head| !page.contains(&head.run_id))
}

/// Returns the locks without a log that no process holds: a command was killed before its run began.
fn stale_locks(runs: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut locks: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "lock")).collect();
    locks.retain(|path| {
        is_without_log(path) && File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok())
    });
    locks.sort();
    locks
}

fn is_without_log(lock: &Path) -> bool {
    !lock.with_extension("jsonl").exists()
}

/// Removes the file of a lock while this process holds the lock, as the process of a run does, so no process
/// can hold a lock whose file is gone. Returns false if another process holds the lock or the run has a log.
fn remove_lock(path: &Path) -> std::io::Result<bool> {
    let file = File::options().write(true).open(path)?;
    match file.try_lock().is_ok() && is_without_log(path) {
        true => fs::remove_file(path).map(|()| true),
        false => Ok(false),
    }
}

/// Returns the models in the settings as `local:NAME` that can be downloaded and are not on this disk.
fn missing_models(app: &App) -> Vec<String> {
    let settings = &app.config.settings;
    let agents =
        settings.agents.iter().flat_map(|agents| agents.values()).filter_map(|agent| agent.model.as_ref());
    let named = settings.model.iter().chain(settings.fallback.iter().flatten()).chain(agents);
    let (files, known) = (local::files(app), local::catalogue());
    let mut missing: Vec<_> = named
        .filter_map(|name| name.strip_prefix(PREFIX))
        .filter(|name| files.iter().all(|(file, _)| file != name))
        .filter(|name| known.iter().any(|model| model.name == *name))
        .map(str::to_owned)
        .collect();
    missing.sort();
    missing.dedup();
    missing
}
