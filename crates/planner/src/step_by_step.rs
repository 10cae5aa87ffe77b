//! Makes plans with a model that is too small to write one: splits the goal by its words, and asks the
//! model for one tool call at a time.
//!
//! Each instruction of the goal becomes a subtask. The model is asked to make a tool call for the instruction at
//! once, because a small model can do that. The call gives the tool and the arguments of the subtask. A mention of an
//! earlier result becomes a dependency and a reference in the arguments. Thus a subtask only depends on earlier ones,
//! whatever the model writes. If the whole goal is one instruction to make something new, it becomes an outline of
//! three subtasks.

use std::sync::Arc;

use archon_types::{
    AssistantMessage, Content, Encoded, Json, Message, PlanError, PlanningContext, Request, RequestOptions,
    ResponseFormat, SubTask, SubTaskId, SubTaskStatus, Task, ToolCall, ToolSpec,
};
use serde_json::json;

use crate::{
    ask::Asked,
    goal_parts::{composes, parts, tells, with_names},
};

/// The first number that stands for an earlier result. The results are not known yet, so the question to the model
/// contains such numbers in their place. In the arguments of the model's call, references to the results then replace
/// these numbers.
const STAND_INS: u32 = 7001;

/// Maximum number of tokens of a call, and of an outline.
const CALL_TOKENS: u32 = 96;
const OUTLINE_TOKENS: u32 = 120;

/// Returns the subtasks of a goal.
///
/// # Errors
/// The request to the model failed, the model refused to answer, or the budget does not cover the
/// request.
pub(crate) async fn subtasks(
    model: &Asked,
    options: &RequestOptions,
    goal: &str,
    context: &PlanningContext,
) -> Result<Vec<SubTask>, PlanError> {
    let asking = Asking { model, options, context, specs: specs(context) };
    let mut parts = parts(goal);
    if parts.len() > context.max_subtasks.unwrap_or(usize::MAX) {
        parts = vec![goal.to_owned()];
    }
    match parts.as_slice() {
        [only] if composes(only) => asking.outline(goal).await,
        [] => Ok(vec![SubTask::new("s1", goal)]),
        parts => {
            let mut made = Vec::new();
            for part in parts {
                let subtask = asking.subtask(part, goal, &made).await?;
                made.push(subtask);
            }
            Ok(made)
        }
    }
}

/// Returns the plan without the arguments of failed subtasks, so that the agents of these subtasks choose
/// the arguments. `None` if no failed subtask had arguments, because nothing would change.
pub(crate) fn open_part(task: &Task) -> Option<Task> {
    let mut new = task.clone();
    let mut changes = false;
    for subtask in &mut new.subtasks {
        let failed = subtask.status() == SubTaskStatus::Failed && subtask.tool_args().is_some();
        if let Some(tool) = subtask.tool_name().filter(|_| failed) {
            let open = SubTask::new(subtask.id.clone(), subtask.description.as_str());
            *subtask = open.with_tool(tool, None).after(subtask.dependencies().to_vec());
            changes = true;
        }
    }
    changes.then_some(new)
}

struct Asking<'a> {
    model: &'a Asked,
    options: &'a RequestOptions,
    context: &'a PlanningContext,
    specs: Arc<Encoded<Vec<ToolSpec>>>,
}

/// Returns the tool specs that the model sees, made from the definitions if the context has no specs.
fn specs(context: &PlanningContext) -> Arc<Encoded<Vec<ToolSpec>>> {
    if !context.specs.is_empty() {
        return context.specs.clone();
    }
    let spec = |tool: &archon_types::ToolDefinition| {
        ToolSpec::new(tool.name.as_str(), tool.description.as_str(), tool.parameters.clone())
    };
    Arc::new(Encoded::new(context.tools.iter().map(spec).collect()))
}

