//! The engine: lets a call through to its tool, or answers in the tool's place.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use archon_types::{
    Answer, ApprovalRequest, Approver, BoxFuture, CallId, Context, Decision, Delta, DeltaKind, Encoded,
    Event, Executed, Json, Prepared, Progress, ReadyCall, ToolCall, ToolContext, ToolResult, ToolSpec,
    Toolbox,
};

use tracing::Instrument;

#[cfg(unix)]
use crate::process::{self, CallProcesses};
#[cfg(unix)]
use archon_types::ProcessGroup;

use crate::{
    ToolRegistry,
    execute::execute,
    guard::{Inspection, Verdict},
    guards::GUARDS,
    log,
    registry::Registered,
};

/// What an engine allows a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Time limit of a call whose tool has none of its own. Default 30 s.
    pub timeout: Duration,
    /// Largest arguments, in bytes as JSON. Default 10 MB.
    pub max_argument_bytes: usize,
    /// Deepest nesting of arguments, in levels. Default 128, which is what the JSON parser allows.
    pub max_argument_depth: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), max_argument_bytes: 10_000_000, max_argument_depth: 128 }
    }
}

impl EngineOptions {
    /// For tools that are agents or run commands: 120 s.
    pub fn for_agent_tools() -> Self {
        Self { timeout: Duration::from_secs(120), ..Self::default() }
    }
}

/// The [`Toolbox`] over a [`ToolRegistry`]: each call passes the guards in their one order, then
/// runs under a time limit, and comes back as a result whatever happened.
///
/// A call that has to be confirmed goes to the [`Approver`]. Without one it is refused.
///
/// ```
/// # use std::sync::Arc;
/// # use archon_types::{Context, Clock, Ids, Timestamp, BoxFuture};
/// use archon_tools::{ToolEngine, ToolRegistry, builtin};
/// use serde_json::json;
///
/// # struct Fixed;
/// # impl Clock for Fixed {
/// #     fn now(&self) -> Timestamp { Timestamp::from_millis(0) }
/// #     fn sleep_until(&self, _: Timestamp) -> BoxFuture<'static, ()> { Box::pin(std::future::pending()) }
/// # }
/// # impl Ids for Fixed { fn fresh(&self, prefix: &str) -> String { format!("{prefix}_1") } }
/// # let context = Context::new("run".into(), "session".into(), Arc::new(Fixed), Arc::new(Fixed));
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let registry = ToolRegistry::new();
/// registry.register(builtin::Calculator::new())?;
/// let engine = ToolEngine::new(registry);
///
/// let result = engine.execute_tool_call("calculator", json!({ "expression": "2+2" }), &context).await;
/// assert_eq!(result.text(), "4");
/// # Ok::<(), archon_tools::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct ToolEngine {
    registry: ToolRegistry,
    options: EngineOptions,
    approver: Option<Arc<dyn Approver>>,
    #[cfg(unix)]
    processes: process::Table,
}

/// What the engine remembers of a call between preparing and executing it.
struct Notes {
    tool: Arc<Registered>,
    validation_ms: u64,
    timeout: Option<Duration>,
}

/// A call that may run: its tool, and the arguments of a person who changed them.
struct Admitted {
    tool: Arc<Registered>,
    edited: Option<Json>,
}

/// Why a call does not run now.
enum Stopped {
    Refused(Box<ToolResult>),
    Asked(Box<ApprovalRequest>),
}

/// Whether the guards ask a person.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Consent {
    Needed,
    /// A person has agreed to exactly this call.
    Given,
}

impl ToolEngine {
    /// An engine with default options and nobody to ask.
    pub fn new(registry: ToolRegistry) -> Self {
        Self {
            registry,
            options: EngineOptions::default(),
            approver: None,
            #[cfg(unix)]
            processes: process::Table::default(),
        }
    }

    /// The same engine with other options.
    pub fn with_options(mut self, options: EngineOptions) -> Self {
        self.options = options;
        self
    }

