//! Runs whose process died, and runs with an answer that nobody used or a question that expired: they go on at the start
//! of the server, and while it serves.

use std::{collections::BTreeSet, time::Duration};

use archon::{
    RunError, Runs,
    types::{AnswerRuns as _, JournalError, ResumedRuns, StartRuns as _},
};

use super::own_folder;
use crate::{app::App, failure::Failure};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(30);

/// Looks for such runs again and again, and writes a line for each that cannot go on, once.
pub(super) async fn keep_looking(app: App, runs: Runs) {
    let mut told = BTreeSet::new();
    let mut is_first = true;
    loop {
        let resumed = runs.resume_unfinished(None).await;
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
                app.output.warn(format!("runs whose process died cannot be looked for: {line}"));
            }
        }
    }
}
