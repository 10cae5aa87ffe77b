//! The engine: passes a model's call through the guards, which are checks before and after a call, and runs
//! its tool or refuses the call.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use archon_types::{
    Answer, ApprovalRequest, Approver, BoxFuture, CallId, Context, Correction, Decision, DynApprover,
    Encoded, Executed, Json, PermissionBound, Prepared, ReadyCall, RunId, SessionId, Subject, ToolCall,
    ToolContext, ToolResult, ToolSpec, Toolbox, metadata,
};
use futures_util::future::{Either, select};
use tracing::Instrument;

#[cfg(unix)]
use archon_process::{self as process, CallProcesses};
#[cfg(unix)]
use archon_types::ProcessGroup;

use crate::{
    CallGuard, EngineOptions, ToolRegistry, ToolStats, ToolUsage, chat_tokens, correction,
    execute::execute,
    guard::{Ended, Inspection, Verdict, Wanted},
    guards::{GUARDS, millis, stamp},
    log, output,
    patterns::{PatternAnalyzer, Patterns},
    permission_bound::Bound,
    progress::Partial,
    rate::Rates,
    registry::Registered,
    retry::{self, Tried},
    statistics::{Phase, Statistics},
    summary::{self, Summarizer},
};

/// Runs the tools of a [`ToolRegistry`]; it is the usual [`Toolbox`]. Each call passes the guards (checks) in
/// a fixed order, then runs under a time limit. Every failure of a call becomes a result.
///
/// A call that needs approval goes to the [`Approver`]. Without an approver, the run is suspended until a
/// person answers; if the run cannot be suspended, the call is refused.
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
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct ToolEngine {
    registry: ToolRegistry,
    options: EngineOptions,
    approver: Option<Arc<dyn DynApprover>>,
    guards: Arc<[Arc<dyn CallGuard>]>,
    statistics: Statistics,
    context_usage: Option<ContextUsage>,
    summarizer: Option<Arc<dyn Summarizer>>,
    patterns: Option<Patterns>,
    rates: Rates,
    reader: Reader,
    #[cfg(unix)]
    processes: process::Table,
}

/// A function that returns the used share of a run's context window, from 0 to 1.
type ContextUsage = Arc<dyn Fn(&RunId) -> f64 + Send + Sync>;

/// Options of one call, which override those of the tool and the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) wanted: Wanted,
    /// The caller's permission level: a name among [`EngineOptions::levels`].
    pub(crate) level: Option<String>,
    pub(crate) tries: Tries,
}

/// The component that retries a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tries {
    /// The agent loop that made the call; each attempt is in the run's log.
    #[default]
    ByCaller,
    /// The engine, by its retry policy.
    Here,
    /// The engine, unless the call timed out.
    HereUnlessTimedOut,
}

/// The engine's data about a call, kept from the preparation of the call to its execution.
struct Notes {
    admitted: Admitted,
    validation: Duration,
    options: CallOptions,
}

/// A call that may run, with its tool, and its arguments if they were edited or corrected.
struct Admitted {
    tool: Arc<Registered>,
    /// The call's target, as the guards checked it.
    subject: Option<Arc<Subject>>,
    edited: Option<Json>,
    correction: Option<Correction>,
    /// True if a person was asked about the call and agreed.
    is_agreed: bool,
}

/// The reason why a call does not run now.
enum Stopped {
    Refused(Box<ToolResult>),
    Asked(Box<ApprovalRequest>),
}

/// The reader of a call's result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Model,
    Program,
}

/// The state of a person's approval of a call.
enum Consent {
    Needed,
    /// The caller has already obtained the approval; it covers every question.
    Given,
    /// A person approved the call; the approval is bound to this hash of the call.
    To(String),
}

impl Consent {
    fn covers(&self, question: &ApprovalRequest) -> bool {
        match self {
            Self::Needed => false,
            Self::Given => true,
            Self::To(binding) => *binding == question.binding,
        }
    }
}

