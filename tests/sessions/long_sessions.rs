//! A prompt costs what it adds, however long its session is: what earlier runs left is read from few logs, and is what a
//! fold of all of them is, however the session went.

#![allow(clippy::print_stderr, reason = "a test says what it counted")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, RunOptions, Tool, ToolContext,
    react_loop::{Replay, fold_before, fold_chain, fold_whole_chain, replay},
    store::{InMemoryJournal, JsonlJournal, SqliteJournal},
    tools::FnTool,
    types::{
        BoxFuture, ContextConfig, Durability, ForkOptions, Journal, JournalError, Json, Message, ModelEvent,
        OpenMode, OpenRun, Origin, ProviderError, Record, RecordBody, Request, RunFilter, RunHead, RunId,
        RunStarted, Salvaged, SessionId, SessionSnapshot, ToolCall, ToolMode, ToolResult, ToolSpec, metadata,
    },
};
use archon_testkit::{Chance, Ended, FnProvider, SeededIds, VirtualClock, cases, first_seed};
use serde_json::json;

/// Counts the logs that are read of a journal, and the records in them.
#[derive(Clone)]
struct Counting {
    inner: Arc<dyn Journal>,
    logs: Arc<AtomicUsize>,
    records: Arc<AtomicUsize>,
}

impl Counting {
    fn new(inner: impl Journal + 'static) -> Self {
        Self { inner: Arc::new(inner), logs: Arc::default(), records: Arc::default() }
    }

    fn count(&self, records: &[Arc<Record>]) {
        self.logs.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(records.len(), Ordering::Relaxed);
    }

    /// Logs and records since the last look.
    fn take(&self) -> (usize, usize) {
        (self.logs.swap(0, Ordering::Relaxed), self.records.swap(0, Ordering::Relaxed))
    }
}

impl Journal for Counting {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move { self.inner.open(run, mode).await.inspect(|open| self.count(&open.records)) })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move { self.inner.read(run).await.inspect(|records| self.count(records)) })
    }

    fn salvage<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(async move { self.inner.salvage(run).await.inspect(|log| self.count(&log.records)) })
    }

    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        self.inner.head(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.inner.list(filter)
    }
}

fn session() -> SessionId {
    SessionId::new("s")
}

/// A window that is full after a few prompts.
fn small_window() -> ContextConfig {
    let mut window = ContextConfig::new(400);
    (window.system_prompt_tokens, window.min_interval_ms, window.keep_recent) = (0, 0, 4);
    window
}

/// Reads a file that others change.
fn read() -> impl Tool {
    let spec = ToolSpec::new("read", "Reads.", json!({"type": "object"}));
    FnTool::new(spec, |arguments: Json, _: ToolContext| async move {
        let version = arguments["version"].clone();
        let seen = json!({"file": format!("f{}", arguments["file"]), "version": version});
        let text = "a line\n".repeat(arguments["lines"].as_u64().unwrap_or(1) as usize);
        Ok(ToolResult::success(text).with_metadata(metadata::SEEN, seen))
    })
}

struct World {
    journal: Arc<dyn Journal>,
    clock: VirtualClock,
    model: FnProvider,
    window: Option<ContextConfig>,
    mode: ToolMode,
}

impl World {
    /// A model that answers each prompt in a few words.
    fn new(journal: impl Journal + 'static, window: Option<ContextConfig>) -> Self {
        let model = FnProvider::new(|_, _| FnProvider::text("It is done, and nothing else was to do."));
        Self {
            journal: Arc::new(journal),
            clock: VirtualClock::jumping(),
            model,
            window,
            mode: ToolMode::Native,
        }
    }

    /// A model whose answers depend on chance: calls, words, failures.
    fn by_chance(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let windows = [None, Some(ContextConfig::default()), Some(small_window()), Some(small_window())];
        let window = windows[chance.below(4) as usize].clone();
        let mut world = Self::new(InMemoryJournal::new(), window);
        if chance.percent(20) {
            world.mode = ToolMode::Text;
        }
        world.model = FnProvider::new(move |n, request| answer(Chance(seed ^ n as u64), request));
        world
    }

    fn agent(&self) -> Archon {
        self.to_agent(7)
    }

    /// The agent of a process of its own.
    fn to_agent(&self, seed: u16) -> Archon {
        Archon::builder()
            .provider(Arc::new(self.model.clone()), "scripted")
            .tool(read())
            .tool_mode(self.mode)
            .context(self.window.clone())
            .journal(self.journal.clone())
            .clock(Arc::new(self.clock.clone()))
            .ids(Arc::new(SeededIds::new(seed)))
            .build()
            .unwrap()
    }

