//! A run that follows a plan and kills its own process at a chosen record of any of its runs, and another process
//! that takes it up.
//!
//! `killable_plan DIR jsonl|sqlite start|resume|refuse [KILL_AT]` works on the run `victim` in DIR. With KILL_AT the
//! process gets SIGKILL from itself right after that record, counted from 0 over all runs. Every side effect is a line
//! in `DIR/effects`. `refuse` says no to every question that the run waits with.
//!
//! The plan has subtasks side by side, direct calls and runs of an agent, a condition that does not hold, a tool that
//! fails once, and one that never works, because of which there is another plan.

#![allow(clippy::print_stdout, reason = "a program prints")]

mod killing_journal;

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, bail};
use archon::{
    Agent, Context, RandomIds, SystemClock, ToolContext, ToolEngine, ToolError, ToolRegistry,
    react_loop::{ReactAgent, ReactAgentOptions},
    tools::FnTool,
    types::{
        Answer, Effect, Journal, Message, ModelEvent, OutcomeStatus, PlanError, Planner, PlanningContext,
        ProviderError, Request, SubTask, SubTaskRules, SubTaskStatus, Task, TaskId, ToolAnnotations,
        ToolCall, ToolResult, ToolSpec, Toolbox, Usage,
    },
};
use archon_planner::{PlanningAgent, PlanningAgentOptions, open_questions};
use archon_testkit::FnProvider;
use serde_json::{Value, json};

use killing_journal::KillingJournal;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (dir, kind, mode) = match &args[..] {
        [dir, kind, mode, ..] => (PathBuf::from(dir), kind.as_str(), mode.as_str()),
        _ => bail!("usage: killable_plan DIR jsonl|sqlite start|resume|refuse [KILL_AT]"),
    };
    let kill_at = args.get(3).map(|n| n.parse()).transpose()?;
    let journal: Arc<dyn Journal> = Arc::new(KillingJournal::open(&dir, kind, kill_at)?);
    let toolbox: Arc<dyn Toolbox> = Arc::new(ToolEngine::new(tools(&dir)?));
    let provider = Arc::new(FnProvider::new(worker));
    let worker = ReactAgent::new(provider, journal.clone(), ReactAgentOptions::new("scripted"))
        .with_toolbox(toolbox.clone());
    let mut options = PlanningAgentOptions::default();
    options.settings.replan.consecutive = None;
    let worker: Arc<dyn Agent> = Arc::new(worker);
    let agent = PlanningAgent::new(Arc::new(Author), worker, journal.clone(), options).with_toolbox(toolbox);
    let context = Context::new("victim".into(), "s".into(), Arc::new(SystemClock), Arc::new(RandomIds));
    let outcome = match mode {
        "start" => agent.start("Have it done.", &context).await?,
        "resume" => agent.resume(&context).await?,
        "refuse" => loop {
            let log = journal.read(&context.run).await?;
            let open: Vec<_> =
                open_questions(&log).iter().map(|(_, asked)| asked.request_id.clone()).collect();
            let Some(question) = open.first() else { bail!("nothing is asked") };
            let no = Answer::Cancel { reason: "somebody else looks".into() };
            let outcome = agent.answer_question(question, no, &context).await?;
            if outcome.status != OutcomeStatus::Suspended {
                break outcome;
            }
        },
        other => bail!("{other}: start, resume or refuse"),
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

/// A planner that says the same in every process: the plan, and something else for what failed.
struct Author;

impl Planner for Author {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        let id = TaskId::new(context.run.run.as_str());
        Ok(Task::new(id, goal).with_subtasks(plan()))
    }

    /// What was done is not repeated: where it is unknown whether something was, somebody looks.
    async fn replan(&self, task: &Task, _: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let has_failed = |id: &str| {
            task.subtasks.iter().any(|s| s.id.as_str() == id && s.status() == SubTaskStatus::Failed)
        };
        let now = |id: &str| if has_failed(id) { format!("{id}_instead") } else { id.to_owned() };
        let other = |old: &SubTask| -> SubTask {
            let after: Vec<String> = old.dependencies().iter().map(|id| now(id.as_str())).collect();
            match old.status() {
                SubTaskStatus::Failed => look(&now(old.id.as_str()), json!({"what": old.id})).after(after),
                SubTaskStatus::Completed | SubTaskStatus::Executing => old.clone(),
                _ => old.clone().after(after),
            }
        };
        Ok(task.clone().with_subtasks(task.subtasks.iter().map(other).collect()))
    }
}