impl ToolEngine {
    /// Creates an engine with default options and without an approver.
    pub fn new(registry: ToolRegistry) -> Self {
        Self {
            registry,
            options: EngineOptions::default(),
            approver: None,
            guards: Arc::new([]),
            statistics: Statistics::default(),
            context_usage: None,
            summarizer: None,
            patterns: None,
            rates: Rates::default(),
            reader: Reader::Model,
            #[cfg(unix)]
            processes: process::Table::default(),
        }
    }

    /// Sets the options; the defaults are those of [`EngineOptions::default`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use archon_tools::{EngineOptions, ToolEngine, ToolRegistry};
    /// let options = EngineOptions::default().with_timeout(Duration::from_secs(60));
    /// let engine = ToolEngine::new(ToolRegistry::new()).with_options(options);
    /// ```
    pub fn with_options(mut self, options: EngineOptions) -> Self {
        self.rates = Rates::new(&options.rates);
        self.options = options;
        self
    }

    /// Sets the approver, which decides about calls that need approval, usually by asking a person. Default: none.
    ///
    /// ```
    /// use archon_tools::{ToolEngine, ToolRegistry};
    /// let engine = ToolEngine::new(ToolRegistry::new()).with_approver(archon_types::AskLater);
    /// ```
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Adds checks of the application. They run in this order, after those that were added before.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use archon_tools::{CallGuard, ToolEngine, ToolRegistry};
    /// fn with_guard(tools: ToolRegistry, guard: Arc<dyn CallGuard>) -> ToolEngine {
    ///     ToolEngine::new(tools).with_guards([guard])
    /// }
    /// ```
    pub fn with_guards(mut self, guards: impl IntoIterator<Item = Arc<dyn CallGuard>>) -> Self {
        self.guards = self.guards.iter().cloned().chain(guards).collect();
        self
    }

    /// Sets a function that returns how full the context window of a run is, from 0 to 1. Above 0.8, results
    /// are shortened to the level `Brief`, unless the caller or the tool sets another level of detail.
    ///
    /// ```
    /// use archon_tools::{ToolEngine, ToolRegistry};
    /// let engine = ToolEngine::new(ToolRegistry::new()).with_context_usage(|_run| 0.9);
    /// ```
    pub fn with_context_usage(mut self, usage: impl Fn(&RunId) -> f64 + Send + Sync + 'static) -> Self {
        self.context_usage = Some(Arc::new(usage));
        self
    }

    /// Sets a summarizer for large text results that are stored in a file. Without it, the model reads the
    /// beginning of such a text.
    ///
    /// ```
    /// use archon_tools::{Summarizer, ToolEngine, ToolRegistry};
    /// fn brief(tools: ToolRegistry, summarizer: std::sync::Arc<dyn Summarizer>) -> ToolEngine {
    ///     ToolEngine::new(tools).with_summarizer(summarizer)
    /// }
    /// ```
    pub fn with_summarizer(mut self, summarizer: Arc<dyn Summarizer>) -> Self {
        self.summarizer = Some(summarizer);
        self
    }

    /// Sets an analyzer, which watches how a model uses its tools. Its advice is added to results; the same
    /// advice is given only once in a run.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use archon_tools::{SingleCalls, ToolEngine, ToolRegistry};
    /// let analyzer = Arc::new(SingleCalls::of(["read_file", "search"]));
    /// let engine = ToolEngine::new(ToolRegistry::new()).with_pattern_analyzer(analyzer);
    /// ```
    pub fn with_pattern_analyzer(mut self, analyzer: Arc<dyn PatternAnalyzer>) -> Self {
        self.patterns = Some(Patterns::new(analyzer));
        self
    }

    /// Returns the registry with the engine's tools. A tool that is added or removed takes effect with the next call.
    pub fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// Returns the statistics of ended calls by tool name. They include the calls of all clones of this engine.
    pub fn stats(&self) -> BTreeMap<String, ToolStats> {
        self.statistics.all()
    }

    /// Returns the statistics by tool name, like [`stats`](Self::stats), and the numbers of running and
    /// waiting calls. [`prometheus`](crate::prometheus) formats them as a text.
    pub fn usage(&self) -> BTreeMap<String, ToolUsage> {
        self.statistics.usage()
    }

