//! Sub-agents: a call that is a run of its own, found again after a crash, within the caller's budget.

use std::sync::Arc;

use archon::{
    Archon, ArchonBuilder, Outcome, RunOptions, SubAgentTool,
    react_loop::{Replay, replay},
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        BoxFuture, Durability, ExecutionLimits, Journal, JournalError, Lease, LimitReached, Message,
        ModelEvent, ModelPrice, OpenMode, OpenRun, Origin, OutcomeStatus, ProviderError, Record, RecordBody,
        Request, RunFilter, RunHead, RunId, RunStarted, RunWriter, Spending, ToolAnnotations, ToolCall,
        ToolResult, ToolSpec, TurnTrigger, Usage,
    },
    views::{AgentEvent, AgentEvents, Session},
};
use archon_testkit::{Ended, FnProvider, RecordingSink};
use serde_json::{Value, json};

type Answer = Vec<Result<ModelEvent, ProviderError>>;

/// Every answer takes 100 tokens in and 10 out.
fn metered(mut answer: Answer) -> Answer {
    if let Some(Ok(ModelEvent::Done(message))) = answer.last_mut() {
        message.usage = Usage { input: 100, output: 10, ..Usage::default() };
    }
    answer
}

/// What such an answer costs at [`price`].
const COST: u64 = 450;

fn price() -> ModelPrice {
    ModelPrice::new(3_000_000, 15_000_000)
}

fn results(request: &Request) -> usize {
    request.messages.iter().filter(|m| matches!(***m, Message::ToolResult(_))).count()
}

fn ask(tool: &str, n: usize, arguments: Value) -> ToolCall {
    ToolCall::new(format!("c{n}"), tool, arguments)
}

/// An agent that answers at once, and what it was asked.
fn researcher() -> (ArchonBuilder, FnProvider) {
    let provider = FnProvider::new(|_, _| metered(FnProvider::text("Two million.")));
    let agent = Archon::builder().provider(Arc::new(provider.clone()), "small").name("researcher");
    (agent.price(price()), provider)
}

/// An agent that makes these calls in its first turn and then answers.
fn boss(journal: &InMemoryJournal, tool: SubAgentTool, calls: Vec<Value>) -> (ArchonBuilder, FnProvider) {
    let name = archon::Tool::spec(&tool).name.clone();
    let provider = FnProvider::new(move |_, request| {
        metered(match results(request) {
            0 => FnProvider::calls((0..).zip(&calls).map(|(n, c)| ask(&name, n, c.clone())).collect()),
            _ => FnProvider::text("About two million."),
        })
    });
    let agent = Archon::builder()
        .provider(Arc::new(provider.clone()), "large")
        .name("boss")
        .journal(Arc::new(journal.clone()))
        .tool(tool);
    (agent.price(price()), provider)
}

fn named(run: &str) -> RunOptions {
    let mut options = RunOptions::default();
    options.run = Some(RunId::new(run));
    options
}

async fn log(journal: &InMemoryJournal, run: &str) -> Vec<Arc<Record>> {
    journal.read(&RunId::new(run)).await.unwrap()
}

fn start(log: &[Arc<Record>]) -> &RunStarted {
    match &log[0].body {
        RecordBody::RunStarted(started) => started,
        other => panic!("{other:?}"),
    }
}

fn leases(log: &[Arc<Record>]) -> Vec<Lease> {
    let lease = |r: &Arc<Record>| match &r.body {
        RecordBody::LeaseGranted { lease, .. } => Some(*lease),
        _ => None,
    };
    log.iter().filter_map(lease).collect()
}

fn settled(log: &[Arc<Record>]) -> Vec<Spending> {
    let spent = |r: &Arc<Record>| match &r.body {
        RecordBody::LeaseSettled { spent, .. } => Some(*spent),
        _ => None,
    };
    log.iter().filter_map(spent).collect()
}

fn finished(log: &[Arc<Record>]) -> Vec<ToolResult> {
    let result = |r: &Arc<Record>| match &r.body {
        RecordBody::ToolCallFinished { result, .. } | RecordBody::ToolCallRefused { result, .. } => {
            Some(ToolResult::clone(result))
        }
        _ => None,
    };
    log.iter().filter_map(result).collect()
}

/// One call of a sub-agent in a run named `boss`, and what it came to.
async fn one_call(tool: SubAgentTool, call: Value) -> (InMemoryJournal, Outcome, ToolResult) {
    let journal = InMemoryJournal::new();
    let agent = boss(&journal, tool, vec![call]).0.build().unwrap();
    let outcome = agent.run_with("How many people live in Paris?", named("boss")).await.ended();
    let result = finished(&log(&journal, "boss").await).remove(0);
    (journal, outcome, result)
}

