//! What the tests of agents that wait share: a journal with an inbox, and a run that calls them as a loop does.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_orchestrator::{AgentPool, AgentTool, FieldKind, InputField, MemoryIndex};
use archon_run::RunLog;
use archon_testkit::{MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    AgentId, Answer, BoxFuture, CallId, Clock, CommandId, Context, Delegation, Effect, Inbox, InboxEntry,
    InboxRequest, Journal, JournalError, Json, Lease, LoopId, OpenMode, OpenRun, PendingApproval, Record,
    RecordBody, RunConfig, RunFilter, RunHead, RunId, RunStarted, SessionId, TenantId, Tool, ToolContext,
    ToolError, ToolResult, pending_approvals,
};
use serde_json::json;

use crate::support::{FnAgent, answer};

/// A journal in memory that has an inbox, and knows its runs.
#[derive(Clone, Default)]
pub(crate) struct OfficeJournal {
    pub(crate) logs: MortalJournal,
    inbox: Letters,
    runs: Arc<Mutex<Vec<RunId>>>,
}

#[derive(Clone, Default)]
struct Letters(Arc<Mutex<HashMap<RunId, Vec<InboxEntry>>>>);

impl Inbox for Letters {
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        self.0.lock().unwrap().entry(run.clone()).or_default().push(entry);
        Box::pin(async { Ok(()) })
    }

    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        let waiting = self.0.lock().unwrap().get(run).cloned().unwrap_or_default();
        Box::pin(async { Ok(waiting) })
    }

    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.0.lock().unwrap().entry(run.clone()).or_default().retain(|entry| !ids.contains(&entry.id));
        Box::pin(async { Ok(()) })
    }
}

impl OfficeJournal {
    /// Over logs that are there.
    pub(crate) fn over(logs: &MortalJournal) -> Self {
        Self { logs: logs.clone(), ..Self::default() }
    }

    /// Leaves something for a run.
    pub(crate) fn post(&self, run: &str, id: &str, request: InboxRequest) {
        let letter = InboxEntry::new(id, archon_types::Timestamp::from_millis(0), request);
        self.inbox.0.lock().unwrap().entry(RunId::new(run)).or_default().push(letter);
    }

    /// What is left for a run.
    pub(crate) fn posted(&self, run: &str) -> Vec<InboxEntry> {
        self.inbox.0.lock().unwrap().get(&RunId::new(run)).cloned().unwrap_or_default()
    }
}

impl Journal for OfficeJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        if mode == OpenMode::Create {
            self.runs.lock().unwrap().push(run.clone());
        }
        self.logs.open(run, mode)
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.logs.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        let runs = self.runs.lock().unwrap().clone();
        let head = |run: RunId| RunHead::of(run.clone(), &self.logs.log(run.as_str()));
        let heads = runs.into_iter().rev().map(head).collect();
        Box::pin(async { Ok(filter.page(heads)) })
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(self.inbox.clone()))
    }
}

/// A place where agents wait.
pub(crate) struct Office {
    pub(crate) clock: VirtualClock,
    pub(crate) journal: OfficeJournal,
    pub(crate) pool: AgentPool,
    pub(crate) can_ask: bool,
}

pub(crate) const CALL: CallId = CallId { command: CommandId(0), index: 0 };

impl Office {
    pub(crate) fn new() -> Self {
        Self::reopened(VirtualClock::new(), OfficeJournal::default())
    }

    /// The same place in another process: the logs are there, the index is empty.
    pub(crate) fn reopened(clock: VirtualClock, journal: OfficeJournal) -> Self {
        let pool = AgentPool::new(
            Arc::new(MemoryIndex::default()),
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

    /// Calls an agent in a run of a tenant, and leaves the run as a loop would: suspended, or ended.
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
        if self.journal.logs.log(run).is_empty() {
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
        bodies.push(RecordBody::ToolStarted {
            call: CALL,
            attempt: 0,
            effect: Effect::Idempotent,
            child_run: Some(child.clone()),
        });
        match &result {
            Err(ToolError::Suspended(_)) => {
                let below = pending_approvals(&self.journal.logs.log(child.as_str()));
                bodies.extend(below.into_iter().map(|entry| RecordBody::ToolAsked {
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
        let mode = if self.journal.logs.log(run).is_empty() { OpenMode::Create } else { OpenMode::Existing };
        let open = self.journal.open(&RunId::new(run), mode).await.unwrap();
        let mut log = RunLog::new(open.writer, open.records.len() as u64, context.clone());
        log.append(bodies).await.unwrap();
    }

    /// What a run waits for, by its log.
    pub(crate) fn open(&self, run: &str) -> Vec<PendingApproval> {
        pending_approvals(&self.journal.logs.log(run))
    }

    /// Leaves an answer for the only thing that a run waits for.
    pub(crate) async fn answer(&self, run: &str, answer: Answer) {
        let entry = self.open(run).remove(0);
        let request = entry.request.answered(answer);
        let letter =
            InboxEntry::new(format!("in-{}", self.clock.now().as_millis()), self.clock.now(), request);
        self.journal.inbox.post(entry.asker(), letter).await.unwrap();
        self.clock.advance(Duration::from_millis(1));
    }
}

/// An agent that sends emails, and what it sent.
pub(crate) fn mailer() -> (AgentTool, Arc<Mutex<Vec<Json>>>) {
    let sent: Arc<Mutex<Vec<Json>>> = Arc::default();
    let seen = sent.clone();
    let agent = FnAgent::new(move |task, context| {
        let fields = archon_orchestrator::fields_of(&task).unwrap();
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
