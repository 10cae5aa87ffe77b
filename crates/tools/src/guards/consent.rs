//! Does a person have to agree? Whom to ask, and what no one to ask means, the engine knows.

use archon_types::ApprovalRequest;
use serde_json::json;

use crate::{
    arguments::excerpt,
    guard::{Guard, Inspection, Verdict},
};

pub(crate) struct Consent;

impl Guard for Consent {
    fn check(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let asks = inspection.tool.as_ref().is_some_and(|tool| tool.spec.annotations.requires_confirmation);
        if !asks {
            return Verdict::Pass;
        }
        let (name, arguments) = (&inspection.call.name, inspection.arguments());
        Verdict::Ask(Box::new(ApprovalRequest::new(
            inspection.run.ids.fresh("approval"),
            format!("Run {name} with {}", excerpt(arguments, 80)),
            json!({ "tool": name, "arguments": arguments }),
        )))
    }
}
