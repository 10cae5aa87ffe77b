//! A file with a project's instructions for its agents, such as `ARCHON.md` or `AGENTS.md`.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon_types::{BoxFuture, Instructions};

use crate::ArchonBuilder;

/// The instructions of a project in a file. The file is read again before each model call, so an edit takes
/// effect in the next turn. A missing file adds nothing; if the file cannot be read, its last text stays in
/// effect.
///
/// ```
/// use archon::{Archon, ProjectFile};
///
/// let builder = Archon::builder().project_file(ProjectFile::in_folder("projects/shop"));
/// ```
#[derive(Clone, Debug)]
pub struct ProjectFile {
    candidates: Vec<PathBuf>,
}

impl ProjectFile {
    /// The maximum size of a file in bytes. A larger file is an error. It is not cut, because its beginning alone can
    /// mean the opposite of the whole text.
    pub const MAX_BYTES: u64 = 65_536;

    /// Creates the source for the file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { candidates: vec![path.into()] }
    }

    /// Creates the source for `ARCHON.md` in this folder, or `AGENTS.md` if there is no such file.
    pub fn in_folder(folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        Self { candidates: ["ARCHON.md", "AGENTS.md"].map(|name| folder.join(name)).into() }
    }

    /// Creates a source that reads the first of these files that exists. Each read looks for the files again.
    pub fn first_of(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { candidates: paths.into_iter().map(Into::into).collect() }
    }

    fn read_now(&self) -> Result<Option<String>, String> {
        for path in &self.candidates {
            match read(path) {
                Ok(text) => return Ok(Some(text)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Ok(None)
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(ProjectFile::MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > ProjectFile::MAX_BYTES {
        true => {
            Err(std::io::Error::other(format!("the file is longer than {} bytes", ProjectFile::MAX_BYTES)))
        }
        false => Ok(text),
    }
}

impl Instructions for ProjectFile {
    fn read(&self) -> BoxFuture<'_, Result<Option<String>, String>> {
        let own = self.clone();
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || own.read_now()).await;
            read.unwrap_or_else(|error| Err(error.to_string()))
        })
    }

    fn files(&self) -> Vec<String> {
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        self.candidates.iter().map(|path| whole(path).display().to_string()).collect()
    }
}

impl ArchonBuilder {
    /// Sets the file with the project's instructions, which the model reads after the system text. Agents
    /// that this agent calls do not read the file.
    ///
    /// ```
    /// use archon::{Archon, ProjectFile};
    /// let builder = Archon::builder().project_file(ProjectFile::new("projects/shop/RULES.txt"));
    /// ```
    pub fn project_file(self, file: ProjectFile) -> Self {
        self.instructions(Arc::new(file))
    }
}

archon_types::setters! {
impl ArchonBuilder {
    /// Sets any source of the project's instructions, in place of [`project_file`](Self::project_file).
    ///
    /// ```
    /// use archon::{Archon, ProjectFile};
    /// let files = ProjectFile::first_of(["projects/shop/RULES.txt", "RULES.txt"]);
    /// let builder = Archon::builder().instructions(std::sync::Arc::new(files));
    /// ```
    pub fn instructions(self, source: Arc<dyn Instructions>) -> Self { self.instructions = Some(source) }
}
}
