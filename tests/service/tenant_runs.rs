//! A handle on the runs of one tenant: of another tenant's run it says nothing, and does nothing to it.

use std::{sync::atomic::Ordering, time::Duration};

use archon::{
    Event, OutcomeStatus, RunId, TenantRuns,
    types::{
        AgentMessage, Answer, AnswerRuns, ForkOptions, Journal, ManageRuns, Message, MoreLimits, Origin,
        RunError, RunFilter, RunKind, RunService, RunStarted, RunStatus, StartRun, StartRuns, TenantId,
        Timestamp,
    },
};
use archon_testkit::{Ended, VirtualClock};
use futures_util::StreamExt;

use crate::service::run_service::{STARTED, World, killed_for, of_kind, records, request};

fn message() -> AgentMessage {
    Message::user("faster", Timestamp::default()).into()
}

/// Everything that can be asked of a run by its id, and what each is answered.
async fn refusals(runs: &dyn RunService, run: &RunId) -> Vec<RunError> {
    let more = MoreLimits::default();
    vec![
        runs.get(run).await.unwrap_err(),
        runs.records(run, None).await.unwrap_err(),
        runs.watch(run, None).await.err().unwrap(),
        runs.reply(run).await.unwrap_err(),
        runs.resume(run, &more).await.unwrap_err(),
        runs.steer(run, message()).await.unwrap_err(),
        runs.follow_up(run, message()).await.unwrap_err(),
        runs.cancel(run, "not yours").await.unwrap_err(),
        runs.fork(run, ForkOptions::after(0)).await.unwrap_err(),
        runs.fork(run, ForkOptions::default().with_message("other")).await.unwrap_err(),
        runs.delete(run).await.unwrap_err(),
    ]
}

#[tokio::test]
async fn run_of_another_tenant_is_answered_as_one_that_never_was_and_nothing_happens_to_it() {
    for (kind, agent) in STARTED {
        let world = World::closed();
        let runs = world.process();
        let anna = runs.for_tenant("anna");
        let own = anna.start(StartRun::new("Hello").tools(Vec::<String>::new())).await.unwrap().run;
        anna.reply(&own).await.ended();
        let started = runs.start(request(kind, agent).tenant("ben")).await.unwrap().run;
        world.tool_entered().await;
        let run = of_kind(kind, &started);
        let before = world.log(&run).await.len();
        // Of the same form, and so as near to the ids there are.
        let never = RunId::new(format!("{}x", &run.as_str()[..run.as_str().len() - 1]));
        let unknown = refusals(&anna, &never).await.into_iter();
        for (refused, unknown) in refusals(&anna, &run).await.into_iter().zip(unknown) {
            let RunError::UnknownRun { nearest, .. } = &refused else { panic!("{kind}: {refused}") };
            assert_eq!(nearest, std::slice::from_ref(&own), "{kind}");
            let text = unknown.to_string().replace(never.as_str(), run.as_str());
            assert_eq!(refused.to_string(), text, "{kind}");
        }
        assert_eq!(world.log(&run).await.len(), before, "{kind}");
        assert_eq!(world.journal.inbox().unwrap().waiting(&run).await.unwrap(), [], "{kind}");
        world.open_gate();
        assert_eq!(runs.reply(&started).await.ended().status, OutcomeStatus::Finished, "{kind}");
    }
}

#[tokio::test]
async fn own_runs_of_any_kind_can_be_started_watched_cancelled_resumed_forked_and_deleted() {
    for (kind, agent) in STARTED {
        let world = World::closed();
        let runs = world.process();
        let anna = runs.for_tenant("anna");
        let started = anna.start(request(kind, agent)).await.unwrap().run;
        let run = of_kind(kind, &started);
        world.tool_entered().await;
        assert_eq!(RunStarted::of(&world.log(&run).await).unwrap().tenant, TenantId::new("anna"), "{kind}");
        anna.cancel(&started, "later").await.unwrap();
        assert_eq!(anna.reply(&started).await.ended().status, OutcomeStatus::Cancelled, "{kind}");
        world.open_gate();
        anna.resume(&run, &MoreLimits::default()).await.unwrap();
        assert_eq!(anna.reply(&started).await.ended().status, OutcomeStatus::Finished, "{kind}");
        assert_eq!(anna.get(&run).await.unwrap().kind, Some(kind));
        let seen = records(&run, anna.watch(&run, None).await.unwrap()).await;
        assert_eq!(seen.len(), anna.records(&run, None).await.unwrap().records.len(), "{kind}");
        if kind == RunKind::Loop {
            let fork = anna.fork(&run, ForkOptions::after(0)).await.unwrap().run;
            assert_eq!(anna.get(&fork).await.unwrap().run_id, fork);
            anna.delete(&fork).await.unwrap();
        }
        anna.delete(&started).await.unwrap();
        assert!(matches!(anna.get(&started).await, Err(RunError::UnknownRun { .. })), "{kind}");
    }
}

