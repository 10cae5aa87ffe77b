//! Several agents at once: each branch is a run, one is chosen, and the session goes on with it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, ArchonBuilder, Event, FailureKind, OutcomeStatus, ParallelReply, RunError, RunId, RunOptions,
    Runs, SessionId,
    providers::{ScriptedProvider, Step},
    react_loop::{Elaborate, LoopError, PickFirst, TokenEfficient, Transparent, continuation_point, replay},
    store::InMemoryJournal,
    types::{
        BoxFuture, CancellationToken, ContextConfig, Durability, EvaluationError, EvaluationStrategy,
        ForkOptions, Journal, JournalError, Message, ModelPrice, MoreLimits, OpenMode, OpenRun, Origin,
        ProviderError, Record, RecordBody, Request, RunFilter, RunHead, RunKind, RunRefused, StartRuns,
        Usage,
    },
    views::{AgentEvent, AgentEvents, Session},
};
use archon_testkit::{Ended, FnProvider, RecordingSink, SeededIds, VirtualClock};
use expect_test::expect;

const GROUP: &str = "several";

fn builder(journal: &InMemoryJournal) -> ArchonBuilder {
    Archon::builder()
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
}

fn scripted(journal: &InMemoryJournal, steps: Vec<Step>) -> (Archon, Arc<ScriptedProvider>) {
    let provider = Arc::new(ScriptedProvider::new(steps));
    (builder(journal).provider(provider.clone(), "scripted").build().unwrap(), provider)
}

/// Agents that answer with these texts and take so many tokens; those without a text fail.
fn agents(journal: &InMemoryJournal, answers: &[(Option<&str>, u64)]) -> Vec<Archon> {
    let agent = |(text, output): &(Option<&str>, u64)| {
        let step = match text {
            Some(text) => Step::text(*text).with_usage(Usage { output: *output, ..Usage::default() }),
            None => Step::error(ProviderError::Auth("no such key".into())),
        };
        scripted(journal, vec![step]).0
    };
    answers.iter().map(agent).collect()
}

/// An agent that answers with all that it reads.
fn echo(journal: &InMemoryJournal) -> Archon {
    let steps = (0..8).map(|_| Step::reply(|request: &Request| Step::text(read(request)))).collect();
    scripted(journal, steps).0
}

fn read(request: &Request) -> String {
    request.messages.iter().map(|m| m.text()).collect::<Vec<_>>().join(" | ")
}

fn named(run: &str) -> RunOptions {
    let mut options = RunOptions::default();
    options.run = Some(RunId::new(run));
    options
}

/// A session with one question and its answer.
async fn base(journal: &InMemoryJournal) -> (SessionId, Vec<Arc<Record>>) {
    let agent = scripted(journal, vec![Step::text("hello")]).0;
    agent.run_with("hi", named("base")).await.ended();
    let session = agent.newest_run(None).await.unwrap().unwrap().session.unwrap();
    (session, log(journal, "base").await)
}

async fn log(journal: &InMemoryJournal, run: &str) -> Vec<Arc<Record>> {
    journal.read(&RunId::new(run)).await.unwrap()
}

async fn compare(
    journal: &InMemoryJournal,
    session: &SessionId,
    agents: Vec<Archon>,
    strategy: impl EvaluationStrategy + 'static,
) -> ParallelReply {
    compared(journal, session, agents, strategy).await.unwrap()
}

async fn compared(
    journal: &InMemoryJournal,
    session: &SessionId,
    agents: Vec<Archon>,
    strategy: impl EvaluationStrategy + 'static,
) -> Result<ParallelReply, RunError> {
    let mut options = named(GROUP);
    options.session = Some(session.clone());
    let parallel = echo(journal).parallel(agents, Arc::new(strategy)).unwrap();
    parallel.run_with("which?", options).await
}

