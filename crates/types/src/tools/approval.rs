//! Questions to people: the request for an approval, the possible answers, and the [`Approver`] trait.

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    Json,
    values::{CallId, RunId, Timestamp, shorten},
};

/// A question to a person that must be answered before a call takes effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The id of the question, globally unique.
    pub request_id: String,
    /// The name of the agent that asks: the agent of the call, the plan's agent, or the team. If the name is
    /// empty, the run sets its own agent.
    pub agent_name: String,
    /// The action that the call would take, as one line.
    pub action_summary: String,
    /// The name of the tool and the exact arguments, or other data that the person needs to see.
    pub details: Json,
    /// The possible answers. Default: `approve`, `edit` and `cancel`.
    pub options: Vec<String>,
    /// The time at which the question expires. An expired question counts as refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// True if the person may change the arguments.
    pub allow_modification: bool,
    /// The kind of the question.
    #[serde(default, skip_serializing_if = "crate::values::is_default")]
    pub kind: QuestionKind,
    /// The time that the question may wait, in milliseconds; `None` for the setting of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The hash that an approval is bound to: the [`binding`](crate::binding) of the tool, the arguments and
    /// the files. A call with another hash leads to another question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub binding: String,
    /// The permission rules that would allow this call and similar ones without a question, the narrowest
    /// first. Empty if each call needs a question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The path from the run that logs the question down to the run that asks: each run below the first, with
    /// its call. Empty if the run that logs the question asks itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub call_path: Vec<AskingRun>,
    /// The version of the input fields of the agent that asks. If the fields have another version when an
    /// answer comes, the answer is ignored. Empty for an agent without input fields.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schema_version: String,
    /// The time at which the question was paused. A paused question is shown to nobody and does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// The data of a tool that asks during its call. The tool gets the data back with the answer; no other
    /// code reads the data. Null for every other question.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub tool_state: Json,
}

/// A question that a tool asked during its call, with the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredQuestion {
    /// The question.
    pub request: ApprovalRequest,
    /// The answer. It may be a refusal, or say that nobody answered in time: the tool decides what follows.
    pub answer: Answer,
}

/// A run on the path to the run that asks: the asking run itself, or a run above it that waits for its child
/// run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskingRun {
    /// The id of the run.
    pub run: RunId,
    /// The call that the question is about, or the call that started the next run of the path.
    pub call: CallId,
}

/// The kind of a question to a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QuestionKind {
    /// A call needs a person's approval before it runs.
    #[default]
    Consent,
    /// A call is in doubt: its process died, so it may have taken effect. A person decides if it runs again.
    InDoubt,
    /// A subtask of a plan failed. A yes retries the subtask, a reply becomes its result, an empty reply goes
    /// on without the result, and a no gives up the subtasks that depend on it.
    FailedStep,
    /// An input of the call is missing, and a person gives its value. The answer is [`Answer::Edit`] with
    /// values by name, or [`Answer::Reply`] in the person's own words.
    Input,
}

impl ApprovalRequest {
    /// Creates a question with the options `approve`, `edit` and `cancel`, and without a deadline.
    pub fn new(request_id: impl Into<String>, action_summary: impl Into<String>, details: Json) -> Self {
        Self {
            request_id: request_id.into(),
            action_summary: action_summary.into(),
            details,
            options: ["approve", "edit", "cancel"].map(str::to_owned).into(),
            allow_modification: true,
            ..Self::default()
        }
    }

    /// Creates a question of a tool that asks during its call ([`ToolError::Suspended`](crate::ToolError)).
    /// When the call is executed again, the tool gets back the answer and the question, which contains
    /// `state`. `state` must not be null. The details should have the missing fields as `missing`, each with
    /// a `name`, a `kind` and a `description`.
    pub fn of_tool(
        request_id: impl Into<String>,
        action_summary: impl Into<String>,
        details: Json,
        state: Json,
    ) -> Self {
        let mut request = Self::new(request_id, action_summary, details);
        request.kind = QuestionKind::Input;
        request.options = ["reply", "edit", "cancel"].map(str::to_owned).into();
        request.tool_state = state;
        request
    }

