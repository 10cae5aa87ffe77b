//! A support desk as a service: runs of many customers behind one handle, questions that wait, and a second process that
//! answers them. Each method of `Service` stands for the handler of a request. Without a network: the model is scripted.
//! `cargo run -p archon-agents --example service`; the guide is `docs/service.md`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, Event, Journal, OutputSchema, RunError, RunId, Runs, Sweeping, Typed,
    providers::{ScriptedProvider, Step},
    schemars::{self, JsonSchema},
    store::InMemoryJournal,
    tool,
    types::{
        Answer, AnswerRuns, AskLater, ExecutionLimits, Message, Request, StartRun, StartRuns, Started,
        WhenBusy,
    },
};
use futures_util::StreamExt;
use serde_json::json;

/// Pays a part of an order's price back.
#[tool(requires_confirmation, summary = "Refund {cents} cents of order {order}")]
async fn refund(#[state] ledger: &Arc<AtomicU64>, order: String, cents: u64) -> String {
    let all = ledger.fetch_add(cents, Ordering::SeqCst) + cents;
    format!("refunded {order}; {all} cents in all")
}

/// The topic and the urgency of a message.
#[derive(serde::Deserialize, JsonSchema)]
struct Ticket {
    topic: String,
    urgent: bool,
}

/// One process of the service.
struct Service {
    runs: Runs,
    limits: ExecutionLimits,
    _sweeping: Sweeping,
}

/// The result of a handler: the HTTP status, and the body.
type Response = Result<(u16, String), RunError>;

impl Service {
    /// The order matters: whoever listens before runs are resumed gets messages for sessions whose run is cut off.
    async fn start(journal: Arc<dyn Journal>, ledger: Arc<AtomicU64>) -> Result<Self, RunError> {
        let agent = |id: &str| {
            Archon::builder().agent_id(id).provider(Arc::new(model()), "scripted").journal(journal.clone())
        };
        // The ids stand in the logs: after a restart, runs are resumed by them.
        let desk = agent("desk").tool(refund(ledger)).approver(AskLater).build()?;
        let sorter = agent("sorter").build()?.answering(OutputSchema::of::<Ticket>());
        let limits = desk.limits().clone().with_max_turns(8).with_max_total_tokens(50_000);
        let runs = Runs::new(desk).with_agent(sorter.run_agent());
        let _sweeping = runs.keep_sweeping(Duration::from_secs(60));
        for (run, error) in runs.resume_unfinished(None).await?.failures() {
            eprintln!("{run} cannot go on: {error} ({})", error.advice());
        }
        Ok(Self { runs, limits, _sweeping })
    }

    /// `POST /messages`. The key comes from the client, who sends the same one when it tries again.
    async fn post_message(&self, customer: &str, key: &str, text: &str, when_busy: WhenBusy) -> Response {
        let request = StartRun::new(text).session("chat").key(key).when_busy(when_busy);
        let request = request.limits(self.limits.clone());
        let started = self.runs.for_tenant(customer).start(request).await?;
        let status = match started.how {
            Started::New => 201,
            Started::Queued => 202,
            _ => 200,
        };
        Ok((status, started.run.to_string()))
    }

    /// `GET /runs/RUN/events`: server-sent events. Records have ids, and a client that lost its connection names the last
    /// one that it has; pieces of text have none, since the record that follows has the whole text.
    async fn get_events(
        &self,
        customer: &str,
        run: &RunId,
        last_event_id: Option<u64>,
    ) -> Result<Vec<String>, RunError> {
        let own = run.clone();
        let events = self.runs.for_tenant(customer).watch(run, last_event_id).await?;
        let sent = events.filter_map(move |event| {
            let line = match event {
                Ok(Event::Record { run, record }) if run == own => Some(format!("id: {}", record.seq)),
                Ok(event) => event.as_text().map(|text| format!("data: {text}")),
                Err(error) => Some(format!("event: error\ndata: {error}")),
            };
            std::future::ready(line)
        });
        // A server sends each as it comes.
        Ok(sent.collect().await)
    }

    /// `GET /runs/RUN`.
    async fn get_run(&self, customer: &str, run: &RunId) -> Response {
        let runs = self.runs.for_tenant(customer);
        Ok((200, runs.get(run).await?.status.to_string()))
    }

    /// `GET /messages`: the chat as it is shown.
    async fn get_messages(&self, customer: &str) -> Response {
        let messages = self.runs.for_tenant(customer).history(&"chat".into(), None).await?;
        Ok((
            200,
            format!("{} messages", messages.iter().filter(|message| !message.text().is_empty()).count()),
        ))
    }

    /// `GET /questions`.
    async fn get_questions(&self, customer: &str) -> Result<Vec<(String, String)>, RunError> {
        let open = self.runs.for_tenant(customer).questions(None).await?;
        Ok(open.into_iter().map(|open| (open.request.request_id, open.request.action_summary)).collect())
    }

