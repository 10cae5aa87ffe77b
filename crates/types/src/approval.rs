//! A person's consent: what is asked, and what can be answered.

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{CallId, InboxRequest, Json, RunId, Subject, Timestamp, ToolSpec};

/// A question to a person that stands between a call and its effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Unique everywhere.
    pub request_id: String,
    /// The name of the agent that asks: of whoever wants to act, of the plan's agent, or of the team. A run names its
    /// own where a tool or a machine left it empty.
    pub agent_name: String,
    /// What is going to happen, in a line.
    pub action_summary: String,
    /// The tool's name and exact arguments, or whatever else a person needs to see.
    pub details: Json,
    /// What may be answered; `approve`, `edit` and `cancel` unless said otherwise.
    pub options: Vec<String>,
    /// When the question expires, which counts as cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether the arguments may be changed.
    pub allow_modification: bool,
    /// What kind of question it is.
    #[serde(default, skip_serializing_if = "QuestionKind::is_default")]
    pub kind: QuestionKind,
    /// How long the question may wait, milliseconds, unless the run's own setting is to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// To what a yes is bound: [`binding`] of the tool, the arguments and the files that they lead to. A call that is
    /// bound to anything else is asked about anew.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub binding: String,
    /// Rules under which this call, and calls like it, would not be asked about; the narrowest first. Empty where
    /// each call is to be asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// How the question came up: the calls between the run in whose log it stands and the run that asks, from above.
    /// Empty if the run itself asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Asker>,
    /// Names the fields of the agent that asks. An agent whose fields are others by now does not go on with what was
    /// given for these. Empty where an agent has no fields.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schema_version: String,
    /// Since when the question is set aside: nobody is to be asked, and it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
}

/// A run that asks, or waits for one that does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asker {
    /// The run.
    pub run: RunId,
    /// Its call that is asked about, or that started the next run of the path.
    pub call: CallId,
}

/// What kind of question a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QuestionKind {
    /// May this call run?
    #[default]
    Consent,
    /// A process died while the call ran, and nobody knows what it did: may it run again?
    InDoubt,
    /// A step of a plan failed: what follows? A yes tries it again, a reply is its result, an empty reply goes on without
    /// it, and a no gives up what depends on it.
    Failed,
    /// Something that the call needs is missing: what is it? It is answered with
    /// [`Answer::Edit`], by the names of what is missing, or with [`Answer::Reply`] in a person's own words.
    Input,
}

impl QuestionKind {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl ApprovalRequest {
    /// A question with the three usual options and no deadline.
    pub fn new(request_id: impl Into<String>, action_summary: impl Into<String>, details: Json) -> Self {
        Self {
            request_id: request_id.into(),
            agent_name: String::new(),
            action_summary: action_summary.into(),
            details,
            options: ["approve", "edit", "cancel"].map(str::to_owned).into(),
            expires_at: None,
            allow_modification: true,
            kind: QuestionKind::default(),
            timeout_ms: None,
            binding: String::new(),
            rules: Vec::new(),
            path: Vec::new(),
            schema_version: String::new(),
            paused_at: None,
        }
    }

    /// A question about a call that was started and has no end: may it run again? It shows the call as a person would
    /// have to look for it, and takes a yes, the result in the person's words, or a no.
    pub fn in_doubt(request_id: impl Into<String>, tool: &str, arguments: &Json) -> Self {
        let text = arguments.to_string();
        let mut shown: String = text.chars().take(SHOWN_IN_DOUBT).collect();
        if shown.len() < text.len() {
            shown.push_str(" ...");
        }
        let summary = format!(
            "Run `{tool}` with {shown} again? It was cut off, and may have done its work: check first whether it happened."
        );
        let mut request = Self::new(request_id, summary, json!({ "tool": tool, "arguments": arguments }));
        request.kind = QuestionKind::InDoubt;
        request.allow_modification = false;
        request.options = ["approve", "reply", "cancel"].map(str::to_owned).into();
        request
    }

    /// The same question about a call that started a run whose log is lost.
    pub fn of_lost_run(mut self, child: &RunId) -> Self {
        self.action_summary = format!("The log of run {child} is lost. {}", self.action_summary);
        self
    }

    /// Whether nobody answered in time.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.paused_at.is_none() && self.expires_at.is_some_and(|end| end <= now)
    }

    /// Whether an answer that names a question and its binding is one to this question.
    pub fn is_meant(&self, request_id: &str, binding: &str) -> bool {
        self.request_id == request_id && self.binding == binding
    }

    /// The message that carries an answer to this question.
    pub fn answered(&self, answer: Answer) -> InboxRequest {
        let (request_id, binding) = (self.request_id.clone(), self.binding.clone());
        InboxRequest::Answer { request_id, binding, answer }
    }

