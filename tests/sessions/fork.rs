//! Fork: another way from a point that a run has passed, with what was spent and without what was open.

use std::sync::Arc;

use archon::{
    Archon, ArchonBuilder, Outcome, RunError, RunOptions, Runs,
    react_loop::replay,
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        BoxFuture, ContinuationKind, Durability, Effect, ExecutionLimits, ForkOptions, ForkPlace,
        InputFilter, InputVerdict, Journal, JournalError, LimitReached, ManageRuns, Message, MoreLimits,
        OpenMode, Origin, OutcomeStatus, Record, RecordBody, Request, RunId, SessionMode, StartRun,
        StartRuns, ToolAnnotations, ToolCall, ToolResult, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

/// Three turns with a call each, then the answer; `answer` tells runs apart.
fn agent(journal: &InMemoryJournal, answer: &'static str) -> (ArchonBuilder, FnProvider) {
    let provider = FnProvider::new(move |_, request: &Request| {
        let turn = request.messages.iter().filter(|m| matches!(***m, Message::ToolResult(_))).count();
        match turn {
            0..3 => FnProvider::calls(vec![ToolCall::new("c", "look", json!({"step": turn, "for": answer}))]),
            _ => FnProvider::text(answer),
        }
    });
    let mut annotations = ToolAnnotations::default();
    annotations.effect = Effect::SideEffect;
    let spec = ToolSpec::new("look", "Looks.", json!({"type": "object"})).with_annotations(annotations);
    let look = FnTool::new(spec, |_: serde_json::Value, _| async { Ok(ToolResult::success("seen")) });
    let builder = Archon::builder()
        .provider(Arc::new(provider.clone()), "scripted")
        .tools([Arc::new(look) as Arc<dyn archon::Tool>])
        .journal(Arc::new(journal.clone()));
    (builder, provider)
}

/// Rejects messages with a password.
struct NoPasswords;

impl InputFilter for NoPasswords {
    fn check<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, InputVerdict> {
        let verdict = match message.text().contains("password") {
            true => InputVerdict::Reject("no passwords".to_owned()),
            false => InputVerdict::Pass,
        };
        Box::pin(std::future::ready(verdict))
    }
}

/// Every call is followed by its result.
fn is_paired(request: &Request) -> bool {
    let (mut calls, mut results) = (0, 0);
    for message in request.messages.iter() {
        match &**message {
            Message::Assistant(answer) if calls == results => calls += answer.tool_calls().count(),
            Message::ToolResult(_) => results += 1,
            _ => {}
        }
    }
    calls == results
}

async fn first_run(journal: &InMemoryJournal) -> Vec<Arc<Record>> {
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("first"));
    let agent = agent(journal, "one way").0.build().unwrap();
    assert!(agent.run_with("Look three times.", options).await.ended().is_finished());
    journal.read(&RunId::new("first")).await.unwrap()
}

async fn resumed(agent: &Archon, run: &RunId) -> Outcome {
    agent.resume(run.clone()).await.unwrap().reply().await.ended()
}

// spec: S-14
#[tokio::test]
async fn a_fork_goes_on_from_the_end_of_a_turn() {
    let journal = InMemoryJournal::new();
    let whole = first_run(&journal).await;
    for turns in 0..=3 {
        let (builder, provider) = agent(&journal, "another way");
        let agent = builder.build().unwrap();
        let fork = agent.fork(&RunId::new("first"), ForkOptions::after(turns)).await.unwrap();
        assert_eq!((fork.turns, fork.wants_answer), (turns, true));
        assert_eq!(resumed(&agent, &fork.run).await.last_text(), Some("another way"));
        let requests = provider.requests();
        assert_eq!(requests.len(), 4 - turns as usize, "turns that were kept are not asked again");
        assert_eq!(requests[0].messages.len(), 1 + 2 * turns as usize);
        assert!(requests.iter().all(is_paired));
        assert!(replay(&journal, &fork.run).await.unwrap().is_identical());

        let log = journal.read(&fork.run).await.unwrap();
        let RecordBody::RunStarted(started) = &log[0].body else { panic!("{:?}", log[0]) };
        let branch = |c: &ContinuationKind| matches!(c, ContinuationKind::Branch { tag } if !tag.is_empty());
        assert!(
            matches!(&started.origin, Origin::Continues { run, records, continuation }
                if run.as_str() == "first" && *records == fork.records && branch(continuation)),
            "{:?}",
            started.origin
        );
    }
    assert_eq!(journal.read(&RunId::new("first")).await.unwrap(), whole, "the run it leaves is as it was");
    let refused = journal.delete(&RunId::new("first")).await.unwrap_err();
    assert!(matches!(refused, JournalError::Needed { by, .. } if by.len() == 4));
}

