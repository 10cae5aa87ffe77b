//! The places where people and projects have their agent files.

use std::path::{Path, PathBuf};

use super::{AgentFileProblem, AgentFiles};

/// The folders with agent files, relative to a home folder or a project. Later folders override earlier ones.
const FOLDERS: [&str; 2] = [".claude/agents", ".archon/agents"];

/// The places of agent files: `.archon/agents` and `.claude/agents` in a person's home folder and in a project.
///
/// Files of the project override files of the person. In both, `.archon` overrides `.claude`.
///
/// ```
/// use archon_skills::AgentFilePlaces;
///
/// let places = AgentFilePlaces::new().with_user("/home/anna").with_project("/home/anna/shop");
/// ```
#[derive(Clone, Debug, Default)]
pub struct AgentFilePlaces {
    user: Option<PathBuf>,
    project: Option<PathBuf>,
}

impl AgentFilePlaces {
    /// Creates places without a home folder and without a project.
    pub fn new() -> Self {
        Self::default()
    }
}

archon_types::setters! {
impl AgentFilePlaces {
    /// Sets the home folder of the person.
    pub fn with_user(self, home: impl Into<PathBuf>) -> Self { self.user = Some(home.into()) }

    /// Sets the folder of the project. If this is also the home folder, its files count as the person's own and need
    /// no trust.
    pub fn with_project(self, root: impl Into<PathBuf>) -> Self { self.project = Some(root.into()) }
}
}

impl AgentFiles {
    /// Loads the agent files of the places. A project's file is loaded only if `is_trusted` returns true for its path
    /// and its [`digest`](crate::AgentFile::digest). The path is absolute and without symbolic links. The other files
    /// of the project are in [`untrusted`](Self::untrusted).
    pub fn discover(places: &AgentFilePlaces, is_trusted: &dyn Fn(&Path, &str) -> bool) -> Self {
        let mut files = Self::new();
        let home = places.user.as_deref().and_then(|home| home.canonicalize().ok());
        for folder in FOLDERS {
            if let Some(home) = &home {
                files.merge(Self::load([home.join(folder)]));
            }
        }
        let project = places.project.as_deref().and_then(|root| root.canonicalize().ok());
        let Some(root) = project.filter(|root| home.as_ref() != Some(root)) else { return files };
        for folder in FOLDERS {
            let (trusted, untrusted) = of_project(&root, folder).split(is_trusted);
            files.merge(trusted);
            files.untrusted.extend(untrusted);
        }
        files
    }
}

/// Loads all files in a folder of the project, trusted or not.
fn of_project(root: &Path, folder: &str) -> AgentFiles {
    let dir = root.join(folder);
    let Ok(real) = dir.canonicalize() else { return AgentFiles::new() };
    if real.starts_with(root) {
        return AgentFiles::load([real]);
    }
    let mut files = AgentFiles::new();
    let text =
        "the folder leads out of the project, and is not searched for agent files; copy it into the project";
    files.warnings.push(AgentFileProblem::new(dir, 1, text));
    files
}
