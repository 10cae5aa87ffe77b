//! Tests of members that wait for other members, who wait for a person.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_orchestrator::{AssignmentState, Team, TeamDesk, TeamHandleError};
use archon_run::RunLog;
use archon_testkit::{FnAgent, InboxJournal, MortalJournal, answer, drive, poll_until_idle};
use archon_types::{
    Agent, AgentId, Answer, BoxFuture, CallId, CallsUnderWay, CommandId, ConflictStrategy, Context,
    FailureKind, Journal, LoopId, Outcome, OutcomeStatus, PendingApproval, RecordBody, RunConfig, RunId,
    RunStarted, Spending, SubTask, TeamPattern, TeamRecord, ToolContext, pending_approvals,
};
use serde_json::json;

use crate::support::{World, member, pause, step};

/// The observations of a team over all its processes.
#[derive(Clone, Default)]
struct Seen {
    /// The runs that ended, as the journals of real members would record them.
    ended: Arc<Mutex<BTreeSet<RunId>>>,
    /// The answers to the members that asked.
    answers: Arc<Mutex<Vec<Result<String, TeamHandleError>>>>,
}

impl Seen {
    fn saying(&self, text: &'static str, after_ms: u64) -> Arc<FnAgent> {
        let ended = self.ended.clone();
        FnAgent::new(move |_, context| {
            let ended = ended.clone();
            async move {
                if after_ms > 0 {
                    pause(&context, after_ms).await;
                }
                ended.lock().unwrap().insert(context.run.clone());
                answer(&context, text)
            }
        })
    }

    /// Returns a writer that asks `to`, and answers with the reply.
    fn asking(&self, desk: &TeamDesk, to: &'static str) -> Arc<FnAgent> {
        let (desk, seen) = (desk.clone(), self.clone());
        FnAgent::new(move |_, context| {
            let (desk, seen) = (desk.clone(), seen.clone());
            async move {
                let asked = desk.seat(&context.run).unwrap().ask(to, "Which colour?").await;
                seen.answers.lock().unwrap().push(asked.clone());
                seen.ended.lock().unwrap().insert(context.run.clone());
                answer(&context, &asked.unwrap_or_else(|error| error.to_string()))
            }
        })
    }

    fn results(&self) -> Vec<String> {
        let answers = self.answers.lock().unwrap();
        answers.iter().map(|one| one.clone().unwrap_or_else(|error| format!("error: {error}"))).collect()
    }
}

/// Returns a team in a process of its own: writers ask an office, whose two members contradict each other
/// after some time, so that the office asks a person.
fn team(world: &World, journal: &InboxJournal, seen: &Seen, plan: Vec<SubTask>, after_ms: u64) -> Team {
    let desk = TeamDesk::new();
    let inner = vec![step("a", "Which?", "worker", &[])];
    let office = world.team_in(journal, inner, &["worker"], |options| {
        options.settings.pattern = TeamPattern::Committee { size: 2 };
        options.settings.conflicts.strategy = ConflictStrategy::Human;
    });
    let office = office
        .with_member(member("m0", "worker"), seen.saying("red", after_ms))
        .with_member(member("m1", "worker"), seen.saying("green", 0));
    world
        .team_in(journal, plan, &["writer", "office", "busy"], |options| {
            options.limits.max_depth = 2;
            options.settings.task_timeout_ms = 60_000;
        })
        .with_member(member("ann", "writer"), seen.asking(&desk, "office"))
        .with_member(member("office", "office"), Arc::new(office))
        .with_member(member("bob", "busy"), seen.saying("busy", 50_000))
        .with_desk(desk)
}

fn one_step() -> Vec<SubTask> {
    vec![step("w", "1", "writer", &[])]
}

fn open(world: &World) -> Vec<PendingApproval> {
    pending_approvals(&world.journal.log("run_1"))
}

fn colour(text: &str) -> Answer {
    Answer::Edit { arguments: json!({ "value": text }) }
}

/// Posts an answer to the run that asked.
fn post(journal: &InboxJournal, asked: &PendingApproval, id: &str, text: &str) {
    journal.post(asked.asker().as_str(), id, asked.request.answered(colour(text)));
}

fn resume(world: &World, team: &Team) -> Outcome {
    let outcome = drive(&world.clock, team.resume(&world.context)).unwrap();
    world.check_log();
    outcome
}

fn count(world: &World, run: &str, is_meant: fn(&RecordBody) -> bool) -> usize {
    world.journal.log(run).iter().filter(|record| is_meant(&record.body)).count()
}