// spec: A-45, MA-28, R-32, R-33, S-04
#[tokio::test]
async fn a_call_of_a_sub_agent_is_a_run_of_its_own_that_is_linked_both_ways() {
    let (journal, sink) = (InMemoryJournal::new(), RecordingSink::new());
    let (child, child_model) = researcher();
    let tool = SubAgentTool::new("researcher", child.agent_id("agent_r").build().unwrap());
    let agent = boss(&journal, tool, vec![json!({"task": "Count the people of Paris."})]).0;
    let agent = agent.agent_id("agent_b").build().unwrap();
    let options = named("boss").watched_by(Arc::new(sink.clone()));
    let outcome = agent.run_with("How many people live in Paris?", options).await.ended();
    assert_eq!(outcome.last_text(), Some("About two million."));
    assert_eq!(child_model.requests()[0].messages.last().unwrap().text(), "Count the people of Paris.");

    // The log of the child stands beside its caller's.
    let (parent_log, child_log) = (log(&journal, "boss").await, log(&journal, "boss.0-0").await);
    let (parent, child) = (start(&parent_log), start(&child_log));
    assert!(matches!(&child.origin, Origin::CalledBy { run, .. } if run.as_str() == "boss"));
    assert_eq!((child.agent.as_str(), parent.agent.as_str()), ("agent_r", "agent_b"));
    assert_ne!(child.session, parent.session);
    assert_eq!(child.loop_id.as_str(), format!("{}.sub.1", child.session));
    assert_eq!(parent.loop_id.as_str(), format!("{}.test-large.1", parent.session));
    assert_eq!(child.first_trigger, TurnTrigger::SubAgent);
    let started = parent_log.iter().find_map(|r| match &r.body {
        RecordBody::ToolCallStarted { child_run, .. } => child_run.clone(),
        _ => None,
    });
    assert_eq!(started, Some(child.run.clone()));
    let result = &finished(&parent_log)[0];
    assert_eq!((result.text().as_str(), &result.child_run), ("Two million.", &Some(child.run.clone())));

    // Whoever watches the caller sees the child, under its own name.
    let mut projection = AgentEvents::new();
    let events: Vec<AgentEvent> = sink.events().iter().flat_map(|e| projection.push(e)).collect();
    assert!(events.iter().any(|e| matches!(e, AgentEvent::AgentStart { run_id, parent_loop_id, .. }
        if run_id.as_ref() == Some(&child.run) && parent_loop_id.as_ref() == Some(&parent.run))));
    assert!(events.iter().any(|e| matches!(e, AgentEvent::ToolExecutionEnd { loop_id, child_loop_id, .. }
        if *loop_id == parent.loop_id && child_loop_id.as_ref() == Some(&child.run))));
    assert_eq!(events.iter().filter(|e| matches!(e, AgentEvent::AgentEnd { .. })).count(), 2);

    // And the sessions name each other.
    let caller = Session::read(&journal, &parent.session).await.unwrap().unwrap();
    let link = &caller.loops[0].child_loop_refs[0];
    assert_eq!((&link.child_loop_id, &link.child_session_id), (&child.loop_id, &child.session));
    let called = Session::read(&journal, &child.session).await.unwrap().unwrap();
    let back = called.parent_spawn_ref.unwrap();
    assert_eq!((&back.parent_loop_id, &back.parent_session_id), (&parent.loop_id, &parent.session));
    // Who asks for the newest run means one of those that people started.
    assert_eq!(agent.newest_run(None).await.unwrap().unwrap().run_id.as_str(), "boss");

    // The next loop of the session has the next number.
    let mut options = RunOptions::in_session(parent.session.clone());
    options.run = Some("boss_2".into());
    agent.run_with("And in Rome?", options).await.ended();
    let next = log(&journal, "boss_2").await;
    assert_eq!(start(&next).loop_id.as_str(), format!("{}.test-large.2", parent.session));
}

// spec: MA-28
#[tokio::test]
async fn the_form_of_other_systems_is_understood_and_a_call_without_a_task_is_explained() {
    let call = |arguments| async move {
        let (child, model) = researcher();
        let tool = SubAgentTool::new("Task", child.build().unwrap());
        let (_, _, result) = one_call(tool, arguments).await;
        (model.requests().first().map(|r| r.messages.last().unwrap().text()), result)
    };
    let alias = json!({"description": "Explore", "prompt": "Find the parser.", "subagent_type": "Explore"});
    assert_eq!(call(alias).await.0.as_deref(), Some("Find the parser."));
    for nothing in [json!({"task": " "}), json!({"subagent_type": "Explore"})] {
        let (asked, result) = call(nothing).await;
        assert_eq!(asked, None);
        assert!(result.text().contains("`task` is missing or empty"), "{}", result.text());
    }
}

