//! The limits of active skills as a permission bound of a run.

use std::sync::Arc;

use archon_types::{Context, PermissionBound, Permit, RunId, Subject, ToolSpec};

use crate::SkillConversation;

/// A permission bound that denies calls which an active skill of a conversation does not allow, and otherwise decides
/// as the bound above. It can only restrict: set it as [`Context::permission_bound`] of the conversation's run, and
/// child runs have it, too.
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
    /// Creates the bound of a run of a conversation, below another bound.
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