    /// Returns true if a tool asked the question during its call. The tool then reads the answer.
    pub fn is_of_tool(&self) -> bool {
        !self.tool_state.is_null()
    }

    /// Creates a question about a call in doubt: may the call, which was cut off, run again? The question
    /// shows the arguments, so that the person can check the effect. The answer is a yes, a no, or the result
    /// in the person's words.
    pub fn in_doubt(request_id: impl Into<String>, tool: &str, arguments: &Json) -> Self {
        let shown = shorten(&arguments.to_string(), SHOWN_IN_DOUBT, " ...");
        let summary = format!("Run `{tool}` with {shown} again? {CUT_OFF}");
        let mut request = Self::new(request_id, summary, json!({ "tool": tool, "arguments": arguments }));
        request.kind = QuestionKind::InDoubt;
        request.allow_modification = false;
        request.options = ["approve", "reply", "cancel"].map(str::to_owned).into();
        request
    }

    /// Sets the summary of a question about a call in doubt. `summary` is the summary of the earlier
    /// question, with which a person approved the call; the new summary repeats it.
    ///
    /// ```
    /// use archon_types::ApprovalRequest;
    ///
    /// let question = ApprovalRequest::in_doubt("approval_1", "refund", &serde_json::json!({ "cents": 40 }));
    /// assert!(question.in_words("Refund 40 cents").action_summary.starts_with("Refund 40 cents, again?"));
    /// ```
    pub fn in_words(mut self, summary: &str) -> Self {
        self.action_summary = format!("{summary}, again? {CUT_OFF}");
        self
    }

    /// Adds to the summary that the log of the child run is lost, for a call that started a child run.
    ///
    /// ```
    /// use archon_types::ApprovalRequest;
    ///
    /// let question = ApprovalRequest::in_doubt("approval_1", "helper", &serde_json::json!({}));
    /// let question = question.of_lost_run(&"run_7".into());
    /// assert!(question.action_summary.starts_with("The log of run run_7 is lost."));
    /// ```
    pub fn of_lost_run(mut self, child: &RunId) -> Self {
        self.action_summary = format!("The log of run {child} is lost. {}", self.action_summary);
        self
    }