// spec: MA-28
#[tokio::test]
async fn stopped_sub_agent_reports_it_to_its_caller() {
    let provider = FnProvider::new(|n, _| FnProvider::calls(vec![ask("nothing", n, json!({"n": n}))]));
    let child = Archon::builder().provider(Arc::new(provider), "small").build().unwrap();
    let tool = SubAgentTool::new("researcher", child).with_max_turns(2);
    let (journal, outcome, result) = one_call(tool, json!({"task": "Go on for ever."})).await;
    assert!(outcome.is_finished());
    assert!(result.is_error() && result.text().contains("Max turns reached (2)"), "{}", result.text());
    let RecordBody::RunFinished(ended) = &log(&journal, "boss.0-0").await.last().unwrap().body.clone() else {
        panic!("it has not ended");
    };
    assert_eq!(ended.status, OutcomeStatus::Limit(LimitReached::Turns { max: 2 }));
}

/// Three levels: `boss` calls `middle`, which calls `leaf`.
async fn three_levels(max_depth: u32) -> (InMemoryJournal, FnProvider, Outcome) {
    let journal = InMemoryJournal::new();
    let leaf = SubAgentTool::new("leaf", researcher().0.build().unwrap());
    // Whether it is told of the tool or not, the model calls it.
    let (middle, middle_model) = boss(&InMemoryJournal::new(), leaf, vec![json!({"task": "deeper"})]);
    let tool = SubAgentTool::new("middle", middle.build().unwrap());
    let mut limits = ExecutionLimits::default();
    limits.max_depth = max_depth;
    let agent = boss(&journal, tool, vec![json!({"task": "deep"})]).0.limits(limits).build().unwrap();
    let outcome = agent.run_with("Dig.", named("boss")).await.ended();
    (journal, middle_model, outcome)
}

// spec: MA-29
#[tokio::test]
async fn a_sub_agent_calls_no_others_unless_the_depth_allows_it() {
    assert_eq!(ExecutionLimits::default().max_depth, 1);
    let (journal, middle, outcome) = three_levels(1).await;
    assert!(outcome.is_finished());
    assert!(middle.requests()[0].tools.is_empty(), "the tool is hidden");
    let refused = finished(&log(&journal, "boss.0-0").await).remove(0);
    assert!(refused.text().contains("Tool 'leaf' not found"), "{}", refused.text());
    assert_eq!(journal.list(&archon::types::RunFilter::all()).await.unwrap().len(), 2);

    let (journal, middle, _) = three_levels(2).await;
    assert_eq!(middle.requests()[0].tools.len(), 1);
    let leaf = log(&journal, "boss.0-0.0-0").await;
    assert_eq!(start(&leaf).config.limits.max_depth, 2);
    // What the leaf used was paid by the middle, and so by the boss.
    let all = settled(&log(&journal, "boss").await);
    assert_eq!(all, [Spending::new(330, 3 * COST)]);
    assert_eq!(settled(&log(&journal, "boss.0-0").await), [Spending::new(110, COST)]);
}

