//! Drives a call of an agent tool: asks, waits, runs the agent. Each step is appended to the log first.

use std::{sync::Arc, time::Duration};

use archon_run::{Executor, InboxEffect, Machine as _, Recorded, RunDriver, RunLog, cancelled_alone};
use archon_types::{
    AgentId, Answer, ApprovalSettings, Context, Delegation, Effect, Encoded, FailureKind, InboxEntry,
    InboxRequest, Json, Message, OpenMode, Outcome, OutcomeStatus, PromptSource, Record, RecordBody,
    RunConfig, RunError, RunKind, RunStarted, SessionPlace, check_called, is_log_lost, questions_below,
};
use serde_json::Map;

use super::{
    Parts, WORK,
    input::{CallInput, Work},
};

/// Time in ms by which the agent's work ends before the tool's own time limit.
const TO_END_MS: u64 = 5_000;

/// A call of an agent tool, and the delegation from the run that made the call.
#[derive(Clone)]
pub(super) struct Call<'a> {
    pub(super) parts: &'a Arc<Parts>,
    pub(super) by: &'a Delegation,
}

type Run = RunDriver<CallInput, Outcome>;

impl Call<'_> {
    /// Drives the call until it ends or waits for a person. A call that already has a log is resumed.
    pub(super) async fn run(&self, given: Map<String, Json>, context: &Context) -> Outcome {
        let begin = self.begin(given.clone(), context);
        let done: Result<_, RunError> = self.by.attach(begin, self.resume_run(given, context)).await;
        done.unwrap_or_else(|error| {
            let said = format!("{error} ({})", error.advice());
            Outcome::failed(context.run.clone(), FailureKind::Refused, said)
        })
    }

    async fn begin(&self, given: Map<String, Json>, context: &Context) -> Result<Outcome, RunError> {
        let started = self.started(context);
        let first = vec![prompt_of(given, context)];
        let (log, records) = RunLog::begin(&*self.by.journal, started, first, context).await?;
        Ok(RunDriver::new(self.machine(&records, context), log).drive(&mut self.clone()).await?)
    }

    async fn resume_run(&self, given: Map<String, Json>, context: &Context) -> Result<Outcome, RunError> {
        let journal = &*self.by.journal;
        let open = journal.open(&context.run, OpenMode::Existing).await?;
        check_called(journal, &open.records).await?;
        let mut machine = self.machine(&open.records, context);
        let first = match open.is_asked() {
            true => RecordBody::Resumed,
            false => prompt_of(given, context),
        };
        let context = open.context(&cancelled_alone(context));
        let mut log = RunLog::resume(journal, open, context);
        log.step(vec![first], |record| machine.apply(record)).await?;
        Ok(RunDriver::new(machine, log).drive(&mut self.clone()).await?)
    }

    /// Folds the records of the call's log.
    fn machine(&self, records: &[Arc<Record>], context: &Context) -> CallInput {
        let mut machine = CallInput::new(self.parts.clone(), context.run.clone(), context.can_ask);
        records.iter().for_each(|record| machine.apply(record));
        machine
    }

    fn started(&self, context: &Context) -> RunStarted {
        let mut config = RunConfig::default();
        config.limits = self.by.narrow(config.limits, context.depth);
        config.tools = Arc::new(Encoded::new(vec![self.parts.spec.clone()]));
        config.approvals = context.can_ask.then(|| {
            let mut settings = ApprovalSettings::default();
            settings.timeout_ms = self.parts.wait_ms;
            settings
        });
        let (place, agent) = (SessionPlace::new(self.by.origin()), self.parts.spec.name.as_str());
        RunStarted::of_lead(context, &place, AgentId::new(agent), RunKind::AgentCall, config)
    }

    /// Returns the context of the child run. The child run has the same depth as the call's run, which does
    /// not count as a level of child runs, and a shorter time limit.
    fn child(&self, run: &Run) -> Context {
        let by = self.by;
        let mut lease = by.lease;
        if let Some(limit) = self.parts.spec.annotations.timeout_ms {
            lease.duration_ms = lease.duration_ms.min(limit.saturating_sub(TO_END_MS));
        }
        let cancel = run.stop().child_token();
        let mut child = run.context().of_call(WORK, lease, by.max_depth, by.journal.clone(), cancel);
        child.depth = run.context().depth;
        child.with_caller_log(run.reporter())
    }
}