    async fn say(&self, agent: &Archon, text: &str) {
        self.clock.advance(Duration::from_secs(60));
        agent.run_with(text, RunOptions::in_session(session())).await.ended();
    }

    /// The runs, the oldest first.
    async fn runs(&self) -> Vec<(RunId, Vec<Arc<Record>>)> {
        let mut runs = Vec::new();
        for head in self.journal.list(&RunFilter::all()).await.unwrap().into_iter().rev() {
            let records = self.journal.read(&head.run_id).await.unwrap();
            runs.push((head.run_id, records));
        }
        runs
    }
}

fn answer(mut chance: Chance, request: &Request) -> Vec<Result<ModelEvent, ProviderError>> {
    let was_result = matches!(request.messages.last().map(|m| &**m), Some(Message::ToolResult(_)));
    match chance.below(100) {
        0..5 => vec![Err(ProviderError::Auth("bad key".into()))],
        5..40 if !was_result => {
            let arguments =
                json!({"file": chance.below(3), "version": chance.below(4), "lines": chance.below(60)});
            FnProvider::calls(vec![ToolCall::new("c", "read", arguments)])
        }
        _ => FnProvider::text(&"It is so. ".repeat(1 + chance.below(6) as usize)),
    }
}

fn carried(records: &[Arc<Record>]) -> Option<&SessionSnapshot> {
    records.iter().find_map(|record| match &record.body {
        RecordBody::SessionSnapshot(carried) => Some(&**carried),
        _ => None,
    })
}

/// What happens to a session by chance: prompts, forks, other conversations, resumes.
async fn live(world: &World, mut chance: Chance) {
    let agent = world.agent();
    for n in 0..70 {
        match chance.below(20) {
            0..16 => {
                world.say(&agent, &format!("Prompt {n}. {}", "More. ".repeat(chance.below(9) as usize))).await
            }
            16 | 17 => {
                world.clock.advance(Duration::from_secs(60));
                let newest = agent.newest_run(None).await.unwrap();
                let Some(head) = newest else { continue };
                let options = if chance.percent(50) { ForkOptions::after(0) } else { ForkOptions::default() };
                let fork = agent.fork(&head.run_id, options).await.unwrap();
                if fork.wants_answer {
                    agent.resume(fork.run).await.unwrap().reply().await.ended();
                }
            }
            18 => {
                let Some(head) = agent.newest_run(None).await.unwrap() else { continue };
                // It has an answer, mostly.
                let _ = agent.resume(head.run_id).await.unwrap().reply().await;
            }
            _ => {
                let conversation = agent.conversation();
                let messages = vec![
                    Message::user("Earlier.", Default::default()),
                    Message::user("And then?", Default::default()),
                ];
                conversation.restore_messages(&serde_json::to_string(&messages).unwrap()).unwrap();
                conversation.prompt("Go on.").await.unwrap().reply().await.ended();
            }
        }
    }
}

#[tokio::test]
async fn snapshot_fold_equals_the_fold_of_all_runs() {
    let (mut carrying, mut building) = (0, 0);
    for seed in first_seed()..first_seed() + cases(8, 150) {
        let world = World::by_chance(seed);
        live(&world, Chance(seed)).await;
        for (run, records) in world.runs().await {
            let origin = RunStarted::of(&records).unwrap().origin.clone();
            let whole = fold_whole_chain(&*world.journal, &origin).await.unwrap();
            let carried = carried(&records);
            carrying += usize::from(carried.is_some());
            building += usize::from(carried.is_some_and(|carried| carried.base.is_some()));
            for folded in [
                fold_chain(&*world.journal, &origin).await.unwrap(),
                fold_before(&*world.journal, &run, &records).await.unwrap(),
            ] {
                assert_eq!(
                    (&folded.history, folded.runs),
                    (&whole.history, whole.runs),
                    "seed {seed}, {run}"
                );
            }
            let replayed = replay(&*world.journal, &run).await.unwrap();
            assert_eq!(replayed, Replay::Identical { records: records.len() as u64 }, "seed {seed}, {run}");
        }
    }
    assert!(carrying > 10 && building > 0, "{carrying} runs carry, {building} build on others");
}

/// The same logs in another journal, changed.
async fn changed(
    runs: &[(RunId, Vec<Arc<Record>>)],
    change: impl Fn(&RunId, &mut RecordBody) -> bool,
) -> InMemoryJournal {
    let journal = InMemoryJournal::new();
    for (run, records) in runs {
        let mut bodies: Vec<_> = records.iter().map(|record| (record.at, record.body.clone())).collect();
        bodies.retain_mut(|(_, body)| change(run, body));
        let records: Vec<_> =
            (0..).zip(bodies).map(|(seq, (at, body))| Arc::new(Record { seq, at, body })).collect();
        let mut open = journal.open(run, OpenMode::Create).await.unwrap();
        open.writer.append(&records, Durability::Buffered).await.unwrap();
    }
    journal
}