// spec: R-14, MA-28
#[tokio::test]
async fn sub_agents_share_the_remaining_budget_and_return_unused_leases() {
    let journal = InMemoryJournal::new();
    let tool = SubAgentTool::new("researcher", researcher().0.build().unwrap());
    let provider = FnProvider::new(|_, request: &Request| {
        let task = |n| ask("researcher", n, json!({"task": format!("part {n}")}));
        metered(match results(request) {
            0 => FnProvider::calls(vec![task(0), task(1), task(2)]),
            3 => FnProvider::calls(vec![task(3)]),
            _ => FnProvider::text("done"),
        })
    });
    let mut limits = ExecutionLimits::default();
    (limits.max_cost_micros, limits.max_total_tokens) = (Some(1_000_000), 30_110);
    let agent = Archon::builder()
        .provider(Arc::new(provider), "large")
        .price(price())
        .limits(limits)
        .journal(Arc::new(journal.clone()))
        .tool(tool)
        .build()
        .unwrap();
    let outcome = agent.run_with("Work.", named("boss")).await.ended();
    let parent = log(&journal, "boss").await;
    let granted = leases(&parent);
    let (tokens, costs): (Vec<_>, Vec<_>) =
        granted.iter().map(|l| (l.tokens, l.cost_micros.unwrap())).unzip();
    // 30,000 are left after the first answer; 110 for each child and for the second answer are spent then.
    assert_eq!(tokens, [10_000, 10_000, 10_000, 30_000 - 4 * 110]);
    let third = (1_000_000 - COST) / 3;
    assert_eq!(costs[..2], [third, third]);
    assert_eq!(costs[3], 1_000_000 - 5 * COST);
    assert_eq!(settled(&parent), [Spending::new(110, COST); 4]);
    assert_eq!(outcome.child_spending, Spending::new(440, 4 * COST));
    assert_eq!((outcome.usage.total(), outcome.cost_micros), (330, Some(3 * COST)), "its own calls");
    let child = log(&journal, "boss.0-1").await;
    let limits = &start(&child).config.limits;
    assert_eq!((limits.max_total_tokens, limits.max_cost_micros), (10_000, Some(third)));
    for run in ["boss", "boss.0-1"] {
        assert!(replay(&journal, &RunId::new(run)).await.unwrap().is_identical(), "{run}");
    }
}

#[tokio::test]
async fn a_lease_that_was_altered_is_found_by_replay() {
    let (journal, ..) =
        one_call(SubAgentTool::new("r", researcher().0.build().unwrap()), json!({"task": "t"})).await;
    let mut records = log(&journal, "boss").await;
    let at = records.iter().position(|r| matches!(r.body, RecordBody::LeaseGranted { .. })).unwrap();
    let mut altered = Record::clone(&records[at]);
    if let RecordBody::LeaseGranted { lease, .. } = &mut altered.body {
        lease.tokens += 1;
    }
    records[at] = Arc::new(altered);
    let other = copied([("boss", &records[..])]).await;
    let found = replay(&other, &RunId::new("boss")).await.unwrap();
    assert!(matches!(found, Replay::Differs { record, .. } if record == at as u64), "{found:?}");
}

// spec: MA-28
#[tokio::test]
async fn a_sub_agent_without_a_price_is_not_started_on_limited_money() {
    let provider = FnProvider::new(|_, _| FnProvider::text("free?"));
    let child = Archon::builder().provider(Arc::new(provider.clone()), "small").build().unwrap();
    let journal = InMemoryJournal::new();
    let mut limits = ExecutionLimits::default();
    limits.max_cost_micros = Some(1_000_000);
    let tool = SubAgentTool::new("r", child);
    let agent = boss(&journal, tool, vec![json!({"task": "t"})]).0.limits(limits).build().unwrap();
    agent.run_with("Work.", named("boss")).await.ended();
    let parent = log(&journal, "boss").await;
    let said = finished(&parent).remove(0).text();
    assert!(said.contains("the price of small is unknown"), "{said}");
    assert!(provider.requests().is_empty());
    assert_eq!(settled(&parent), [Spending::default()]);
}

async fn copied<'a>(logs: impl IntoIterator<Item = (&'a str, &'a [Arc<Record>])>) -> InMemoryJournal {
    let journal = InMemoryJournal::new();
    for (run, records) in logs {
        let mut open = journal.open(&RunId::new(run), OpenMode::Create).await.unwrap();
        open.writer.append(records, Durability::Synced).await.unwrap();
    }
    journal
}

/// A caller that was cut off while its call ran, taken up; `child` are the records that its child had.
async fn taken_up(whole: &InMemoryJournal, child: usize) -> (InMemoryJournal, FnProvider) {
    let (parent, called) = (log(whole, "boss").await, log(whole, "boss.0-0").await);
    let started = parent.iter().position(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).unwrap();
    let child = (child > 0).then_some(("boss.0-0", &called[..child]));
    let journal = copied([("boss", &parent[..=started])].into_iter().chain(child)).await;
    let (again, model) = researcher();
    let tool = SubAgentTool::new("r", again.build().unwrap());
    let agent = boss(&journal, tool, vec![]).0.build().unwrap();
    let outcome = agent.resume(RunId::new("boss")).await.unwrap().reply().await.ended();
    assert!(outcome.is_finished(), "{outcome:?}");
    let records = log(&journal, "boss").await;
    assert_eq!(leases(&records).len(), 1, "a lease is granted once");
    let RecordBody::RunFinished(called) = &log(&journal, "boss.0-0").await.last().unwrap().body.clone()
    else {
        panic!("the child has not ended");
    };
    // A model call that was lost is charged as it was set aside.
    assert_eq!((settled(&records), called.usage.total()), (vec![called.spending()], 110));
    assert_eq!(finished(&records)[0].text(), "Two million.");
    assert!(replay(&journal, &RunId::new("boss")).await.unwrap().is_identical());
    (journal, model)
}

