//! The driver with a machine that has one task.

use std::{
    future::{pending, ready},
    sync::Arc,
    time::Duration,
};

use archon_types::{
    CallId, CancellationToken, Clock, CommandId, Context, Delegation, Durability, Ids, Inbox, InboxEntry,
    InboxRequest, Journal, Lease, OpenMode, OpenRun, OutcomeStatus, Record, RunFilter, RunHead, RunId,
    RunKind, RunWriter,
};
use futures_util::FutureExt;

use super::*;
use crate::{Reporter, RunLog, reports::Reports};

/// Has one task. Its result is the answer.
#[derive(Default)]
struct One {
    is_started: bool,
    /// The reason of the cancel.
    cancelled: Option<String>,
    result: Option<String>,
    reports: usize,
}

impl Machine for One {
    const KIND: RunKind = RunKind::AgentCall;
    type Task = ();

    fn apply(&mut self, record: &Record) {
        match &record.body {
            RecordBody::ClockRead => self.is_started = true,
            RecordBody::HintAdded { text } => self.result = Some(text.clone()),
            RecordBody::CancelRequested { reason } => self.cancelled = Some(reason.clone()),
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
            None if self.is_stopping() => {
                let mut outcome = ended(OutcomeStatus::Cancelled);
                outcome.error.clone_from(&self.cancelled);
                Next::Done(outcome)
            }
            None if self.is_started => Next::Wait(None),
            None => Next::Do(()),
        }
    }

    fn is_stopping(&self) -> bool {
        self.cancelled.is_some()
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
        run.record(vec![RecordBody::HintAdded { text }]).await
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

fn context() -> Context {
    Context::new("r".into(), "s".into(), Arc::new(Still), Arc::new(Still))
}

/// Drives a run with this log, and returns its outcome. Nothing in it waits for anything outside.
fn outcome(log: RunLog, executor: &mut impl Executor<One, Done = String>) -> Outcome {
    let mut work = pin!(RunDriver::new(One::default(), log).drive(executor));
    let outcome = (0..9).find_map(|_| work.as_mut().now_or_never());
    outcome.expect("nothing to wait for").expect("the log takes everything")
}

/// Drives a run with this task, and returns its outcome.
fn check(task: MakeTask) -> Outcome {
    outcome(RunLog::unstored(context()), &mut Runs(task))
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

/// Starts a task that ends and one that does not, and waits no longer than for the first.
#[derive(Default)]
struct Settles(Vec<String>);

impl Executor<One> for Settles {
    type Done = String;

    const GRACE: Option<Duration> = None;

    async fn start(&mut self, (): (), run: &mut RunDriver<One, String>) -> Recorded {
        run.spawn(ready("ended".to_owned()), || "panicked".to_owned());
        run.spawn(pending(), || "panicked".to_owned());
        let why = run.settle(self, |_, _| Poll::Ready("late")).await?;
        let text = format!("{:?}, {why:?}, is busy: {}", self.0, run.is_busy());
        run.record(vec![RecordBody::HintAdded { text }]).await
    }

    async fn done(&mut self, text: String, _: &mut RunDriver<One, String>) -> Recorded {
        self.0.push(text);
        Ok(())
    }
}

#[test]
fn settle_task_that_is_not_over_is_dropped_with_the_reason() {
    let outcome = outcome(RunLog::unstored(context()), &mut Settles::default());
    assert_eq!(outcome.last_text(), Some("[\"ended\"], Some(\"late\"), is busy: false, 0 reports"));
}

/// A journal whose inbox has a cancel for every run.
struct Cancels;

impl Journal for Cancels {
    fn open<'a>(&'a self, _: &'a RunId, _: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(ready(Ok(OpenRun { records: Vec::new(), writer: Box::new(Self) })))
    }

    fn read<'a>(&'a self, _: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn list<'a>(&'a self, _: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(Self))
    }
}

impl RunWriter for Cancels {
    fn append<'a>(
        &'a mut self,
        _: &'a [Arc<Record>],
        _: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(ready(Ok(())))
    }
}

impl Inbox for Cancels {
    fn post<'a>(&'a self, _: &'a RunId, _: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(ready(Ok(())))
    }

    fn waiting<'a>(&'a self, _: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        let request = InboxRequest::Cancel { reason: "the office closes".to_owned() };
        Box::pin(ready(Ok(vec![InboxEntry::new("in_1", Timestamp::default(), request)])))
    }

    fn remove<'a>(&'a self, _: &'a RunId, _: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(ready(Ok(())))
    }
}

/// Opens the log of a run that has this context and a cancel in its inbox.
fn log_with_cancel(context: Context) -> RunLog {
    let open = Cancels.open(&context.run, OpenMode::Create).now_or_never();
    RunLog::resume(&Cancels, open.expect("a log").expect("a log"), context)
}

/// Waits in `start`, and reads the inbox between two steps only.
struct Waits;

impl Executor<One> for Waits {
    type Done = String;

    const GRACE: Option<Duration> = None;
    const LISTENS: bool = true;

    async fn attach(&mut self, _: &mut RunDriver<One, String>) -> Recorded {
        Ok(())
    }

    async fn start(&mut self, (): (), run: &mut RunDriver<One, String>) -> Recorded {
        run.watch.wait_for(pending::<()>()).await;
        Ok(())
    }

    async fn done(&mut self, _: String, _: &mut RunDriver<One, String>) -> Recorded {
        Ok(())
    }
}

#[test]
fn drive_cancel_in_the_inbox_ends_what_start_awaits() {
    let outcome = outcome(log_with_cancel(context()), &mut Waits);
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
}

#[test]
fn drive_cancelled_run_with_a_cancel_in_the_inbox_has_its_reason() {
    let reason = |log: fn(Context) -> RunLog| {
        let context = context();
        context.cancel.cancel();
        outcome(log(context), &mut Waits).error
    };
    assert_eq!(reason(log_with_cancel).as_deref(), Some("the office closes"));
    assert_eq!(reason(RunLog::unstored).as_deref(), Some("cancelled by the caller"));
}

#[test]
fn called_run_without_a_log_has_its_delegation_and_its_caller_records_no_log() {
    let (call, lease) = (CallId::new(CommandId(0), 0), Lease::new(1, 1));
    let reports = Reports::default();
    let delegation = Delegation::new("caller".into(), call, lease, 1, Arc::new(Cancels));
    let mut context = context();
    context.run = delegation.child.clone();
    context.delegation = Some(Arc::new(delegation.with_caller_log(reports.reporter())));
    let mut log = RunLog::unstored(context);
    assert!(log.context().delegation.is_some());
    assert!(log.append(vec![RecordBody::ClockRead]).now_or_never().is_some(), "it waits for no answer");
    assert!(reports.next().is_none());
}
