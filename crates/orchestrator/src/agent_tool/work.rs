//! Drives a call of an agent tool: asks, waits, runs the agent, and appends each step to the log first.

use std::{future::poll_fn, sync::Arc, task::Poll};

use archon_run::{Heard, Mailbox, Report, Reports, cancelled_alone};
use archon_types::{
    AgentId, ApprovalSettings, BoxFuture, Context, Delegation, Effect, Encoded, FailureKind, InboxEntry,
    InboxRequest, JournalError, Json, LogAppender, Message, OpenMode, Outcome, OutcomeStatus, PromptSource,
    RecordBody, RunConfig, RunId, RunKind, RunStarted, SessionPlace, check_called, is_lost, questions_below,
};
use futures_util::FutureExt;
use serde_json::Map;

use super::{
    Parts, WORK,
    form::{Form, Next},
};
use crate::TeamError;

/// Time in ms between the end of the agent's work and the tool's own time limit.
const TO_END_MS: u64 = 5_000;

impl Parts {
    /// Works on a call until it ends or is suspended. A call whose run exists is resumed.
    pub(super) async fn run(&self, given: Map<String, Json>, by: &Delegation, context: &Context) -> Outcome {
        let begin = self.begin(given.clone(), by, context);
        let done: Result<_, TeamError> = by.attach(begin, self.take_up(given, by, context)).await;
        done.unwrap_or_else(|error| {
            let said = format!("{error} ({})", error.advice());
            Outcome::failed(context.run.clone(), FailureKind::Refused, said)
        })
    }

    async fn begin(
        &self,
        given: Map<String, Json>,
        by: &Delegation,
        context: &Context,
    ) -> Result<Outcome, TeamError> {
        let context = &cancelled_alone(context);
        let mailbox = Mailbox::of(by.journal.inbox(), context, &[]);
        let started = self.started(by, context);
        let first = vec![asked(given, context)];
        let (log, records) = LogAppender::begin(&*by.journal, started, first, context).await?;
        let mut form = Form::new(self, context.run.clone());
        records.iter().for_each(|record| form.apply(record));
        Ok(self.drive(form, log, mailbox, by).await?)
    }

    async fn take_up(
        &self,
        given: Map<String, Json>,
        by: &Delegation,
        context: &Context,
    ) -> Result<Outcome, TeamError> {
        let open = by.journal.open(&context.run, OpenMode::Existing).await?;
        check_called(&*by.journal, &open.records).await?;
        let mut form = Form::new(self, context.run.clone());
        open.records.iter().for_each(|record| form.apply(record));
        let first = match open.is_asked() {
            true => RecordBody::Resumed,
            false => asked(given, context),
        };
        let context = open.context(&cancelled_alone(context));
        let mailbox = Mailbox::of(by.journal.inbox(), &context, &open.records);
        let mut log = open.log(context);
        log.step(vec![first], |record| form.apply(record)).await?;
        hear(&mut form, &mut log, mailbox.as_deref()).await?;
        Ok(self.drive(form, log, mailbox, by).await?)
    }

    fn started(&self, by: &Delegation, context: &Context) -> RunStarted {
        let mut config = RunConfig::default();
        config.limits = by.narrow(config.limits, context.depth);
        config.tools = Arc::new(Encoded::new(vec![self.spec.clone()]));
        config.approvals = context.can_ask.then(|| {
            let mut settings = ApprovalSettings::default();
            settings.timeout_ms = self.wait_ms;
            settings
        });
        RunStarted::of_lead(
            context,
            &SessionPlace::new(by.origin()),
            AgentId::new(self.spec.name.as_str()),
            RunKind::AgentCall,
            config,
        )
    }

    async fn drive(
        &self,
        mut form: Form<'_>,
        mut log: LogAppender,
        mailbox: Option<Arc<Mailbox>>,
        by: &Delegation,
    ) -> Result<Outcome, JournalError> {
        let context = log.context().clone();
        loop {
            let bodies = match form.next(context.clock.now_for_others(), context.can_ask) {
                Next::Done(outcome) => return Ok(outcome),
                Next::Suspend => return Ok(Outcome::new(context.run.clone(), OutcomeStatus::Suspended)),
                Next::Append(body) => vec![body],
                Next::Work { .. } if context.cancel.is_cancelled() => {
                    vec![ended(Outcome::new(context.run.clone(), OutcomeStatus::Cancelled))]
                }
                Next::Work { attempt, task } => {
                    let reports = Reports::default();
                    let child = self.child(by, &context).with_caller_log(reports.reporter());
                    if form.is_begun() && is_lost(&*by.journal, &child.run).await? {
                        let why = lost(&child.run);
                        let outcome = ended(Outcome::failed(context.run.clone(), FailureKind::Refused, why));
                        log.step(vec![outcome], |record| form.apply(record)).await?;
                        continue;
                    }
                    let effect = Effect::Idempotent;
                    let child_run = Some(child.run.clone());
                    let started = RecordBody::ToolStarted { call: WORK, attempt, effect, child_run };
                    log.step(vec![started], |record| form.apply(record)).await?;
                    let work = self.agent.run(&task, &child);
                    let outcome = beside(work, &reports, (&mut form, &mut log), mailbox.as_deref()).await?;
                    self.worked(&outcome, &child, by, &context).await
                }
            };
            log.step(bodies, |record| form.apply(record)).await?;
        }
    }