/// What the model reads when the session goes on.
async fn next_prompt(journal: &InMemoryJournal, session: &SessionId) -> String {
    let options = RunOptions::in_session(session.clone());
    echo(journal).run_with("and then?", options).await.unwrap().into_text().unwrap()
}

// spec
#[tokio::test]
async fn each_strategy_takes_its_branch_and_the_session_goes_on_with_it() {
    let strategies: [(Arc<dyn EvaluationStrategy>, u32); 3] =
        [(Arc::new(PickFirst), 0), (Arc::new(TokenEfficient), 1), (Arc::new(Elaborate), 2)];
    for (strategy, expected) in strategies {
        let journal = InMemoryJournal::new();
        let (session, before) = base(&journal).await;
        let three = agents(
            &journal,
            &[
                (Some("zero"), 20),
                (Some("one"), 10),
                (Some("two"), 30),
                (Some("three"), 30),
                (Some("four"), 10),
            ],
        );
        let mut options = named(GROUP);
        options.session = Some(session.clone());
        let parallel = echo(&journal).parallel(three, strategy).unwrap();
        let outcome = parallel.run_with("which?", options).await.unwrap();
        let text = ["zero", "one", "two"][expected as usize];
        assert_eq!(
            (outcome.choice.selected, outcome.choice.outcome.last_text().unwrap_or_default()),
            (Some(expected), text)
        );
        assert_eq!(outcome.selected().unwrap().last_text().unwrap_or_default(), text);
        assert_eq!(outcome.choice.outcome.usage.output, 100, "of all branches");
        assert_eq!(
            next_prompt(&journal, &session).await,
            format!("hi | hello | which? | {text} | and then?")
        );
        assert_eq!(log(&journal, "base").await, before);
    }
}

// spec: R-34, S-05
#[tokio::test]
async fn branches_are_runs_of_one_session_and_the_loop_has_a_log_of_its_own() {
    let journal = InMemoryJournal::new();
    let (session, _) = base(&journal).await;
    let sink = RecordingSink::new();
    let mut options = named(GROUP).watched_by(Arc::new(sink.clone()));
    options.session = Some(session.clone());
    let two = agents(&journal, &[(Some("zero"), 20), (Some("one"), 10)]);
    echo(&journal)
        .parallel(two, Arc::new(TokenEfficient))
        .unwrap()
        .run_with("which?", options)
        .await
        .unwrap();

    let all = Session::read(&journal, &session).await.unwrap().unwrap();
    let loops: Vec<_> = all.loops.iter().map(|l| (l.loop_id.as_str(), l.parent_loop_id.as_ref())).collect();
    assert_eq!(loops.len(), 3, "{loops:?}");
    let first = all.loops[0].loop_id.clone();
    for (index, branch) in all.loops[1..].iter().enumerate() {
        let group = branch.parallel_group.as_ref().unwrap();
        assert_eq!(branch.run_id, Some(RunId::new(format!("{GROUP}-{index}"))));
        assert_eq!(
            (branch.session_id.clone(), branch.parent_loop_id.clone()),
            (session.clone(), Some(first.clone()))
        );
        assert_eq!((group.is_selected, group.selected_config_index), (index == 1, 1));
        assert_eq!(group.all_loop_ids, [all.loops[1].loop_id.clone(), all.loops[2].loop_id.clone()]);
    }
    assert_ne!(all.loops[1].loop_id, all.loops[2].loop_id);

    let of_group = |event: &&Event| matches!(event, Event::Record { run, .. } if run.as_str() == GROUP);
    let mut events = AgentEvents::new();
    let seen = sink.events();
    let seen: Vec<_> = seen.iter().filter(of_group).flat_map(|event| events.push(event)).collect();
    assert!(
        matches!(&seen[..], [
            AgentEvent::ParallelLoopStart { loop_ids, .. },
            AgentEvent::ParallelLoopEnd { selected_loop_id, selected_config_index: 1, .. },
        ] if loop_ids.len() == 2 && *selected_loop_id == loop_ids[1]),
        "{seen:?}"
    );
    for run in [GROUP, "several-0", "several-1"] {
        assert!(replay(&journal, &RunId::new(run)).await.unwrap().is_identical(), "{run}");
    }
    assert_eq!(said_in(&journal, &session).await, "hi | hello | which? | one");
    // Whichever of them was written last, the session continues from the chosen one.
    for run in [GROUP, "several-0", "several-1"] {
        let point = continuation_point(&journal, &RunId::new(run), &log(&journal, run).await).await.unwrap();
        assert!(matches!(&point, Origin::Continues { run, .. } if run.as_str() == "several-1"), "{point:?}");
    }
}