async fn session_of(runs: usize) -> World {
    let world = World::new(InMemoryJournal::new(), None);
    let agent = world.agent();
    for n in 0..runs {
        world.say(&agent, &format!("Prompt {n}.")).await;
    }
    world
}

#[tokio::test]
async fn replay_of_a_wrong_snapshot_names_the_differing_record() {
    let world = session_of(20).await;
    let runs = world.runs().await;
    let (run, records) = runs.iter().rev().find(|(_, records)| carried(records).is_some()).unwrap();
    let place =
        records.iter().position(|record| matches!(record.body, RecordBody::SessionSnapshot(_))).unwrap();
    let runs_before = carried(records).unwrap().runs;
    for field in 0..4 {
        let journal = changed(&runs, |of, body| {
            if let RecordBody::SessionSnapshot(carried) = body
                && of == run
            {
                match field {
                    0 => {
                        carried.messages[0].message =
                            Arc::new(Message::user("I never said so.", Default::default()))
                    }
                    1 => drop(carried.messages.pop()),
                    2 => carried.trusted_rules.push("bash(rm:*)".into()),
                    _ => carried.runs += 1,
                }
            }
            true
        })
        .await;
        let found = replay(&journal, run).await.unwrap();
        let Replay::Differs { record, expected, .. } = found else { panic!("{field}: {found:?}") };
        let Some(RecordBody::SessionSnapshot(expected)) = expected.map(|body| *body) else {
            panic!("{field}")
        };
        assert_eq!((record, expected.runs), (place as u64, runs_before));
        assert_eq!(expected.messages.len(), 2 * expected.runs as usize, "all that was said");
    }
}

#[tokio::test]
async fn fold_without_snapshots_reads_all_logs_with_an_equal_result() {
    let world = session_of(30).await;
    let runs = world.runs().await;
    let (last, records) = runs.last().unwrap();
    let before = fold_chain(&*world.journal, &continues(last, records)).await.unwrap();
    let without =
        Counting::new(changed(&runs, |_, body| !matches!(body, RecordBody::SessionSnapshot(_))).await);
    let records = without.inner.read(last).await.unwrap();
    let folded = fold_chain(&without, &continues(last, &records)).await;
    let folded = folded.unwrap();
    assert_eq!((folded.history, folded.runs), (before.history, 30));
    assert_eq!(without.take().0, 30);
}

fn continues(run: &RunId, records: &[Arc<Record>]) -> Origin {
    Origin::Continues { run: run.clone(), records: records.len() as u64, continuation: Default::default() }
}

#[tokio::test]
async fn prompt_with_lost_older_logs_continues_from_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JsonlJournal::open(dir.path()).unwrap();
    let world = World::new(journal.clone(), None);
    let agent = world.agent();
    for n in 0..40 {
        world.say(&agent, &format!("Prompt {n}.")).await;
    }
    let runs = world.runs().await;
    let whole = |(_, records): &(RunId, Vec<Arc<Record>>)| carried(records).is_some_and(|c| c.base.is_none());
    let first = runs.iter().rposition(whole).unwrap();
    assert!(first >= 8, "{first}");
    for (n, (run, _)) in runs[..first].iter().enumerate() {
        let path = journal.path(run).unwrap();
        match n % 2 {
            0 => std::fs::remove_file(path).unwrap(),
            _ => std::fs::write(path, "no log\n").unwrap(),
        }
    }
    world.say(&agent, "What was said?").await;
    let request = world.model.requests().pop().unwrap();
    assert_eq!(request.messages.len(), 2 * 40 + 1);
    assert_eq!(request.messages[0].text(), "Prompt 0.");
    // What others build on is needed.
    std::fs::remove_file(journal.path(&runs[first].0).unwrap()).unwrap();
    assert!(agent.run_with("And now?", RunOptions::in_session(session())).await.is_err());
}

/// Logs and records that a prompt reads in a session of so many runs, on average over some, and the most logs.
async fn reads(journal: Counting, window: Option<ContextConfig>, runs: usize) -> (f64, f64, usize) {
    const LOOKS: usize = 24;
    let world = World::new(journal.clone(), window);
    let agent = world.agent();
    for n in 0..runs {
        world.say(&agent, &format!("Prompt {n} of a session that goes on for long.")).await;
    }
    journal.take();
    let mut all = (0, 0, 0);
    for n in 0..LOOKS {
        world.say(&agent, &format!("Prompt {n} after them, which is of the same length.")).await;
        let (logs, records) = journal.take();
        all = (all.0 + logs, all.1 + records, all.2.max(logs));
    }
    (all.0 as f64 / LOOKS as f64, all.1 as f64 / LOOKS as f64, all.2)
}

