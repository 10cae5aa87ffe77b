//! A writer that is stopped for longer than its run may work: others are refused all the while, and it goes on to its
//! end when it is let go.

use std::time::{Duration, Instant};

use archon_testkit::{Chance, cases, first_seed};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{
    faults::{KINDS, Kind, check_effects, run_of, stage},
    setup::Ran,
};

/// A run may work for 600 seconds. Nobody waits in CI, where a stopped writer is let go when others were refused.
fn frozen_for() -> Duration {
    Duration::from_secs(cases(0, 615))
}

/// Stops a run after so many records, has others try to take it up, and lets it go. The number of refusals.
async fn freeze(kind: Kind, records: u64) -> u64 {
    let (server, place) = stage(kind).await;
    // In a group of its own: the system lets a stopped group go when the shell that began it ends.
    let mut child = kind.start(&place).process_group(0).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = 0;
    while seen < records {
        let line = lines.next_line().await.unwrap().expect("a run of more records");
        seen += u64::from(line.contains("\"seq\":"));
    }
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let (since, mut refused) = (Instant::now(), 0);
    let (run, _) = run_of(&place).await.unwrap();
    loop {
        let other: Ran = Kind::resume(&place, &run).output().await.unwrap().into();
        assert!(other.code == Some(1) && other.err.contains("in use by another process"), "{other:?}");
        refused += 1;
        let left = frozen_for().saturating_sub(since.elapsed());
        if left.is_zero() && refused > 1 {
            break;
        }
        tokio::time::sleep(left.min(Duration::from_secs(60))).await;
    }
    kill_process(pid, Signal::CONT).unwrap();
    // What it prints is read, so that it does not wait for a reader.
    while lines.next_line().await.unwrap().is_some() {}
    let ended = child.wait_with_output().await.unwrap();
    assert_eq!(ended.status.code(), Some(0), "{kind:?}: {ended:?}");
    let (_, status) = run_of(&place).await.unwrap();
    assert_eq!(status, "finished", "{kind:?}");
    check_effects(&server, &place, &format!("{kind:?} after {records} records"));
    refused
}

// spec: R-14
#[tokio::test]
async fn run_whose_process_is_stopped_keeps_others_out_and_ends_in_order() {
    if let Some(missing) = archon::tools::sandbox::missing() {
        eprintln!("SKIP: {missing}");
        return;
    }
    let mut chance = Chance(first_seed());
    let all = KINDS.map(|kind| freeze(kind, 3 + chance.below(10)));
    let refused: u64 = futures_util::future::join_all(all).await.into_iter().sum();
    let seconds = frozen_for().as_secs();
    eprintln!(
        "{} writers were stopped for {seconds} s: {refused} others refused, each ended in order",
        KINDS.len()
    );
}