impl Asking<'_> {
    async fn subtask(&self, part: &str, goal: &str, before: &[SubTask]) -> Result<SubTask, PlanError> {
        let id = format!("s{}", before.len() + 1);
        let subtask = SubTask::new(id, part);
        let open = open(before);
        if tells(part) && !before.is_empty() {
            return Ok(subtask.after(open));
        }
        // A number that is in the goal cannot stand for a result.
        let numbers = (STAND_INS..).map(|n| n.to_string()).filter(|n| !goal.contains(n.as_str()));
        let stand_ins: Vec<String> = numbers.take(before.len()).collect();
        let names: Vec<&str> = stand_ins.iter().map(String::as_str).collect();
        let (question, spoken_of) = with_names(part, &names).unwrap_or_else(|| (part.to_owned(), Vec::new()));
        let ids: Vec<SubTaskId> = spoken_of.iter().map(|place| before[*place].id.clone()).collect();
        Ok(match self.call(&question).await? {
            None => subtask.after(if ids.is_empty() { open } else { ids }),
            Some(call) if ids.is_empty() => subtask.with_tool(call.name, Some(call.arguments)),
            Some(call) => {
                let arguments = spoken_of.iter().try_fold(call.arguments.to_string(), |text, place| {
                    let reference = format!("{{{}}}", before[*place].id);
                    text.contains(&stand_ins[*place]).then(|| text.replace(&stand_ins[*place], &reference))
                });
                // If the arguments have lost a result, the agent of the step chooses the arguments; its
                // prompt contains the results.
                let arguments: Option<Json> = arguments.and_then(|text| serde_json::from_str(&text).ok());
                subtask.with_tool(call.name, arguments).after(ids)
            }
        })
    }

    /// Returns the tool call with which the model answers `question`; `None` if it makes no valid call.
    async fn call(&self, question: &str) -> Result<Option<ToolCall>, PlanError> {
        if self.specs.is_empty() {
            return Ok(None);
        }
        let mut request = self.request(vec![self.of_user(question)], CALL_TOKENS);
        request.tools = self.specs.clone();
        let answer = self.model.ask_in(request, self.context).await?;
        let is_there = |call: &&ToolCall| self.specs.iter().any(|spec| spec.name == call.name);
        Ok(answer.tool_calls().next().filter(is_there).filter(|call| call.malformed.is_none()).cloned())
    }

    /// Returns an outline: two subtasks, and a third that depends on both.
    async fn outline(&self, goal: &str) -> Result<Vec<SubTask>, PlanError> {
        let mut messages = Vec::new();
        for (goal, steps) in OUTLINES {
            messages.push(self.of_user(goal));
            let content = vec![Content::text(json!({ "steps": steps }).to_string())];
            messages.push(Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }));
        }
        messages.push(self.of_user(goal));
        let mut request = self.request(messages, OUTLINE_TOKENS);
        let step = json!({"type": "string", "minLength": 8, "maxLength": 60});
        let steps = json!({"type": "array", "items": step, "minItems": 3, "maxItems": 3});
        let schema = json!({"type": "object", "properties": {"steps": steps}, "required": ["steps"]});
        Arc::make_mut(&mut request.options).response_format =
            Some(ResponseFormat { name: "outline".into(), schema });
        let said = self.model.ask_in(request, self.context).await?.text();
        let said: Json = serde_json::from_str(said.trim()).unwrap_or_default();
        let steps: Vec<&str> =
            said["steps"].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::trim).collect();
        let [first, second, third] = steps.as_slice() else { return Ok(vec![SubTask::new("s1", goal)]) };
        let last = SubTask::new("s3", *third).after(["s1", "s2"]);
        Ok(vec![SubTask::new("s1", *first), SubTask::new("s2", *second), last])
    }

    fn of_user(&self, text: &str) -> Message {
        Message::user(text, self.context.run.clock.now())
    }

    fn request(&self, messages: Vec<Message>, tokens: u32) -> Request {
        let mut options = self.options.clone();
        // The most likely call is the best one.
        (options.temperature, options.max_tokens) = (Some(0.0), Some(tokens));
        self.model.request(messages, options)
    }
}

/// Examples of goals and outlines for the model.
const OUTLINES: [(&str, [&str; 3]); 2] = [
    (
        "Plan a birthday party",
        ["Choose the guests of the party", "Choose a birthday cake", "Write the birthday invitation"],
    ),
    (
        "Write a text about dogs",
        ["Say what dogs look like", "Say what dogs do for people", "Say why people love dogs"],
    ),
];

/// Returns the subtasks on which no other subtask depends yet.
fn open(before: &[SubTask]) -> Vec<SubTaskId> {
    let is_used = |id: &SubTaskId| before.iter().any(|s| s.dependencies().contains(id));
    before.iter().map(|s| &s.id).filter(|id| !is_used(id)).cloned().collect()
}
