//! Agents with fields in a real loop: they ask, wait, and go on, and an assistant speaks for them.

use std::sync::{Arc, Mutex};

use archon::{
    Agent, Archon, Context, Outcome, OutcomeStatus, Reply, RunError, RunId, RunOptions, Tool,
    react_loop::replay,
    store::InMemoryJournal,
    types::{
        AgentStatus, Answer, AskLater, BoxFuture, Journal, Json, Message, Request, TenantId, ToolCall,
        pending_approvals,
    },
};
use archon_assistant::{
    AgentPool, AgentTool, Assistant, AssistantReply, Conversations, FieldKind, InMemoryPoolIndex, Incoming,
    InputField, NextTurn, fields_of,
};
use archon_testkit::{Ended, FnProvider, SeededIds, VirtualClock};
use serde_json::json;

/// Calls of one turn.
fn calls(all: &[(&str, Json)]) -> crate::shared::stage::Answer {
    let call = |(n, (name, arguments)): (usize, &(&str, Json))| {
        ToolCall::new(format!("c{n}"), *name, arguments.clone())
    };
    FnProvider::calls(all.iter().enumerate().map(call).collect())
}

/// An agent that says which fields it was given, and keeps them.
struct Clerk(Arc<Mutex<Vec<Json>>>);

impl Agent for Clerk {
    fn name(&self) -> &str {
        "clerk"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        let fields = Json::Object(fields_of(task).unwrap());
        self.0.lock().unwrap().push(fields.clone());
        let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
        outcome.set_answer(format!("done with {fields}"));
        Box::pin(std::future::ready(outcome))
    }
}

#[derive(Clone)]
struct World {
    journal: InMemoryJournal,
    clock: VirtualClock,
    model: FnProvider,
    done: Arc<Mutex<Vec<Json>>>,
}

impl World {
    fn new(answer: impl Fn(usize, &Request) -> crate::shared::stage::Answer + Send + Sync + 'static) -> Self {
        let (journal, clock) = (InMemoryJournal::new(), VirtualClock::new());
        Self { journal, clock, model: FnProvider::new(answer), done: Arc::default() }
    }

    fn email(&self) -> AgentTool {
        AgentTool::new("SendEmailAgent", "Sends an email.", Arc::new(Clerk(self.done.clone())))
            .field(
                InputField::required("recipient", FieldKind::Text, "Address.")
                    .with_validator("must contain @", |value| {
                        value.as_str().is_some_and(|to| to.contains('@'))
                    }),
            )
            .needs_approval()
    }

    fn flight(&self) -> AgentTool {
        AgentTool::new("BookFlightAgent", "Books a flight.", Arc::new(Clerk(self.done.clone())))
            .field(InputField::optional("seat", FieldKind::Text, "Seat.").with_default("aisle"))
            .needs_approval()
    }

    /// The agent in a new process.
    fn archon(&self, seed: u16, system: &str) -> Archon {
        let tools: [Arc<dyn Tool>; 2] = [Arc::new(self.email()), Arc::new(self.flight())];
        Archon::builder()
            .provider(Arc::new(self.model.clone()), "scripted")
            .system(system)
            .tools(tools)
            .approver(Arc::new(AskLater))
            .journal(Arc::new(self.journal.clone()))
            .clock(Arc::new(self.clock.clone()))
            .ids(Arc::new(SeededIds::new(seed)))
            .build()
            .unwrap()
    }

    fn pool(&self, seed: u16) -> AgentPool {
        let (index, journal) = (Arc::new(InMemoryPoolIndex::default()), Arc::new(self.journal.clone()));
        AgentPool::new(index, journal, Arc::new(self.clock.clone()), Arc::new(SeededIds::new(seed)))
    }
}

fn message_is_result(message: &Message) -> bool {
    matches!(message, Message::ToolResult(_))
}

/// Says what the tools said, in order.
fn answer_to(request: &Request) -> crate::shared::stage::Answer {
    let results = request.messages.iter().filter(|message| message_is_result(message));
    FnProvider::text(&results.map(|message| message.text()).collect::<Vec<_>>().join(" | "))
}

