//! Kill and resume with a plan, by SIGKILL: whichever record was the last one, of the plan's own log or of a
//! subtask's, no subtask that had ended is done again, none is left waiting, and no side effect is repeated.

use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
    process::Output,
    sync::Arc,
};

use archon::types::{
    CallId, CommandId, OutcomeStatus, PlanRecord, QuestionKind, Record, RecordBody, pending_approvals,
};
use archon_planner::{NodeState, PlanMachine, fold, invariants};

use crate::crash::kill::{Logs, is_full, logs, run_killable, seed};

fn killable(dir: &Path, kind: &str, mode: &str, kill_at: Option<u64>) -> Output {
    run_killable(env!("CARGO_BIN_EXE_killable_plan"), dir, kind, mode, kill_at)
}

/// What side effects there were, in order of their names.
fn sent(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("effects")).unwrap_or_default();
    let mut sent: Vec<_> = text.lines().filter(|line| line.starts_with("send")).map(str::to_owned).collect();
    sent.sort();
    sent
}

/// The calls that have ended, each as often as a record says so.
fn finished(log: &[Arc<Record>]) -> Vec<CallId> {
    let call = |r: &Arc<Record>| match &r.body {
        RecordBody::ToolCallFinished { call, .. } => Some(*call),
        _ => None,
    };
    log.iter().filter_map(call).collect()
}

/// Commands of which a call began after one had succeeded.
fn begun_again(log: &[Arc<Record>]) -> Vec<CommandId> {
    let (mut done, mut again) = (HashSet::new(), Vec::new());
    for record in log {
        match &record.body {
            RecordBody::ToolCallFinished { call, result } if !result.is_error() => {
                _ = done.insert(call.command)
            }
            RecordBody::ToolCallStarted { call, .. } if done.contains(&call.command) => {
                again.push(call.command)
            }
            _ => {}
        }
    }
    again
}

fn starts(log: &[Arc<Record>], of: CallId) -> usize {
    let is_start =
        |r: &&Arc<Record>| matches!(&r.body, RecordBody::ToolCallStarted { call, .. } if *call == of);
    log.iter().filter(is_start).count()
}

/// Everybody has ended, and the plan is in order.
fn assert_over(at: &str, machine: &PlanMachine) {
    use NodeState::{Done, DoneWithout, Dropped, Failed, Skipped, Unreachable};
    for node in machine.nodes() {
        let is_over = matches!(node.state, Done | DoneWithout | Dropped | Failed | Skipped | Unreachable);
        assert!(is_over, "{at}: {} is left {:?}", node.subtask.id, node.state);
    }
    assert_eq!(invariants(&machine.task()), Vec::<String>::new(), "{at}");
}

/// How many calls nobody knows the effect of: of the plan and of its subtasks.
fn in_doubt(after: &Logs) -> usize {
    let is_in_doubt = |r: &&Arc<Record>| match &r.body {
        RecordBody::ToolCallFinished { result, .. } => {
            result.text().contains("the effect of this call is unknown")
        }
        RecordBody::ApprovalRequested { request, .. } => request.kind == QuestionKind::InDoubt,
        _ => false,
    };
    after.values().flatten().filter(is_in_doubt).count()
}

