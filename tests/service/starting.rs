//! Requests that start runs: their keys, settings and limits, and the session that they are for.

use std::sync::atomic::Ordering;

use archon::{
    OutcomeStatus, SessionId,
    types::{
        AnswerRuns, Content, Message, MoreLimits, RunError, RunFilter, RunKind, RunStarted, RunStatus,
        StartRun, StartRuns, Started, Timestamp, UserMessage, WhenBusy, received_messages,
    },
};
use archon_testkit::Ended;

use crate::service::run_service::{STARTED, World, request, steps};

#[tokio::test]
async fn start_with_a_used_key_gives_the_same_run_and_another_prompt_is_refused() {
    for (kind, agent) in STARTED {
        let world = World::open();
        let runs = world.process();
        let asked = request(kind, agent).key("order 7");
        let started = runs.start(asked.clone()).await.unwrap();
        runs.reply(&started.run).await.ended();
        let again = world.process().start(asked.clone()).await.unwrap();
        assert_eq!((again.run, again.how), (started.run.clone(), Started::Before), "{kind}");
        assert_eq!(world.effects.load(Ordering::SeqCst), steps(kind), "{kind}");
        for text in ["Jump", "Take a st", "step"] {
            let mut other = asked.clone();
            other.prompts = vec![Message::user(text, Timestamp::default()).into()];
            let refused = runs.start(other).await.unwrap_err();
            assert!(matches!(refused, RunError::KeyUsed { .. }), "{kind}: {refused}");
        }
    }
}

#[tokio::test]
async fn start_with_settings_holds_for_this_run_alone_and_resume_keeps_them() {
    let world = World::closed();
    let runs = world.process();
    let limits = world.agent("agent").limits().clone().with_max_turns(7);
    let asked = request(RunKind::Loop, "agent").limits(limits.clone()).system("Be brief.").tools(["step"]);
    let started = runs.start(asked.key("k").clone()).await.unwrap();
    world.tool_entered().await;
    runs.cancel(&started.run, "later").await.unwrap();
    runs.reply(&started.run).await.ended();
    world.open_gate();
    world.process().resume(&started.run, &MoreLimits::default()).await.unwrap();
    let config = RunStarted::of(&world.log(&started.run).await).unwrap().config.clone();
    assert_eq!((config.limits, config.system.unwrap().as_str()), (limits, "Be brief."));
    let none = runs.start(request(RunKind::Loop, "agent").tools(Vec::<String>::new())).await.unwrap();
    assert_eq!(runs.reply(&none.run).await.unwrap().into_text().unwrap(), "done: Take a step");
    let unknown = runs.start(request(RunKind::Loop, "agent").tools(["stpe"])).await.unwrap_err();
    assert!(unknown.to_string().contains("did you mean `step`?"), "{unknown}");
}

#[tokio::test]
async fn start_with_limits_applies_to_every_kind_and_names_unsupported_settings() {
    for (kind, agent) in STARTED {
        let world = World::open();
        let runs = world.process();
        let limits = archon::types::ExecutionLimits::default().with_max_total_tokens(123_456);
        let started = runs.start(request(kind, agent).limits(limits.clone())).await.unwrap();
        runs.reply(&started.run).await.ended();
        let log = world.log(&started.run).await;
        assert_eq!(RunStarted::of(&log).unwrap().config.limits, limits, "{kind}");
        if matches!(kind, RunKind::Loop | RunKind::AgentCall) {
            continue;
        }
        for asked in [request(kind, agent).system("Be brief."), request(kind, agent).tools(["step"])] {
            let refused = runs.start(asked).await.unwrap_err();
            assert!(matches!(refused, RunError::NotForKind { kind: of, .. } if of == kind), "{refused}");
            assert!(refused.advice().contains("start a loop"), "{}", refused.advice());
        }
    }
}

#[tokio::test]
async fn start_with_a_used_key_and_other_settings_is_refused_with_the_difference() {
    let world = World::open();
    let runs = world.process();
    let limits = |turns| archon::types::ExecutionLimits::default().with_max_turns(turns);
    let asked =
        StartRun::new("Take a step").agent("agent").session("s").limits(limits(9)).system("Be brief.");
    let asked = asked.tools(["step"]).key("order 7");
    let started = runs.start(asked.clone()).await.unwrap();
    runs.reply(&started.run).await.ended();
    assert_eq!(runs.start(asked.clone()).await.unwrap().how, Started::Before);
    for (other, differs) in [
        (asked.clone().limits(limits(8)), "limits"),
        (asked.clone().system("Be long."), "system text"),
        (asked.clone().tools(Vec::<String>::new()), "list of tools"),
        (asked.clone().session("t"), "session"),
        (asked.clone().agent("caller"), "agent"),
        (asked.clone().kind(RunKind::Plan), "kind"),
    ] {
        let refused = runs.start(other).await.unwrap_err();
        assert!(matches!(&refused, RunError::KeyUsed { differs: what, .. } if *what == differs), "{refused}");
    }
}