    /// The run that asks, unless it is the one in whose log the question stands.
    pub fn asker(&self) -> Option<&Asker> {
        self.path.last()
    }

    /// The same question, set aside.
    pub fn pause(mut self, now: Timestamp) -> Self {
        self.paused_at.get_or_insert(now);
        self
    }

    /// The same question, asked again, with the time that it had left when it was set aside.
    pub fn unpause(mut self, now: Timestamp) -> Self {
        if let Some(since) = self.paused_at.take() {
            self.expires_at = self.expires_at.map(|end| end + now.since(since));
        }
        self
    }

    /// The same question as it stands in the log of the run whose `call` started the run that has it.
    pub fn from_below(mut self, child: RunId, call: CallId) -> Self {
        self.path.insert(0, Asker { run: child, call });
        self
    }
}

/// Characters of the arguments in the summary of a question about a call in doubt; its details have all of them.
const SHOWN_IN_DOUBT: usize = 1_000;

/// To what a person agrees: the tool as it describes itself, exactly these arguments, and the files that they lead to
/// once links are followed. SHA-256, in hexadecimal digits, of the first two; behind a `-` that of the files, where
/// `subject` names some.
pub fn binding(spec: &ToolSpec, arguments: &Json, subject: &Subject) -> String {
    // JSON tells where one part ends and the next begins.
    let parts = serde_json::json!([spec.name, spec.version, spec.parameters, arguments]);
    let call = digits([parts.to_string().as_bytes()]);
    match subject {
        // No path holds a NUL.
        Subject::Paths { paths, .. } => {
            let paths = paths.iter().flat_map(|path| [path.as_os_str().as_encoded_bytes(), &[0][..]]);
            format!("{call}-{}", digits(paths))
        }
        _ => call,
    }
}

/// To what a person agrees who was asked about the arguments `asked` and wants `wanted` instead: the same tool, the new
/// arguments, and the same files. Arguments that lead to others are asked about once more, so that a person sees where.
/// Nothing if `binding` is not of a question about `asked` and this tool.
pub fn rebound(binding: &str, spec: &ToolSpec, asked: &Json, wanted: &Json) -> Option<String> {
    let of_call = |arguments| self::binding(spec, arguments, &Subject::Unknown);
    let files = binding.strip_prefix(&of_call(asked))?;
    (files.is_empty() || files.starts_with('-')).then(|| of_call(wanted) + files)
}

fn digits<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = hmac_sha256::Hash::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// Do it.
    Approve,
    /// Do it with these arguments, which are validated again.
    Edit {
        /// The new arguments.
        arguments: Json,
    },
    /// Do not do it.
    Cancel {
        /// Why, for the model; empty means no reason was given.
        #[serde(default)]
        reason: String,
    },
    /// Do it, and for the rest of the session do not ask about calls under these rules.
    Trust {
        /// The rules, as in [`ApprovalRequest::rules`].
        rules: Vec<String>,
    },
    /// Do not do it: this is its result.
    Reply {
        /// What the model reads.
        text: String,
    },
    /// Nobody answered in time; counts as cancel.
    Expired,
    /// The program took the question back; counts as cancel.
    Withdrawn {
        /// Why, for the model.
        reason: String,
    },
}

impl Answer {
    /// Whether the call may run.
    pub fn is_consent(&self) -> bool {
        matches!(self, Self::Approve | Self::Edit { .. } | Self::Trust { .. })
    }
}

/// How long a question waits for a person, unless somebody says otherwise: 30 minutes.
pub(crate) const USUAL_WAIT_MS: u64 = 30 * 60 * 1_000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(crate) fn is_usual_wait(wait: &u64) -> bool {
    *wait == USUAL_WAIT_MS
}

/// How a run treats questions to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ApprovalSettings {
    /// How long a question waits, milliseconds, that does not say so itself. Default 30 minutes.
    pub timeout_ms: u64,
    /// What follows when a person says no.
    pub on_deny: OnDeny,
    /// What follows when nobody answers in time.
    pub on_expiry: OnExpiry,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self { timeout_ms: USUAL_WAIT_MS, on_deny: OnDeny::default(), on_expiry: OnExpiry::default() }
    }
}

impl ApprovalSettings {
    /// The same settings under which a question waits so long: the usual 30 minutes do not last a night.
    pub fn with_timeout(mut self, wait: std::time::Duration) -> Self {
        self.timeout_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// The same settings with another consequence of a no.
    pub fn with_on_deny(mut self, what: OnDeny) -> Self {
        self.on_deny = what;
        self
    }

    /// The same settings with another consequence of no answer in time.
    pub fn with_on_expiry(mut self, what: OnExpiry) -> Self {
        self.on_expiry = what;
        self
    }
}

/// What follows when a person says no.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnDeny {
    /// The model reads it, and goes on.
    #[default]
    ReturnToLlm,
    /// The calls that were not started get a result that says so, and the run ends as cancelled.
    Abort,
}