// spec: R-35
#[tokio::test]
async fn transparent_strategy_refuses_more_than_one_branch_before_any_request() {
    let journal = InMemoryJournal::new();
    let (session, _) = base(&journal).await;
    let one = agents(&journal, &[(Some("only"), 1)]);
    let outcome = compare(&journal, &session, one, Transparent).await;
    assert_eq!(outcome.choice.outcome.last_text(), Some("only"));

    let (agent, provider) = scripted(&journal, vec![Step::text("x")]);
    let refused = agent.parallel([agent.clone(), agent.clone()], Arc::new(Transparent)).unwrap_err();
    let too_many = |e: &RunError| {
        let cause = e.cause();
        matches!(cause, Some(LoopError::Evaluation(EvaluationError::TooMany { branches: 2, max: 1, .. })))
    };
    assert!(too_many(&refused), "{refused}");
    let refused = agent.parallel([], Arc::new(PickFirst)).unwrap_err();
    assert!(matches!(refused.cause(), Some(LoopError::NoBranch)), "{refused}");
    assert_eq!(provider.call_count(), 0);
}

// spec: R-34
#[tokio::test]
async fn parallel_failed_branches_leave_the_base_and_the_first_answer_is_chosen() {
    for answered in 0..8_usize {
        let journal = InMemoryJournal::new();
        let (session, before) = base(&journal).await;
        let texts = ["zero", "one", "two"];
        let has = |index: usize| answered & (1 << index) != 0;
        let answers: Vec<_> = (0..3).map(|i| (has(i).then_some(texts[i]), 10)).collect();
        let outcome = compared(&journal, &session, agents(&journal, &answers), PickFirst).await;
        let first = (0..3).find(|index| has(*index));
        let selected = outcome.as_ref().ok().and_then(|outcome| outcome.choice.selected);
        assert_eq!(selected.map(|s| s as usize), first, "{answers:?}");
        for (index, branch) in outcome.iter().flat_map(|outcome| &outcome.branches).enumerate() {
            assert_eq!(branch.is_finished(), has(index), "{branch:?}");
        }
        let expected = match first {
            Some(index) => format!("hi | hello | which? | {} | and then?", texts[index]),
            None => "hi | hello | and then?".to_owned(),
        };
        assert_eq!(next_prompt(&journal, &session).await, expected);
        assert_eq!(log(&journal, "base").await, before);
        if first.is_none() {
            let failed = outcome.unwrap_err();
            assert_eq!(failed.kind(), Some(FailureKind::Auth), "all failed in this way");
            expect!["run several failed: none of 3 branches has an answer (0: not authorised: no such key; 1: not authorised: no such key; 2: not authorised: no such key)"]
                .assert_eq(&failed.to_string());
        }
    }
}

// spec: R-34
#[tokio::test]
async fn parallel_without_prompts_answers_the_last_message_of_the_session() {
    let journal = InMemoryJournal::new();
    let (session, _) = base(&journal).await;
    let agent = echo(&journal);
    agent.fork(&RunId::new("base"), ForkOptions::after(0)).await.unwrap();
    let parallel = agent.parallel([echo(&journal), echo(&journal)], Arc::new(PickFirst)).unwrap();
    let outcome = parallel.continue_in(session.clone(), named(GROUP)).await.unwrap();
    assert_eq!(outcome.choice.outcome.last_text(), Some("hi"));
    // Now the session ends with an answer.
    let error = parallel.continue_in(session, named("again")).await.unwrap_err().to_string();
    assert!(error.contains("ends with the model's answer, so there is nothing to answer"), "{error}");
}

