//! The tool `finish_plan`: ends plan mode with a plan that a person decides about.

use archon_types::{
    Context, Json, PLAN_TOOL, Preview, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec,
    metadata,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Asks a person about the plan of the model, in the mode [`Plan`](archon_types::SessionMode::Plan). A yes ends the
/// mode, and the model carries the plan out. After a no with a reason the model revises the plan. In other modes
/// the call is refused.
#[derive(Clone, Debug)]
pub struct FinishPlan {
    spec: ToolSpec,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The whole plan as Markdown: what will be changed and where, in the order of the work, and how it will be
    /// checked
    #[schemars(length(min = 1))]
    plan: String,
}

impl FinishPlan {
    /// Creates the tool.
    pub fn new() -> Self {
        let annotations = ToolAnnotations::read_only().with_confirmation();
        let example = json!({
            "plan": "1. In src/parser.rs, accept an empty line in `header`.\n2. Add a test for it.\n3. Run all tests.",
        });
        Self { spec: super::spec::<Arguments>([PLAN_TOOL, "Finish the plan"], ABOUT, annotations, example) }
    }

    /// Returns the result for a plan that a person approved: the call runs only after the approval.
    fn approval_result(&self, _: Json, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let text = "A person agreed to the plan. Plan mode has ended: carry the plan out now.";
        Ok(ToolResult::success(text).with_metadata(metadata::APPROVED, true))
    }
}

default_is_new!(FinishPlan);

impl Tool for FinishPlan {
    tool_methods!(approval_result at once);

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let Arguments { plan } = crate::macro_support::arguments(arguments.clone())?;
        let mut preview = Preview::new(format!("Carry out this plan:\n{plan}"));
        preview.options = ["approve", "edit", "cancel"].map(str::to_owned).into();
        Ok(Some(preview))
    }
}

const ABOUT: &str = "Ends plan mode: shows the person your plan and waits for the decision. Use it only in plan mode, \
    once, when you have read what you need and know what has to be done. Do not ask in your answer whether the plan is \
    right: this call is the question.\n\
    Write a plan that somebody else could carry out: the files and what changes in each, the order, and how the result \
    is checked. Name what is uncertain. Leave out what was only read.\n\
    If the person declines, change the plan as they say and call this again.";
