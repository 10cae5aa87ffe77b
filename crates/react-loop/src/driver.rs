//! The driver: the model, the tools and the program's own code, of which a run is made.

use std::sync::Arc;

use archon_types::{
    DynApprover, DynHooks, Hooks, Instructions, Journal, Provider, Redactor, RunMemory, ToolCall, Toolbox,
};

use crate::{Fallback, History, ReactMachine, fallback};

/// Carries out a machine's commands with a provider and a toolbox.
#[derive(Clone)]
#[non_exhaustive]
pub struct Driver {
    /// The agent's name, for people who are asked about its calls.
    pub agent_name: String,
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// The same service with further keys, in the order in which they are tried.
    pub keys: Vec<Arc<dyn Provider>>,
    /// The models that are asked when this one cannot answer.
    pub fallbacks: Vec<Fallback>,
    /// The tools.
    pub toolbox: Arc<dyn Toolbox>,
    /// The program's own code at fixed places, if it has any.
    pub hooks: Option<Arc<dyn DynHooks>>,
    /// Where the project says what its agents should know; read before each question.
    pub instructions: Option<Arc<dyn Instructions>>,
    /// Keeps what leaves the window, and what was said when the run ends.
    pub memory: Option<Arc<dyn RunMemory>>,
    /// Where the runs of the agents that a run calls are kept; without it none are called.
    pub journal: Option<Arc<dyn Journal>>,
    /// The approver: it is asked about calls that need a person's consent. Without one the answer is no, unless somebody can be
    /// asked above.
    pub approver: Option<Arc<dyn DynApprover>>,
}

impl Driver {
    /// A driver.
    pub fn new(provider: Arc<dyn Provider>, toolbox: Arc<dyn Toolbox>) -> Self {
        Self {
            agent_name: String::new(),
            provider,
            keys: Vec::new(),
            fallbacks: Vec::new(),
            toolbox,
            hooks: None,
            instructions: None,
            memory: None,
            journal: None,
            approver: None,
        }
    }

    /// Whether the run that goes on from `history`, the `earlier`th of its chain, may begin.
    pub(crate) async fn may_begin(&self, history: &History, earlier: usize) -> bool {
        match &self.hooks {
            Some(hooks) => {
                hooks.before_loop(history.messages(), u32::try_from(earlier).unwrap_or(u32::MAX)).await
            }
            None => true,
        }
    }

    /// Whether a call that passed every guard may start.
    pub(crate) async fn may_run(&self, call: &ToolCall) -> bool {
        match &self.hooks {
            Some(hooks) => hooks.before_tool(call).await,
            None => true,
        }
    }

    /// Who knows the keys of every service that may be asked.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Redactor> {
        let own = std::iter::once(&self.provider).chain(&self.keys);
        let others =
            self.fallbacks.iter().flat_map(|other| std::iter::once(&other.provider).chain(&other.keys));
        own.chain(others).flat_map(|provider| provider.secrets())
    }

    /// Who answers the machine's next request. None when the run was begun with a model or a key that
    /// this process does not have.
    pub(crate) fn provider_of(&self, machine: &ReactMachine) -> Option<&Arc<dyn Provider>> {
        let own = (&self.provider, &self.keys[..]);
        fallback::provider(machine.config(), machine.target(), own, &self.fallbacks)
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("provider", &self.provider.id()).finish_non_exhaustive()
    }
}