// spec: AP-06
#[tokio::test]
async fn question_of_another_tenant_is_not_there_and_stays_open() {
    for (kind, agent) in STARTED {
        let world = World::asking();
        let runs = world.process();
        let (anna, ben) = (runs.for_tenant("anna"), runs.for_tenant("ben"));
        let started = ben.start(request(kind, agent)).await.unwrap().run;
        ben.reply(&started).await.ended();
        let open = ben.questions(None).await.unwrap();
        let question = &open[0].request.request_id;
        assert_eq!(anna.questions(None).await.unwrap(), [], "{kind}");
        assert_eq!(ben.questions(Some(anna.tenant())).await.unwrap(), [], "{kind}");
        assert!(!anna.answer(question, Answer::Approve).await.unwrap(), "{kind}");
        assert_eq!(ben.questions(None).await.unwrap(), open, "{kind}");
        assert!(ben.answer(question, Answer::Approve).await.unwrap(), "{kind}");
        assert_eq!(ben.reply(&started).await.ended().status, OutcomeStatus::Finished, "{kind}");
        assert_eq!(world.effects.load(Ordering::SeqCst), 1, "{kind}");
    }
}

/// A run of each kind for each of two tenants, all ended or waiting.
async fn two_tenants(world: &World) -> (TenantRuns, TenantRuns) {
    let runs = world.process();
    let both = (runs.for_tenant("anna"), runs.for_tenant("ben"));
    for tenant in [&both.0, &both.1] {
        for (kind, agent) in STARTED {
            let started = tenant.start(request(kind, agent)).await.unwrap();
            tenant.reply(&started.run).await.ended();
        }
    }
    both
}

async fn ids(runs: &TenantRuns) -> Vec<RunId> {
    let heads = runs.list(&RunFilter::all()).await.unwrap();
    assert!(heads.iter().all(|head| head.tenant.as_ref() == Some(runs.tenant())), "{heads:?}");
    heads.into_iter().map(|head| head.run_id).collect()
}

#[tokio::test]
async fn list_prune_and_erase_are_of_the_own_runs() {
    let world = World::open();
    let (anna, ben) = two_tenants(&world).await;
    let (own, other) = (ids(&anna).await, ids(&ben).await);
    assert_eq!((own.len(), other.len()), (own.len(), own.len()));
    assert!(own.len() >= STARTED.len() && own.iter().all(|run| !other.contains(run)));
    assert_eq!(anna.list(&RunFilter::all().tenant(ben.tenant().clone())).await.unwrap(), []);
    let pruned = anna.prune(Timestamp::from_millis(u64::MAX / 2)).await.unwrap();
    assert_eq!((pruned.runs.len(), ids(&anna).await, ids(&ben).await), (own.len(), vec![], other.clone()));
    let refused = anna.erase(ben.tenant()).await.unwrap_err();
    assert!(matches!(refused, RunError::NoEffect { option: "tenant", .. }), "{refused}");
    assert_eq!(ids(&ben).await, other);
    assert_eq!(ben.erase(ben.tenant()).await.unwrap().runs.len(), other.len());
    assert_eq!(ids(&ben).await, []);
}

#[tokio::test]
async fn start_for_another_tenant_is_refused_and_the_session_and_key_of_another_are_not_met() {
    let world = World::open();
    let runs = world.process();
    let (anna, ben) = (runs.for_tenant("anna"), runs.for_tenant("ben"));
    let asked = StartRun::new("Take a step").session("desk").key("1");
    let refused = anna.start(asked.clone().tenant("ben")).await.unwrap_err();
    assert_eq!(refused.advice(), "leave the option out");
    let own = anna.start(asked.clone().tenant("anna")).await.unwrap();
    anna.reply(&own.run).await.ended();
    let other = ben.start(asked).await.unwrap();
    assert_ne!(own.run, other.run);
    ben.reply(&other.run).await.ended();
    let log = world.log(&other.run).await;
    assert_eq!(RunStarted::of(&log).unwrap().origin, Origin::Prompt);
}