// spec: MA-15, AP-05
#[test]
fn team_helpers_question_surfaces_and_is_answered_in_another_process() {
    let (world, seen) = (World::new(), Seen::default());
    let journal = InboxJournal::over(&world.journal);
    let begun = world.context.clock.now();
    let outcome = world.start(&team(&world, &journal, &seen, one_step(), 0), "Write");
    assert_eq!(outcome.status, OutcomeStatus::Suspended, "{outcome:?}");
    assert!(world.context.clock.now().since(begun) < Duration::from_secs(1), "nobody's time runs out first");
    let asked = open(&world);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!((asked[0].asker().as_str(), asked[0].call), ("run_1.2-0", CallId::new(CommandId(2), 0)));
    assert_eq!(seen.results(), [""; 0]);
    // A person takes a while, and answers elsewhere.
    world.clock.advance(Duration::from_secs(1_000));
    post(&journal, &asked[0], "in-1", "violet");
    let outcome = resume(&world, &team(&world, &journal, &seen, one_step(), 0));
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
    let results = seen.results();
    assert!(results.len() == 1 && results[0].starts_with("[a] violet"), "{results:?}");
    assert!(outcome.last_text().unwrap_or_default().starts_with("[w] [a] violet"), "{outcome:?}");
    assert_eq!(world.delegations(), ["ann: w: 1", "office: Which colour?"]);
}

// spec: MA-15, AP-05
#[test]
fn questions_of_several_helpers_are_listed_together_and_each_has_its_own_answer() {
    let (world, seen) = (World::new(), Seen::default());
    let journal = InboxJournal::over(&world.journal);
    let plan = || vec![step("w", "1", "writer", &[]), step("v", "2", "writer", &[])];
    let team = || team(&world, &journal, &seen, plan(), 0);
    assert_eq!(world.start(&team(), "Write").status, OutcomeStatus::Suspended);
    let asked = open(&world);
    let askers: Vec<_> = asked.iter().map(|one| one.asker().as_str()).collect();
    assert_eq!(askers, ["run_1.3-0", "run_1.4-0"]);
    post(&journal, &asked[1], "in-1", "blue");
    assert_eq!(resume(&world, &team()).status, OutcomeStatus::Suspended);
    assert_eq!(seen.results().len(), 1, "the one goes on, the other waits: {:?}", seen.results());
    let open_now = open(&world);
    assert_eq!((open_now.len(), open_now[0].asker().as_str()), (1, "run_1.3-0"));
    // The other through the team itself.
    let done =
        drive(&world.clock, team().answer(open_now[0].call, colour("violet"), &world.context)).unwrap();
    world.check_log();
    assert_eq!(done.status, OutcomeStatus::Finished, "{done:?}");
    let said = done.last_text().unwrap_or_default();
    assert!(said.contains("[w] [a] violet") && said.contains("[v] [a] blue"), "{said}");
    assert_eq!(world.delegations().len(), 4);
}

// spec: MA-15
#[test]
fn team_waiting_for_a_person_does_not_use_the_members_time_limit() {
    let (world, seen) = (World::new(), Seen::default());
    let journal = InboxJournal::over(&world.journal);
    // The office asks after 30 s, others work for 100 s, and a task may take 60 s.
    let plan = || {
        let others = [step("b", "3", "busy", &[]), step("c", "4", "busy", &["b"])];
        [step("w", "1", "writer", &[])].into_iter().chain(others).collect()
    };
    let outcome = world.start(&team(&world, &journal, &seen, plan(), 30_000), "Write");
    assert_eq!(outcome.status, OutcomeStatus::Suspended, "{outcome:?}");
    post(&journal, &open(&world)[0], "in-1", "violet");
    let outcome = resume(&world, &team(&world, &journal, &seen, plan(), 30_000));
    assert!(outcome.last_text().unwrap_or_default().starts_with("[w] [a] violet"), "{outcome:?}");
    let taken = |record: &TeamRecord| matches!(record, TeamRecord::DelegationRevoked { .. });
    assert!(!world.team_records().iter().any(taken), "{:?}", world.team_records());
    assert_eq!(seen.results().len(), 1);
}