#[tokio::test]
async fn fork_of_a_branch_is_a_run_of_its_own() {
    let journal = InMemoryJournal::new();
    let (session, _) = base(&journal).await;
    let answers = agents(&journal, &[(Some("zero"), 1), (Some("one"), 1)]);
    assert_eq!(compare(&journal, &session, answers, PickFirst).await.choice.selected, Some(0));
    let heads = journal.list(&RunFilter::all()).await.unwrap();
    let branch = heads.into_iter().find(|head| head.branch_of.is_some()).unwrap().run_id;
    let agent = echo(&journal);
    let fork = agent.fork(&branch, ForkOptions::after(0).with_message("once more")).await.unwrap();
    // The service resumes the fork, and not the parallel loop of the branch.
    let runs = Runs::new(agent);
    assert_eq!(runs.resume(&fork.run, &MoreLimits::default()).await.unwrap().run, fork.run);
    assert!(runs.reply(&fork.run).await.ended().is_finished());
    assert!(replay(&journal, &fork.run).await.unwrap().is_identical());
}

/// Fires a token once every branch was asked and `done` of them have ended.
fn cancels_when(branches: usize, done: usize, cancel: CancellationToken) -> impl Fn(Event) + Send + Sync {
    let (asked, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    move |event| {
        let Event::Record { record, .. } = event else { return };
        match record.body {
            RecordBody::ModelCallStarted { .. } => asked.fetch_add(1, Ordering::SeqCst),
            RecordBody::RunFinished(_) => ended.fetch_add(1, Ordering::SeqCst),
            _ => return,
        };
        if asked.load(Ordering::SeqCst) == branches && ended.load(Ordering::SeqCst) == done {
            cancel.cancel();
        }
    }
}

/// The first call never comes to an end, the next one does.
fn hangs_once(journal: &InMemoryJournal, text: &'static str) -> Archon {
    let clock = Arc::new(VirtualClock::new());
    let provider = ScriptedProvider::new([
        Step::text("late").after(std::time::Duration::from_secs(60)),
        Step::text(text).with_usage(Usage { output: 1, ..Usage::default() }),
    ]);
    let provider = Arc::new(provider.with_clock(clock));
    builder(journal).provider(provider, "scripted").build().unwrap()
}

// spec: R-34
#[tokio::test]
async fn parallel_cancel_stops_all_branches_and_can_be_resumed() {
    let journal = InMemoryJournal::new();
    let (session, before) = base(&journal).await;
    let (quick, provider) =
        scripted(&journal, vec![Step::text("quick").with_usage(Usage { output: 5, ..Usage::default() })]);
    let branches = [hangs_once(&journal, "a"), quick, hangs_once(&journal, "b")];
    let parallel = echo(&journal).parallel(branches, Arc::new(TokenEfficient)).unwrap();
    let mut options = named(GROUP);
    let cancel = CancellationToken::new();
    options.session = Some(session.clone());
    options.cancel = Some(cancel.clone());
    let options = options.watched_by(Arc::new(cancels_when(3, 1, cancel)));
    let outcome = parallel.run_with("which?", options).await.unwrap();

    assert_eq!((outcome.choice.outcome.status, outcome.choice.selected), (OutcomeStatus::Cancelled, None));
    let statuses: Vec<_> = outcome.branches.iter().map(|branch| branch.status).collect();
    assert_eq!(statuses, [OutcomeStatus::Cancelled, OutcomeStatus::Finished, OutcomeStatus::Cancelled]);
    assert_eq!(outcome.choice.outcome.usage.output, 5, "what was done before counts");
    assert_eq!(log(&journal, "base").await, before);
    assert_eq!(said_in(&journal, &session).await, "hi | hello");

    let resumed = parallel.resume(RunId::new(GROUP), RunOptions::default()).await.unwrap();
    assert_eq!(resumed.choice.outcome.last_text(), Some("a"));
    assert_eq!(provider.call_count(), 1, "the branch that had ended is not asked again");
    assert!(replay(&journal, &RunId::new(GROUP)).await.unwrap().is_identical());
    assert_eq!(next_prompt(&journal, &session).await, "hi | hello | which? | a | and then?");
    let again = parallel.resume(RunId::new(GROUP), RunOptions::default()).await.unwrap_err();
    assert!(matches!(again, RunError::Refused(RunRefused::Ended { .. })), "{again}");
}

/// The conversation as the session's next run finds it.
async fn said_in(journal: &InMemoryJournal, session: &SessionId) -> String {
    let back = echo(journal).conversation_in(session.clone()).await.unwrap();
    back.messages().await.unwrap().iter().map(Message::text).collect::<Vec<_>>().join(" | ")
}

// spec: R-34
#[tokio::test]
async fn parallel_inbox_takes_only_a_cancel() {
    let journal = InMemoryJournal::new();
    let asked = Arc::new(tokio::sync::Notify::new());
    let bell = asked.clone();
    let options = named(GROUP).watched_by(Arc::new(move |event: Event| {
        if matches!(&event, Event::Record { record, .. } if matches!(record.body, RecordBody::ModelCallStarted { .. })) {
            bell.notify_one();
        }
    }));
    let branches = [hangs_once(&journal, "a"), hangs_once(&journal, "b")];
    let agent = echo(&journal);
    let parallel = agent.parallel(branches, Arc::new(PickFirst)).unwrap();
    let working = tokio::spawn(async move { parallel.run_with("which?", options).await });
    asked.notified().await;
    let group = RunId::new(GROUP);
    let refused = agent.steer(&group, "no").await.unwrap_err();
    assert!(matches!(refused, RunError::Unsupported { kind: RunKind::Parallel, .. }), "{refused}");
    agent.cancel(&group, "not needed").await.unwrap();
    let outcome = working.await.unwrap().unwrap();
    assert!(outcome.branches.iter().all(|branch| branch.status == OutcomeStatus::Cancelled));
    let reasons: Vec<_> = log(&journal, GROUP)
        .await
        .iter()
        .filter_map(|r| match &r.body {
            RecordBody::CancelRequested { reason } => Some(reason.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, ["not needed"]);
    let refused = agent.resume(group).await.unwrap().reply().await.unwrap_err();
    assert!(matches!(refused, RunError::Unsupported { kind: RunKind::Parallel, .. }), "{refused}");
}

async fn put(journal: &InMemoryJournal, run: &str, records: &[Arc<Record>]) {
    let mut open = journal.open(&RunId::new(run), OpenMode::Create).await.unwrap();
    open.writer.append(records, Durability::Synced).await.unwrap();
}

/// How a loop of three is taken up of whose log, and of whose branches' logs, so much was kept; and how often
/// each branch's model was asked then.
async fn taken_up(
    whole: &InMemoryJournal,
    of_group: usize,
    of_branches: [usize; 3],
) -> (InMemoryJournal, Result<ParallelReply, RunError>, Vec<usize>) {
    let journal = InMemoryJournal::new();
    put(&journal, "base", &log(whole, "base").await).await;
    put(&journal, GROUP, &log(whole, GROUP).await[..of_group]).await;
    for (run, kept) in ["several-0", "several-1", "several-2"].into_iter().zip(of_branches) {
        if kept > 0 {
            put(&journal, run, &log(whole, run).await[..kept]).await;
        }
    }
    let again = ANSWERS.iter().map(|(text, output)| {
        let usage = Usage { output: *output, ..Usage::default() };
        scripted(&journal, vec![Step::text(text.unwrap()).with_usage(usage)])
    });
    let (agents, providers): (Vec<_>, Vec<_>) = again.unzip();
    let parallel = echo(&journal).parallel(agents, Arc::new(TokenEfficient)).unwrap();
    let outcome = parallel.resume(RunId::new(GROUP), RunOptions::default()).await;
    (journal, outcome, providers.iter().map(|provider| provider.call_count()).collect())
}

const ANSWERS: [(Option<&str>, u64); 3] = [(Some("zero"), 20), (Some("one"), 10), (Some("two"), 30)];

/// A loop of three that ran to its end; of each run there are so many records.
async fn whole() -> (InMemoryJournal, SessionId) {
    let whole = InMemoryJournal::new();
    let (session, _) = base(&whole).await;
    compare(&whole, &session, agents(&whole, &ANSWERS), TokenEfficient).await;
    assert_eq!(log(&whole, GROUP).await.len(), OF_GROUP);
    for run in ["several-0", "several-1", "several-2"] {
        let records = log(&whole, run).await;
        assert!(matches!(records[ANSWERED - 1].body, RecordBody::ModelCallFinished { .. }));
        assert_eq!(records.len(), OF_BRANCH);
    }
    (whole, session)
}

const OF_GROUP: usize = 4;
const OF_BRANCH: usize = 5;
/// So many records hold a branch's answer.
const ANSWERED: usize = 4;

// spec: R-34
#[tokio::test]
async fn parallel_killed_at_any_record_resumes_to_the_same_choice() {
    let (whole, session) = whole().await;
    let mut cases = vec![(3, [OF_BRANCH; 3])];
    for first in 0..=OF_BRANCH {
        for second in 0..=OF_BRANCH {
            cases.extend((0..=OF_BRANCH).map(|third| (2, [first, second, third])));
        }
    }
    for (of_group, of_branches) in cases {
        let place = format!("{of_group} records, {of_branches:?} of the branches");
        let (journal, outcome, asked) = taken_up(&whole, of_group, of_branches).await;
        let outcome = outcome.unwrap();
        assert!(outcome.branches.iter().all(|branch| branch.is_finished()), "{place}: {outcome:?}");
        assert_eq!(outcome.choice.outcome.last_text(), Some("one"), "{place}");
        assert_eq!(outcome.choice.outcome.usage.output, 60, "{place}");
        assert_eq!(asked, of_branches.map(|kept| usize::from(kept < ANSWERED)), "{place}");
        let ended = log(&journal, GROUP).await;
        let choices = ended.iter().filter(|r| matches!(r.body, RecordBody::ParallelFinished(_))).count();
        assert_eq!(choices, 1, "{place}: what was chosen is not chosen again");
        for run in [GROUP, "several-0", "several-1", "several-2"] {
            assert!(replay(&journal, &RunId::new(run)).await.unwrap().is_identical(), "{place}, {run}");
        }
        assert_eq!(next_prompt(&journal, &session).await, "hi | hello | which? | one | and then?", "{place}");
    }
}

// spec: R-34
#[tokio::test]
async fn parallel_resume_refusal_has_the_reason() {
    let (whole, _) = whole().await;
    let (_, outcome, asked) = taken_up(&whole, 1, [0; 3]).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error.cause(), Some(LoopError::NothingAsked { .. })), "{error}");
    assert_eq!(asked, [0; 3]);
    let (_, outcome, _) = taken_up(&whole, OF_GROUP, [OF_BRANCH; 3]).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, RunError::Refused(RunRefused::Ended { .. })), "{error}");

    let journal = InMemoryJournal::new();
    put(&journal, "base", &log(&whole, "base").await).await;
    put(&journal, GROUP, &log(&whole, GROUP).await[..2]).await;
    let parallel = echo(&journal).parallel(agents(&journal, &ANSWERS[..2]), Arc::new(PickFirst)).unwrap();
    let other = parallel.resume(RunId::new(GROUP), RunOptions::default()).await.unwrap_err();
    assert!(matches!(other.cause(), Some(LoopError::OtherBranches { found: 3, given: 2, .. })), "{other}");
    let no_loop = parallel.resume(RunId::new("base"), RunOptions::default()).await.unwrap_err();
    assert!(matches!(no_loop, RunError::Unsupported { kind: RunKind::Loop, .. }), "{no_loop}");
}