    /// The same engine with somebody to ask.
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// The tools; adding or removing one takes effect with the next call.
    pub fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// Prepares a call; `timeout` goes before the limits of the tool and of the engine.
    pub(crate) async fn prepare_within(
        &self,
        id: CallId,
        call: &ToolCall,
        run: &Context,
        timeout: Option<Duration>,
    ) -> Prepared {
        let started = run.clock.now();
        let admitted = self.admit(call, run, Consent::Needed).await;
        let validation_ms = millis(run.clock.now().since(started));
        match admitted {
            Ok(Admitted { tool, edited }) => {
                log::inspected(call, run.run.as_str(), validation_ms, None);
                let call = match edited {
                    Some(arguments) => ToolCall { arguments, malformed: None, ..call.clone() },
                    None => call.clone(),
                };
                let annotations = &tool.spec.annotations;
                let mut ready = ReadyCall::new(id, call, annotations.effect);
                ready.concurrency_safe = annotations.concurrency_safe;
                ready.notes = Some(Box::new(Notes { tool, validation_ms, timeout }));
                Prepared::Ready(ready)
            }
            Err(Stopped::Refused(mut refused)) => {
                log::inspected(call, run.run.as_str(), validation_ms, Some(&refused));
                let version = self.registry.find(&call.name).map(|tool| tool.spec.version.clone());
                Facts { validation_ms, execution_ms: 0, attempts: 0, version }.stamp(&mut refused);
                Prepared::Refused(refused)
            }
            Err(Stopped::Asked(question)) => Prepared::Ask(question),
        }
    }

    /// Asks every guard in order, and whoever a guard wants asked.
    async fn admit(&self, call: &ToolCall, run: &Context, mut consent: Consent) -> Result<Admitted, Stopped> {
        let mut inspection = Inspection::new(call, run, &self.registry, &self.options);
        loop {
            let question = match first_objection(&mut inspection, consent) {
                Verdict::Pass => break,
                Verdict::Refuse(result) => return Err(Stopped::Refused(result)),
                Verdict::Ask(question) => question,
            };
            // An edit is a new call: it meets every guard, except the one that led to it.
            inspection.edited = self.ask(call, question).await?;
            consent = Consent::Given;
        }
        match inspection.tool.take() {
            Some(tool) => Ok(Admitted { tool, edited: inspection.edited }),
            None => {
                Err(Stopped::Refused(Box::new(ToolResult::error(format!("Tool '{}' not found", call.name)))))
            }
        }
    }

    /// The arguments that a person wants instead, or why the call does not run.
    async fn ask(&self, call: &ToolCall, question: Box<ApprovalRequest>) -> Result<Option<Json>, Stopped> {
        let denied = |text: String| {
            let result = ToolResult::error(text).with_metadata("error_type", "permission_denied");
            Err(Stopped::Refused(Box::new(result)))
        };
        let Some(approver) = &self.approver else {
            return denied(format!(
                "Tool '{}' needs a person's consent and there is nobody to ask. It was not run.",
                call.name
            ));
        };
        match approver.decide(&question).await {
            Decision::Now(Answer::Approve) => Ok(None),
            Decision::Now(Answer::Edit { arguments }) => Ok(Some(arguments)),
            Decision::Now(Answer::Cancel { reason }) if reason.is_empty() => {
                denied(format!("A person declined this call of '{}'. It was not run.", call.name))
            }
            Decision::Now(Answer::Cancel { reason }) => {
                denied(format!("A person declined this call of '{}': {reason}. It was not run.", call.name))
            }
            Decision::Later => Err(Stopped::Asked(question)),
            _ => denied(format!("No decision about this call of '{}'. It was not run.", call.name)),
        }
    }

    async fn execute_ready(&self, mut ready: ReadyCall, run: &Context) -> Executed {
        let notes = ready.notes.take().and_then(|notes| notes.downcast::<Notes>().ok());
        let notes = match notes {
            Some(notes) => *notes,
            None => match self.admit(&ready.call, run, Consent::Given).await {
                Ok(Admitted { tool, .. }) => Notes { tool, validation_ms: 0, timeout: None },
                Err(Stopped::Refused(result)) => return Executed::Done(result),
                Err(Stopped::Asked(question)) => return Executed::Suspended(question),
            },
        };
        Executed::Done(Box::new(self.run_once(ready, notes, run).await))
    }