/// The process dies at each append of each run in turn, before or after the append is written, before and
/// after the answer.
// spec: MA-15, AP-05, MA-23
#[test]
fn team_with_a_helpers_question_killed_anywhere_repeats_nothing() {
    let run = |die: Option<(u64, bool)>| {
        let (world, seen) = (World::new(), Seen::default());
        let journal = InboxJournal::over(&world.journal);
        let team = || team(&world, &journal, &seen, one_step(), 0);
        let is_there =
            |run: &str| count(&world, run, |body| matches!(body, RecordBody::MessageAdded { .. })) > 0;
        if let Some((appends, is_written)) = die {
            world.journal.die_after(appends, is_written);
        }
        let mut posted = false;
        let mut deaths = 0;
        let outcome = loop {
            let done = match is_there("run_1") {
                true => drive(&world.clock, team().resume(&world.context)),
                false => drive(&world.clock, team().start("Write", &world.context)),
            };
            match done {
                Ok(outcome) if outcome.status != OutcomeStatus::Suspended => break outcome,
                Ok(_) if !posted => {
                    let asked = open(&world);
                    assert_eq!(asked.len(), 1, "{die:?}: {asked:?}");
                    post(&journal, &asked[0], "in-1", "violet");
                    posted = true;
                }
                Ok(outcome) => panic!("{die:?}: it asks again: {outcome:?}"),
                Err(error) => {
                    deaths += 1;
                    assert!(deaths < 3, "{die:?}: {error}");
                    world.journal.live();
                    // The log may have its end already.
                    if let Some(outcome) =
                        is_there("run_1").then(|| world.check_log().ended().cloned()).flatten()
                    {
                        break outcome;
                    }
                }
            }
        };
        world.check_log();
        let asked = |body: &RecordBody| matches!(body, RecordBody::ApprovalRequested { .. });
        assert_eq!(count(&world, "run_1.2-0", asked), 1, "{die:?}");
        assert_eq!(world.delegations().len(), 2, "{die:?}: {:?}", world.delegations());
        let requested = |record: &&TeamRecord| matches!(record, TeamRecord::DelegationRequested { .. });
        assert_eq!(world.team_records().iter().filter(requested).count(), 1, "{die:?}");
        assert_eq!(seen.ended.lock().unwrap().len(), 3, "{die:?}: {:?}", seen.ended);
        let results = seen.results();
        assert!(
            !results.is_empty() && results.iter().all(|one| one.starts_with("[a] violet")),
            "{die:?}: {results:?}"
        );
        (outcome, deaths)
    };
    let (whole, _) = run(None);
    assert_eq!(whole.status, OutcomeStatus::Finished, "{whole:?}");
    let mut died = 0;
    for appends in 1.. {
        let mut deaths = 0;
        for is_written in [false, true] {
            let (outcome, at) = run(Some((appends, is_written)));
            assert_eq!(
                (outcome.last_text(), &outcome.child_spending),
                (whole.last_text(), &whole.child_spending),
                "{appends}"
            );
            deaths += at;
        }
        died += deaths;
        if deaths == 0 {
            break;
        }
    }
    assert!(died > 60, "{died}");
}

/// Returns an agent without a log that asks a person once, and shares an entry when it continues.
fn asks_then_shares(desk: &TeamDesk) -> Arc<FnAgent> {
    let (desk, asked) = (desk.clone(), Arc::new(Mutex::new(false)));
    FnAgent::new(move |_, context| {
        let (desk, is_first) = (desk.clone(), !std::mem::replace(&mut *asked.lock().unwrap(), true));
        async move {
            if is_first {
                return Outcome::new(context.run.clone(), OutcomeStatus::Suspended);
            }
            desk.seat(&context.run).unwrap().write("rain", json!("much"), None).await.unwrap();
            answer(&context, "shared")
        }
    })
}

// spec: MA-15, MA-17, AP-05
#[test]
fn team_member_waiting_for_a_value_or_a_busy_member_suspends_with_the_team() {
    let (world, seen, desk) = (World::new(), Seen::default(), TeamDesk::new());
    let reader = {
        let desk = desk.clone();
        FnAgent::new(move |_, context| {
            let desk = desk.clone();
            async move {
                let item = desk.seat(&context.run).unwrap().wait("rain", 0).await;
                answer(&context, &format!("{:?}", item.map(|item| item.value)))
            }
        })
    };
    let plan =
        vec![step("r", "1", "reader", &[]), step("h", "2", "helper", &[]), step("w", "3", "writer", &[])];
    let team = world
        .team(plan, &["reader", "helper", "writer"], |_| {})
        .with_member(member("rea", "reader"), reader)
        .with_member(member("hal", "helper").with_max_tasks(1), asks_then_shares(&desk))
        .with_member(member("ann", "writer"), seen.asking(&desk, "helper"))
        .with_desk(desk);
    let begun = world.context.clock.now();
    assert_eq!(world.start(&team, "Write").status, OutcomeStatus::Suspended);
    assert!(world.context.clock.now().since(begun) < Duration::from_secs(1));
    let asked = open(&world);
    assert_eq!(asked.len(), 1, "{asked:?}");
    let outcome = drive(&world.clock, team.answer(asked[0].call, Answer::Approve, &world.context)).unwrap();
    world.check_log();
    let said = outcome.last_text().unwrap_or_default();
    assert!(said.contains("[r] Ok(String(\"much\"))") && said.contains("[w] shared"), "{outcome:?}");
    assert_eq!(world.delegations().len(), 4);
}