/// A journal in which the log of the second branch is damaged.
struct Damaged(InMemoryJournal);

impl Journal for Damaged {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        self.0.open(run, mode)
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        match run.as_str() == "several-1" {
            true => Box::pin(async move {
                Err(JournalError::Corrupt { run: run.clone(), record: 1, problem: "flipped bits".to_owned() })
            }),
            false => self.0.read(run),
        }
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.0.list(filter)
    }
}

// spec: R-34
#[tokio::test]
async fn parallel_resume_with_a_damaged_log_of_a_branch_is_refused_and_records_nothing() {
    let (whole, _) = whole().await;
    let journal = InMemoryJournal::new();
    put(&journal, "base", &log(&whole, "base").await).await;
    put(&journal, GROUP, &log(&whole, GROUP).await[..2]).await;
    put(&journal, "several-1", &log(&whole, "several-1").await[..ANSWERED]).await;
    let boss = builder(&journal)
        .journal(Arc::new(Damaged(journal.clone())))
        .provider(Arc::new(ScriptedProvider::new(vec![Step::text("unused")])), "scripted")
        .build()
        .unwrap();
    let parallel = boss.parallel(agents(&journal, &ANSWERS), Arc::new(PickFirst)).unwrap();
    let error = parallel.resume(RunId::new(GROUP), RunOptions::default()).await.unwrap_err();
    assert!(matches!(error, RunError::Journal(JournalError::Corrupt { .. })), "{error}");
    assert_eq!(log(&journal, GROUP).await.len(), 2, "no choice is made without the branch");
}

