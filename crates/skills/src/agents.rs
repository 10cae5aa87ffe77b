//! Agents from files, by name.

mod fields;
mod file;
mod places;
mod problem;
mod tool_names;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use file::AgentFile;
pub use places::AgentFilePlaces;
pub use problem::AgentFileProblem;

use crate::skill_file;

/// The maximum number of files that are read from one folder.
const MOST_FILES: usize = 200;

/// Agents from files, by name. If a name is loaded again, the later agent replaces the earlier one, with a warning.
///
/// ```
/// use archon_skills::AgentFiles;
///
/// # let place = tempfile::tempdir()?;
/// let text = "---\nname: reviewer\ndescription: Reviews a change.\n---\nYou review changes.\n";
/// std::fs::write(place.path().join("reviewer.md"), text)?;
/// let files = AgentFiles::load([place.path()]);
/// assert_eq!(files.get("reviewer").unwrap().instructions, "You review changes.");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AgentFiles {
    files: BTreeMap<String, Arc<AgentFile>>,
    warnings: Vec<AgentFileProblem>,
    untrusted: Vec<Arc<AgentFile>>,
}

impl AgentFiles {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads the files `*.md` in folders that a person trusts. Later folders override earlier ones. A folder that
    /// does not exist has no files. Symbolic links in the folders are not followed, and subfolders are not searched.
    ///
    /// A file that describes no agent is left out with a warning. At most 200 files of a folder are read.
    pub fn load<P: AsRef<Path>>(dirs: impl IntoIterator<Item = P>) -> Self {
        Self::load_with(dirs, &[])
    }

    /// Does the same as [`load`](Self::load), and also keeps the further fields whose names are in `own`: they are
    /// in [`AgentFile::more`].
    pub fn load_with<P: AsRef<Path>>(dirs: impl IntoIterator<Item = P>, own: &[&str]) -> Self {
        let mut files = Self::new();
        dirs.into_iter().for_each(|dir| files.load_dir(dir.as_ref(), own));
        files
    }

    fn load_dir(&mut self, dir: &Path, own: &[&str]) {
        // The person named this folder, so it may itself be a link.
        let Ok(dir) = dir.canonicalize() else { return };
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) => return self.warn(&dir, format!("the folder cannot be read: {error}")),
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut paths: Vec<PathBuf> = paths.filter(|path| is_markdown(path)).collect();
        paths.sort();
        if paths.len() > MOST_FILES {
            self.warn(
                &dir,
                format!("only {MOST_FILES} files of the folder are read; the others are left out"),
            );
        }
        paths.iter().take(MOST_FILES).for_each(|path| self.load_file(path, own));
    }

    fn load_file(&mut self, path: &Path, own: &[&str]) {
        if path.is_symlink() {
            return self.warn(path, "the file is a symbolic link, which is not followed; copy it".to_owned());
        }
        let content = match skill_file::read_bytes(path) {
            Ok(content) => content,
            Err(error) => {
                return self.warn(path, format!("the file cannot be read ({error}); it is left out"));
            }
        };
        match AgentFile::parse_with(path, &content, own) {
            Ok((file, warnings)) => {
                self.warnings.extend(warnings);
                self.insert(Arc::new(file));
            }
            Err(problems) => self.warnings.extend(problems),
        }
    }

    fn warn(&mut self, file: &Path, text: String) {
        self.warnings.push(AgentFileProblem::new(file, 1, text));
    }

    fn insert(&mut self, file: Arc<AgentFile>) {
        if let Some(earlier) = self.files.insert(file.name.clone(), file.clone()) {
            let (name, earlier) = (&file.name, earlier.file.display());
            let text = format!("the agent `{name}` replaces that of {earlier}; rename one to have both");
            self.warnings.push(file.problem("name", text));
        }
    }

    /// Adds the agents, warnings and untrusted files of `later`. If both have an agent with the same name, the agent
    /// of `later` is kept, with a warning.
    pub fn merge(&mut self, later: Self) {
        self.warnings.extend(later.warnings);
        self.untrusted.extend(later.untrusted);
        later.files.into_values().for_each(|file| self.insert(file));
    }

    /// Separates the files that a person trusts from the others.
    fn split(mut self, is_trusted: &dyn Fn(&Path, &str) -> bool) -> (Self, Vec<Arc<AgentFile>>) {
        let files = std::mem::take(&mut self.files).into_iter();
        let (trusted, untrusted): (Vec<_>, Vec<_>) =
            files.partition(|(_, file)| is_trusted(&file.file, &file.digest));
        self.files = trusted.into_iter().collect();
        (self, untrusted.into_iter().map(|(_, file)| file).collect())
    }

    /// Returns the agent with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<AgentFile>> {
        self.files.get(name)
    }

    /// Returns all agents, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<AgentFile>> {
        self.files.values()
    }

    /// Returns true if there are no agents.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the problems that were found, each with its file and line.
    pub fn warnings(&self) -> &[AgentFileProblem] {
        &self.warnings
    }

    /// Returns the project's files that no person has trusted yet. Show each file to a person. If the person trusts
    /// the file, store its path and its digest, and accept them in the `is_trusted` of the next
    /// [`discover`](Self::discover).
    pub fn untrusted(&self) -> &[Arc<AgentFile>] {
        &self.untrusted
    }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}
