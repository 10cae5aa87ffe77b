//! A minimal loop for tests of its surroundings: a script replaces the model, the calls of a turn run
//! concurrently, and records and waits are those of a loop. The real loop is tested in its own crate.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use archon_assistant::{Conversations, NextTurn};
use archon_run::RunLog;
use archon_types::{
    AgentId, BoxFuture, CallId, CommandId, Delegation, Effect, Journal, Json, Lease, LoopId, OpenMode,
    Outcome, OutcomeStatus, RecordBody, Reply, RunConfig, RunError, RunId, RunStarted, TenantId, Tool,
    ToolContext, ToolError, ToolResult, pending_approvals,
};
use futures_util::future::join_all;

use crate::office::Office;

/// The next step of the model.
pub(crate) enum Act {
    Call(Vec<(&'static str, Json)>),
    Say(String),
}

type Script = dyn Fn(usize, &NextTurn, &[ToolResult]) -> Act + Send + Sync;

pub(crate) struct MiniLoop {
    office: Arc<Office>,
    tools: HashMap<String, Arc<dyn Tool>>,
    script: Box<Script>,
    runs: Mutex<HashMap<RunId, Run>>,
    pub(crate) turns: Mutex<Vec<NextTurn>>,
}

#[derive(Clone)]
struct Run {
    turn: NextTurn,
    step: u32,
    calls: Vec<(CallId, &'static str, Json)>,
    results: Vec<ToolResult>,
}

impl MiniLoop {
    /// Creates a loop. `script` gets the number of the model call in the run, the initial input, and all
    /// results so far.
    pub(crate) fn new(
        office: &Arc<Office>,
        tools: Vec<Arc<dyn Tool>>,
        script: impl Fn(usize, &NextTurn, &[ToolResult]) -> Act + Send + Sync + 'static,
    ) -> Arc<Self> {
        let tools = tools.into_iter().map(|tool| (tool.spec().name.clone(), tool)).collect();
        Arc::new(Self {
            office: office.clone(),
            tools,
            script: Box::new(script),
            runs: Mutex::default(),
            turns: Mutex::default(),
        })
    }

    async fn drive(&self, id: &RunId) -> Outcome {
        loop {
            let mut run = self.runs.lock().unwrap()[id].clone();
            if run.calls.is_empty() {
                match (self.script)(run.step as usize, &run.turn, &run.results) {
                    Act::Say(text) => {
                        let mut outcome = Outcome::new(id.clone(), OutcomeStatus::Finished);
                        outcome.set_answer(text);
                        self.write(id, vec![RecordBody::RunFinished(Box::new(outcome.clone()))], &run).await;
                        return outcome;
                    }
                    Act::Call(calls) => {
                        let place = |index| CallId { command: CommandId(u64::from(run.step)), index };
                        let calls = (0..).zip(calls);
                        run.calls = calls.map(|(n, (tool, arguments))| (place(n), tool, arguments)).collect();
                        run.step += 1;
                    }
                }
            }
            let done = join_all(run.calls.iter().map(|call| self.call(id, &run.turn, call))).await;
            let mut bodies = Vec::new();
            let mut open = Vec::new();
            for (call, result) in std::mem::take(&mut run.calls).into_iter().zip(done) {
                let started = RecordBody::ToolCallStarted {
                    call: call.0,
                    attempt: 0,
                    effect: Effect::Idempotent,
                    child_run: None,
                };
                bodies.push(started);
                match result {
                    Err(ToolError::Suspended(_)) => {
                        let child = id.of_call(call.0);
                        let below = pending_approvals(&self.office.journal.logs().log(child.as_str()));
                        bodies.extend(below.into_iter().map(|entry| RecordBody::ApprovalRequested {
                            call: call.0,
                            request: Box::new(entry.request.from_below(child.clone(), entry.call)),
                        }));
                        open.push(call);
                    }
                    result => {
                        let result = result.unwrap_or_else(ToolResult::from);
                        run.results.push(result.clone());
                        bodies.push(RecordBody::ToolCallFinished { call: call.0, result: Arc::new(result) });
                    }
                }
            }
            if !open.is_empty() {
                bodies.push(RecordBody::Suspended { waiting: open.iter().map(|call| call.0).collect() });
            }
            self.write(id, bodies, &run).await;
            let waits = !open.is_empty();
            run.calls = open;
            self.runs.lock().unwrap().insert(id.clone(), run);
            if waits {
                return Outcome::new(id.clone(), OutcomeStatus::Suspended);
            }
        }
    }

    async fn call(
        &self,
        run: &RunId,
        turn: &NextTurn,
        (id, tool, arguments): &(CallId, &'static str, Json),
    ) -> Result<ToolResult, ToolError> {
        let mut context = self.office.context(turn.tenant.as_str(), run.as_str());
        let journal = Arc::new(self.office.journal.clone());
        context.delegation =
            Some(Arc::new(Delegation::new(run.clone(), *id, Lease::new(1_000, 60_000), 2, journal)));
        self.tools[*tool].call(arguments.clone(), &ToolContext::new(context, "c".into(), *tool)).await
    }

    async fn write(&self, id: &RunId, mut bodies: Vec<RecordBody>, run: &Run) {
        let is_new = self.office.journal.logs().log(id.as_str()).is_empty();
        let context = self.office.context(run.turn.tenant.as_str(), id.as_str());
        if is_new {
            let config = RunConfig::default();
            let mut started = RunStarted::new(
                id.clone(),
                run.turn.session.clone(),
                AgentId::new("a"),
                LoopId::new("l"),
                config,
            );
            started.tenant = run.turn.tenant.clone();
            bodies.insert(0, RecordBody::RunStarted(Box::new(started)));
        }
        let mode = if is_new { OpenMode::Create } else { OpenMode::Existing };
        let open = self.office.journal.open(id, mode).await.unwrap();
        let mut log = RunLog::new(open.writer, open.records.len() as u64, context);
        log.append(bodies).await.unwrap();
    }
}

impl Conversations for MiniLoop {
    fn begin<'a>(&'a self, turn: &'a NextTurn) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(async move {
            let id = {
                let mut turns = self.turns.lock().unwrap();
                turns.push(turn.clone());
                RunId::new(format!("run_{}", turns.len()))
            };
            let run = Run { turn: turn.clone(), step: 0, calls: Vec::new(), results: Vec::new() };
            self.runs.lock().unwrap().insert(id.clone(), run);
            Reply::of(self.drive(&id).await)
        })
    }

    fn resume<'a>(&'a self, run: &'a RunId, tenant: &'a TenantId) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(async move {
            let of = self.runs.lock().unwrap().get(run).map(|run| run.turn.tenant.clone());
            match of.as_ref() == Some(tenant) {
                true => Reply::of(self.drive(run).await),
                false => Err(RunError::OtherTenant { run: run.clone(), tenant: tenant.clone() }),
            }
        })
    }
}
