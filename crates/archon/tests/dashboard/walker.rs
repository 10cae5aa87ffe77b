//! The agents behind the dashboard: a model that does what its last message says, and tools that change nothing.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, ArchonBuilder, BuildError, Context, Runs, SubAgentTool, Tool, ToolContext, ToolError, ToolResult,
    store::JsonlJournal,
    tool,
    tools::{Ask, EngineOptions},
    types::{
        AskLater, BoxFuture, Content, ExecutionLimits, FileChange, Json, Message, ModelEvent, ModelPrice,
        Preview, ProviderError, Request, RetryConfig, ToolCall, ToolSpec, Usage,
    },
};
use archon_testkit::FnProvider;
use serde_json::json;
use tokio::time::sleep;

use crate::plans;

type Events = Vec<Result<ModelEvent, ProviderError>>;

/// Takes a step that changes something.
#[tool]
async fn step(to: String) -> String {
    format!("stepped to {to}")
}

/// Waits for five seconds.
#[tool(read_only)]
async fn wait() -> &'static str {
    sleep(Duration::from_secs(5)).await;
    "went on"
}

/// Looks at a place, which takes a moment.
#[tool(read_only, concurrency_safe)]
async fn look(at: String) -> String {
    sleep(Duration::from_millis(25)).await;
    format!("saw {at}")
}

/// Locates a place on an empty map.
#[tool(read_only, concurrency_safe)]
async fn locate(place: String) -> Result<String, ToolError> {
    Err(ToolError::NotFound(format!("{place} {OFF_THE_MAP}")))
}

/// The end of the error text of `locate`.
const OFF_THE_MAP: &str = "is not on the map";

/// Changes the file of a route: its question shows the difference.
struct Reroute(ToolSpec);

impl Reroute {
    fn new() -> Self {
        let schema =
            json!({ "type": "object", "properties": { "to": { "type": "string" } }, "required": ["to"] });
        Self(ToolSpec::new("reroute", "Changes the end of the route.", schema))
    }
}

impl Tool for Reroute {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        let text = format!("the route ends in {}", end_of_route(&arguments));
        Box::pin(ready(Ok(ToolResult::success(text))))
    }

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let to = end_of_route(arguments);
        let mut change = FileChange::new("route.txt");
        change.diff = Some(format!("@@ -1,3 +1,3 @@\n Night train 40\n Amsterdam\n-Brussels\n+{to}\n"));
        (change.added, change.removed) = (1, 1);
        let mut preview = Preview::new(format!("Change the route to {to}"));
        preview.changes.push(change);
        Ok(Some(preview))
    }
}

fn end_of_route(arguments: &Json) -> &str {
    arguments["to"].as_str().unwrap_or_default()
}

/// Returns the service: its own agent `walker`, which can hand tasks to another one, its plans, and a team.
pub(crate) fn runs(journal: &JsonlJournal) -> Result<Runs, BuildError> {
    let clerk = SubAgentTool::new("clerk", builder("clerk", journal).build()?);
    let walker = builder("walker", journal).tool(clerk).build()?;
    let planning = plans::planning(&walker);
    let team = plans::team(&walker, builder("scout", journal).build()?);
    Ok(Runs::new(walker).with_agent(planning.run_agent()).with_agent(team.run_agent()))
}

/// Returns the settings of an agent that asks before changes.
fn builder(id: &str, journal: &JsonlJournal) -> ArchonBuilder {
    let tries = AtomicUsize::new(0);
    let mut retry = RetryConfig::default();
    retry.initial_delay_ms = 300;
    Archon::builder()
        .agent_id(id)
        .name(id)
        .provider(Arc::new(FnProvider::new(move |_, request| reply(request, &tries))), "scripted")
        .price(ModelPrice::new(1_000_000, 2_000_000))
        .retry(retry)
        .limits(ExecutionLimits::default().with_max_turns(1_000))
        .engine_options(EngineOptions::default().asking(Ask::BeforeChanges))
        .approver(AskLater)
        .journal(Arc::new(journal.clone()))
        .tool(step)
        .tool(wait)
        .tool(look)
        .tool(locate)
        .tool(Reroute::new())
}

/// Does what the last message says; `tries` counts the answers that break off.
fn reply(request: &Request, tries: &AtomicUsize) -> Events {
    let Some(last) = request.messages.iter().last() else { return FnProvider::text("no prompt") };
    let said = last.text();
    // A member of a team gets its task among other lines.
    let task = said.lines().find_map(|line| line.strip_prefix("Your task: ")).unwrap_or(&said);
    let (word, rest) = task.split_once(' ').unwrap_or((task, ""));
    if let (Message::ToolResult(_), Some(place)) = (&**last, next_place(&said)) {
        return with_usage(look_at(&place));
    }
    let is_first = || tries.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
    with_usage(match (&**last, word) {
        (Message::User(_), "step") if !rest.is_empty() => call("step", json!({ "to": rest })),
        (Message::User(_), "wait") if rest.is_empty() => call("wait", json!({})),
        (Message::User(_), "reroute") => call("reroute", json!({ "to": rest })),
        (Message::User(_), "delegate") => call("clerk", json!({ "task": rest })),
        (Message::User(_), "count") => look_at(&format!("1 of {rest}")),
        (Message::User(_), "tour") => FnProvider::calls(vec![
            ToolCall::new("a", "look", json!({ "at": "Amsterdam" })),
            ToolCall::new("b", "look", json!({ "at": "Brussels" })),
            ToolCall::new("c", "locate", json!({ "place": "Atlantis" })),
        ]),
        // The answer breaks off first; the next attempt gets the whole.
        (Message::ToolResult(_), _) if said.contains(OFF_THE_MAP) && is_first() => vec![
            Ok(ModelEvent::Start),
            Ok(ModelEvent::TextDelta("It is".to_owned())),
            Err(ProviderError::Network("the connection broke".to_owned().into())),
        ],
        _ => pieces(&format!("done: {said}")),
    })
}

/// Returns what to look at after `saw 3 of 9`; `None` after the last one.
fn next_place(said: &str) -> Option<String> {
    let (at, all) = said.strip_prefix("saw ")?.split_once(" of ")?;
    let (at, all): (u32, u32) = (at.parse().ok()?, all.parse().ok()?);
    (at < all).then(|| format!("{} of {all}", at + 1))
}

fn call(name: &str, arguments: Json) -> Events {
    FnProvider::calls(vec![ToolCall::new("c", name, arguments)])
}

/// Says where it looks, and calls the tool.
fn look_at(place: &str) -> Events {
    let text = format!("I look at {place}.");
    let mut events = call("look", json!({ "at": place }));
    events.insert(1, Ok(ModelEvent::TextDelta(text.clone())));
    if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
        message.content.insert(0, Content::text(text));
    }
    events
}

/// Streams a text word by word.
fn pieces(text: &str) -> Events {
    let mut events = FnProvider::text(text);
    let words = text.split_inclusive(' ').map(|word| Ok(ModelEvent::TextDelta(word.to_owned())));
    drop(events.splice(1..2, words));
    events
}

fn with_usage(mut events: Events) -> Events {
    if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
        message.usage = Usage { input: 70, output: 20, cache_read: 30, ..Usage::default() };
    }
    events
}
