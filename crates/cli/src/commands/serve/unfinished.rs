//! Unfinished runs: runs whose process died, and runs with an unused answer or an expired question. The server resumes
//! them when it starts and while it serves.

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

use crate::{app::App, failure::Failure};

/// The pause between two looks for unfinished runs.
const PAUSE: Duration = Duration::from_secs(30);
/// The maximum pause before a run that stopped again is resumed.
const LONGEST: Duration = Duration::from_secs(3600);
/// The number of resumptions after which a warning says that the run stops again and again.
const TOLD_AT: u32 = 3;

/// Looks for unfinished runs again and again, and resumes them. Prints one line about each run that cannot go on.
pub(super) async fn keep_looking(app: App, runs: Runs) {
    let mut seen = Seen::default();
    let mut is_first = true;
    loop {
        let resumed = resume_interrupted(&app, &runs, &mut seen).await;
        if let (Ok(resumed), true) = (&resumed, is_first) {
            let count = resumed.started().count();
            app.note_if(count > 0, format!("runs whose process died, and that go on: {count}"));
        }
        is_first = false;
        for line in seen.new_lines([resumed, runs.sweep().await]) {
            app.output.warn_again(line);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The results of the looks so far, for runs that have not ended.
#[derive(Default)]
struct Seen {
    taken: BTreeMap<RunId, Taken>,
    /// The runs that cannot go on and about which a line was printed.
    told: BTreeSet<RunId>,
    /// The errors of the last look.
    errors: BTreeSet<String>,
}

/// A run that was resumed.
#[derive(Default)]
struct Taken {
    times: u32,
    next: Option<Instant>,
}

impl Seen {
    /// Forgets all runs that are not in `unfinished`.
    fn retain(&mut self, unfinished: &BTreeSet<RunId>) {
        self.taken.retain(|run, _| unfinished.contains(run));
        self.told.retain(|run| unfinished.contains(run));
    }

    /// Returns the lines about a look that were not printed before.
    fn new_lines(&mut self, look: [Result<ResumedRuns, RunError>; 2]) -> Vec<String> {
        let (mut lines, mut errors) = (Vec::new(), BTreeSet::new());
        for resumed in look {
            match resumed {
                Ok(resumed) => lines.extend(resumed.failures().filter_map(|failure| self.line_of(failure))),
                Err(error) => drop(errors.insert(Failure::from(error).line())),
            }
        }
        let lines_of_errors = errors.difference(&self.errors);
        lines.extend(
            lines_of_errors.map(|line| format!("runs whose process died cannot be looked for: {line}")),
        );
        self.errors = errors;
        lines
    }

    /// Returns the line about a run that cannot go on; `None` if it was printed before, or if another process resumes
    /// the run.
    fn line_of(&mut self, (run, error): (&RunId, &RunError)) -> Option<String> {
        // Another process works on it by now, or will: `archon resume` in its folder.
        let is_elsewhere =
            matches!(error, RunError::Journal(JournalError::Locked { .. }) | RunError::OtherFolder { .. });
        let is_new = !is_elsewhere && self.told.insert(run.clone());
        is_new.then(|| format!("{run} cannot go on: {error}; {}", error.advice()))
    }
}

/// Resumes the runs whose process died. A run that stops each time, perhaps after a model call that costs money, is
/// resumed at ever longer pauses.
async fn resume_interrupted(app: &App, runs: &Runs, seen: &mut Seen) -> Result<ResumedRuns, RunError> {
    // A run at work may stop again, and one that waits may have an answer that cannot be used.
    let unfinished = [RunStatus::Interrupted, RunStatus::Running, RunStatus::Suspended];
    let heads = runs.list(&RunFilter::all().status(unfinished).top_level()).await?;
    seen.retain(&heads.iter().map(|head| head.run_id.clone()).collect());
    let mut resumed = Vec::new();
    for head in heads.into_iter().filter(|head| head.status == RunStatus::Interrupted) {
        let (run, now) = (head.run_id, Instant::now());
        let before = seen.taken.entry(run.clone()).or_default();
        if before.next.is_some_and(|next| now < next) {
            continue;
        }
        let started = runs.resume(&run, &MoreLimits::default()).await;
        before.times = before.times.saturating_add(1);
        before.next = Some(now + pause_after(before.times));
        if started.is_ok() && before.times == TOLD_AT {
            app.output.warn_again(format!(
                "{run} stopped again and goes on for the third time, and then at longer pauses: \
                 `archon runs show {run}` shows it, `archon runs cancel {run}` ends it"
            ));
        }
        resumed.push((run, started));
    }
    Ok(resumed.into_iter().collect())
}

/// Returns the pause after a run was resumed this number of times.
fn pause_after(times: u32) -> Duration {
    PAUSE.saturating_mul(1 << times.saturating_sub(1).min(16)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_doubles_with_each_time_up_to_an_hour() {
        let seconds = |times| pause_after(times).as_secs();
        assert_eq!([1, 2, 3, 7, 8, u32::MAX].map(seconds), [30, 60, 120, 1920, 3600, 3600]);
    }

    #[test]
    fn new_lines_name_a_run_once_until_it_has_ended_and_an_error_once_while_it_lasts() {
        let run = RunId::new("run_1");
        let lost = || -> ResumedRuns {
            [(run.clone(), Err(RunError::Lost { run: run.clone() }))].into_iter().collect()
        };
        let mut seen = Seen::default();
        assert_eq!(seen.new_lines([Ok(lost()), Ok(lost())]).len(), 1);
        seen.retain(&BTreeSet::from([run.clone()]));
        assert_eq!(seen.new_lines([Ok(lost()), Err(RunError::EmptyPrompt)]).len(), 1);
        assert_eq!(seen.new_lines([Err(RunError::EmptyPrompt), Ok(lost())]).len(), 0);
        assert_eq!(seen.new_lines([Ok(lost()), Ok(lost())]).len(), 0);
        seen.retain(&BTreeSet::new());
        assert_eq!(seen.new_lines([Ok(lost()), Err(RunError::EmptyPrompt)]).len(), 2);
    }
}