// spec: A-38, MA-38, MA-40, MA-42
#[tokio::test]
async fn an_agent_in_a_loop_asks_for_a_field_then_for_consent_in_other_processes() {
    let world = World::new(|n, request| match n {
        0 => calls(&[("SendEmailAgent", json!({}))]),
        _ => answer_to(request),
    });
    let outcome = world.archon(1, "").run("Write to Ann.").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    let root = outcome.run.clone();
    let mut steps = Vec::new();
    for (n, answer) in [(2, Answer::Reply { text: "ann@example.com".into() }), (3, Answer::Approve)] {
        // Nothing but the journal is left of the process before.
        let (archon, pool) = (world.archon(n, ""), world.pool(n + 10));
        let waiting = pool.restore().await.unwrap().waiting;
        assert_eq!((waiting.len(), &waiting[0].run), (1, &root));
        steps.push(waiting[0].status());
        assert!(world.done.lock().unwrap().is_empty());
        assert!(pool.answer(&waiting[0], answer).await.unwrap());
        let outcome = archon.resume(root.clone()).await.unwrap().reply().await.ended();
        steps.push(match outcome.status {
            OutcomeStatus::Finished => AgentStatus::Completed,
            _ => AgentStatus::Running,
        });
        pool.note(&root).await.unwrap();
    }
    use AgentStatus::{Completed, Running, WaitingForApproval, WaitingForInput};
    assert_eq!(steps, [WaitingForInput, Running, WaitingForApproval, Completed]);
    assert_eq!(*world.done.lock().unwrap(), [json!({ "recipient": "ann@example.com" })]);
    assert!(replay(&world.journal, &root).await.unwrap().is_identical());
    assert!(pending_approvals(&world.journal.read(&root).await.unwrap()).is_empty());
}

/// The conversations of real agents.
struct Talk {
    world: World,
    turns: Mutex<u16>,
}

impl Conversations for Talk {
    fn begin<'a>(&'a self, turn: &'a NextTurn) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(async move {
            let n = {
                let mut turns = self.turns.lock().unwrap();
                *turns += 1;
                *turns
            };
            let archon = self.world.archon(100 + n, &turn.system);
            let mut options = RunOptions::default();
            options.tenant = Some(turn.tenant.clone());
            match archon.newest_run(Some(&turn.session)).await? {
                Some(_) => {
                    options.session = Some(turn.session.clone());
                    archon.run_with(turn.message.as_str(), options).await
                }
                None => {
                    let run = RunId::new(format!("run_{n}"));
                    let context = archon.context(run, turn.session.clone(), options);
                    Reply::of(Agent::run(&archon, &turn.message, &context).await)
                }
            }
        })
    }

    fn resume<'a>(&'a self, run: &'a RunId, _: &'a TenantId) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(async move { self.world.archon(200, "").resume(run.clone()).await?.reply().await })
    }
}

fn assistant(world: &World) -> Assistant {
    let talk = Arc::new(Talk { world: world.clone(), turns: Mutex::default() });
    Assistant::new("You are Koi.", talk, world.pool(50), Arc::new(world.clock.clone()))
}

async fn says(assistant: &Assistant, text: &str) -> AssistantReply {
    assistant.handle_message(Incoming::person("ann".into(), text)).await.unwrap()
}

// spec, MA-32, MA-33, MA-34
#[tokio::test]
async fn an_assistant_over_the_loop_asks_for_consent_once_and_goes_on() {
    let world = World::new(|n, request| match n {
        0 => calls(&[("SendEmailAgent", json!({ "recipient": "a@b" })), ("BookFlightAgent", json!({}))]),
        1 => answer_to(request),
        2 => calls(&[("BookFlightAgent", json!({ "seat": "window" }))]),
        3 => answer_to(request),
        _ => FnProvider::text("Bye."),
    });
    let assistant = assistant(&world);
    let asked = says(&assistant, "Email and book.").await;
    assert_eq!(
        asked.text,
        "1. Run SendEmailAgent with {\"recipient\":\"a@b\"}\n2. Run BookFlightAgent with {\"seat\":\"aisle\"}"
    );
    assert_eq!(says(&assistant, "What?").await.text, asked.text);
    let done = says(&assistant, "Yes!").await;
    assert_eq!(done.text, "done with {\"recipient\":\"a@b\"} | done with {\"seat\":\"aisle\"}");
    assert_eq!(world.done.lock().unwrap().len(), 2);

    says(&assistant, "Another one, at the window.").await;
    assert!(says(&assistant, "no").await.text.ends_with("User cancelled this action."));
    assert_eq!(world.done.lock().unwrap().len(), 2);
    // The conversation is one, and the persona speaks in each of its runs.
    assert_eq!(says(&assistant, "Thanks").await.text, "Bye.");
    let last = world.model.requests().pop().unwrap();
    assert!(last.messages.iter().any(|message| message.text() == "Email and book."));
    assert!(last.system.unwrap().starts_with("You are Koi.\n"));
}
