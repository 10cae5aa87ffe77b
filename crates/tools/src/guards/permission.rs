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
        if missing.is_empty() {
            return Verdict::Pass;
        }
        let (why, wish) = match inspection.level.filter(|_| is_granted) {
            Some(level) => (format!("which callers of the level '{level}' do not have"), "for another level"),
            None => ("which was not granted".to_owned(), "to grant it"),
        };
        let (tool, missing) = (&inspection.call.name, missing.join(" and "));
        Verdict::refuse(
            "permission_denied",
            format!(
                "Tool '{tool}' needs the permission {missing}, {why}. It was not run. Go on without it, or ask the \
                 person {wish}."
            ),
        )
    }
}