/// What follows when nobody answers in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnExpiry {
    /// The model reads it, and goes on.
    #[default]
    ReturnToLlm,
    /// The run ends as cancelled.
    Abort,
    /// It is asked once more, as urgent and for as long again; then as `return_to_llm`.
    Escalate,
}

/// Decides about questions, now or later. Written as any async code; [`FnApprover`] makes one of a closure:
///
/// ```
/// use archon_types::{Answer, ApprovalRequest, Approver, Decision};
///
/// /// Agrees to whatever the agent of the shop wants.
/// struct Shop;
///
/// impl Approver for Shop {
///     async fn decide(&self, request: &ApprovalRequest) -> Decision {
///         match request.agent_name == "shop" {
///             true => Decision::Now(Answer::Approve),
///             false => Decision::Later,
///         }
///     }
/// }
/// ```
pub trait Approver: Send + Sync {
    /// Answers at once, or says that a person will.
    fn decide(&self, request: &ApprovalRequest) -> impl Future<Output = Decision> + Send;

    /// As [`decide`](Self::decide) for all that a turn asks, in order; whoever shows questions to a person can show
    /// them at once. Missing decisions count as later.
    fn decide_all(&self, requests: &[ApprovalRequest]) -> impl Future<Output = Vec<Decision>> + Send {
        async move {
            let mut decisions = Vec::with_capacity(requests.len());
            for request in requests {
                decisions.push(self.decide(request).await);
            }
            decisions
        }
    }
}

/// An [`Approver`] as an object. Every approver is one: nobody implements it.
pub trait DynApprover: Send + Sync {
    /// As [`Approver::decide`].
    fn boxed_decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision>;

    /// As [`Approver::decide_all`].
    fn boxed_decide_all<'a>(&'a self, requests: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>>;
}

impl<A: Approver> DynApprover for A {
    fn boxed_decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(self.decide(request))
    }

    fn boxed_decide_all<'a>(&'a self, requests: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
        Box::pin(self.decide_all(requests))
    }
}

impl Approver for dyn DynApprover + '_ {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.boxed_decide(request).await
    }

    async fn decide_all(&self, requests: &[ApprovalRequest]) -> Vec<Decision> {
        self.boxed_decide_all(requests).await
    }
}

impl<A: Approver + ?Sized> Approver for std::sync::Arc<A> {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        (**self).decide(request).await
    }

    async fn decide_all(&self, requests: &[ApprovalRequest]) -> Vec<Decision> {
        (**self).decide_all(requests).await
    }
}

/// An [`Approver`] of a closure.
///
/// ```
/// use archon_types::{Answer, Decision, FnApprover};
///
/// let agrees = FnApprover::new(|_| async { Decision::Now(Answer::Approve) });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FnApprover<F>(F);

impl<F, D> FnApprover<F>
where
    F: Fn(ApprovalRequest) -> D + Send + Sync,
    D: Future<Output = Decision> + Send,
{
    /// An approver that decides as `decide` does.
    pub fn new(decide: F) -> Self {
        Self(decide)
    }
}

impl<F, D> Approver for FnApprover<F>
where
    F: Fn(ApprovalRequest) -> D + Send + Sync,
    D: Future<Output = Decision> + Send,
{
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        (self.0)(request.clone()).await
    }
}

/// An [`Approver`] for programs in which questions are answered from elsewhere: every run that asks suspends.
///
/// A question waits for 30 minutes, unless [`ApprovalSettings::timeout_ms`] says otherwise. After that it takes no
/// answer and is listed no more; its run stays suspended until it is taken up, and then goes on as
/// [`ApprovalSettings::on_expiry`] says, by default with a result that tells the model that nobody answered. So a
/// program that asks people who sleep gives questions more time, and resumes such runs now and then, with
/// [`AnswerRuns::sweep`](crate::AnswerRuns::sweep):
///
/// ```
/// use std::time::Duration;
/// use archon_types::ApprovalSettings;
///
/// // Over a weekend.
/// let settings = ApprovalSettings::default().with_timeout(Duration::from_secs(3 * 24 * 60 * 60));
/// assert_eq!(settings.timeout_ms, 259_200_000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AskLater;

impl Approver for AskLater {
    async fn decide(&self, _: &ApprovalRequest) -> Decision {
        Decision::Later
    }
}

/// What an [`Approver`] makes of a question.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// Decided.
    Now(Answer),
    /// The run suspends until the answer comes.
    Later,
}
