//! Skills of an agent: the list for the model, and the toolbox that applies the limits of active skills.

use std::sync::Arc;

use archon_skills::{ACTIVATE_SKILL, RuleMatcher, SkillBound, SkillConversations, SkillSet};
use archon_tools::Permissions;
use archon_types::{
    BoxFuture, CallId, Context, Encoded, Executed, Prepared, ProcessGroup, ReadyCall, SessionId, Subject,
    ToolCall, ToolResult, ToolSpec, Toolbox,
};

/// The text before the list of skills.
const ABOUT: &str = "Skills are instructions for some kinds of tasks. When a task fits the description of a skill, \
                     load it with the tool `activate_skill` before you begin.";

/// Creates the skill conversations of an agent. The rules in `allowed-tools` of a skill are permission rules.
pub(crate) fn conversations(skills: Arc<SkillSet>) -> Arc<SkillConversations> {
    Arc::new(SkillConversations::new(skills).with_matcher(Arc::new(PermissionRules)))
}

/// Returns the list of the skills for the system text.
pub(crate) fn note(conversations: &SkillConversations) -> String {
    format!("{ABOUT}\n{}", conversations.skills().format_for_prompt())
}

/// Wraps a toolbox so that it applies the limits of active skills. A limit in the log applies even if its skill no
/// longer exists. So pass `Some` for every agent that was given a set of skills, even an empty one; `None` returns
/// the toolbox unchanged.
pub(crate) fn within_skills(
    toolbox: Arc<dyn Toolbox>,
    skills: Option<Arc<SkillConversations>>,
) -> Arc<dyn Toolbox> {
    match skills {
        Some(skills) => Arc::new(SkillToolbox { inner: toolbox, skills }),
        None => toolbox,
    }
}

/// Compares calls with the rules of skills in the same way as with permission rules.
struct PermissionRules;

impl RuleMatcher for PermissionRules {
    fn allows(&self, rules: &[&str], tool: &str, subject: &Subject) -> bool {
        let rules = Permissions::parse([], [], rules.iter().copied());
        rules.is_ok_and(|rules| rules.is_trusted(tool, subject))
    }
}

/// A toolbox that limits the calls of a run to those that the active skills of the run allow. The limit is a part of
/// the run's permission bound, so that it also applies to child runs.
struct SkillToolbox {
    inner: Arc<dyn Toolbox>,
    skills: Arc<SkillConversations>,
}

impl SkillToolbox {
    /// Returns the context of a run, with the bound; `None` if no skill can limit the run.
    fn bounded(&self, run: &Context) -> Option<Context> {
        let conversation = self.skills.of(&run.session);
        let may_limit = self.skills.skills().iter().any(|skill| skill.allowed_tools.is_some());
        if !may_limit && !conversation.has_limits(&run.run) {
            return None;
        }
        let mut bounded = run.clone();
        let above = run.permission_bound.clone();
        bounded.permission_bound = Some(Arc::new(SkillBound::new(conversation, run.run.clone(), above)));
        Some(bounded)
    }
}

impl Toolbox for SkillToolbox {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        self.inner.specs()
    }

    fn sourced_spec(&self, name: &str) -> Option<ToolSpec> {
        self.inner.sourced_spec(name)
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, run: &'a Context) -> BoxFuture<'a, Prepared> {
        let bounded = self.bounded(run);
        Box::pin(async move { self.inner.prepare(id, call, bounded.as_ref().unwrap_or(run)).await })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        let bounded = self.bounded(run);
        Box::pin(async move { self.inner.execute(ready, bounded.as_ref().unwrap_or(run)).await })
    }

    fn end_processes<'a>(
        &'a self,
        groups: &'a [ProcessGroup],
        run: &'a Context,
    ) -> BoxFuture<'a, Vec<ProcessGroup>> {
        self.inner.end_processes(groups, run)
    }

    fn recall(&self, session: &SessionId, tool: &str, result: &ToolResult) {
        match tool {
            // Also if the tool is not there any more.
            ACTIVATE_SKILL => self.skills.recall(session, result),
            _ => self.inner.recall(session, tool, result),
        }
    }
}