#[tokio::test]
async fn prompt_of_any_kind_in_a_session_gets_the_history_and_adds_its_answer() {
    for (kind, agent) in STARTED {
        let world = World::open();
        let runs = world.process();
        let first = runs.start(StartRun::new("My name is Anna").session("anna").tools(Vec::<String>::new()));
        runs.reply(&first.await.unwrap().run).await.ended();
        let second = runs.start(request(kind, agent).session("anna")).await.unwrap();
        let answer = runs.reply(&second.run).await.unwrap().into_text().unwrap();
        assert!(world.was_asked("My name is Anna", "Take a step"), "{kind}: {:?}", world.prompts());
        let third = runs.start(StartRun::new("And then?").session("anna")).await.unwrap();
        runs.reply(&third.run).await.ended();
        let last = world.prompts().pop().unwrap();
        for said in ["My name is Anna", "Take a step", &answer] {
            assert!(last.contains(said), "{kind}: {said}: {last}");
        }
    }
}

#[tokio::test]
async fn start_with_one_key_at_the_same_moment_starts_one_run() {
    let world = World::open();
    let runs = world.process();
    let starts = (0..8).map(|_| runs.start(StartRun::new("Take a step").key("once")));
    let started = futures_util::future::join_all(starts).await;
    let ids: std::collections::BTreeSet<_> = started.into_iter().map(|s| s.unwrap().run).collect();
    assert_eq!(ids.len(), 1);
    runs.reply(ids.first().unwrap()).await.ended();
    assert_eq!(world.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn message_to_a_busy_session_is_refused_queued_or_branched() {
    let world = World::closed();
    let runs = world.process();
    let session = SessionId::new("anna");
    let first = runs.start(StartRun::new("Take a step").session("anna")).await.unwrap();
    assert_eq!(first.session, session);
    world.tool_entered().await;
    let next = StartRun::new("and then?").session("anna");
    let refused = runs.start(next.clone()).await.unwrap_err();
    assert!(matches!(&refused, RunError::SessionBusy { run, .. } if *run == first.run), "{refused}");
    let queued = runs.start(next.clone().when_busy(WhenBusy::Queue)).await.unwrap();
    assert_eq!((&queued.run, queued.how), (&first.run, Started::Queued));
    assert_eq!((queued.message_ids.len(), first.message_ids.len()), (1, 0));
    let branch = runs.start(next.when_busy(WhenBusy::Branch)).await.unwrap();
    assert_ne!(branch.run, first.run);
    world.open_gate();
    assert_eq!(runs.reply(&first.run).await.ended().last_text(), Some("done: and then?"));
    let received = received_messages(&world.log(&first.run).await);
    assert!(received.contains(&queued.message_ids[0]), "{received:?}");
    assert_eq!(runs.reply(&branch.run).await.ended().status, OutcomeStatus::Finished);
}

#[tokio::test]
async fn message_with_a_key_that_was_queued_is_found_by_the_same_request_and_read_once() {
    let world = World::closed();
    let runs = world.process();
    let first = runs.start(StartRun::new("Take a step").session("anna")).await.unwrap();
    world.tool_entered().await;
    let next = StartRun::new("and then?").session("anna").key("8").when_busy(WhenBusy::Queue);
    let queued = runs.start(next.clone()).await.unwrap();
    assert_eq!((&queued.run, queued.how), (&first.run, Started::Queued));
    // It waits in the inbox.
    let again = runs.start(next.clone()).await.unwrap();
    assert_eq!((&again.run, again.how), (&first.run, Started::Before));
    assert_eq!(again.message_ids, queued.message_ids);
    world.open_gate();
    assert_eq!(runs.reply(&first.run).await.ended().last_text(), Some("done: and then?"));
    // It is in the log, and another process has the request now.
    let late = world.process().start(next.clone()).await.unwrap();
    assert_eq!((&late.run, late.how), (&first.run, Started::Before));
    let other = runs.start(next.key("9")).await.unwrap();
    assert_eq!(other.how, Started::New);
    runs.reply(&other.run).await.ended();
}

#[tokio::test]
async fn message_to_a_session_whose_run_of_any_kind_waits_is_refused() {
    for (kind, agent) in STARTED {
        let world = World::asking();
        let runs = world.process();
        let waits = runs.start(request(kind, agent).session("anna")).await.unwrap();
        runs.reply(&waits.run).await.ended();
        let refused = runs.start(StartRun::new("and then?").session("anna")).await.unwrap_err();
        let RunError::SessionBusy { run, status } = refused else { panic!("{kind}: {refused}") };
        // A branch of a parallel loop may be the one that was written last.
        assert!(run.as_str().starts_with(waits.run.as_str()), "{kind}: {run}");
        assert_eq!(status, RunStatus::Suspended, "{kind}");
        runs.cancel(&waits.run, "no more").await.unwrap();
        assert_eq!(runs.reply(&waits.run).await.ended().status, OutcomeStatus::Cancelled, "{kind}");
    }
}

#[tokio::test]
async fn message_that_steers_a_busy_session_is_in_the_next_request_and_the_running_tool_finishes() {
    let world = World::closed();
    let runs = world.process();
    let first = runs.start(StartRun::new("Take a step").session("anna")).await.unwrap();
    world.tool_entered().await;
    let now = |text: &str| runs.start(StartRun::new(text).session("anna").when_busy(WhenBusy::Steer));
    let steered = now("in small steps").await.unwrap();
    assert_eq!((&steered.run, steered.how), (&first.run, Started::Queued));
    world.open_gate();
    assert_eq!(runs.reply(&first.run).await.ended().last_text(), Some("done: in small steps"));
    assert_eq!(world.effects.load(Ordering::SeqCst), 1);
    let asked = world.prompts();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].contains("stepped\nin small steps"), "{}", asked[1]);
    // Without a run at work it is a prompt like any other.
    let next = now("and now?").await.unwrap();
    assert_eq!(next.how, Started::New);
    assert_eq!(runs.reply(&next.run).await.ended().last_text(), Some("done: and now?"));
}