/// A judge that says this, and what it was asked.
fn judge(journal: &InMemoryJournal, says: &'static str) -> (ArchonBuilder, FnProvider) {
    let provider = FnProvider::new(move |_, _| match says {
        "" => vec![Err(ProviderError::Auth("no such key".into()))],
        says => FnProvider::text(says),
    });
    (builder(journal).provider(Arc::new(provider.clone()), "judge").system("Judge strictly."), provider)
}

// spec: R-36
#[tokio::test]
async fn a_judge_reads_the_conversation_the_question_and_every_answer() {
    let journal = InMemoryJournal::new();
    let (session, _) = base(&journal).await;
    let (judge, provider) = judge(&journal, "The second is right.\nBEST: 1");
    let answers = agents(&journal, &[(None, 0), (Some("zero"), 20), (Some("one"), 10)]);
    let outcome = compare(&journal, &session, answers, judge.build().unwrap().judge()).await;
    assert_eq!((outcome.choice.selected, outcome.choice.warnings), (Some(2), Vec::new()));
    assert_eq!(outcome.choice.reason.as_deref(), Some("The second is right.\nBEST: 1"));
    let requests = provider.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].system.as_ref().unwrap().as_str(), "Judge strictly.");
    let text = requests[0].messages[0].text();
    for part in [
        "<conversation>\nUser: hi\n\nAssistant: hello\n</conversation>",
        "<question>\nwhich?\n</question>",
        "<answer number=\"0\">\nAssistant: zero\n</answer>",
        "<answer number=\"1\">\nAssistant: one\n</answer>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("number=\"2\""), "the branch that failed is no answer");
}