#[tokio::test]
async fn a_fork_of_a_whole_run_waits_for_a_prompt() {
    let journal = InMemoryJournal::new();
    first_run(&journal).await;
    let (builder, provider) = agent(&journal, "and then");
    let agent = builder.build().unwrap();
    let fork = agent.fork(&RunId::new("first"), ForkOptions::default()).await.unwrap();
    assert_eq!((fork.turns, fork.wants_answer), (4, false));
    let next = RunOptions::in_session(fork.session);
    assert_eq!(agent.run_with("Anything else?", next).await.ended().last_text(), Some("and then"));
    assert_eq!(provider.requests()[0].messages.len(), 9);
}

// spec: EX-10
#[tokio::test]
async fn fork_with_a_message_has_it_in_place_of_the_prompt_or_behind_the_results() {
    let journal = InMemoryJournal::new();
    let whole = first_run(&journal).await;
    for turns in 0..=4 {
        let (builder, provider) = agent(&journal, "another way");
        let agent = builder.build().unwrap();
        let options = ForkOptions::after(turns).with_message("Look elsewhere.");
        let fork = agent.fork(&RunId::new("first"), options).await.unwrap();
        assert_eq!((fork.turns, fork.wants_answer), (turns, true));
        assert_eq!(resumed(&agent, &fork.run).await.last_text(), Some("another way"));
        let requests = provider.requests();
        assert_eq!(requests.len(), 4 - turns.min(3) as usize, "turns that were kept are not asked again");
        let asked = &requests[0].messages;
        // The prompt, a call and its result for each turn, the answer of the last turn.
        let kept = match turns {
            0 => 0,
            4 => 8,
            turns => 1 + 2 * turns as usize,
        };
        assert_eq!((asked.len(), asked.last().unwrap().text().as_str()), (kept + 1, "Look elsewhere."));
        assert!(requests.iter().all(is_paired));
        assert!(replay(&journal, &fork.run).await.unwrap().is_identical());
        // A fork of the fork can change the message again.
        let again = ForkOptions::after(0).with_message("Look here.");
        let again = agent.fork(&fork.run, again).await.unwrap();
        resumed(&agent, &again.run).await;
        let all = provider.requests();
        let asked = &all[requests.len()].messages;
        assert_eq!((asked.len(), asked.last().unwrap().text().as_str()), (kept + 1, "Look here."));
    }
    assert_eq!(journal.read(&RunId::new("first")).await.unwrap(), whole, "the run it leaves is as it was");
}

// spec: EX-10
#[tokio::test]
async fn fork_by_another_agent_has_its_configuration_and_shares_the_budget() {
    let journal = InMemoryJournal::new();
    first_run(&journal).await;
    let (builder, provider) = agent(&journal, "another way");
    let mut limits = ExecutionLimits::default();
    limits.max_turns = 3;
    let clerk = builder.agent_id("clerk").system("Be brief.").limits(limits);
    let clerk = clerk.provider(Arc::new(provider.clone()), "larger").build().unwrap();
    let fork = clerk.fork(&RunId::new("first"), ForkOptions::after(1).with_agent("clerk")).await.unwrap();
    let outcome = resumed(&clerk, &fork.run).await;
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Turns { max: 3 }));
    let requests = provider.requests();
    let asked = &requests[0];
    assert_eq!((asked.model.as_str(), asked.messages.len()), ("larger", 3));
    assert!(asked.system.as_ref().is_some_and(|system| system.contains("Be brief.")));
    let log = journal.read(&fork.run).await.unwrap();
    let RecordBody::RunStarted(started) = &log[0].body else { panic!("{:?}", log[0]) };
    assert_eq!((started.agent.as_str(), started.config.model.as_str()), ("clerk", "larger"));
    assert!(replay(&journal, &fork.run).await.unwrap().is_identical());

    let nobody = ForkOptions::default().with_agent("nobody");
    let refused = clerk.fork(&RunId::new("first"), nobody).await.unwrap_err();
    assert!(matches!(refused, RunError::NoAgent { .. }), "{refused}");
    assert!(refused.to_string().ends_with("registered agents: loop clerk"), "{refused}");
}

