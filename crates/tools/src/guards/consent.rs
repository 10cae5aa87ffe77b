//! Guard: decides whether a person must approve a call. The engine asks the person, or refuses the call if
//! it cannot.

use archon_types::{ApprovalRequest, ToolSpec};
use serde_json::json;

use crate::{
    Ask, Ruling,
    arguments::call_beginning,
    guard::{Guard, Inspection, Verdict},
    guards::is_accepted_edit,
    permissions::suggestions,
};

pub(crate) struct Consent;

impl Guard for Consent {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let Some(tool) = inspection.tool.clone() else { return Verdict::Pass };
        if !asks(&tool.spec, inspection) {
            return Verdict::Pass;
        }
        let (name, arguments) = (&inspection.call.name, inspection.arguments());
        let binding = archon_types::binding(&tool.spec, arguments, inspection.subject());
        if inspection.run.agreed.as_deref() == Some(&*binding) {
            inspection.is_agreed = true;
            return Verdict::Pass;
        }
        let mut details = json!({ "tool": name, "arguments": arguments });
        let mut summary = format!("Run {name} with {}", call_beginning(arguments));
        if let Some(preview) = &inspection.preview {
            summary.clone_from(&preview.summary);
            details["preview"] = json!(preview);
        }
        let mut question = ApprovalRequest::new(inspection.run.ids.fresh("approval"), summary, details);
        question.binding = binding;
        if let Some(preview) = inspection.preview.as_ref().filter(|preview| !preview.options.is_empty()) {
            question.options.clone_from(&preview.options);
            question.allow_modification = preview.options.iter().any(|option| option == "edit");
        }
        question.timeout_ms = inspection.preview.as_ref().and_then(|preview| preview.timeout_ms);
        let is_by_rule = matches!(inspection.ruling, Ruling::Ask(_));
        if !tool.spec.annotations.requires_confirmation && !is_by_rule && !inspection.is_warned() {
            question.rules = suggestions(name, inspection.subject());
        }
        Verdict::Ask(Box::new(question))
    }
}

/// Returns whether a person must approve. Permission rules override the defaults of the tool, but not the
/// approval that a tool requires for each call, or that a preview with a warning requires.
fn asks(spec: &ToolSpec, inspection: &Inspection<'_>) -> bool {
    let is_agreed = inspection.run.agreed_above;
    let own = match &inspection.ruling {
        Ruling::Ask(_) => true,
        Ruling::Allow => spec.annotations.requires_confirmation && !is_agreed,
        _ if is_accepted_edit(spec, inspection.subject(), inspection.run) => false,
        _ => needs_consent(spec, inspection.options.ask) && !is_agreed,
    };
    own || inspection.is_asked_above || inspection.is_warned()
}

pub(crate) fn needs_consent(spec: &ToolSpec, ask: Ask) -> bool {
    let annotations = &spec.annotations;
    let by_kind = match ask {
        Ask::WhereRequired => false,
        Ask::BeforeDestruction => annotations.destructive,
        Ask::BeforeChanges => annotations.destructive || annotations.effect != archon_types::Effect::ReadOnly,
    };
    annotations.requires_confirmation || by_kind
}

/// Returns whether calls of a tool without a matching rule may need approval.
pub(crate) fn may_ask(spec: &ToolSpec, options: &crate::EngineOptions) -> bool {
    needs_consent(spec, options.ask)
}
