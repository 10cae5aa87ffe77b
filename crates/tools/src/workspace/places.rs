//! Filters the entries below a folder: a tool does not see an entry if permission rules would not let a separate call
//! on that entry run.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use archon_types::{Context, PermissionBound, Permit, Subject, ToolContext, ToolResult, ToolSpec};

use super::{Entry, Workspace};

/// Decides which files and folders one call may see. Cheap to clone; clones share the counter of refused
/// entries.
#[derive(Clone)]
pub(crate) struct Places {
    workspace: Workspace,
    rules: Option<Arc<Rules>>,
    /// Number of entries that rules refused.
    refused: Arc<AtomicUsize>,
}

struct Rules {
    bound: Arc<dyn PermissionBound>,
    run: Context,
    root: PathBuf,
    /// The tool itself, and the tool whose rules apply to the contents that it shows.
    tools: Vec<ToolSpec>,
    /// True if a person approved the call for its folder, and so for everything below the folder.
    is_agreed: bool,
}

impl Places {
    /// Makes a filter for a call of `tool` on the folder or file `begin`. Contents that the tool shows are
    /// also subject to the rules of the tool `reads_as`.
    pub(crate) fn new(
        workspace: &Workspace,
        begin: &Path,
        tool: &ToolSpec,
        reads_as: Option<&str>,
        context: &ToolContext,
    ) -> Self {
        let rules = context.places.as_ref().map(|bound| {
            let reads = reads_as.map(|name| {
                let mut reads = tool.clone();
                reads.name = name.to_owned();
                reads
            });
            let tools = [tool.clone()].into_iter().chain(reads).collect();
            let (bound, run, root) = (bound.clone(), context.run.clone(), workspace.root().to_owned());
            let mut rules = Rules { bound, run, root, tools, is_agreed: false };
            rules.is_agreed = rules.verdict(tool, begin) == Permit::Ask;
            Arc::new(rules)
        });
        Self { workspace: workspace.clone(), rules, refused: Arc::default() }
    }

    /// Returns whether the call may see an entry. Entries that rules refuse are counted.
    pub(crate) fn allow(&self, path: &Path) -> bool {
        if self.workspace.excluded(path).is_some() {
            return false;
        }
        let is_allowed = self.rules.as_ref().is_none_or(|rules| rules.allow(path));
        self.refused.fetch_add(usize::from(!is_allowed), Ordering::Relaxed);
        is_allowed
    }

    /// [Walks](Workspace::walk) a folder without refused entries. If the folder itself is refused, the walk
    /// is empty.
    pub(crate) fn walk(&self, folder: &Path) -> impl Iterator<Item = Entry> + use<> {
        let places = self.clone();
        // The walk does not filter its first entry.
        let all = self.allow(folder).then(|| self.workspace.walk(folder, move |path| places.allow(path)));
        all.into_iter().flatten()
    }

    /// Adds a note to the result with the number of entries that were left out.
    pub(crate) fn with_notes(&self, mut result: ToolResult) -> ToolResult {
        let places = match self.refused.load(Ordering::Relaxed) {
            0 => return result,
            1 => "1 place was".to_owned(),
            many => format!("{many} places were"),
        };
        let note = format!(
            "({places} left out: a rule does not let this tool look there unasked. Go on without, or ask the person to \
             change the rule.)"
        );
        result.content.push(note.into());
        result.with_metadata("left_out", self.refused.load(Ordering::Relaxed))
    }
}

impl Rules {
    fn allow(&self, path: &Path) -> bool {
        self.tools.iter().all(|tool| match self.verdict(tool, path) {
            Permit::Allow => true,
            Permit::Ask => self.is_agreed,
            _ => false,
        })
    }

    fn verdict(&self, tool: &ToolSpec, path: &Path) -> Permit {
        let subject = Subject::Paths { root: self.root.clone(), paths: vec![path.to_owned()] };
        self.bound.verdict(tool, &subject, &self.run)
    }
}
