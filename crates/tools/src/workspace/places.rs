//! The places that a tool comes across below a folder: where rules would not let it begin, it does not look either.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use archon_types::{Ceiling, Context, Permit, Subject, ToolContext, ToolResult, ToolSpec};

use super::{Entry, Workspace};

/// What rules leave of a folder for one call. Cheap to clone; clones count together.
#[derive(Clone)]
pub(crate) struct Places {
    workspace: Workspace,
    rules: Option<Arc<Rules>>,
    left_out: Arc<AtomicUsize>,
}

struct Rules {
    ceiling: Arc<dyn Ceiling>,
    run: Context,
    root: PathBuf,
    /// The tool itself, and the one as which it reads.
    tools: Vec<ToolSpec>,
    /// The call begins where a person is asked, so one has agreed to all that is below.
    is_agreed: bool,
}

impl Places {
    /// For a call of `tool` that begins at `begin`. What the tool shows of a file falls under the rules of `reads_as`, too.
    pub(crate) fn new(
        workspace: &Workspace,
        begin: &Path,
        tool: &ToolSpec,
        reads_as: Option<&str>,
        context: &ToolContext,
    ) -> Self {
        let rules = context.places.as_ref().map(|ceiling| {
            let reads = reads_as.map(|name| {
                let mut reads = tool.clone();
                reads.name = name.to_owned();
                reads
            });
            let tools = [tool.clone()].into_iter().chain(reads).collect();
            let (ceiling, run, root) = (ceiling.clone(), context.run.clone(), workspace.root().to_owned());
            let mut rules = Rules { ceiling, run, root, tools, is_agreed: false };
            rules.is_agreed = rules.verdict(tool, begin) == Permit::Ask;
            Arc::new(rules)
        });
        Self { workspace: workspace.clone(), rules, left_out: Arc::default() }
    }

    /// Whether the call may look here. A place where it may not is counted.
    pub(crate) fn allow(&self, path: &Path) -> bool {
        if self.workspace.left_out(path).is_some() {
            return false;
        }
        let is_allowed = self.rules.as_ref().is_none_or(|rules| rules.allow(path));
        self.left_out.fetch_add(usize::from(!is_allowed), Ordering::Relaxed);
        is_allowed
    }

    /// [Walks](Workspace::walk) a folder past what is left out, and nowhere if that is all of it.
    pub(crate) fn walk(&self, folder: &Path) -> impl Iterator<Item = Entry> + use<> {
        let places = self.clone();
        // Where a walk begins is not filtered.
        let all = self.allow(folder).then(|| self.workspace.walk(folder, move |path| places.allow(path)));
        all.into_iter().flatten()
    }

    /// The result, which says how many places were left out.
    pub(crate) fn tell(&self, mut result: ToolResult) -> ToolResult {
        let places = match self.left_out.load(Ordering::Relaxed) {
            0 => return result,
            1 => "1 place was".to_owned(),
            many => format!("{many} places were"),
        };
        result.content.push(
            format!(
                "({places} left out: a rule does not let this tool look there unasked. Go on without, or ask the person to \
                 change the rule.)"
            )
            .into(),
        );
        result.with_metadata("left_out", self.left_out.load(Ordering::Relaxed))
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
        self.ceiling.verdict(tool, &subject, &self.run)
    }
}