    #[cfg(feature = "composite")]
    pub(crate) fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Changes the engine for results that programs or other tools read, not a model: levels of detail, files
    /// for large results, corrections, advice and the neutralising of chat tokens are turned off.
    ///
    /// ```
    /// use archon_tools::{ToolEngine, ToolRegistry};
    /// let engine = ToolEngine::new(ToolRegistry::new());
    /// let for_programs = engine.clone().for_parts();
    /// ```
    pub fn for_parts(mut self) -> Self {
        (self.options.output_level, self.options.storage_dir) = (None, None);
        self.options.corrections.clear();
        (self.context_usage, self.patterns, self.reader) = (None, None, Reader::Program);
        self
    }

    /// Prepares a call; `options` override the tool's and the engine's.
    pub(crate) async fn prepare_with(
        &self,
        id: CallId,
        call: &ToolCall,
        run: &Context,
        options: CallOptions,
    ) -> Prepared {
        let started = run.clock.now();
        let admitted = self.admit(call, run, options.level.as_deref(), Consent::Needed).await;
        let validation = run.clock.now().since(started);
        match admitted {
            Ok(mut admitted) => {
                log::inspected(call, run.run.as_str(), millis(validation), None);
                if let Some(patterns) = &self.patterns {
                    patterns.called(&run.run, id, call);
                }
                let call = match admitted.edited.take() {
                    Some(arguments) => ToolCall { arguments, malformed: None, ..call.clone() },
                    None => call.clone(),
                };
                let annotations = &admitted.tool.spec.annotations;
                let mut ready = ReadyCall::new(id, call, annotations.effect);
                ready.concurrency_safe = annotations.concurrency_safe;
                ready.notes = Some(Box::new(Notes { admitted, validation, options }));
                Prepared::Ready(ready)
            }
            Err(Stopped::Refused(mut refused)) => {
                log::inspected(call, run.run.as_str(), millis(validation), Some(&refused));
                let tool = self.registry.find(&call.name);
                let version = tool.as_ref().map(|tool| tool.spec.version.as_str());
                stamp(&mut refused, validation, Duration::ZERO, 0, version);
                self.spell_out(&mut refused);
                Prepared::Refused(refused)
            }
            Err(Stopped::Asked(question)) => Prepared::Ask(question),
        }
    }

    /// Passes a call through all guards in order, and asks a person if a guard requires it.
    async fn admit(
        &self,
        call: &ToolCall,
        run: &Context,
        level: Option<&str>,
        mut consent: Consent,
    ) -> Result<Admitted, Stopped> {
        // The tools of a source may not be known yet.
        if let Some(tool) = self.registry.source_of(&call.name)
            && let Some(source) = tool.source()
            && source.tools().is_err()
        {
            source.settled().await;
        }
        let mut inspection = Inspection::new(call, run, &self.registry, (&self.options, &self.guards), level);
        let mut correction = None;
        loop {
            let question = match first_objection(&mut inspection, &consent) {
                Verdict::Pass => break,
                Verdict::Refuse(result) => match correction::of(&inspection, &result) {
                    // Corrected arguments pass every guard again and need a new approval, like edited ones.
                    Some(corrected) => {
                        inspection.edited = Some(corrected.arguments.clone());
                        correction = Some(corrected);
                        consent = Consent::Needed;
                        continue;
                    }
                    None => return Err(Stopped::Refused(result)),
                },
                Verdict::Ask(question) => question,
            };
            // The approved call passes every guard again, because files may have changed while the person
            // decided.
            let binding = question.binding.clone();
            consent = match self.ask(call, question, run).await? {
                None => Consent::To(binding),
                Some(edited) => {
                    let agreed = inspection.tool.as_ref().and_then(|tool| {
                        archon_types::rebound(&binding, &tool.spec, inspection.arguments(), &edited)
                    });
                    (inspection.edited, correction) = (Some(edited), None);
                    agreed.map_or(Consent::Needed, Consent::To)
                }
            };
        }
        let Some(tool) = inspection.tool else {
            return Err(Stopped::Refused(Box::new(ToolResult::error(format!(
                "Tool '{}' not found",
                call.name
            )))));
        };
        let Inspection { edited, is_agreed, .. } = inspection;
        Ok(Admitted { tool, subject: inspection.subject.map(Arc::new), edited, correction, is_agreed })
    }