#[tokio::test]
async fn sweep_is_of_the_own_runs() {
    let clock = VirtualClock::new();
    let world = World::asking().with_clock(&clock);
    let (anna, ben) = two_tenants(&world).await;
    clock.advance(Duration::from_secs(3_600));
    for swept in anna.sweep().await.unwrap().all_ok().unwrap() {
        assert_eq!(anna.reply(&swept.run).await.ended().status, OutcomeStatus::Finished);
    }
    let waiting = RunFilter::all().status([RunStatus::Suspended]);
    assert_eq!(anna.list(&waiting).await.unwrap(), []);
    assert!(!ben.list(&waiting).await.unwrap().is_empty());
}

#[test]
fn resume_unfinished_is_of_the_own_runs() {
    let world = World::closed();
    let [own, other] = ["anna", "ben"].map(|tenant| killed_for(&world, RunKind::Loop, "agent", tenant));
    world.open_gate();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let runs = world.process();
        let (anna, ben) = (runs.for_tenant("anna"), runs.for_tenant("ben"));
        assert_eq!(anna.resume_unfinished(Some(ben.tenant())).await.unwrap().len(), 0);
        let resumed = anna.resume_unfinished(None).await.unwrap().all_ok().unwrap();
        assert_eq!(resumed.into_iter().map(|started| started.run).collect::<Vec<_>>(), [own]);
        assert_eq!(ben.get(&other).await.unwrap().status, RunStatus::Interrupted);
    });
}

#[tokio::test]
async fn watch_of_a_run_that_is_deleted_meanwhile_ends_without_the_ids_of_others() {
    let world = World::open();
    let (anna, _ben) = two_tenants(&world).await;
    let run = anna.start(StartRun::new("Take a step")).await.unwrap().run;
    anna.reply(&run).await.ended();
    // Another process has no events of it, only the log.
    let mut events = world.process().for_tenant("anna").watch(&run, None).await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(Event::Record { .. }))));
    anna.delete(&run).await.unwrap();
    let last = events.filter_map(|event| std::future::ready(event.err())).collect::<Vec<_>>().await;
    assert_eq!(
        last.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [format!("run {run} does not exist")]
    );
}

#[tokio::test]
async fn history_of_a_session_is_the_conversation_of_its_own_tenant() {
    let world = World::open();
    let runs = world.process();
    let (anna, ben) = (runs.for_tenant("anna"), runs.for_tenant("ben"));
    let chat = "chat".into();
    for (tenant, texts) in [(&anna, ["One", "Two"]), (&ben, ["Three", "Four"])] {
        for text in texts {
            let request = StartRun::new(text).session("chat").tools(Vec::<String>::new());
            let started = tenant.start(request).await.unwrap();
            tenant.reply(&started.run).await.ended();
        }
    }
    let said = async |runs: &TenantRuns, of: Option<&TenantId>| -> Vec<String> {
        let messages = runs.history(&chat, of).await.unwrap();
        messages.iter().filter(|m| matches!(m, Message::User(_))).map(Message::text).collect()
    };
    assert_eq!(said(&anna, None).await, ["One", "Two"]);
    assert_eq!(said(&ben, Some(ben.tenant())).await, ["Three", "Four"]);
    assert_eq!(said(&anna, Some(ben.tenant())).await, [""; 0]);
    assert_eq!(anna.history(&"other".into(), None).await.unwrap(), []);
}

#[tokio::test]
async fn history_of_every_kind_of_run_ends_with_its_answer() {
    for (kind, agent) in STARTED {
        let world = World::open();
        let anna = world.process().for_tenant("anna");
        let started = anna.start(request(kind, agent)).await.unwrap();
        let answer = anna.reply(&started.run).await.ended();
        let messages = anna.history(&started.session, None).await.unwrap();
        assert_eq!(messages.last().map(Message::text).as_deref(), answer.answer(), "{kind}");
    }
}

#[tokio::test]
async fn run_whose_log_cannot_be_read_by_the_disk_is_an_error_and_not_an_unknown_run() {
    let dir = tempfile::tempdir().unwrap();
    let runs =
        archon::Runs::over(std::sync::Arc::new(archon::store::JsonlJournal::open(dir.path()).unwrap()));
    let anna = runs.unwrap().for_tenant("anna");
    // A folder in the place of the log: it is there, and every read of it fails.
    std::fs::create_dir(dir.path().join("runs/run_1.jsonl")).unwrap();
    let error = anna.get(&RunId::new("run_1")).await.unwrap_err();
    assert_eq!(error.http_status(), 503, "{error}");
    // One without a record is no run.
    std::fs::write(dir.path().join("runs/run_2.jsonl"), "").unwrap();
    assert_eq!(anna.get(&RunId::new("run_2")).await.unwrap_err().http_status(), 404);
}
