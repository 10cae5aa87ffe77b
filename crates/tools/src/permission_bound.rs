//! Permission bounds: child runs may do no more than the runs above them.

use std::sync::Arc;

use archon_types::{Context, PermissionBound, Permit, Subject, ToolSpec};

use crate::{
    EngineOptions, Ruling,
    guards::{is_accepted_edit, needs_consent},
};

/// The rules of a run and of all runs above it.
pub(crate) struct Bound {
    pub(crate) options: Arc<EngineOptions>,
    pub(crate) next: Option<Arc<dyn PermissionBound>>,
}

impl PermissionBound for Bound {
    fn verdict(&self, tool: &ToolSpec, subject: &Subject, run: &Context) -> Permit {
        let above = self.next.as_ref().map_or(Permit::Allow, |next| next.verdict(tool, subject, run));
        let missing =
            tool.annotations.permissions.iter().find(|needed| !self.options.grants.contains(*needed));
        if let Some(missing) = missing {
            return Permit::Deny(format!(
                "that a run which was called has what its caller has (`{missing}`)"
            ));
        }
        let own = match self.options.permissions.ruling(&tool.name, subject, &run.trusted) {
            Ruling::Deny(rule) => return Permit::Deny(rule),
            Ruling::Ask(_) => Permit::Ask,
            Ruling::Allow => Permit::Allow,
            Ruling::Silent if is_accepted_edit(tool, subject, run) => Permit::Allow,
            Ruling::Silent if needs_consent(tool, self.options.ask) && !run.agreed_above => Permit::Ask,
            Ruling::Silent => Permit::Allow,
        };
        match (above, own) {
            (Permit::Allow, own) => own,
            (above, _) => above,
        }
    }
}