    /// Asks the approver. Returns the arguments if the person edited them, and fails with the reason if the
    /// call does not run now.
    async fn ask(
        &self,
        call: &ToolCall,
        question: Box<ApprovalRequest>,
        run: &Context,
    ) -> Result<Option<Json>, Stopped> {
        let Some(approver) = &self.approver else { return Err(without_approver(call, question, run)) };
        let decided = match select(pin!(approver.decide(&question)), pin!(run.cancel.cancelled())).await {
            Either::Left((decided, _)) => decided,
            Either::Right(_) => {
                return Err(Stopped::Refused(Box::new(output::cancelled_result(
                    "Cancelled before a person answered",
                ))));
            }
        };
        let denied =
            |text: String| Err(Stopped::Refused(Box::new(output::error_of_type("permission_denied", text))));
        match decided {
            Decision::Now(Answer::Approve | Answer::Trust { .. }) => Ok(None),
            Decision::Now(Answer::Edit { arguments }) => Ok(Some(arguments)),
            Decision::Now(Answer::Reply { text }) => {
                let result = ToolResult::success(text).with_metadata(metadata::ANSWERED_BY, "person");
                Err(Stopped::Refused(Box::new(result)))
            }
            Decision::Now(Answer::Cancel { reason }) if reason.is_empty() => denied(format!(
                "A person declined this call of '{}'. It was not run. Go on without it, or ask what they want instead.",
                call.name
            )),
            Decision::Now(Answer::Cancel { reason }) => denied(format!(
                "A person declined this call of '{}': {}. It was not run. Go on as they want it.",
                call.name,
                reason.trim_end_matches(['.', ' '])
            )),
            Decision::Later => Err(Stopped::Asked(question)),
            _ => denied(format!(
                "No decision about this call of '{}'. It was not run. Go on without it.",
                call.name
            )),
        }
    }

    async fn execute_ready(&self, mut ready: ReadyCall, run: &Context) -> Executed {
        let notes = ready.notes.take().and_then(|notes| notes.downcast::<Notes>().ok());
        let notes = match notes {
            Some(notes) => *notes,
            None => match self.admit(&ready.call, run, None, Consent::Given).await {
                Ok(mut admitted) => {
                    if let Some(arguments) = admitted.edited.take() {
                        ready.call.arguments = arguments;
                    }
                    Notes { admitted, validation: Duration::ZERO, options: CallOptions::default() }
                }
                Err(Stopped::Refused(mut result)) => {
                    self.spell_out(&mut result);
                    return Executed::Done(result);
                }
                Err(Stopped::Asked(question)) => return Executed::Suspended(question),
            },
        };
        match self.run_to_result(ready, notes, run).await {
            Ok(result) => Executed::Done(Box::new(result)),
            Err(question) => Executed::Suspended(question),
        }
    }

