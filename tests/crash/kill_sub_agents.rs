//! Kill and resume with sub-agents: whichever run's record was the last one, a caller that is taken up finds
//! the runs that its calls started, and nothing is done twice.

use std::{collections::BTreeSet, path::Path, process::Output, sync::Arc};

use archon::{
    react_loop::replay,
    types::{Record, RecordBody, RunId, ToolResult},
};

use crate::crash::kill::{self, Logs, block_on, is_full, open, run_killable, seed};

fn killable(dir: &Path, kind: &str, mode: &str, kill_at: Option<u64>) -> Output {
    run_killable(env!("CARGO_BIN_EXE_killable_agents"), dir, kind, mode, kill_at)
}

/// All logs. Each has to follow from its inputs.
fn logs(dir: &Path, kind: &str) -> Logs {
    let (logs, journal) = (kill::logs(dir, kind), open(dir, kind));
    for run in logs.keys() {
        let replayed =
            block_on(replay(&*journal, &RunId::new(run.as_str()))).expect("the log can be replayed");
        assert!(replayed.is_identical(), "{run}: {replayed:?}");
    }
    logs
}

/// What a log says, without ids, times and attempts.
fn essence(records: &[Arc<Record>], is_exact: bool) -> Vec<String> {
    let exact = |tokens: u64| if is_exact { tokens.to_string() } else { "some".to_owned() };
    let shown = |call: &archon::types::CallId, result: &ToolResult| {
        format!("{} {:?} {}", call.index, result.status, result.text())
    };
    let mut lines: Vec<String> = records
        .iter()
        .filter_map(|r| match &r.body {
            RecordBody::ModelCallFinished { message, .. } => Some(format!("answer {:?}", message.content)),
            RecordBody::LeaseGranted { call, lease, .. } => {
                Some(format!("{call} granted {}", exact(lease.tokens)))
            }
            RecordBody::ToolCallFinished { call, result } => Some(shown(call, result)),
            RecordBody::ToolCallRefused { call, result } => Some(format!("refused {}", shown(call, result))),
            RecordBody::RunFinished(outcome) => {
                let (own, delegated) = (outcome.usage.total(), exact(outcome.child_spending.tokens));
                Some(format!(
                    "{:?} {} {own} {delegated}",
                    outcome.status,
                    outcome.last_text().unwrap_or_default()
                ))
            }
            _ => None,
        })
        .collect();
    // Calls side by side end in any order.
    lines.sort();
    lines
}

fn effects(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("effects")).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("send")).map(str::to_owned).collect()
}

fn check_kill(kind: &str, kill_at: u64, undisturbed: &Logs) {
    let dir = tempfile::tempdir().expect("a directory");
    let at = format!("{kind}, record {kill_at}");
    assert!(!killable(dir.path(), kind, "start", Some(kill_at)).status.success(), "{at}: it was not killed");
    let before = logs(dir.path(), kind);
    let resumed = killable(dir.path(), kind, "resume", None);
    let stderr = String::from_utf8_lossy(&resumed.stderr);
    let victim = &before["victim"];
    if victim.len() == 1 {
        assert!(stderr.contains("stopped before its prompt was recorded"), "{at}: {stderr}");
        return;
    }
    if !matches!(victim.last().map(|r| &r.body), Some(RecordBody::RunFinished(_))) {
        assert!(resumed.status.success(), "{at}: {stderr}");
    }
    let after = logs(dir.path(), kind);
    assert_eq!(after.keys().collect::<Vec<_>>(), undisturbed.keys().collect::<Vec<_>>(), "{at}: other runs");
    // A question that was lost counts with what was set aside for it, so less is left to lend.
    let is_lost = |r: &Arc<Record>| matches!(r.body, RecordBody::ModelCallLost { .. });
    let is_exact = !after.values().flatten().any(is_lost);
    let mut in_doubt = 0;
    for (run, records) in &after {
        let kept = before.get(run).map_or(0, Vec::len);
        assert_eq!(&records[..kept], &before.get(run).cloned().unwrap_or_default()[..], "{at}: rewritten");
        let (now, then) = (essence(records, is_exact), essence(&undisturbed[run], is_exact));
        assert_eq!(now.len(), then.len(), "{at}, {run}:\n{now:#?}\n{then:#?}");
        let then: BTreeSet<_> = then.into_iter().collect();
        for line in now.iter().filter(|line| !then.contains(*line)) {
            assert!(line.contains("the effect of this call is unknown"), "{at}, {run}: {line}");
            in_doubt += 1;
        }
        let starts = records.iter().filter(|r| matches!(r.body, RecordBody::RunStarted(_))).count();
        assert_eq!(starts, 1, "{at}, {run}: it was repeated");
    }
    let sent = effects(dir.path());
    let once: BTreeSet<_> = sent.iter().collect();
    assert_eq!(sent.len(), once.len(), "{at}: an effect was repeated: {sent:?}");
    assert!(sent.len() + in_doubt >= 4 && in_doubt <= 2, "{at}: {sent:?}, {in_doubt} in doubt");
}

/// CI takes each `step`th record, from a seeded start.
fn kill_at_every(kind: &str, step: usize) {
    let whole = tempfile::tempdir().expect("a directory");
    let output = killable(whole.path(), kind, "start", None);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let undisturbed = logs(whole.path(), kind);
    let runs = ["victim", "victim.0-0", "victim.1-0", "victim.1-1"];
    assert_eq!(undisturbed.keys().map(String::as_str).collect::<Vec<_>>(), runs);
    assert_eq!(effects(whole.path()).len(), 4);
    let all = undisturbed.values().map(Vec::len).sum::<usize>() as u64;
    let step = if is_full() { 1 } else { step };
    for kill_at in ((seed() as usize % step) as u64..all).step_by(step) {
        check_kill(kind, kill_at, &undisturbed);
    }
}

// spec: MA-28, S-14
#[test]
fn kill_at_any_record_of_a_caller_or_its_sub_agents_repeats_neither_a_run_nor_an_effect() {
    kill_at_every("jsonl", 3);
}

// spec: MA-28, S-14
#[test]
fn kill_of_sub_agents_is_the_same_with_sqlite() {
    kill_at_every("sqlite", 8);
}