#[tokio::test]
async fn message_of_a_fork_passes_the_filters_and_keeps_the_mode() {
    let journal = InMemoryJournal::new();
    let agent = agent(&journal, "a way").0.input_filter(Arc::new(NoPasswords)).build().unwrap();
    let runs = Runs::new(agent);
    let started = runs.start(StartRun::new("Look three times.").mode(SessionMode::Plan)).await.unwrap();
    runs.reply(&started.run).await.ended();
    for (text, names) in [
        ("Look once.", &["run_started", "message_added", "mode_changed"][..]),
        ("The password is 4711.", &["run_started", "input_rejected"][..]),
    ] {
        let options = ForkOptions::after(0).with_message(text);
        let fork = runs.fork(&started.run, options).await.unwrap();
        let log = journal.read(&fork.run).await.unwrap();
        assert_eq!(log.iter().map(|record| record.body.name()).collect::<Vec<_>>(), names);
        runs.resume(&fork.run, &MoreLimits::default()).await.unwrap();
        let is_rejected = runs.reply(&fork.run).await.ended().status == OutcomeStatus::Failed;
        assert_eq!(is_rejected, text.contains("password"));
        assert!(replay(&journal, &fork.run).await.unwrap().is_identical());
    }
    let empty = runs.fork(&started.run, ForkOptions::default().with_message(" \n")).await.unwrap_err();
    assert!(matches!(empty, RunError::EmptyPrompt), "{empty}");
}

#[tokio::test]
async fn fork_uses_the_remaining_budget_of_its_source() {
    let journal = InMemoryJournal::new();
    let mut limits = ExecutionLimits::default();
    limits.max_turns = 3;
    let agent = agent(&journal, "late").0.limits(limits).build().unwrap();
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("first"));
    let first = agent.run_with("Look three times.", options).await.ended();
    assert_eq!(first.status, OutcomeStatus::Limit(LimitReached::Turns { max: 3 }));
    let fork = agent.fork(&RunId::new("first"), ForkOptions::after(1)).await.unwrap();
    let outcome = resumed(&agent, &fork.run).await;
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Turns { max: 3 }));
    assert_eq!(outcome.turns, 2, "one was spent before, and counts there");
    // Whoever leaves the fork has nothing left either; the next prompt has a budget of its own.
    let again = agent.fork(&fork.run, ForkOptions::default()).await.unwrap();
    assert_eq!(resumed(&agent, &again.run).await.turns, 0);
    let next = RunOptions::in_session(fork.session);
    assert!(agent.run_with("Go on.", next).await.ended().is_finished());
}

#[tokio::test]
async fn open_calls_are_not_carried_over() {
    let journal = InMemoryJournal::new();
    let whole = first_run(&journal).await;
    let started = whole.iter().position(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).unwrap();
    let cut = InMemoryJournal::new();
    let mut open = cut.open(&RunId::new("first"), OpenMode::Create).await.unwrap();
    open.writer.append(&whole[..=started], Durability::Synced).await.unwrap();
    drop(open);
    let (builder, provider) = agent(&cut, "done");
    let agent = builder.build().unwrap();
    let fork = agent.fork(&RunId::new("first"), ForkOptions::default()).await.unwrap();
    assert_eq!((fork.turns, fork.records), (1, started as u64 + 1));
    assert!(resumed(&agent, &fork.run).await.is_finished());
    let requests = provider.requests();
    assert!(requests.iter().all(is_paired));
    let result = requests[0].messages.last().unwrap().text();
    assert!(result.starts_with("Not carried over"), "{result}");
    let log = cut.read(&fork.run).await.unwrap();
    let again = log.iter().filter(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).count();
    assert_eq!(again, 2, "the open call was not run again");
}

#[tokio::test]
async fn fork_at_a_turn_or_a_record_that_is_missing_is_refused() {
    let journal = InMemoryJournal::new();
    first_run(&journal).await;
    let agent = agent(&journal, "x").0.build().unwrap();
    let records = journal.read(&RunId::new("first")).await.unwrap().len() as u64;
    for (options, place) in [
        (ForkOptions::after(5), ForkPlace::Turns(5)),
        (ForkOptions::at_record(records).with_message("more"), ForkPlace::Record(records)),
    ] {
        let error = agent.fork(&RunId::new("first"), options).await.unwrap_err();
        let RunError::NoForkPlace { place: at, turns, records: all, .. } = &error else { panic!("{error}") };
        assert_eq!((*at, *turns, *all, error.http_status()), (place, 4, records, 422));
    }
    let error = agent.fork(&RunId::new("nobody"), ForkOptions::default()).await.unwrap_err();
    assert!(matches!(error, RunError::Journal(JournalError::UnknownRun { .. })), "{error}");
    assert_eq!(journal.list(&archon::types::RunFilter::all()).await.unwrap().len(), 1);
}