    /// Runs the tool, retries it if the caller is not an agent loop, and passes the result through all
    /// guards.
    async fn run_to_result(
        &self,
        ready: ReadyCall,
        notes: Notes,
        run: &Context,
    ) -> Result<ToolResult, Box<ApprovalRequest>> {
        let ReadyCall { id, call: ToolCall { id: call_id, name, mut arguments, .. }, started_before, .. } =
            ready;
        let tool = &notes.admitted.tool;
        let spec = &tool.spec;
        let limit = notes.options.timeout.or(spec.annotations.timeout()).unwrap_or(self.options.timeout);
        let policy = &self.options.retry;
        let tries = notes.options.tries;
        let may_repeat =
            tries != Tries::ByCaller && policy.max_retries > 0 && spec.annotations.effect.may_repeat();
        let started = run.clock.now();
        let mut context = self.with_limits(ToolContext::new(run.clone(), call_id, name), &notes);
        context.call = Some(id);
        let mut tried = Tried::first();
        let mut result = loop {
            let spare = may_repeat.then(|| arguments.clone());
            let limit = policy.limit(limit, tried.attempts);
            let result = self.run_once(id, tool, arguments, &mut context, limit).await?;
            let final_timeout = tries == Tries::HereUnlessTimedOut && is_timeout(&result);
            let again = !final_timeout && policy.again(spec, &result, tried.attempts);
            match spare.filter(|_| again) {
                Some(spare) => arguments = spare,
                None => break result,
            }
            tried.again(&result, id, &mut context);
            if retry::wait(&*run.clock, policy.delay_before(tried.attempts), &run.cancel).await {
                break output::cancelled_result("Cancelled");
            }
            // The token of a call that timed out is cancelled, so the next try needs a new one.
            context.cancel = run.cancel.child_token();
        };
        let to_sum_up = OnceLock::new();
        let ended = Ended {
            tool,
            context: &context,
            options: &self.options,
            guards: &self.guards,
            statistics: &self.statistics,
            context_usage: self.context_usage.as_ref().map(|usage| usage(&run.run)),
            wanted: notes.options.wanted,
            to_sum_up: self.summarizer.is_some().then_some(&to_sum_up),
            validation: notes.validation,
            execution: run.clock.now().since(started),
            tried: &tried,
            started_before,
        };
        GUARDS.iter().for_each(|guard| guard.after(&ended, &mut result));
        self.say_more(notes.admitted.correction.as_ref(), to_sum_up.into_inner(), &context, &mut result)
            .await;
        Ok(result)
    }

    /// Adds to the context the results of the guards (the call's target, and whether a person agreed), and
    /// the permission bound of the tool and its child runs.
    fn with_limits(&self, mut context: ToolContext, notes: &Notes) -> ToolContext {
        let bound = || self.bound(notes.options.level.as_deref(), &context.run);
        let Admitted { tool, subject, is_agreed, .. } = &notes.admitted;
        let below = (tool.spec.annotations.agent || !tool.tool.calls().is_empty()).then(bound);
        let has_rules = context.run.permission_bound.is_some() || !self.options.permissions.is_empty();
        context.places = has_rules.then(bound);
        context.run.permission_bound = below.or(context.run.permission_bound);
        context.subject.clone_from(subject);
        context.is_agreed = *is_agreed;
        context
    }

    /// Neutralises chat template tokens if a model reads the result.
    fn spell_out(&self, result: &mut ToolResult) {
        if self.reader == Reader::Model {
            chat_tokens::spell_out(result, &self.options.stripped_tags);
        }
    }

    /// Adds notes to a result: the summary of a text that was stored in a file, the correction of the
    /// arguments, and advice on tool use.
    async fn say_more(
        &self,
        correction: Option<&Correction>,
        to_sum_up: Option<String>,
        context: &ToolContext,
        result: &mut ToolResult,
    ) {
        if let (Some(summarizer), Some(text)) = (&self.summarizer, to_sum_up) {
            summary::replace(&**summarizer, text, result, context).await;
        }
        if let Some(correction) = correction {
            correction::add_note(correction, result);
        }
        if let Some(patterns) = &self.patterns {
            patterns.suggest(&context.run.run, result);
        }
        self.spell_out(result);
    }

    /// Waits for the tool's rate limit; returns false if the call was cancelled meanwhile.
    async fn may_begin(&self, context: &ToolContext) -> bool {
        if !self.rates.limits(&context.tool_name) {
            return true;
        }
        let _waiting = self.statistics.under(&context.tool_name, Phase::Waiting);
        self.rates.may_begin(&context.tool_name, &*context.run.clock, &context.cancel).await
    }

    /// Returns the permission bound of child runs: the caller's permissions, and the bound of the runs
    /// above.
    fn bound(&self, level: Option<&str>, run: &Context) -> Arc<dyn PermissionBound> {
        let mut options = self.options.clone();
        options.grants.retain(|permission| self.options.has(permission, level));
        Arc::new(Bound { options: Arc::new(options), next: run.permission_bound.clone() })
    }

