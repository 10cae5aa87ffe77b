//! Does a person have to agree? Whom to ask, and what no one to ask means, the engine knows.

use archon_types::{ApprovalRequest, ToolSpec};
use serde_json::json;

use crate::{
    Ask,
    arguments::excerpt,
    guard::{Guard, Inspection, Verdict},
};

pub(crate) struct Consent;

impl Guard for Consent {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let asks =
            inspection.tool.as_ref().is_some_and(|tool| needs_consent(&tool.spec, inspection.options.ask));
        if !asks {
            return Verdict::Pass;
        }
        let (name, arguments) = (&inspection.call.name, inspection.arguments());
        let mut details = json!({ "tool": name, "arguments": arguments });
        let mut summary = format!("Run {name} with {}", excerpt(arguments, 80));
        if let Some(preview) = &inspection.preview {
            summary.clone_from(&preview.summary);
            details["preview"] = json!(preview);
        }
        Verdict::Ask(Box::new(ApprovalRequest::new(inspection.run.ids.fresh("approval"), summary, details)))
    }
}

fn needs_consent(spec: &ToolSpec, ask: Ask) -> bool {
    let annotations = &spec.annotations;
    annotations.requires_confirmation
        || ask == Ask::BeforeChanges && annotations.effect != archon_types::Effect::ReadOnly
}