    /// Returns true if the deadline of the question has passed. A paused question does not expire.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.paused_at.is_none() && self.expires_at.is_some_and(|end| end <= now)
    }

    /// Returns true if an answer with this `request_id` and this [`binding`](Self::binding) belongs to this
    /// question.
    pub fn is_meant(&self, request_id: &str, binding: &str) -> bool {
        self.request_id == request_id && self.binding == binding
    }

    /// Returns the first rule of an answer that the question does not offer; `None` if it offers all of them.
    ///
    /// ```
    /// use archon_types::{Answer, ApprovalRequest};
    ///
    /// let mut question = ApprovalRequest::new("approval_1", "Run `ls`", serde_json::json!({}));
    /// question.rules = vec!["bash(ls)".to_owned()];
    /// let trust = |rule: &str| Answer::Trust { rules: vec![rule.to_owned()] };
    /// assert_eq!(question.rule_not_offered(&trust("bash(ls)")), None);
    /// assert_eq!(question.rule_not_offered(&trust("bash")), Some("bash"));
    /// ```
    pub fn rule_not_offered<'a>(&self, answer: &'a Answer) -> Option<&'a str> {
        let Answer::Trust { rules } = answer else { return None };
        rules.iter().find(|rule| !self.rules.contains(rule)).map(String::as_str)
    }

    /// Returns the run that asks the question; `None` if it is the run that logs the question.
    pub fn asker(&self) -> Option<&AskingRun> {
        self.call_path.last()
    }

    /// Pauses the question; it does not expire while it is paused.
    ///
    /// ```
    /// use archon_types::{ApprovalRequest, Timestamp};
    ///
    /// let mut question = ApprovalRequest::new("approval_1", "Refund 40 cents", serde_json::json!({}));
    /// question.expires_at = Some(Timestamp::from_millis(60_000));
    /// let paused = question.pause(Timestamp::from_millis(50_000));
    /// assert!(!paused.is_expired(Timestamp::from_millis(70_000)));
    /// ```
    pub fn pause(mut self, now: Timestamp) -> Self {
        self.paused_at.get_or_insert(now);
        self
    }

    /// Resumes a paused question, and postpones its deadline by the length of the pause.
    ///
    /// ```
    /// # use archon_types::{ApprovalRequest, Timestamp};
    /// # let mut question = ApprovalRequest::new("approval_1", "Refund 40 cents", serde_json::json!({}));
    /// # question.expires_at = Some(Timestamp::from_millis(60_000));
    /// let paused = question.pause(Timestamp::from_millis(50_000));
    /// let open = paused.unpause(Timestamp::from_millis(70_000));
    /// assert_eq!(open.expires_at, Some(Timestamp::from_millis(80_000)));
    /// ```
    pub fn unpause(mut self, now: Timestamp) -> Self {
        if let Some(since) = self.paused_at.take() {
            self.expires_at = self.expires_at.map(|end| end + now.since(since));
        }
        self
    }

    /// Returns the question as the log of the calling run stores it: with the child run `child` and its
    /// waiting call `call` at the beginning of [`call_path`](Self::call_path).
    ///
    /// ```
    /// use archon_types::{ApprovalRequest, CallId, CommandId};
    ///
    /// let question = ApprovalRequest::new("approval_1", "Refund 40 cents", serde_json::json!({}));
    /// let question = question.from_below("run_1.2-0".into(), CallId::new(CommandId(2), 0));
    /// assert_eq!(question.asker().map(|asker| asker.run.as_str()), Some("run_1.2-0"));
    /// ```
    pub fn from_below(mut self, child: RunId, call: CallId) -> Self {
        self.call_path.insert(0, AskingRun { run: child, call });
        // The child run has the data of its tool.
        self.tool_state = Json::Null;
        self
    }
}

/// The reason for a question about a call in doubt, in words.
const CUT_OFF: &str = "It was cut off, and may have done its work: check first whether it happened.";

/// The maximum number of characters of the arguments in the summary of a question about a call in doubt. The
/// details have the whole arguments.
const SHOWN_IN_DOUBT: usize = 1_000;

/// The answer of a person to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// Approves the call, which then runs.
    Approve,
    /// The call runs with these new arguments, which are validated again.
    Edit {
        /// The new arguments.
        arguments: Json,
    },
    /// The call does not run.
    Cancel {
        /// The reason, for the model; empty if none was given.
        #[serde(default)]
        reason: String,
    },
    /// The call runs, and for the rest of the session calls that match these rules need no question.
    Trust {
        /// The rules, as in [`ApprovalRequest::rules`].
        rules: Vec<String>,
    },
    /// The call does not run; the text of the person is its result.
    Reply {
        /// The result that the model reads.
        text: String,
    },
    /// Nobody answered in time. Counts as [`Cancel`](Self::Cancel).
    Expired,
    /// The program withdrew the question. Counts as [`Cancel`](Self::Cancel).
    Withdrawn {
        /// The reason, for the model.
        reason: String,
    },
}

impl Answer {
    /// Returns true if the answer allows the call to run.
    pub fn is_consent(&self) -> bool {
        matches!(self, Self::Approve | Self::Edit { .. } | Self::Trust { .. })
    }
}

/// The default time that a question waits for a person: 30 minutes.
pub(crate) const USUAL_WAIT_MS: u64 = 30 * 60 * 1_000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(crate) fn is_usual_wait(wait: &u64) -> bool {
    *wait == USUAL_WAIT_MS
}

