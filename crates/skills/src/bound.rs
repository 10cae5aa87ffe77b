//! The limits of active skills as a permission bound of a run.

use std::sync::Arc;

use archon_types::{Context, PermissionBound, Permit, Subject, ToolSpec};

use crate::SkillConversation;

/// A permission bound that denies calls which an active skill of a conversation does not allow, and otherwise decides
/// as the bound above. It can only restrict: set it as [`Context::permission_bound`] of the conversation's run, and
/// child runs have it, too.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_skills::{SkillBound, SkillConversation, SkillSet};
/// use archon_types::PermissionBound;
///
/// let conversation = Arc::new(SkillConversation::new(Arc::new(SkillSet::new())));
/// let bound: Arc<dyn PermissionBound> = Arc::new(SkillBound::new(conversation, None));
/// ```
pub struct SkillBound {
    conversation: Arc<SkillConversation>,
    above: Option<Arc<dyn PermissionBound>>,
}

impl SkillBound {
    /// Creates the bound of a conversation, below another bound.
    pub fn new(conversation: Arc<SkillConversation>, above: Option<Arc<dyn PermissionBound>>) -> Self {
        Self { conversation, above }
    }
}

impl PermissionBound for SkillBound {
    fn verdict(&self, tool: &ToolSpec, subject: &Subject, run: &Context) -> Permit {
        match self.conversation.blocker(&tool.name, subject) {
            Some(skill) => Permit::Deny(format!("allowed-tools of the active skill `{}`", skill.name)),
            None => self.above.as_ref().map_or(Permit::Allow, |above| above.verdict(tool, subject, run)),
        }
    }
}

archon_types::debug_fields!(SkillBound: conversation);