// spec: R-36
#[tokio::test]
async fn parallel_judge_usage_is_counted() {
    let journal = InMemoryJournal::new();
    let (session, _) = base(&journal).await;
    let price = ModelPrice::new(1_000_000, 1_000_000);
    let answering = |text: &str| {
        let step = Step::text(text).with_usage(Usage { output: 10, ..Usage::default() });
        let provider = Arc::new(ScriptedProvider::new([step]));
        builder(&journal).provider(provider, "scripted").price(price).build().unwrap()
    };
    let verdict = Step::text("BEST: 0").with_usage(Usage { input: 7, output: 2, ..Usage::default() });
    let judge = builder(&journal).provider(Arc::new(ScriptedProvider::new([verdict])), "judge").price(price);
    let answers = vec![answering("zero"), answering("one")];
    let choice = compare(&journal, &session, answers, judge.build().unwrap().judge()).await.choice;
    assert_eq!((choice.usage.input, choice.usage.output), (7, 2));
    assert_eq!((choice.outcome.usage.input, choice.outcome.usage.output), (7, 22));
    assert_eq!(choice.outcome.cost_micros, Some(29));
}

// spec: R-36
#[tokio::test]
async fn a_judge_that_names_no_answer_costs_no_work() {
    let table = [
        ("Both are fine.", "the judge's verdict names no answer: the first one was taken"),
        ("BEST: 7", "the judge's verdict names no answer: the first one was taken"),
        ("", "the judge gave no verdict (not authorised: no such key): the first one was taken"),
    ];
    for (says, warning) in table {
        let journal = InMemoryJournal::new();
        let (session, _) = base(&journal).await;
        let judge = judge(&journal, says).0.build().unwrap().judge();
        let answers = agents(&journal, &[(Some("zero"), 20), (Some("one"), 10)]);
        let outcome = compare(&journal, &session, answers, judge).await;
        assert_eq!(
            (outcome.choice.selected, &outcome.choice.warnings[..]),
            (Some(0), &[warning.to_owned()][..])
        );
        let group = RunId::new(GROUP);
        let mut events = AgentEvents::new();
        let told: Vec<_> = log(&journal, GROUP)
            .await
            .into_iter()
            .flat_map(|record| events.push(&Event::Record { run: group.clone(), record }))
            .filter_map(|event| match event {
                AgentEvent::ProgressMessage { tool_name, text, .. } => Some((tool_name, text)),
                _ => None,
            })
            .collect();
        assert_eq!(told, [("llm_judge".to_owned(), warning.to_owned())]);
    }
}

