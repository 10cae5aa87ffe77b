//! The tool `update_plan`: the model shows people the steps of its work.

use archon_types::{
    Json, STEP_LIST_TOOL, StepList, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec,
};
use serde_json::json;

/// Shows the steps of the work to people. The call has no effect: the log has its arguments, and an interface
/// shows the newest [`StepList`] of a run.
///
/// ```
/// use archon_tools::{ToolRegistry, builtin::UpdatePlan};
///
/// let registry = ToolRegistry::new();
/// registry.register(UpdatePlan::new())?;
/// assert_eq!(registry.names(), ["update_plan"]);
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct UpdatePlan {
    spec: ToolSpec,
}

impl UpdatePlan {
    /// Creates the tool.
    pub fn new() -> Self {
        let mut spec =
            ToolSpec::new(STEP_LIST_TOOL, ABOUT, parameters()).with_annotations(ToolAnnotations::read_only());
        spec.label = "Update the steps".to_owned();
        spec.examples = vec![json!({
            "steps": [
                { "step": "Find the failing test", "status": "completed" },
                { "step": "Mend the parser", "status": "in_progress" },
                { "step": "Run all tests", "status": "pending" },
            ],
        })];
        Self { spec }
    }

    fn run(&self, arguments: Json, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let list: StepList = crate::macro_support::arguments(arguments)?;
        let open: Vec<_> = list.in_progress().map(|step| format!("\"{}\"", step.step)).collect();
        if open.len() > 1 {
            return Err(ToolError::InvalidArgs(format!(
                "Only one step can be in_progress, but {} are: {}. Set the others to pending or completed, and send \
                 the whole list again.",
                open.len(),
                open.join(", ")
            )));
        }
        Ok(ToolResult::success("Plan updated"))
    }
}

default_is_new!(UpdatePlan);

impl Tool for UpdatePlan {
    tool_methods!(run at once);
}

const ABOUT: &str = "Shows the person the steps of your work, and how far you are. It changes nothing else.\n\
    Use it when the work has three or more steps, when the person asks for several things, or when a step turns out to \
    have parts. Do not use it for one simple step or to answer a question.\n\
    - Send all steps each time: the list replaces the one before.\n\
    - Write each step as one short sentence of at most seven words that says what is done when it is completed.\n\
    - Set a step to in_progress before you begin it. While you work, exactly one step is in_progress.\n\
    - Set a step to completed as soon as it is done and checked, not several at the end. A step whose tests fail, or \
    of which a part is missing, is not completed.\n\
    - If the work shows that the steps are wrong, change them and say why in the explanation.\n\
    - Do not repeat the list in your answer: the person sees it. Go on with the work at once.";

/// Returns the JSON Schema of the arguments, which are a [`StepList`].
fn parameters() -> Json {
    json!({
        "type": "object",
        "properties": {
            "explanation": {
                "type": "string",
                "description": "Why the steps change, in one sentence; leave it out if they do not",
            },
            "steps": {
                "type": "array",
                "description": "All steps, in the order of the work",
                "maxItems": StepList::MAX,
                "items": {
                    "type": "object",
                    "properties": {
                        "step": { "type": "string", "minLength": 1, "description": "The step, in at most seven words" },
                        "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
                    },
                    "required": ["step", "status"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["steps"],
        "additionalProperties": false,
    })
}
