//! Runs whose process died, and runs with an answer that nobody used or a question that expired: they go on at the start
//! of the server, and while it serves.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use archon::{
    RunError, Runs,
    types::{
        AnswerRuns as _, JournalError, MoreLimits, ResumedRuns, RunFilter, RunId, RunStatus, StartRuns as _,
    },
};
use tokio::time::Instant;

use super::own_folder;
use crate::{app::App, failure::Failure};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(30);
/// The maximum pause before a run that stopped again is taken up.
const LONGEST: Duration = Duration::from_secs(3600);
/// The number of times after which a person is told.
const TOLD_AT: u32 = 3;

/// Looks for such runs again and again, and writes a line for each that cannot go on, once.
pub(super) async fn keep_looking(app: App, runs: Runs) {
    let (mut taken, mut told) = (BTreeMap::new(), BTreeSet::new());
    let mut is_first = true;
    loop {
        let resumed = resume_interrupted(&app, &runs, &mut taken).await;
        if let (Ok(resumed), true) = (&resumed, is_first) {
            let count = resumed.started().count();
            app.note_if(count > 0, format!("runs whose process died, and that go on: {count}"));
        }
        is_first = false;
        report(&app, resumed, &mut told);
        report(&app, runs.sweep().await, &mut told);
        tokio::time::sleep(PAUSE).await;
    }
}

/// A run that was taken up.
#[derive(Default)]
struct Taken {
    times: u32,
    next: Option<Instant>,
}

/// Resumes the runs whose process died. A run that stops each time, perhaps after a model call that costs money, is
/// taken up at ever longer pauses.
async fn resume_interrupted(
    app: &App,
    runs: &Runs,
    taken: &mut BTreeMap<RunId, Taken>,
) -> Result<ResumedRuns, RunError> {
    let interrupted = RunFilter::all().status([RunStatus::Interrupted]).top_level();
    let mut resumed = Vec::new();
    for head in runs.list(&interrupted).await? {
        let (run, now) = (head.run_id, Instant::now());
        let before = taken.entry(run.clone()).or_default();
        if before.next.is_some_and(|next| now < next) {
            continue;
        }
        let started = runs.resume(&run, &MoreLimits::default()).await;
        before.times = before.times.saturating_add(1);
        before.next = Some(now + pause_after(before.times));
        if started.is_ok() && before.times == TOLD_AT {
            app.output.warn(format!(
                "{run} stopped again and goes on for the third time, and then at longer pauses: \
                 `archon runs show {run}` shows it, `archon runs cancel {run}` ends it"
            ));
        }
        resumed.push((run, started));
    }
    Ok(resumed.into_iter().collect())
}

/// Returns the pause after a run was taken up this number of times.
fn pause_after(times: u32) -> Duration {
    PAUSE.saturating_mul(1 << times.saturating_sub(1).min(16)).min(LONGEST)
}

fn report(app: &App, resumed: Result<ResumedRuns, RunError>, told: &mut BTreeSet<String>) {
    match resumed {
        Ok(resumed) => {
            for (run, error) in resumed.failures() {
                // Another process works on it by now, or will: `archon resume` in its folder.
                let is_elsewhere = matches!(error, RunError::Journal(JournalError::Locked { .. }))
                    || own_folder::is_elsewhere(error);
                if !is_elsewhere && told.insert(run.to_string()) {
                    app.output.warn(format!("{run} cannot go on: {error}; {}", error.advice()));
                }
            }
        }
        Err(error) => {
            let line = Failure::from(error).line();
            if told.insert(line.clone()) {
                app.output.warn(format!("cannot look for runs whose process died: {line}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_doubles_with_each_time_up_to_an_hour() {
        let seconds = |times| pause_after(times).as_secs();
        assert_eq!([1, 2, 3, 7, 8, u32::MAX].map(seconds), [30, 60, 120, 1920, 3600, 3600]);
    }
}