// spec: R-36
#[tokio::test]
async fn a_judge_reads_no_more_than_its_window_holds() {
    let long = "A long answer. ".repeat(400);
    for (window, warned) in [(800, false), (120, true)] {
        let journal = InMemoryJournal::new();
        let (session, _) = base(&journal).await;
        let (judge, provider) = judge(&journal, "BEST: 1");
        let judge = judge.context(ContextConfig::new(window)).build().unwrap().judge();
        let answers = agents(&journal, &[(Some(&long), 20), (Some(&long), 10)]);
        let outcome = compare(&journal, &session, answers, judge).await;
        assert_eq!(outcome.choice.selected, Some(1));
        assert_eq!(!outcome.choice.warnings.is_empty(), warned, "{:?}", outcome.choice.warnings);
        let chars = provider.requests()[0].messages[0].text().chars().count() as u64;
        assert!(warned || chars < 4 * window, "{chars}");
    }
}

#[tokio::test]
async fn parallel_continue_mode_judges_the_last_message() {
    let journal = InMemoryJournal::new();
    let (session, _) = base(&journal).await;
    let agent = echo(&journal);
    agent.fork(&RunId::new("base"), ForkOptions::after(0)).await.unwrap();
    let (judge, provider) = judge(&journal, "BEST: 1");
    let branches = agents(&journal, &[(Some("zero"), 1), (Some("one"), 1)]);
    let parallel = agent.parallel(branches, Arc::new(judge.build().unwrap().judge())).unwrap();
    let outcome = parallel.continue_in(session, named(GROUP)).await.unwrap();
    assert_eq!(outcome.choice.outcome.last_text(), Some("one"));
    let text = provider.requests()[0].messages[0].text();
    assert!(text.starts_with("<question>\nhi\n</question>"), "{text}");
}