/// Returns a member whose loop runs `ask_member` concurrently with a call that takes 31 s. The team
/// checks heartbeats every 15 s.
fn asks_and_works(desk: &TeamDesk, done: &Arc<Mutex<usize>>) -> Arc<FnAgent> {
    let (desk, done) = (desk.clone(), done.clone());
    FnAgent::new(move |_, mut context| {
        let (desk, done) = (desk.clone(), done.clone());
        async move {
            let under_way = CallsUnderWay::new(2);
            context.under_way = Some(under_way.clone());
            let tool = desk.tools().into_iter().find(|tool| tool.spec().name == "ask_member").unwrap();
            let call = ToolContext::new(context.clone(), "c".into(), "ask_member");
            let asked = tool.call(json!({"to": "helper", "task": "Which colour?"}), &call);
            let work = async {
                pause(&context, 31_000).await;
                *done.lock().unwrap() += 1;
                under_way.set(1);
            };
            let (result, ()) = futures_util::future::join(asked, work).await;
            answer(&context, &result.unwrap().text())
        }
    })
}

// spec: MA-15
#[test]
fn ask_member_beside_other_work_of_its_run_rests_when_that_is_done() {
    let (world, desk, done) = (World::new(), TeamDesk::new(), Arc::new(Mutex::new(0)));
    let team = world
        .team(one_step(), &["writer", "helper"], |_| {})
        .with_member(member("ann", "writer"), asks_and_works(&desk, &done))
        .with_member(member("hal", "helper"), asks_then_shares(&desk))
        .with_desk(desk);
    let begun = world.context.clock.now();
    assert_eq!(world.start(&team, "Write").status, OutcomeStatus::Suspended);
    assert_eq!(*done.lock().unwrap(), 1, "nothing was cut off");
    let took = world.context.clock.now().since(begun).as_secs();
    assert_eq!(took, 31, "and then nobody waits on");
    let asked = open(&world);
    let outcome = drive(&world.clock, team.answer(asked[0].call, Answer::Approve, &world.context)).unwrap();
    world.check_log();
    assert_eq!(outcome.last_text(), Some("[w] shared"), "{outcome:?}");
    assert_eq!(world.delegations().len(), 2);
}

/// Returns a helper that starts a log in another journal than the team's, so that the log is lost. The
/// helper hangs, and answers after a restart.
fn loses_its_log() -> Arc<FnAgent> {
    let begun: Arc<Mutex<BTreeSet<RunId>>> = Arc::default();
    FnAgent::new(move |_, context| {
        let is_again = !begun.lock().unwrap().insert(context.run.clone());
        async move {
            if is_again {
                return answer(&context, "done again");
            }
            let started = RunStarted::new(
                context.run.clone(),
                context.session.clone(),
                AgentId::new("hal"),
                LoopId::new("l"),
                RunConfig::default(),
            );
            let _log = RunLog::begin(&MortalJournal::default(), started, Vec::new(), &context).await;
            std::future::pending().await
        }
    })
}