fn look(id: &str, arguments: Value) -> SubTask {
    SubTask::new(id, format!("look at {id}")).with_tool("look", Some(arguments))
}

fn plan() -> Vec<SubTask> {
    let rules = |change: &dyn Fn(&mut SubTaskRules)| {
        let mut rules = SubTaskRules::default();
        change(&mut rules);
        rules
    };
    let direct = |id: &str, tool: &str| SubTask::new(id, tool).with_tool(tool, Some(json!({"what": id})));
    vec![
        look("a", json!({"what": "a"})),
        SubTask::new("b", "work on b").after(["a"]),
        SubTask::new("c", "work on c").after(["a"]),
        direct("d", "send").after(["b"]),
        direct("flaky", "flaky").after(["a"]),
        direct("never", "never").with_rules(rules(&|rules| rules.max_attempts = Some(1))).after(["b", "c"]),
        SubTask::new("skipped", "work on nothing")
            .with_rules(rules(&|rules| rules.when = Some("{a} == 'nothing'".into())))
            .after(["a"]),
        look("end", json!({"what": "{b} {c}"})).after(["c", "d", "flaky", "never", "skipped"]),
    ]
}

/// Looks and sends, and then says that its task is done.
fn worker(_: usize, request: &Request) -> Vec<Result<ModelEvent, ProviderError>> {
    let asked = request.messages.iter().next().map(|m| m.text()).unwrap_or_default();
    let task = asked.lines().next().unwrap_or_default().to_owned();
    let call = |tool: &str| ToolCall::new(format!("call_{tool}"), tool, json!({"what": task}));
    let mut answer = match request.messages.iter().filter(|m| matches!(&***m, Message::Assistant(_))).count()
    {
        0 => FnProvider::calls(vec![call("look"), call("send")]),
        _ => FnProvider::text(&format!("{task}: done")),
    };
    if let Some(Ok(ModelEvent::Done(message))) = answer.last_mut() {
        message.usage = Usage { input: 10, output: 5, ..Usage::default() };
    }
    answer
}

fn tools(dir: &Path) -> Result<ToolRegistry> {
    let registry = ToolRegistry::new();
    let effects = dir.join("effects");
    registry.register(tool("look", Effect::ReadOnly, &effects, |_| true))?;
    registry.register(tool("send", Effect::SideEffect, &effects, |_| true))?;
    registry.register(tool("never", Effect::ReadOnly, &effects, |_| false))?;
    registry.register(tool("flaky", Effect::Idempotent, &effects, |effects| {
        std::fs::read_to_string(effects).unwrap_or_default().matches("flaky").count() > 1
    }))?;
    Ok(registry)
}

/// A tool that leaves a line, and then succeeds or does not.
fn tool(
    name: &'static str,
    effect: Effect,
    effects: &Path,
    succeeds: fn(&Path) -> bool,
) -> impl archon::Tool + use<> {
    let schema = json!({"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]});
    let mut annotations = ToolAnnotations::default();
    annotations.effect = effect;
    let spec = ToolSpec::new(name, format!("Leaves a line: {name}."), schema).with_annotations(annotations);
    let effects = effects.to_owned();
    FnTool::new(spec, move |arguments: Value, _: ToolContext| {
        let effects = effects.clone();
        async move {
            let line = format!("{name} {}\n", arguments["what"].as_str().unwrap_or_default());
            let write =
                || OpenOptions::new().create(true).append(true).open(&effects)?.write_all(line.as_bytes());
            write().map_err(|e: std::io::Error| ToolError::Failed(format!("{}: {e}", effects.display())))?;
            match succeeds(&effects) {
                true => Ok(ToolResult::success(format!("{name}: {}", arguments["what"]))),
                false => Err(ToolError::Failed(format!("{name} does not work"))),
            }
        }
    })
}