fn long() -> usize {
    usize::try_from(cases(200, 1_000)).unwrap()
}

async fn check_reads(journal: impl Fn() -> Counting) {
    let few = reads(journal(), Some(small_window()), 10).await;
    let many = reads(journal(), Some(small_window()), long()).await;
    eprintln!("logs, records, most logs of a prompt: {few:?} in a session of 10, {many:?} of {}", long());
    assert!(
        many.0 <= 1.2 * few.0 && many.1 <= 1.2 * few.1,
        "{few:?} in a session of 10, {many:?} of {}",
        long()
    );
}

#[tokio::test]
async fn prompt_in_a_long_session_with_a_full_window_reads_a_constant_number_of_logs() {
    check_reads(|| Counting::new(InMemoryJournal::new())).await;
}

#[tokio::test]
async fn prompt_in_a_long_session_in_files_and_sqlite_reads_a_constant_number_of_logs() {
    let dirs = std::cell::RefCell::new(Vec::new());
    let dir = || {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        dirs.borrow_mut().push(dir);
        path
    };
    check_reads(|| Counting::new(JsonlJournal::open(dir()).unwrap())).await;
    check_reads(|| Counting::new(SqliteJournal::open(dir().join("runs.db")).unwrap())).await;
}

/// Nothing gives way in such a window, so each request holds all that was said.
#[tokio::test]
async fn prompt_in_a_long_session_with_a_wide_window_reads_few_logs() {
    let (average, _, most) = reads(Counting::new(InMemoryJournal::new()), None, long()).await;
    eprintln!("{average} logs on average, {most} at most");
    assert!(most <= 32 && average <= 24.0, "{average} logs, {most} at most");
}

#[tokio::test]
async fn logs_of_a_long_session_repeat_less_than_1_2_kib_a_turn() {
    for window in [None, Some(small_window())] {
        let world = World::new(InMemoryJournal::new(), window);
        let agent = world.agent();
        for n in 0..long() {
            world.say(&agent, &format!("Prompt {n} of a session that goes on for long.")).await;
        }
        let runs = world.runs().await;
        let bytes = |(_, records): &(RunId, Vec<Arc<Record>>)| {
            carried(records).map_or(0, |carried| serde_json::to_vec(carried).unwrap().len())
        };
        let each = runs.iter().map(bytes).sum::<usize>() / runs.len();
        eprintln!("{each} bytes a turn");
        assert!((1..1_229).contains(&each), "{each} bytes a turn");
        let last = runs.iter().rev().find_map(|(_, records)| carried(records)).unwrap();
        assert!(last.snapshot_bytes <= 3 * last.message_bytes, "{last:?}");
    }
}

/// A journal in which the first two looks end at the same time.
struct Together {
    inner: Arc<dyn Journal>,
    looks: AtomicUsize,
    both: tokio::sync::Barrier,
}

impl Journal for Together {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        self.inner.open(run, mode)
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.inner.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        Box::pin(async move {
            let heads = self.inner.list(filter).await;
            if self.looks.fetch_add(1, Ordering::Relaxed) < 2 {
                self.both.wait().await;
            }
            heads
        })
    }
}

/// Of two first messages at one moment, in one process or in two, one begins the conversation.
#[tokio::test]
async fn two_first_messages_of_a_session_at_one_moment_begin_one_conversation() {
    let dir = tempfile::tempdir().unwrap();
    let journals: [Arc<dyn Journal>; 2] =
        [Arc::new(InMemoryJournal::new()), Arc::new(JsonlJournal::open(dir.path()).unwrap())];
    for journal in journals {
        let (looks, both) = (AtomicUsize::new(0), tokio::sync::Barrier::new(2));
        let world = World::new(Together { inner: journal, looks, both }, None);
        let (one, other) = (world.agent(), world.to_agent(8));
        let says =
            |agent: Archon| async move { agent.run_with("Hello.", RunOptions::in_session(session())).await };
        let (one, other) = tokio::join!(says(one), says(other));
        let refused = [&one, &other].into_iter().filter_map(|said| said.as_ref().err()).collect::<Vec<_>>();
        assert!(
            refused.iter().all(|error| matches!(error, archon::RunError::SessionBusy { .. })),
            "{refused:?}"
        );
        let roots = world.runs().await.into_iter().filter(|(_, records)| {
            RunStarted::of(records).is_some_and(|started| started.origin == Origin::Prompt)
        });
        assert_eq!(roots.count(), 1, "{refused:?}");
        let all = world.journal.list(&RunFilter::all()).await.unwrap();
        assert_eq!(all.len() + refused.len(), 2, "nothing is left of the run that never begins");
    }
}