// spec: MA-28, S-14
#[tokio::test]
async fn resumed_caller_finds_its_child_run_and_does_not_repeat_it() {
    let tool = SubAgentTool::new("r", researcher().0.build().unwrap());
    let (whole, ..) = one_call(tool, json!({"task": "Count."})).await;
    let all = log(&whole, "boss.0-0").await.len();
    for child in 0..=all {
        let (journal, model) = taken_up(&whole, child).await;
        // Ended, or answered: nobody asks again. Everything else is asked once more.
        let answered = log(&whole, "boss.0-0").await[..child]
            .iter()
            .any(|r| matches!(r.body, RecordBody::ModelCallFinished { .. }));
        assert_eq!(model.requests().len(), usize::from(!answered), "{child} records");
        let called = log(&journal, "boss.0-0").await;
        assert_eq!(called.iter().filter(|r| matches!(r.body, RecordBody::RunStarted(_))).count(), 1);
        assert!(matches!(&called.last().unwrap().body, RecordBody::RunFinished(o) if o.is_finished()));
    }
}

#[tokio::test]
async fn a_run_of_the_same_name_is_not_taken_for_the_sub_agents() {
    let journal = InMemoryJournal::new();
    let (other, _) = researcher();
    let other = other.journal(Arc::new(journal.clone())).build().unwrap();
    other.run_with("Something else.", named("boss.0-0")).await.ended();
    let tool = SubAgentTool::new("r", researcher().0.build().unwrap());
    let agent = boss(&journal, tool, vec![json!({"task": "t"})]).0.build().unwrap();
    agent.run_with("Work.", named("boss")).await.ended();
    let said = finished(&log(&journal, "boss").await).remove(0).text();
    assert!(said.contains("but this call of run boss did not start it"), "{said}");
}

/// A journal that does not append at once, as one on a disk.
struct Slow(InMemoryJournal);

struct SlowWriter(Box<dyn RunWriter>);

impl Journal for Slow {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let OpenRun { records, writer } = self.0.open(run, mode).await?;
            Ok(OpenRun { records, writer: Box::new(SlowWriter(writer)) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.0.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.0.list(filter)
    }
}

impl RunWriter for SlowWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.0.append(records, durability).await
        })
    }
}

// spec: MA-28
#[tokio::test]
async fn cancel_of_a_caller_cancels_its_child_run_and_both_can_be_resumed() {
    let (journal, (began, waiting)) = (InMemoryJournal::new(), tokio::sync::mpsc::unbounded_channel());
    let mut waiting = waiting;
    let spec = ToolSpec::new("wait", "Waits.", json!({"type": "object"}))
        .with_annotations(ToolAnnotations::read_only());
    let wait = FnTool::new(spec, move |_, context: archon::ToolContext| {
        let began = began.clone();
        async move {
            let _ = began.send(());
            context.cancel.cancelled().await;
            Ok(ToolResult::success("waited"))
        }
    });
    let provider = FnProvider::new(|_, request| match results(request) {
        0 => FnProvider::calls(vec![ask("wait", 0, json!({}))]),
        _ => FnProvider::text("Two million."),
    });
    let child = Archon::builder().provider(Arc::new(provider), "small").tool(wait).build().unwrap();
    let tool = SubAgentTool::new("r", child);
    let agent = boss(&journal, tool, vec![json!({"task": "t"})]).0.journal(Arc::new(Slow(journal.clone())));
    let agent = agent.build().unwrap();
    let run = agent.start("Work.", named("boss")).await.unwrap();
    waiting.recv().await.unwrap();
    run.cancel();
    assert_eq!(run.reply().await.ended().status, OutcomeStatus::Cancelled);
    for run in ["boss", "boss.0-0"] {
        let ended = log(&journal, run).await.last().unwrap().body.clone();
        let cancelled = matches!(&ended, RecordBody::RunFinished(o) if o.status == OutcomeStatus::Cancelled);
        assert!(cancelled, "{run}: {ended:?}");
    }
    assert_eq!(settled(&log(&journal, "boss").await).len(), 1);
    let again = agent.resume(RunId::new("boss")).await.unwrap().reply().await.ended();
    assert_eq!(again.last_text(), Some("About two million."));
}