    async fn run_once(&self, ready: ReadyCall, notes: Notes, run: &Context) -> ToolResult {
        let ReadyCall { id, call: ToolCall { id: call_id, name, arguments, .. }, .. } = ready;
        let spec = &notes.tool.spec;
        let limit = notes.timeout.or(spec.annotations.timeout()).unwrap_or(self.options.timeout);
        let mut context = ToolContext::new(run.clone(), call_id, name);
        context.progress = Some(progress_to_sink(run, id));
        let started = run.clock.now();
        #[cfg(unix)]
        let processes = CallProcesses::new(id, run, self.processes.clone());
        #[cfg(unix)]
        {
            context.processes = Some(processes.registry());
        }
        let span =
            log::call_span(&context.tool_name, context.tool_call_id.as_str(), context.run.run.as_str());
        let mut result = execute(&notes.tool.tool, arguments, &context, limit).instrument(span).await;
        #[cfg(unix)]
        processes.end(&*run.clock).await;
        let execution_ms = millis(run.clock.now().since(started));
        let (call, run) = (context.tool_call_id.as_str(), run.run.as_str());
        log::finished(&context.tool_name, call, run, 1, execution_ms, &result);
        let version = Some(spec.version.clone());
        Facts { validation_ms: notes.validation_ms, execution_ms, attempts: 1, version }.stamp(&mut result);
        result
    }
}

impl Toolbox for ToolEngine {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        self.registry.specs()
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, run: &'a Context) -> BoxFuture<'a, Prepared> {
        Box::pin(self.prepare_within(id, call, run, None))
    }

    /// A ready call that this engine did not prepare (one that a person approved while the run was
    /// suspended, or one that runs again after a crash) meets every guard again, except that nobody
    /// is asked: whoever made it has seen to that. Arguments must not be changed in between.
    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        Box::pin(self.execute_ready(ready, run))
    }

    #[cfg(unix)]
    fn end_processes<'a>(
        &'a self,
        groups: &'a [ProcessGroup],
        run: &'a Context,
    ) -> BoxFuture<'a, Vec<ProcessGroup>> {
        Box::pin(process::end_left(groups, &run.run, &*run.clock))
    }
}

impl fmt::Debug for ToolEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolEngine")
            .field("registry", &self.registry)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The verdict of the first guard that does not let the call pass.
fn first_objection(inspection: &mut Inspection<'_>, consent: Consent) -> Verdict {
    for guard in GUARDS {
        match guard.check(inspection) {
            Verdict::Pass => {}
            Verdict::Ask(_) if consent == Consent::Given => {}
            objection => return objection,
        }
    }
    Verdict::Pass
}

/// What the engine knows of a call, for the result's metadata.
struct Facts {
    validation_ms: u64,
    execution_ms: u64,
    attempts: u32,
    version: Option<String>,
}

impl Facts {
    fn stamp(self, result: &mut ToolResult) {
        let facts = &mut result.metadata;
        facts.insert("validation_time_ms".to_owned(), self.validation_ms.into());
        facts.insert("execution_time_ms".to_owned(), self.execution_ms.into());
        facts.insert("attempts".to_owned(), self.attempts.into());
        if let Some(version) = self.version {
            facts.insert("tool_version".to_owned(), version.into());
        }
    }
}

/// Lets those who watch the run hear what the tool says before it is done.
fn progress_to_sink(run: &Context, call: CallId) -> Arc<dyn Fn(Progress) + Send + Sync> {
    let (run, sink) = (run.run.clone(), run.sink.clone());
    let said = AtomicU64::new(0);
    Arc::new(move |progress| {
        let (offset, kind) = match progress {
            Progress::Text(text) => {
                (said.fetch_add(text.len() as u64, Ordering::Relaxed), DeltaKind::Progress { call, text })
            }
            Progress::Partial(result) => (0, DeltaKind::Partial { call, result: Box::new(result) }),
        };
        sink.emit(Event::Delta(Delta { run: run.clone(), command: call.command, attempt: 0, offset, kind }));
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
