//! The context that a run and its calls get.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    log::{NullSink, OpenRun, RecordBody, Sink},
    messages::{Media, Redactor, SeenResult},
    tools::{CredentialStore, ProcessLog, SharedMode, Subject, ToolSpec},
    values::{Clock, Ids, RunId, SessionId, TenantId, not_before},
};

use super::{delegation::Delegation, tool_questions::ToolQuestions, under_way::CallsUnderWay};

/// The data of a run that its agent, toolbox, tools and child runs get as an argument: ids, cancellation, clock,
/// credentials and so on. Archon keeps none of it in global or task-local variables.
#[derive(Clone)]
#[non_exhaustive]
pub struct Context {
    /// The id of the run that this context belongs to.
    pub run: RunId,
    /// The session of the run.
    pub session: SessionId,
    /// For a child run: the session of the topmost run, which no other run called. The child run works for this
    /// session. `None` for any other run. The method `top_session` returns the right session for every run.
    pub top_session: Option<SessionId>,
    /// The tenant on whose behalf the run works.
    pub tenant: TenantId,
    /// The depth of the run: 0 for a run that a person started, one more for each delegation.
    pub depth: u32,
    /// The token that cancels the run.
    pub cancel: CancellationToken,
    /// Receives the events of the run and of its child runs. Each event names its run.
    pub sink: Arc<dyn Sink>,
    /// The clock from which the run reads the time.
    pub clock: Arc<dyn Clock>,
    /// Creates new ids, for instance of runs.
    pub ids: Arc<dyn Ids>,
    /// The tenant's credentials, if the application supplied any.
    pub credentials: Option<Arc<dyn CredentialStore>>,
    /// Knows the secrets of the run: the keys of its providers and the credentials of its tools. Removes these
    /// secrets from texts before Archon stores or shows the texts.
    pub redactor: Redactor,
    /// Logs the processes that the run's calls start. The loop that executes the calls sets it.
    pub processes: Option<Arc<dyn ProcessLog>>,
    /// For a child run: the call that started the run. In the context of a tool call to an agent: this call.
    /// Otherwise `None`.
    pub delegation: Option<Arc<Delegation>>,
    /// True if a person can be asked, now or later. Code that needs an approval may then return
    /// [`Executed::Suspended`](crate::Executed::Suspended) or
    /// [`OutcomeStatus::Suspended`](crate::OutcomeStatus::Suspended): the run waits for the person's answer.
    /// Default false.
    pub can_ask: bool,
    /// The [binding](crate::binding) hash of the call that a person approved. A prepared call with the same hash may
    /// run without a further question. The loop sets the hash for this one call; calls that the tool makes itself
    /// do not inherit the hash.
    pub agreed: Option<Arc<str>>,
    /// True if this call is a part of a larger call, for instance of a composite tool, and a person approved the
    /// larger call after a question that listed this part. Only a permission rule, a permission bound or a warning
    /// in the preview can then lead to another question about this call.
    pub agreed_above: bool,
    /// The permission rules that a person chose to trust: for the rest of the session, calls that match one of
    /// them need no question.
    pub trusted: Arc<[String]>,
    /// The mode of the session, such as plan mode. Child runs share the value with the session's run, which sets
    /// it.
    pub mode: SharedMode,
    /// The permission bound that the runs above (the caller, its caller and so on) set for this run and its
    /// child runs.
    pub permission_bound: Option<Arc<dyn PermissionBound>>,
    /// The tools whose calls led to this call, the outermost first, to detect circles of calls.
    pub tools_above: Arc<[String]>,
    /// The tool results that the run's model sees, oldest first. The loop sets them for the tool that removes
    /// results from the context window ([`CLEANUP_TOOL`](crate::CLEANUP_TOOL)); otherwise `None`.
    pub results: Option<Arc<[SeenResult]>>,
    /// The names of the tool results that are [pinned](crate::metadata::PINNED) in the context window of the run's
    /// model. The loop sets them for calls that run together if the tool of one of them gives instructions
    /// ([`ToolAnnotations::instructs`](crate::ToolAnnotations::instructs)); otherwise `None`.
    pub pinned: Option<Arc<[String]>>,
    /// The pictures, PDF files and other media of the run's conversation, oldest first, with their data. The loop sets
    /// them if a tool of the run takes media; otherwise `None`.
    pub media: Option<Arc<[Media]>>,
    /// The number of the run's calls under way. The loop that executes the calls sets it. If all these calls
    /// wait for other members of a team, the run may be dropped, and resumed later. `None` for calls that a
    /// tool makes: the run is then never dropped.
    pub under_way: Option<CallsUnderWay>,
    /// The calls whose tools may ask a person while they run; set by the loop that logs the questions.
    pub tool_questions: Option<Arc<ToolQuestions>>,
}