impl Executor<CallInput> for Call<'_> {
    /// Outcome of the agent's work.
    type Done = Outcome;

    const GRACE: Option<Duration> = None;

    async fn start(&mut self, Work { attempt, task }: Work, run: &mut Run) -> Recorded {
        let own = run.context().run.clone();
        if run.context().cancel.is_cancelled() {
            return run.record(vec![ended(Outcome::new(own, OutcomeStatus::Cancelled))]).await;
        }
        let child = self.child(run);
        if run.machine.is_begun() && is_log_lost(&*self.by.journal, &child.run).await? {
            let why = format!(
                "the effect of this call is unknown: the log of its run {} is lost. It was not begun again. Check what it did \
                 before you repeat it",
                child.run
            );
            return run.record(vec![ended(Outcome::failed(own, FailureKind::Refused, why))]).await;
        }
        let child_run = Some(child.run.clone());
        let started =
            RecordBody::ToolCallStarted { call: WORK, attempt, effect: Effect::Idempotent, child_run };
        run.record(vec![started]).await?;
        let (agent, of) = (self.parts.agent.clone(), child.run.clone());
        let panicked = move || Outcome::failed(of, FailureKind::Panicked, "it panicked");
        run.spawn(async move { agent.run(&task, &child).await }, panicked);
        Ok(())
    }

    /// Appends the records of an outcome of the agent's work.
    async fn done(&mut self, outcome: Outcome, run: &mut Run) -> Recorded {
        let name = &self.parts.spec.name;
        if outcome.status == OutcomeStatus::Suspended {
            let (child, said) = (run.context().run.of_call(WORK), outcome.to_question(WORK, name));
            let asked = questions_below(Some(&*self.by.journal), &child, WORK, said).await;
            let asked = asked.into_iter().map(Box::new);
            let asked = asked.map(|request| RecordBody::ApprovalRequested { call: WORK, request });
            return run.record(asked.collect()).await;
        }
        let mut own = Outcome::new(run.context().run.clone(), outcome.status);
        own.set_answer(outcome.last_text().unwrap_or_default());
        own.error.clone_from(&outcome.error);
        own.failure = outcome.failure;
        own.child_spending = outcome.spending();
        if outcome.status == OutcomeStatus::Cancelled {
            return run.record(vec![ended(own)]).await;
        }
        let result = Box::new(outcome.to_result(name));
        run.record(vec![RecordBody::ToolCallFinished { call: WORK, result: result.into() }, ended(own)]).await
    }

    /// Records that the open question has expired, once its time is over.
    async fn before_step(&mut self, run: &mut Run) -> Recorded {
        let now = run.context().clock.now_for_others();
        if run.machine.question().is_some_and(|asked| asked.is_expired(now)) {
            run.record(vec![RecordBody::ApprovalAnswered { call: WORK, answer: Answer::Expired }]).await?;
        }
        Ok(())
    }

    /// Sets the expiry of a question, which the machine cannot know.
    async fn append(&mut self, mut body: RecordBody, run: &mut Run) -> Recorded {
        if let RecordBody::ApprovalRequested { request, .. } = &mut body {
            let now = run.context().clock.now_for_others();
            request.expires_at = request.timeout_ms.map(|wait| now + Duration::from_millis(wait));
        }
        run.record(vec![body]).await
    }

    fn meaning(&mut self, entry: InboxEntry, machine: &CallInput) -> InboxEffect {
        InboxEffect::Record(match entry.request {
            InboxRequest::Cancel { reason } => RecordBody::CancelRequested { reason },
            InboxRequest::Answer { request_id, binding, answer }
                if machine.is_open(&request_id, &binding) =>
            {
                RecordBody::ApprovalAnswered { call: WORK, answer }
            }
            // An answer to a question that is not open, or a message that such a call does not read.
            _ => RecordBody::ClockRead,
        })
    }

    /// Returns nothing, because the outcome of the work already records the cancel.
    fn cancelled(&self) -> Option<RecordBody> {
        None
    }
}

fn prompt_of(given: Map<String, Json>, context: &Context) -> RecordBody {
    let message = Message::user(Json::Object(given).to_string(), context.clock.now()).into();
    RecordBody::MessageAdded { message, source: PromptSource::Prompt }
}

fn ended(outcome: Outcome) -> RecordBody {
    RecordBody::RunFinished(Box::new(outcome))
}