    /// Makes the context of the child run. It is no deeper than the call, since the call itself costs nothing.
    /// The work ends by its own limit before the call meets the tool's time limit.
    fn child(&self, by: &Delegation, context: &Context) -> Context {
        let mut lease = by.lease;
        if let Some(limit) = self.spec.annotations.timeout_ms {
            lease.duration_ms = lease.duration_ms.min(limit.saturating_sub(TO_END_MS));
        }
        let cancel = context.cancel.child_token();
        let mut child = context.of_call(WORK, lease, by.max_depth, by.journal.clone(), cancel);
        child.depth = context.depth;
        child
    }

    /// Returns the records of an outcome of the agent's work.
    async fn worked(
        &self,
        outcome: &Outcome,
        child: &Context,
        by: &Delegation,
        context: &Context,
    ) -> Vec<RecordBody> {
        if outcome.status == OutcomeStatus::Suspended {
            let said = outcome.to_question(WORK, &self.spec.name);
            let asked = questions_below(Some(&*by.journal), &child.run, WORK, said).await;
            let asked = asked.into_iter().map(Box::new);
            return asked.map(|request| RecordBody::ToolAsked { call: WORK, request }).collect();
        }
        let mut own = Outcome::new(context.run.clone(), outcome.status);
        own.set_answer(outcome.said().unwrap_or_default());
        own.error.clone_from(&outcome.error);
        own.failure = outcome.failure;
        own.delegated = outcome.spending();
        if outcome.status == OutcomeStatus::Cancelled {
            return vec![ended(own)];
        }
        let result = Box::new(outcome.to_result(&self.spec.name));
        vec![RecordBody::ToolFinished { call: WORK, result: result.into() }, ended(own)]
    }
}

/// Moves the inbox of the run into its log.
async fn hear(
    form: &mut Form<'_>,
    log: &mut LogAppender,
    mailbox: Option<&Mailbox>,
) -> Result<(), JournalError> {
    let Some(mailbox) = mailbox else { return Ok(()) };
    mailbox.look().await;
    while let Some(bodies) = mailbox.take(|entry| meaning(form, entry)) {
        log.step(bodies, |record| form.apply(record)).await?;
    }
    mailbox.clear().await;
    Ok(())
}

/// Returns the effect of a message on a call.
fn meaning(form: &Form<'_>, entry: InboxEntry) -> Heard {
    Heard::Record(match entry.request {
        InboxRequest::Cancel { reason } => RecordBody::CancelRequested { reason },
        InboxRequest::Answer { request_id, binding, answer } if form.is_open(&request_id, &binding) => {
            RecordBody::ToolAnswered { call: WORK, answer }
        }
        // An answer to a question that is not open, or a message that a call of an agent tool does not read.
        _ => RecordBody::ClockRead,
    })
}

/// Waits for the agent's work and records that its run has a log. A cancel in the inbox stops it.
async fn beside(
    mut work: BoxFuture<'_, Outcome>,
    reports: &Reports,
    (form, log): (&mut Form<'_>, &mut LogAppender),
    mailbox: Option<&Mailbox>,
) -> Result<Outcome, JournalError> {
    loop {
        // Subscribes before it reads the inbox, so that no message is missed.
        let mut posted = mailbox.map(Mailbox::changed);
        hear(form, log, mailbox).await?;
        let woken = poll_fn(|task| {
            if let Poll::Ready(outcome) = work.poll_unpin(task) {
                return Poll::Ready(Woken::Done(outcome));
            }
            if let Poll::Ready(report) = reports.poll(task) {
                return Poll::Ready(Woken::Reported(report));
            }
            match posted.as_mut().map(|posted| posted.poll_unpin(task)) {
                Some(Poll::Ready(())) => Poll::Ready(Woken::Spoken),
                _ => Poll::Pending,
            }
        });
        match woken.await {
            Woken::Done(outcome) => return Ok(outcome),
            Woken::Reported(report) => {
                if !form.is_begun() {
                    log.step(vec![report.record.clone()], |record| form.apply(record)).await?;
                }
                report.logged();
            }
            Woken::Spoken => {}
        }
    }
}

/// An event while the agent works.
enum Woken {
    /// The work has ended.
    Done(Outcome),
    /// The child run has a log.
    Reported(Report),
    /// The inbox may have a message.
    Spoken,
}

/// The result of a call in doubt, whose child run's log is lost.
fn lost(child: &RunId) -> String {
    format!(
        "the effect of this call is unknown: the log of its run {child} is lost. It was not begun again. Check what it did \
         before you repeat it"
    )
}

fn asked(given: Map<String, Json>, context: &Context) -> RecordBody {
    let message = Message::user(Json::Object(given).to_string(), context.clock.now()).into();
    RecordBody::Prompted { message, source: PromptSource::Prompt }
}

fn ended(outcome: Outcome) -> RecordBody {
    RecordBody::RunFinished(Box::new(outcome))
}
