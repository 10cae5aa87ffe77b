//! What a conversation says where a person stopped the agent, and that it goes on from there.

use std::{sync::Arc, time::Duration};

use archon::{
    Archon, Conversation, Event, OutcomeStatus, Tool, ToolContext, ToolError, ToolResult,
    providers::{ScriptedProvider, Step},
    types::{
        BoxFuture, CancellationToken, Hooks, Interruption, Json, Message, RecordBody, Request, ToolCall,
        ToolSpec,
    },
};
use archon_testkit::{Ended, VirtualClock};
use serde_json::json;

/// Stops the run that calls it.
struct Stops(ToolSpec);

impl Tool for Stops {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        context.run.cancel.cancel();
        Box::pin(async { Ok("stopped".into()) })
    }
}

/// Allows no call of `forbidden`.
struct Denies;

impl Hooks for Denies {
    async fn before_tool(&self, call: &ToolCall) -> bool {
        call.name != "forbidden"
    }
}

/// The first step is what is interrupted, if there is one; the next run answers with what it reads.
fn conversation(first: Option<Step>) -> Conversation {
    let echo = Step::reply(|request: &Request| {
        Step::text(request.messages.iter().map(|m| m.text()).collect::<Vec<_>>().join("\n"))
    });
    let provider =
        ScriptedProvider::new(first.into_iter().chain([echo])).with_clock(Arc::new(VirtualClock::new()));
    let tool = |name: &str| Arc::new(Stops(ToolSpec::new(name, "Stops.", json!({})))) as Arc<dyn Tool>;
    Archon::builder()
        .provider(Arc::new(provider), "scripted")
        .tools([tool("stop"), tool("forbidden")])
        .hooks(Arc::new(Denies))
        .clock(Arc::new(VirtualClock::new()))
        .build()
        .expect("an agent")
        .conversation()
}

fn calls(names: &[&str]) -> Step {
    Step::calls(names.iter().map(|name| ToolCall::new(*name, *name, json!({}))).collect())
}

/// A prompt whose run is cancelled when the model is asked, at once, or by itself.
async fn interrupted(conversation: &Conversation, when: When) {
    let mut options = archon::RunOptions::default();
    let cancel = CancellationToken::new();
    options.cancel = Some(cancel.clone());
    match when {
        When::AtOnce => cancel.cancel(),
        When::Asked => {
            options = options.watched_by(Arc::new(move |event: Event| {
                if let Event::Record { record, .. } = event
                    && matches!(record.body, RecordBody::ModelCallStarted { .. })
                {
                    cancel.cancel();
                }
            }));
        }
        When::ByTool => {}
    }
    let prompt = Message::user("work", Default::default()).into();
    let run = conversation.prompt_with(vec![prompt], options).await.expect("a run");
    assert_eq!(run.reply().await.ended().status, OutcomeStatus::Cancelled);
}

#[derive(Clone, Copy)]
enum When {
    AtOnce,
    Asked,
    ByTool,
}

async fn says(conversation: &Conversation, text: &str) -> String {
    conversation
        .prompt(text)
        .await
        .expect("a run")
        .reply()
        .await
        .ended()
        .last_text()
        .unwrap_or_default()
        .to_owned()
}

// spec: CL-08
#[tokio::test]
async fn interruption_marker_is_added_to_the_next_run() {
    let late = Some(Step::text("late").after(Duration::from_secs(60)));
    let table = [
        (When::AtOnce, None, Interruption::Cancelled, "[Request cancelled by user]"),
        (When::Asked, late, Interruption::Request, "[Request interrupted by user]"),
        (
            When::ByTool,
            Some(calls(&["stop"])),
            Interruption::ToolUse,
            "[Request interrupted by user for tool use]",
        ),
        (
            When::ByTool,
            Some(calls(&["forbidden", "stop"])),
            Interruption::PermissionDenial,
            "[Request interrupted by user due to permission denial]",
        ),
    ];
    for (when, first, expected, text) in table {
        let conversation = conversation(first);
        interrupted(&conversation, when).await;
        let messages = conversation.messages().await.unwrap();
        let last = messages.last().unwrap();
        assert_eq!((Interruption::of(last), last.text().as_str()), (Some(expected), text));
        // A token of its own: what stopped the run before does not stop this one.
        let read = says(&conversation, "go on").await;
        assert!(read.starts_with("work\n") && read.ends_with(&format!("{text}\ngo on")), "{read}");
        assert_eq!(read.matches("[Request").count(), 1, "{read}");
    }
}

// spec: CL-08
#[tokio::test]
async fn a_run_that_was_not_stopped_leaves_no_marker_and_nor_does_one_that_went_on() {
    let conversation = conversation(Some(Step::text("done")));
    assert_eq!(says(&conversation, "work").await, "done");
    assert_eq!(says(&conversation, "more").await, "work\ndone\nmore");
}