#[tokio::test]
async fn message_that_steers_a_suspended_session_resumes_its_run_and_drops_the_question() {
    let world = World::asking();
    let runs = world.process();
    let first = runs.start(StartRun::new("Take a step").session("anna")).await.unwrap();
    assert_eq!(runs.reply(&first.run).await.ended().status, OutcomeStatus::Suspended);
    let now = StartRun::new("rather rest").session("anna").when_busy(WhenBusy::Steer);
    let steered = runs.start(now).await.unwrap();
    assert_eq!((&steered.run, steered.how), (&first.run, Started::Resumed));
    assert_eq!(runs.reply(&first.run).await.ended().last_text(), Some("done: rather rest"));
    assert_eq!(world.effects.load(Ordering::SeqCst), 0);
    assert!(runs.questions(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn messages_that_may_queue_at_the_same_moment_are_all_read() {
    let world = World::open();
    let runs = world.process();
    for session in ["new", "old"] {
        if session == "old" {
            let before = runs.start(StartRun::new("Take a step").session("old")).await.unwrap();
            runs.reply(&before.run).await.ended();
        }
        let texts = ["one", "two", "three"];
        let start = |text: &str| runs.start(StartRun::new(text).session(session).when_busy(WhenBusy::Queue));
        let started = futures_util::future::join_all(texts.map(start)).await;
        for started in started {
            runs.reply(&started.unwrap().run).await.ended();
        }
        let newest = RunFilter::of_session(SessionId::new(session)).limit(1);
        let newest = runs.list(&newest).await.unwrap().remove(0);
        // Whatever run each is in, the conversation has them all.
        let asked = world.prompts();
        let last = asked.last().unwrap();
        assert!(texts.iter().all(|text| last.contains(text)), "{session}, {}: {last}", newest.run_id);
    }
}

#[tokio::test]
async fn start_with_a_picture_alone_is_no_empty_prompt() {
    let world = World::open();
    let runs = world.process();
    let picture = Content::Image { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() };
    let user = |content| Message::User(UserMessage::new(content, Timestamp::default()));
    let started = runs.start(StartRun::with_messages(vec![user(vec![picture]).into()])).await.unwrap();
    runs.reply(&started.run).await.ended();
    let blank = runs.start(StartRun::with_messages(vec![user(vec![Content::text(" ")]).into()])).await;
    assert!(matches!(blank, Err(RunError::EmptyPrompt)));
}