    /// `POST /questions/QUESTION`.
    async fn post_answer(&self, customer: &str, question: &str, answer: Answer) -> Response {
        match self.runs.for_tenant(customer).answer(question, answer).await? {
            true => Ok((200, "the run goes on".to_owned())),
            false => Ok((409, "it was answered before, has expired, or is not there".to_owned())),
        }
    }

    /// `POST /tickets`: a request that waits for its answer, which is a value.
    async fn post_ticket(&self, customer: &str, text: &str) -> Result<Ticket, RunError> {
        let runs = self.runs.for_tenant(customer);
        let started = runs.start(StartRun::new(text).agent("sorter")).await?;
        Ok(Typed::of(runs.reply(&started.run).await?)?.value)
    }
}

#[allow(dead_code, reason = "a test tells the story, too")]
#[tokio::main]
async fn main() -> Result<(), RunError> {
    print!("{}", story().await?);
    Ok(())
}

/// Sends requests to two processes of the service; a line for each request and its response.
pub(crate) async fn story() -> Result<String, RunError> {
    let mut told = String::new();
    let mut tell = |request: &str, response: Response| {
        // A client reads what happened; `error.advice()` is for who runs the service.
        let (status, body) = response.unwrap_or_else(|error| (error.http_status(), error.to_string()));
        let _ = writeln!(told, "{request:<42} {status}  {body}");
    };
    // Of files: `JsonlJournal::open("data")`, or `SqliteJournal::open("runs.db")`.
    let (journal, ledger) = (Arc::new(InMemoryJournal::new()), Arc::new(AtomicU64::new(0)));

    let one = Service::start(journal.clone(), ledger.clone()).await?;
    let (text, refuse, queue) = ("Refund 40 cents of A-1", WhenBusy::Refuse, WhenBusy::Queue);
    let (status, run) = one.post_message("anna", "key-1", text, refuse).await?;
    tell("anna  POST /messages       key-1", Ok((status, run.clone())));
    tell("anna  POST /messages       key-1, again", one.post_message("anna", "key-1", text, refuse).await);
    let run = RunId::new(run);
    let seen = one.get_events("anna", &run, None).await?;
    tell("anna  GET  /runs/RUN", one.get_run("anna", &run).await);
    tell("ben   GET  /runs/RUN", one.get_run("ben", &run).await);
    tell("anna  POST /messages       key-2", one.post_message("anna", "key-2", "Thank you", refuse).await);
    tell(
        "anna  POST /messages       key-2, to queue",
        one.post_message("anna", "key-2", "Thank you", queue).await,
    );
    // The process ends. What it would have had to do stands in the journal.
    drop(one);

    let two = Service::start(journal, ledger.clone()).await?;
    let asked = two.get_questions("anna").await?.remove(0);
    tell("anna  GET  /questions", Ok((200, asked.1)));
    tell("ben   POST /questions/ID   yes", two.post_answer("ben", &asked.0, Answer::Approve).await);
    tell("anna  POST /questions/ID   yes", two.post_answer("anna", &asked.0, Answer::Approve).await);
    let last = seen.iter().rev().find_map(|line| line.strip_prefix("id: ")?.parse().ok());
    let rest = two.get_events("anna", &run, last).await?;
    let said: Vec<_> = rest.iter().filter_map(|line| line.strip_prefix("data: ")).collect();
    tell("anna  GET  /runs/RUN/events from there", Ok((200, said.concat())));
    tell("anna  GET  /runs/RUN", two.get_run("anna", &run).await);
    tell("anna  GET  /messages", two.get_messages("anna").await);
    tell("ben   GET  /messages", two.get_messages("ben").await);
    tell("anna  POST /questions/ID   yes, again", two.post_answer("anna", &asked.0, Answer::Approve).await);
    let ticket = two.post_ticket("ben", "My chair is on fire").await;
    let ticket = ticket.map(|ticket| (200, format!("{}, urgent: {}", ticket.topic, ticket.urgent)));
    tell("ben   POST /tickets", ticket);
    let _ = writeln!(told, "refunded: {} cents", ledger.load(Ordering::SeqCst));
    // Ids differ each time.
    Ok(told.replace(run.as_str(), "RUN"))
}

/// A model that refunds when somebody asks for it, and sorts tickets.
fn model() -> ScriptedProvider {
    ScriptedProvider::new(std::iter::repeat_with(|| Step::reply(says)).take(20))
}

fn says(request: &Request) -> Step {
    let last = request.messages.iter().last();
    match last.map(|message| &**message) {
        _ if request.options.response_format.is_some() => {
            Step::text(r#"{"topic":"furniture","urgent":true}"#)
        }
        Some(Message::ToolResult(_)) => Step::text("You have your 40 cents back. "),
        Some(message) if message.text().starts_with("Refund") => {
            Step::call("c", "refund", json!({"order": "A-1", "cents": 40}))
        }
        _ => Step::text("You are welcome."),
    }
}
