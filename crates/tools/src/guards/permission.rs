//! Guard: the permissions that the tool needs must be granted.

use crate::guard::{Guard, Inspection, Verdict};

pub(crate) struct Permission;

impl Guard for Permission {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let Some(tool) = &inspection.tool else { return Verdict::Pass };
        let needed = &tool.spec.annotations.permissions;
        let missing: Vec<_> = needed
            .iter()
            .filter(|permission| !inspection.options.has(permission, inspection.level))
            .map(String::as_str)
            .collect();
        let is_granted = missing.iter().all(|permission| inspection.options.grants.contains(*permission));
        match (missing.as_slice(), inspection.level) {
            ([], _) => Verdict::Pass,
            (missing, Some(level)) if is_granted => Verdict::refuse(
                "permission_denied",
                format!(
                    "Tool '{}' needs the permission {}, which callers of the level '{level}' do not have. It was not \
                     run. Go on without it, or ask the person for another level.",
                    inspection.call.name,
                    missing.join(" and ")
                ),
            ),
            (missing, _) => Verdict::refuse(
                "permission_denied",
                format!(
                    "Tool '{}' needs the permission {}, which was not granted. It was not run. Go on without it, or \
                     ask the person to grant it.",
                    inspection.call.name,
                    missing.join(" and ")
                ),
            ),
        }
    }
}
