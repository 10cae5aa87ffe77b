//! Guard: applies the permission rules. A rule that denies ends the call here; ask and allow rules count in
//! the guard `Consent`. The rules of the runs above also apply.

use archon_types::Permit;

use crate::{
    Ruling,
    guard::{Guard, Inspection, Verdict},
};

pub(crate) struct Rules;

impl Guard for Rules {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let Some(tool) = inspection.tool.clone() else { return Verdict::Pass };
        let (permissions, bound) = (&inspection.options.permissions, inspection.run.permission_bound.clone());
        if permissions.is_empty()
            && bound.is_none()
            && !crate::guards::may_ask(&tool.spec, inspection.options)
        {
            return Verdict::Pass;
        }
        let subject = match crate::execute::contain(|| tool.tool.subject(inspection.arguments())) {
            Ok(subject) => subject,
            Err(panic) => {
                tracing::error!(target: "archon::tools", tool = %tool.spec.name, "a subject panicked: {panic}");
                archon_types::Subject::Unknown
            }
        };
        let subject = &*inspection.subject.insert(subject);
        inspection.ruling = permissions.ruling(&tool.spec.name, subject, &inspection.run.trusted);
        if let Ruling::Deny(rule) = &inspection.ruling {
            return denied(&tool.spec.name, rule);
        }
        let Some(bound) = bound else { return Verdict::Pass };
        match bound.verdict(&tool.spec, subject, inspection.run) {
            Permit::Allow => Verdict::Pass,
            Permit::Deny(rule) => denied(&tool.spec.name, &rule),
            _ => {
                inspection.is_asked_above = true;
                Verdict::Pass
            }
        }
    }
}

fn denied(tool: &str, rule: &str) -> Verdict {
    Verdict::refuse(
        "permission_denied",
        format!(
            "Tool '{tool}' may not do this: the rule {rule} denies it. It was not run. Go on without it, or ask the \
             person to change the rule."
        ),
    )
}