// spec: MA-15, AP-05
#[test]
fn team_member_waiting_for_a_call_in_doubt_continues_after_the_answer() {
    for (said, expected) in
        [(Answer::Approve, "done again"), (Answer::Reply { text: "It was.".into() }, "It was.")]
    {
        let (world, seen, desk) = (World::new(), Seen::default(), TeamDesk::new());
        let journal = InboxJournal::over(&world.journal);
        let plan =
            vec![step("w", "1", "writer", &[]), step("v", "2", "writer", &[]), step("b", "3", "busy", &[])];
        let team = world
            .team_in(&journal, plan, &["writer", "helper", "busy"], |_| {})
            .with_member(member("ann", "writer"), seen.asking(&desk, "helper"))
            .with_member(member("hal", "helper"), loses_its_log())
            .with_member(member("bob", "busy"), seen.saying("busy", 50_000))
            .with_desk(desk);
        let mut run = Box::pin(team.start("Write", &world.context));
        assert!(poll_until_idle(&mut run).is_none());
        drop(run);
        // The process died. In the next one a person is asked, and the writers are stopped while others work.
        let mut run = Box::pin(team.resume(&world.context));
        assert!(poll_until_idle(&mut run).is_none());
        let machine = world.check_log();
        let states: Vec<_> = machine.jobs().iter().map(|job| job.hands[0].state).collect();
        use AssignmentState::{Asked, Running, Waiting};
        assert_eq!(states, [Waiting, Waiting, Running, Asked, Asked]);
        let asked = open(&world);
        assert_eq!(asked.len(), 2, "{asked:?}");
        journal.post("run_1", "in-1", asked[0].request.answered(said.clone()));
        // The inbox is looked at when the team looks who is silent.
        for _ in 0..4 {
            world.clock.advance(Duration::from_secs(5));
            assert!(poll_until_idle(&mut run).is_none(), "others work");
        }
        assert_eq!(seen.results(), [expected], "one goes on, the other waits");
        let outcome = drive(&world.clock, run).unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Suspended, "{outcome:?}");
        journal.post("run_1", "in-2", asked[1].request.answered(said));
        let outcome = resume(&world, &team);
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
        assert_eq!(seen.results(), [expected, expected]);
        assert_eq!(world.delegations().len(), 5);
    }
}

/// A member whose log records seven of its ten tokens as used when it was stopped.
struct Logged(Arc<FnAgent>);

impl Agent for Logged {
    fn name(&self) -> &str {
        "logged"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        self.0.run(task, context)
    }

    fn spending_of<'a>(&'a self, _: &'a RunId, _: &'a dyn Journal) -> BoxFuture<'a, Option<Spending>> {
        Box::pin(std::future::ready(Some(Spending::new(7, 0))))
    }
}

/// Returns true for the record of the seven tokens.
fn is_settled(body: &RecordBody) -> bool {
    matches!(body, RecordBody::LeaseSettled { spent, .. } if *spent == Spending::new(7, 0))
}

// spec: MA-15, MA-23
#[test]
fn team_waiting_members_spending_is_counted_once() {
    for redundancy in [1, 2] {
        let (world, seen, desk) = (World::new(), Seen::default(), TeamDesk::new());
        let team = world
            .team(one_step(), &["writer", "helper"], |options| options.settings.redundancy = redundancy)
            .with_member(member("ann", "writer"), Arc::new(Logged(seen.asking(&desk, "helper"))))
            .with_member(member("hal", "helper"), Arc::new(Logged(asks_then_shares(&desk))));
        let team = match redundancy {
            1 => team,
            _ => team.with_member(member("abe", "writer"), seen.saying("first", 1_000)),
        };
        let team = team.with_desk(desk);
        let outcome = world.start(&team, "Write");
        assert_eq!(
            count(&world, "run_1", is_settled),
            2,
            "who waits for a member, and who waits for a person"
        );
        // Both go on and use ten; or both lose their work to a third, who uses ten.
        let (outcome, expected) = match redundancy {
            1 => {
                assert_eq!(outcome.status, OutcomeStatus::Suspended);
                let call = open(&world)[0].call;
                (drive(&world.clock, team.answer(call, Answer::Approve, &world.context)).unwrap(), 10 + 10)
            }
            _ => (outcome, 7 + 7 + 10),
        };
        world.check_log();
        assert_eq!(
            (outcome.status, outcome.child_spending.tokens),
            (OutcomeStatus::Finished, expected),
            "{outcome:?}"
        );
    }
}

// spec: MA-15
#[test]
fn team_denied_question_of_a_helper_is_reported_to_its_asker() {
    let (world, seen, desk) = (World::new(), Seen::default(), TeamDesk::new());
    let team = world
        .team(one_step(), &["writer", "helper"], |options| options.settings.max_attempts = 1)
        .with_member(member("ann", "writer"), seen.asking(&desk, "helper"))
        .with_member(member("hal", "helper"), asks_then_shares(&desk))
        .with_desk(desk);
    assert_eq!(world.start(&team, "Write").status, OutcomeStatus::Suspended);
    let no = Answer::Cancel { reason: "not today".into() };
    let outcome = drive(&world.clock, team.answer(open(&world)[0].call, no, &world.context)).unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
    assert_eq!(outcome.failure, None::<FailureKind>);
    assert_eq!(seen.results(), ["error: a person said no: not today"]);
    world.check_log();
}