/// The permission bound of a run: the maximum that the run may do. A bound can forbid a call or require a question,
/// but never allow more than the run's own rules.
///
/// ```
/// use archon_types::{Context, PermissionBound, Permit, Subject, ToolSpec};
///
/// /// Keeps child runs from the network.
/// struct Offline;
///
/// impl PermissionBound for Offline {
///     fn verdict(&self, tool: &ToolSpec, _subject: &Subject, _run: &Context) -> Permit {
///         match tool.annotations.network {
///             true => Permit::Deny("this run has no network".to_owned()),
///             false => Permit::Allow,
///         }
///     }
/// }
/// ```
pub trait PermissionBound: Send + Sync {
    /// Returns the decision about a call of `tool` on `subject` in the run `run`. Of the decisions of all runs
    /// above (the caller, its caller and so on), this is the strictest.
    fn verdict(&self, tool: &ToolSpec, subject: &Subject, run: &Context) -> Permit;
}

/// The decision of a permission bound about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permit {
    /// The call may run.
    Allow,
    /// A person must decide.
    Ask,
    /// The call may not run, because of the rule with this text.
    Deny(String),
}

impl Context {
    /// Creates a context at depth 0 for the tenant `local`, without watchers.
    pub fn new(run: RunId, session: SessionId, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let clock = clock.for_run().unwrap_or(clock);
        Self {
            run,
            session,
            top_session: None,
            tenant: TenantId::new("local"),
            depth: 0,
            cancel: CancellationToken::new(),
            sink: Arc::new(NullSink),
            clock,
            ids,
            credentials: None,
            redactor: Redactor::default(),
            processes: None,
            delegation: None,
            can_ask: false,
            agreed: None,
            agreed_above: false,
            trusted: Arc::new([]),
            mode: SharedMode::default(),
            permission_bound: None,
            tools_above: Arc::new([]),
            results: None,
            pinned: None,
            media: None,
            under_way: None,
            tool_questions: None,
        }
    }

    /// Returns the session that the run works for: for a child run the session of the topmost run, for any other
    /// run its own session.
    pub fn top_session(&self) -> &SessionId {
        self.top_session.as_ref().unwrap_or(&self.session)
    }

    /// Returns the picture, PDF file or other medium of the conversation that has this
    /// [reference](Media::reference). The error is a text for the model that lists the media of the conversation.
    pub fn find_media(&self, reference: &str) -> Result<&Media, String> {
        let all = self.media.as_deref().unwrap_or_default();
        // The newest, if the name of the file has changed since.
        all.iter().rev().find(|media| media.is_named(reference)).ok_or_else(|| {
            let known: Vec<String> = all.iter().map(Media::label).collect();
            match known.as_slice() {
                [] => format!("The conversation has no medium '{reference}', and no other one."),
                known => {
                    format!("The conversation has no medium '{reference}'. It has: {}.", known.join("; "))
                }
            }
        })
    }

    /// Makes this the context of a child run, with a session of its own.
    pub(super) fn begin_child(&mut self, run: RunId) {
        self.top_session = Some(self.top_session().clone());
        self.session = SessionId::new(run.as_str().replace('.', "-"));
        self.run = run;
        self.media = None;
    }
}

crate::debug_fields!(Context: run, session, tenant, depth);

impl OpenRun {
    /// Returns the context for resuming the run: `given` with the session and the tenant of the run, and with
    /// a clock that shows no time before that of the log's last record.
    pub fn context(&self, given: &Context) -> Context {
        let mut context = given.clone();
        if let Some(last) = self.records.last() {
            context.clock = not_before(last.at, context.clock);
        }
        if let Some(RecordBody::RunStarted(started)) = self.records.first().map(|record| &record.body) {
            context.session = started.session.clone();
            context.tenant = started.tenant.clone();
        }
        context
    }
}
