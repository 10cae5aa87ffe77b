//! The tools `human_approval` and `human_guidance`, with which the model asks a person.
//!
//! Each call becomes an approval request like that of any call that needs approval: it waits, survives a
//! restart, can expire and is listed. The calls are refused if there is no approver and the run cannot ask a
//! person.

use archon_types::{
    Context, Json, Preview, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec, metadata,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Default time that a person has to answer, in minutes.
const MINUTES: u64 = 5;

/// Asks a person to approve something; the result is the approval. A refusal or no answer in time is an
/// error.
#[derive(Clone, Debug)]
pub struct HumanApproval {
    spec: ToolSpec,
}

/// Asks a person a question, and returns the answer.
#[derive(Clone, Debug)]
pub struct HumanGuidance {
    spec: ToolSpec,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Approval {
    /// What is going to be done
    operation_description: String,
    /// What of it is sensitive
    sensitive_data_summary: Option<String>,
    /// Minutes to wait for an answer
    #[schemars(range(min = 1, max = 10080))]
    timeout_minutes: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Guidance {
    /// The question
    question: String,
    /// What the person should know
    context: Option<String>,
    /// Answers to choose from
    options: Option<Vec<String>>,
    /// Minutes to wait for an answer
    #[schemars(range(min = 1, max = 10080))]
    timeout_minutes: Option<u64>,
}

default_is_new!(HumanApproval, HumanGuidance);

impl HumanApproval {
    /// Creates the tool.
    pub fn new() -> Self {
        let about = "Asks a person whether an operation may be done, and waits for the answer. Use it before anything \
                     that is sensitive or cannot be undone.";
        Self { spec: question_spec::<Approval>("human_approval", "Ask for approval", about) }
    }

    /// Returns the result of an approved call: the call runs only after a person approved it.
    fn approval_result(&self, _: Json, _: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::success("A person approved it.").with_metadata(metadata::APPROVED, true))
    }
}

impl HumanGuidance {
    /// Creates the tool.
    pub fn new() -> Self {
        let about = "Asks a person a question and returns the answer. Use it when only a person can know what is wanted.";
        Self { spec: question_spec::<Guidance>("human_guidance", "Ask a person", about) }
    }

    /// Returns the result if the person only said yes. If the person wrote a reply, the reply is the call's
    /// result, and this method is not called.
    fn approval_result(&self, _: Json, _: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::success("A person read the question and said yes, and nothing more."))
    }
}

fn question_spec<A: JsonSchema>(name: &str, label: &str, about: &str) -> ToolSpec {
    let annotations = ToolAnnotations::read_only().with_confirmation();
    let mut spec = crate::macro_support::spec::<A>(name, about).with_annotations(annotations);
    spec.label = label.to_owned();
    spec
}

fn question(text: String, options: [&str; 2], minutes: Option<u64>) -> Preview {
    let mut preview = Preview::new(text);
    preview.options = options.map(str::to_owned).into();
    preview.timeout_ms = Some(minutes.unwrap_or(MINUTES).saturating_mul(60_000));
    preview
}

impl Tool for HumanApproval {
    tool_methods!(approval_result at once);

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let Approval { operation_description, sensitive_data_summary, timeout_minutes } =
            crate::macro_support::arguments(arguments.clone())?;
        let sensitive =
            sensitive_data_summary.map(|data| format!(" (sensitive: {data})")).unwrap_or_default();
        Ok(Some(question(operation_description + &sensitive, ["approve", "cancel"], timeout_minutes)))
    }
}

impl Tool for HumanGuidance {
    tool_methods!(approval_result at once);

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let Guidance { question: asked, context, options, timeout_minutes } =
            crate::macro_support::arguments(arguments.clone())?;
        let context = context.map(|context| format!(" ({context})")).unwrap_or_default();
        let options = options.filter(|options| !options.is_empty());
        let options = options.map(|options| format!(" [{}]", options.join(" | "))).unwrap_or_default();
        Ok(Some(question(format!("{asked}{context}{options}"), ["reply", "cancel"], timeout_minutes)))
    }
}