fn check_kill(kind: &str, kill_at: u64, undisturbed: &Logs) {
    let dir = tempfile::tempdir().expect("a directory");
    let at = format!("{kind}, record {kill_at}");
    let killed = killable(dir.path(), kind, "start", Some(kill_at));
    assert!(!killed.status.success(), "{at}: it was not killed");
    let before = logs(dir.path(), kind);
    let resumed = killable(dir.path(), kind, "resume", None);
    let said =
        String::from_utf8_lossy(&resumed.stdout).into_owned() + &String::from_utf8_lossy(&resumed.stderr);
    let victim = &before["victim"];
    if !victim.iter().any(|r| matches!(r.body, RecordBody::MessageAdded { .. })) {
        assert!(
            said.contains("nothing was asked") || said.contains("is not the run of a plan"),
            "{at}: {said}"
        );
        return;
    }
    if matches!(victim.last().map(|r| &r.body), Some(RecordBody::RunFinished(_))) {
        assert!(said.contains("has ended"), "{at}: {said}");
    } else {
        assert!(resumed.status.success(), "{at}: {said}");
    }
    // What may have been done is nobody's but a person's to decide, and until then the plan is open.
    if said.contains(r#""status":"suspended""#) {
        let log = &logs(dir.path(), kind)["victim"];
        let waits = pending_approvals(log);
        assert!(
            !waits.is_empty() && waits.iter().all(|asked| asked.request.kind == QuestionKind::InDoubt),
            "{at}"
        );
        let refused = killable(dir.path(), kind, "refuse", None);
        assert!(refused.status.success(), "{at}: {}", String::from_utf8_lossy(&refused.stderr));
    }
    let after = logs(dir.path(), kind);
    for (run, records) in &after {
        let kept = before.get(run).map_or(&[][..], Vec::as_slice);
        assert_eq!(&records[..kept.len()], kept, "{at}, {run}: rewritten");
        let ended = finished(records);
        assert_eq!(
            ended.iter().collect::<HashSet<_>>().len(),
            ended.len(),
            "{at}, {run}: a call ended twice"
        );
        for call in finished(kept) {
            assert_eq!(
                starts(records, call),
                starts(kept, call),
                "{at}, {run}: {call} was done and began again"
            );
        }
        assert!(matches!(records.last().map(|r| &r.body), Some(RecordBody::RunFinished(_))), "{at}, {run}");
    }
    assert_eq!(begun_again(&after["victim"]), [], "{at}: a subtask that was done began again");
    let machine = fold(&after["victim"]).expect("a plan");
    assert_over(&at, &machine);
    let outcome = machine.ended().expect("it has ended");
    let expected = fold(&undisturbed["victim"]).expect("a plan");
    let answer = &expected.ended().expect("it has ended").last_text().unwrap_or_default();
    assert_eq!(
        (outcome.status, &outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, answer),
        "{at}"
    );
    let (sent, doubts) = (sent(dir.path()), in_doubt(&after));
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), sent.len(), "{at}: repeated: {sent:?}");
    assert!(sent.len() + doubts >= 3 && doubts <= 2, "{at}: {sent:?}, {doubts} in doubt");
    if doubts == 0 {
        assert_eq!(
            after.keys().collect::<Vec<_>>(),
            undisturbed.keys().collect::<Vec<_>>(),
            "{at}: other runs"
        );
        assert_eq!(machine.replans(), 1, "{at}");
    }
}

/// CI takes each `step`th record, from a seeded start.
fn kill_at_every(kind: &str, step: usize) {
    let whole = tempfile::tempdir().expect("a directory");
    let output = killable(whole.path(), kind, "start", None);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let undisturbed = logs(whole.path(), kind);
    let machine = fold(&undisturbed["victim"]).expect("a plan");
    assert_over(kind, &machine);
    assert_eq!(
        (undisturbed.len(), machine.replans()),
        (3, 1),
        "a plan and two subtasks of an agent; another plan"
    );
    assert_eq!(sent(whole.path()), ["send d", "send work on b", "send work on c"]);
    let is_skip =
        |r: &Arc<Record>| matches!(&r.body, RecordBody::Plan(p) if matches!(**p, PlanRecord::Skipped { .. }));
    assert!(undisturbed["victim"].iter().any(is_skip));
    let all = undisturbed.values().map(Vec::len).sum::<usize>() as u64;
    assert!(all > 45, "{all} records");
    let step = if is_full() { 1 } else { step };
    for kill_at in ((seed() as usize % step) as u64..all).step_by(step) {
        check_kill(kind, kill_at, &undisturbed);
    }
}

// spec: PL-25, A-15, S-14
#[test]
fn a_plan_killed_at_any_record_does_no_subtask_again_and_leaves_none_waiting() {
    kill_at_every("jsonl", 5);
}

// spec: PL-25, A-15, S-14
#[test]
fn a_killed_plan_is_the_same_with_sqlite() {
    kill_at_every("sqlite", 9);
}
