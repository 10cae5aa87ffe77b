//! The driver with a machine that has one task.

use std::{future::pending, sync::Arc, time::Duration};

use archon_types::{Clock, Ids, Record, RunKind};
use futures_util::FutureExt;

use super::*;
use crate::Reporter;

/// Has one task. Its result is the answer.
#[derive(Default)]
struct One {
    is_started: bool,
    is_cancelled: bool,
    result: Option<String>,
    reports: usize,
}

impl Machine for One {
    const KIND: RunKind = RunKind::AgentCall;
    type Task = ();

    fn apply(&mut self, record: &Record) {
        match &record.body {
            RecordBody::ClockRead => self.is_started = true,
            RecordBody::Noted { text } => self.result = Some(text.clone()),
            RecordBody::CancelRequested { .. } => self.is_cancelled = true,
            RecordBody::Resumed => self.reports += 1,
            _ => {}
        }
    }

    fn next(&self) -> Next<()> {
        let ended = |status| Outcome::new("r".into(), status);
        match &self.result {
            Some(text) => {
                let mut outcome = ended(OutcomeStatus::Finished);
                outcome.set_answer(format!("{text}, {} reports", self.reports));
                Next::Done(outcome)
            }
            None if self.is_cancelled => Next::Done(ended(OutcomeStatus::Cancelled)),
            None if self.is_started => Next::Wait(None),
            None => Next::Do(()),
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_cancelled
    }
}

/// Makes the task of a run.
type MakeTask = fn(CancellationToken, Arc<Reporter>) -> BoxFuture<'static, String>;

struct Runs(MakeTask);

impl Executor<One> for Runs {
    type Done = String;

    const GRACE: Option<Duration> = Some(Duration::ZERO);

    async fn start(&mut self, (): (), run: &mut RunDriver<One, String>) -> Recorded {
        run.record(vec![RecordBody::ClockRead]).await?;
        let task = (self.0)(run.context().cancel.clone(), run.reporter());
        run.spawn(task, || "panicked".to_owned());
        Ok(())
    }

    async fn done(&mut self, text: String, run: &mut RunDriver<One, String>) -> Recorded {
        run.record(vec![RecordBody::Noted { text }]).await
    }
}

/// A clock that stands still. Waits end at once.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn sleep_until(&self, _: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Ids for Still {
    fn fresh(&self, kind: &str) -> String {
        kind.to_owned()
    }
}

/// Drives a run with this task, and returns its outcome. Nothing in it waits for anything outside.
fn check(task: MakeTask) -> Outcome {
    let context = Context::new("r".into(), "s".into(), Arc::new(Still), Arc::new(Still));
    let driver = RunDriver::new(One::default(), RunLog::not_kept(context));
    let outcome = driver.drive(&mut Runs(task)).now_or_never();
    outcome.expect("nothing to wait for").expect("the log takes everything")
}

#[test]
fn drive_task_that_panics_has_the_result_for_panics() {
    let outcome = check(|_, _| Box::pin(async { panic!("on purpose") }));
    assert_eq!(outcome.last_text(), Some("panicked, 0 reports"));
}

#[test]
fn drive_cancelled_run_drops_a_task_that_does_not_end() {
    let outcome = check(|cancel, _| {
        Box::pin(async move {
            cancel.cancel();
            pending().await
        })
    });
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
}

#[test]
fn drive_report_of_a_task_is_in_the_log_before_the_task_goes_on() {
    let outcome = check(|_, reporter| {
        Box::pin(async move { format!("logged: {}", reporter.report(RecordBody::Resumed).await) })
    });
    assert_eq!(outcome.last_text(), Some("logged: true, 1 reports"));
}
