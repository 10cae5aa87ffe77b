//! A team on the bus of one process: a program that listens gets what the team and its members send.

use std::sync::Arc;

use archon::{
    Context, OutcomeStatus, RunId, SessionId,
    orchestrator::{InMemoryBus, Team, TeamOptions},
    types::{AgentId, Bus, Member, MessageType, SubTask, SubTaskRules},
};
use archon_planner::ScriptedPlanner;
use archon_testkit::{FnAgent, MortalJournal, SeededIds, VirtualClock, drive};
use futures_util::{FutureExt, StreamExt};

fn step(id: &str, role: &str, after: &[&str]) -> SubTask {
    let mut rules = SubTaskRules::default();
    rules.role = Some(role.to_owned());
    SubTask::new(id, "Work").after(after.iter().copied()).with_rules(rules)
}

// spec: MA-13, OB-03
#[test]
fn a_listener_on_the_bus_of_the_process_gets_the_tasks_of_a_team_and_their_results() {
    let clock = VirtualClock::new();
    let bus = InMemoryBus::new(Arc::new(clock.clone()));
    let also = [MessageType::TaskRequest, MessageType::TaskResponse];
    let mut messages = bus.subscribe(&AgentId::new("r"), &also).now_or_never().unwrap().unwrap();
    let plan = vec![step("research", "researcher", &[]), step("write", "writer", &["research"])];
    let team =
        Team::new(ScriptedPlanner::new(plan), Arc::new(MortalJournal::default()), TeamOptions::default())
            .with_member(Member::new("r", "researcher"), FnAgent::saying("The sea rises."))
            .with_member(Member::new("w", "writer"), FnAgent::saying("In short: it rises."))
            .with_bus(Arc::new(bus.clone()));
    let (time, ids) = (Arc::new(clock.clone()), Arc::new(SeededIds::new(1)));
    let context = Context::new(RunId::new("run_1"), SessionId::new("s"), time, ids);
    let outcome = drive(&clock, team.start("Write about the sea", &context)).unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    bus.close();
    let sent: Vec<_> = std::iter::from_fn(|| messages.next().now_or_never().flatten())
        .inspect(|m| assert_eq!(m.run_id.as_ref(), Some(&outcome.run), "{m:?}"))
        .map(|m| format!("{} to {}: {}", m.sender_id, m.receiver_id, m.message_type))
        .collect();
    let expected = [
        "team to r: task_request",
        "r to team: task_response",
        "team to w: task_request",
        "w to team: task_response",
    ];
    assert_eq!(sent, expected);
}
