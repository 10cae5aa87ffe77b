//! Questions that a tool asks a person during its call, and the answers.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    tools::{AnsweredQuestion, DynApprover},
    values::{CallId, RunId},
};

/// The calls of a run whose tools may ask a person while they run. The loop that executes the calls creates
/// this value, and logs the questions; see [`ToolContext::may_suspend`](crate::ToolContext::may_suspend).
#[derive(Clone)]
pub struct ToolQuestions {
    pub(super) run: RunId,
    pub(super) can_ask: bool,
    pub(super) agent_name: String,
    pub(super) approver: Option<Arc<dyn DynApprover>>,
    pub(super) answered: BTreeMap<CallId, Option<Arc<AnsweredQuestion>>>,
}

impl ToolQuestions {
    /// Creates the value for the calls `calls` of `run`. Each call comes with the last question that its tool asked
    /// and the answer, if there is one. `can_ask` is true if a person can be asked, now or later.
    pub fn new(
        run: RunId,
        can_ask: bool,
        calls: impl IntoIterator<Item = (CallId, Option<Arc<AnsweredQuestion>>)>,
    ) -> Self {
        let answered = calls.into_iter().collect();
        Self { run, can_ask, agent_name: String::new(), approver: None, answered }
    }

    /// Sets the approver of this process, which [`ToolContext::ask_now`](crate::ToolContext::ask_now) asks, and the
    /// name of the agent for its questions. Default: no approver.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_types::{AskLater, ToolQuestions};
    ///
    /// let questions = ToolQuestions::new("run_1".into(), true, []);
    /// let questions = questions.with_approver(Some(Arc::new(AskLater)), "Refund desk");
    /// ```
    pub fn with_approver(
        mut self,
        approver: Option<Arc<dyn DynApprover>>,
        agent_name: impl Into<String>,
    ) -> Self {
        (self.approver, self.agent_name) = (approver, agent_name.into());
        self
    }
}

crate::debug_fields!(ToolQuestions: run, can_ask, answered);
