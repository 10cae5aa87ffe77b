//! The limits of active skills as a permission bound of a run.

use std::sync::Arc;

use archon_types::{Context, PermissionBound, Permit, RunId, Subject, ToolSpec};

use crate::SkillConversation;

/// A permission bound that enforces the limits of a run's active skills: it denies each call that one of them does
/// not allow, and leaves all other calls to the bound above. So it can only restrict. Set it as
/// [`Context::permission_bound`] of the run; then it also applies to child runs.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_skills::{SkillBound, SkillConversation, SkillSet};
/// use archon_types::{PermissionBound, RunId};
///
/// let conversation = Arc::new(SkillConversation::new(Arc::new(SkillSet::new())));
/// let bound: Arc<dyn PermissionBound> = Arc::new(SkillBound::new(conversation, RunId::new("run_1"), None));
/// ```
pub struct SkillBound {
    conversation: Arc<SkillConversation>,
    run: RunId,
    above: Option<Arc<dyn PermissionBound>>,
}

impl SkillBound {
    /// Creates the bound for a run of a conversation. `above` decides about the calls that the active skills allow;
    /// without `above`, these calls are allowed.
    pub fn new(
        conversation: Arc<SkillConversation>,
        run: RunId,
        above: Option<Arc<dyn PermissionBound>>,
    ) -> Self {
        Self { conversation, run, above }
    }
}

impl PermissionBound for SkillBound {
    fn verdict(&self, tool: &ToolSpec, subject: &Subject, run: &Context) -> Permit {
        match self.conversation.blocker(&self.run, &tool.name, subject) {
            Some(skill) => Permit::Deny(format!("allowed-tools of the active skill `{skill}`")),
            None => self.above.as_ref().map_or(Permit::Allow, |above| above.verdict(tool, subject, run)),
        }
    }
}

archon_types::debug_fields!(SkillBound: conversation, run);
