//! Shared parts of the tests: a pool with its journal, and a run that calls agents as a loop does.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_assistant::{AgentPool, AgentTool, FieldKind, InMemoryPoolIndex, InputField};
use archon_run::RunLog;
use archon_testkit::{FnAgent, InboxJournal, SeededIds, VirtualClock, answer};
use archon_types::{
    AgentId, Answer, CallId, Clock, CommandId, Context, Delegation, Effect, InboxEntry, Journal, Json, Lease,
    LoopId, OpenMode, PendingApproval, RecordBody, RunConfig, RunId, RunStarted, SessionId, TenantId, Tool,
    ToolContext, ToolError, ToolResult, pending_approvals,
};
use serde_json::json;

/// A pool of waiting agents with its journal, clock and ids.
pub(crate) struct Office {
    pub(crate) clock: VirtualClock,
    pub(crate) journal: InboxJournal,
    pub(crate) pool: AgentPool,
    pub(crate) can_ask: bool,
}

pub(crate) const CALL: CallId = CallId { command: CommandId(0), index: 0 };

impl Office {
    pub(crate) fn new() -> Self {
        Self::reopened(VirtualClock::new(), InboxJournal::default())
    }

    /// Returns the office of another process, with the same logs and an empty index.
    pub(crate) fn reopened(clock: VirtualClock, journal: InboxJournal) -> Self {
        let pool = AgentPool::new(
            Arc::new(InMemoryPoolIndex::default()),
            Arc::new(journal.clone()),
            Arc::new(clock.clone()),
            Arc::new(SeededIds::new(9)),
        );
        Self { clock, journal, pool, can_ask: true }
    }

    pub(crate) fn context(&self, tenant: &str, run: &str) -> Context {
        let (clock, ids) = (Arc::new(self.clock.clone()), Arc::new(SeededIds::new(3)));
        let mut context = Context::new(RunId::new(run), SessionId::new("s"), clock, ids);
        context.tenant = TenantId::new(tenant);
        context.can_ask = self.can_ask;
        context
    }

    /// Calls an agent in a run of a tenant, and leaves the run suspended or ended, as a loop does.
    pub(crate) async fn call(
        &self,
        tenant: &str,
        run: &str,
        tool: &AgentTool,
        arguments: Json,
    ) -> Result<ToolResult, ToolError> {
        let mut context = self.context(tenant, run);
        let by = Delegation::new(
            context.run.clone(),
            CALL,
            Lease::new(1_000, 60_000),
            2,
            Arc::new(self.journal.clone()),
        );
        let child = by.child.clone();
        context.delegation = Some(Arc::new(by));
        let result = tool.call(arguments, &ToolContext::new(context.clone(), "c".into(), tool.name())).await;
        let mut bodies = Vec::new();
        if self.journal.logs().log(run).is_empty() {
            let mut started = RunStarted::new(
                context.run.clone(),
                context.session.clone(),
                AgentId::new("root"),
                LoopId::new("l"),
                RunConfig::default(),
            );
            started.tenant = context.tenant.clone();
            bodies.push(RecordBody::RunStarted(Box::new(started)));
        }
        // A call that is looked at again is started again.
        bodies.push(RecordBody::ToolCallStarted {
            call: CALL,
            attempt: 0,
            effect: Effect::Idempotent,
            child_run: Some(child.clone()),
        });
        match &result {
            Err(ToolError::Suspended(_)) => {
                let below = pending_approvals(&self.journal.logs().log(child.as_str()));
                bodies.extend(below.into_iter().map(|entry| RecordBody::ApprovalRequested {
                    call: CALL,
                    request: Box::new(entry.request.from_below(child.clone(), entry.call)),
                }));
                bodies.push(RecordBody::Suspended { waiting: vec![CALL] });
            }
            _ => bodies.push(RecordBody::ClockRead),
        }
        self.write(run, bodies, &context).await;
        result
    }

    async fn write(&self, run: &str, bodies: Vec<RecordBody>, context: &Context) {
        let mode =
            if self.journal.logs().log(run).is_empty() { OpenMode::Create } else { OpenMode::Existing };
        let open = self.journal.open(&RunId::new(run), mode).await.unwrap();
        let mut log = RunLog::new(open.writer, open.records.len() as u64, context.clone());
        log.append(bodies).await.unwrap();
    }

    /// Returns the open questions in the log of a run.
    pub(crate) fn open(&self, run: &str) -> Vec<PendingApproval> {
        pending_approvals(&self.journal.logs().log(run))
    }

    /// Posts an answer to the only question of a run.
    pub(crate) async fn answer(&self, run: &str, answer: Answer) {
        let entry = self.open(run).remove(0);
        let request = entry.request.answered(answer);
        let letter =
            InboxEntry::new(format!("in-{}", self.clock.now().as_millis()), self.clock.now(), request);
        self.journal.inbox().unwrap().post(entry.asker(), letter).await.unwrap();
        self.clock.advance(Duration::from_millis(1));
    }
}

/// Returns an agent that sends emails, and the list of the sent emails.
pub(crate) fn mailer() -> (AgentTool, Arc<Mutex<Vec<Json>>>) {
    let sent: Arc<Mutex<Vec<Json>>> = Arc::default();
    let seen = sent.clone();
    let agent = FnAgent::new(move |task, context| {
        let fields = archon_assistant::fields_of(&task).unwrap();
        seen.lock().unwrap().push(Json::Object(fields.clone()));
        async move { answer(&context, &format!("Sent to {}", fields["recipient"].as_str().unwrap())) }
    });
    let tool = AgentTool::new("SendEmailAgent", "Writes and sends an email.", agent)
        .field(
            InputField::required("recipient", FieldKind::Text, "Address of the recipient.")
                .with_validator("must contain @", |value| {
                    value.as_str().is_some_and(|text| text.contains('@'))
                }),
        )
        .field(InputField::optional("subject", FieldKind::Text, "Subject line.").with_default("Hello"))
        .field(InputField::optional("copies", FieldKind::Integer, "How many."));
    (tool, sent)
}

pub(crate) fn complete() -> Json {
    json!({ "recipient": "ann@example.com", "copies": 2, "task_instruction": "Be kind." })
}