/// The settings of a run for questions to people.
///
/// ```
/// use std::time::Duration;
///
/// use archon_types::{ApprovalSettings, OnDeny, OnExpiry};
///
/// let settings = ApprovalSettings::default()
///     .with_timeout(Duration::from_secs(24 * 60 * 60))
///     .with_on_deny(OnDeny::Abort)
///     .with_on_expiry(OnExpiry::Escalate);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ApprovalSettings {
    /// The time that a question without its own time waits, in milliseconds. Default 30 minutes.
    pub timeout_ms: u64,
    /// The behaviour after a refusal. Default [`OnDeny::ReturnToLlm`].
    pub on_deny: OnDeny,
    /// The behaviour after a question has expired. Default [`OnExpiry::ReturnToLlm`].
    pub on_expiry: OnExpiry,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self { timeout_ms: USUAL_WAIT_MS, on_deny: OnDeny::default(), on_expiry: OnExpiry::default() }
    }
}

crate::setters! {
impl ApprovalSettings {
    /// Sets the time that a question waits for a person. Default 30 minutes.
    pub fn with_timeout(self, wait: std::time::Duration) -> Self {
        self.timeout_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
    }

    /// Sets the behaviour after a person refused a call. Default [`OnDeny::ReturnToLlm`].
    pub fn with_on_deny(self, what: OnDeny) -> Self { self.on_deny = what }

    /// Sets the behaviour after a question has expired. Default [`OnExpiry::ReturnToLlm`].
    pub fn with_on_expiry(self, what: OnExpiry) -> Self { self.on_expiry = what }
}
}

/// The behaviour after a person refused a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnDeny {
    /// The model reads the refusal, and the run goes on.
    #[default]
    ReturnToLlm,
    /// Calls that have not started get a result about the refusal, and the run ends as cancelled.
    Abort,
}

/// The behaviour after a question has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnExpiry {
    /// The model reads that nobody answered, and the run goes on.
    #[default]
    ReturnToLlm,
    /// The run ends as cancelled.
    Abort,
    /// The question is asked once more, marked as urgent and with the same time to answer. If it expires
    /// again, the run goes on as with `return_to_llm`.
    Escalate,
}

/// Answers the questions of runs to people, at once or later. Write `decide` as an `async fn`; [`FnApprover`]
/// wraps a closure:
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
    /// Answers a question at once, or leaves it open ([`Decision::Later`]) for a person who answers later.
    fn decide(&self, request: &ApprovalRequest) -> impl Future<Output = Decision> + Send;

    /// Answers all questions of a turn, in order, so that a program can show them together. A missing
    /// decision counts as [`Decision::Later`]. Default: calls [`decide`](Self::decide) for each question.
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

/// The object-safe form of [`Approver`], which every approver implements automatically.
pub trait DynApprover: Send + Sync {
    /// Does the same as [`Approver::decide`].
    fn boxed_decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision>;

    /// Does the same as [`Approver::decide_all`].
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

impl<A: DynApprover + ?Sized> Approver for std::sync::Arc<A> {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        (**self).boxed_decide(request).await
    }

    async fn decide_all(&self, requests: &[ApprovalRequest]) -> Vec<Decision> {
        (**self).boxed_decide_all(requests).await
    }
}

/// An [`Approver`] that calls a closure.
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
    /// Creates an approver that calls `decide`.
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

/// An [`Approver`] that defers every question: the run suspends, and the program answers the question later.
///
/// A question waits for 30 minutes, unless [`ApprovalSettings::timeout_ms`] sets another time. An expired
/// question takes no answer and is not listed any more. Its run stays suspended until it is resumed, and then
/// goes on as [`ApprovalSettings::on_expiry`] sets; by default the model reads that nobody answered. Give
/// questions more time if people may be away, and call [`AnswerRuns::sweep`](crate::AnswerRuns::sweep) from
/// time to time to resume such runs:
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

/// The decision of an [`Approver`] about a question.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// The answer, at once.
    Now(Answer),
    /// No answer yet: the run suspends until an answer comes.
    Later,
}