    async fn run_once(
        &self,
        id: CallId,
        tool: &Registered,
        arguments: Json,
        context: &mut ToolContext,
        limit: Duration,
    ) -> Result<ToolResult, Box<ApprovalRequest>> {
        if !self.may_begin(context).await {
            return Ok(output::cancelled_result("Cancelled before it started"));
        }
        let _running = self.statistics.under(&tool.spec.name, Phase::Running);
        let partial = Partial::default();
        context.progress = Some(partial.listener(&context.run, id));
        let closing = partial.closed_at_end();
        #[cfg(unix)]
        let processes = CallProcesses::new(id, &context.run, self.processes.clone());
        #[cfg(unix)]
        {
            context.processes = Some(processes.registry());
        }
        let span =
            log::call_span(&context.tool_name, context.tool_call_id.as_str(), context.run.run.as_str());
        let mut result = execute(&tool.tool, arguments, context, limit).instrument(span).await;
        drop(closing);
        #[cfg(unix)]
        processes.end(&*context.run.clock).await;
        // The token is cancelled before the end only after a time-out; then the partial output is added.
        if let Ok(result) = &mut result
            && context.cancel.is_cancelled()
        {
            partial.complete(result);
        }
        result
    }
}

impl Toolbox for ToolEngine {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        self.registry.specs()
    }

    fn sourced_spec(&self, name: &str) -> Option<ToolSpec> {
        self.registry.find_in_sources(name).map(|registered| registered.spec.clone())
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, run: &'a Context) -> BoxFuture<'a, Prepared> {
        Box::pin(self.prepare_with(id, call, run, CallOptions::default()))
    }

    /// Executes a ready call. A call that this engine did not prepare (approved while the run was
    /// suspended, or repeated after a crash) passes every guard again, but needs no approval, because the
    /// caller has obtained it. The arguments must not change in between; if they are corrected only now, a
    /// person is asked.
    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        Box::pin(self.execute_ready(ready, run))
    }

    #[cfg(unix)]
    fn end_processes<'a>(
        &'a self,
        groups: &'a [ProcessGroup],
        run: &'a Context,
    ) -> BoxFuture<'a, Vec<ProcessGroup>> {
        Box::pin(process::end_surviving(groups, &run.run, &*run.clock))
    }

    fn recall(&self, session: &SessionId, tool: &str, result: &ToolResult) {
        if let Some(tool) = self.registry.get(tool) {
            tool.recall(session, result);
        }
    }
}

archon_types::debug_fields!(ToolEngine: registry, options);

/// Returns the outcome for a call that needs approval in an engine without an approver. If the run can ask
/// a person, the loop asks, so that all questions of a turn are asked together. Otherwise the call is
/// refused.
fn without_approver(call: &ToolCall, question: Box<ApprovalRequest>, run: &Context) -> Stopped {
    if run.can_ask {
        return Stopped::Asked(question);
    }
    let way = question.rules.last().map_or(String::new(), |rule| {
        format!(" The person can allow it beforehand with a rule, for instance `{rule}`.")
    });
    let text = format!(
        "Tool '{}' needs a person's consent and there is nobody to ask. It was not run. Go on without it.{way}",
        call.name
    );
    let rule = question.rules.first().cloned().unwrap_or_default();
    let result = output::error_of_type("permission_denied", text).with_metadata(metadata::NOBODY_ASKED, rule);
    Stopped::Refused(Box::new(result))
}

/// Returns the verdict of the first guard that does not let the call pass.
fn first_objection(inspection: &mut Inspection<'_>, consent: &Consent) -> Verdict {
    for guard in GUARDS {
        match guard.before(inspection) {
            Verdict::Pass => {}
            Verdict::Ask(question) if consent.covers(&question) => inspection.is_agreed = true,
            objection => return objection,
        }
    }
    Verdict::Pass
}

fn is_timeout(result: &ToolResult) -> bool {
    result.status == archon_types::ToolResultStatus::Timeout
}
