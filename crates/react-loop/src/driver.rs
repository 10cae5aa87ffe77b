//! The driver: the model, the tools and the program's own code with which a run works.

use std::sync::Arc;

use archon_run::RunDriver;
use archon_types::{
    CallId, DynApprover, DynHooks, Executed, Hooks, Instructions, Journal, Provider, Redactor, RunMemory,
    ToolCall, Toolbox, WorkspaceSnapshots,
};

use crate::{Fallback, History, ReactMachine, fallback};

/// The driver of a loop, which is a run of one agent.
pub(crate) type Run = RunDriver<ReactMachine, (CallId, Executed)>;

/// Executes the commands of a machine with a provider and a toolbox.
#[derive(Clone)]
#[non_exhaustive]
pub struct Driver {
    /// Name of the agent, for people who are asked about its calls.
    pub agent_name: String,
    /// Provider of the model.
    pub provider: Arc<dyn Provider>,
    /// Providers of the same service with further keys, in the order in which they are tried.
    pub keys: Vec<Arc<dyn Provider>>,
    /// Fallback models, which are asked in this order if the model of `provider` cannot answer.
    pub fallbacks: Vec<Fallback>,
    /// Tools of the agent.
    pub toolbox: Arc<dyn Toolbox>,
    /// Hooks, the program's own code that runs at fixed points of a run, if there are any.
    pub hooks: Option<Arc<dyn DynHooks>>,
    /// Source of the project's instructions, which are read before each request.
    pub instructions: Option<Arc<dyn Instructions>>,
    /// The memory: stores messages that leave the context window, and the conversation when the run ends.
    pub memory: Option<Arc<dyn RunMemory>>,
    /// Takes snapshots of the workspace before and after calls that may change files. `None` takes none.
    pub snapshots: Option<Arc<dyn WorkspaceSnapshots>>,
    /// The journal that stores the logs of child runs. `None` if no call may start a child run.
    pub journal: Option<Arc<dyn Journal>>,
    /// The approver, which decides about calls that need an approval. Without an approver, such calls
    /// are refused, unless a run that called this run can ask a person.
    pub approver: Option<Arc<dyn DynApprover>>,
}

impl Driver {
    /// Creates a driver without hooks, memory, snapshots, journal and approver.
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
            snapshots: None,
            journal: None,
            approver: None,
        }
    }

    /// Asks the hooks whether a run that continues `history` may start. `earlier` is the number of earlier runs in
    /// its conversation.
    pub(crate) async fn may_begin(&self, history: &History, earlier: usize) -> bool {
        match &self.hooks {
            Some(hooks) => {
                hooks.before_loop(history.messages(), u32::try_from(earlier).unwrap_or(u32::MAX)).await
            }
            None => true,
        }
    }

    /// Asks the hooks whether a call that passed every guard may start.
    pub(crate) async fn may_run(&self, call: &ToolCall) -> bool {
        match &self.hooks {
            Some(hooks) => hooks.before_tool(call).await,
            None => true,
        }
    }

    /// Returns redactors for the keys of every service that may be asked.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Redactor> {
        let own = std::iter::once(&self.provider).chain(&self.keys);
        let others =
            self.fallbacks.iter().flat_map(|other| std::iter::once(&other.provider).chain(&other.keys));
        own.chain(others).flat_map(|provider| provider.secrets())
    }

    /// Returns the provider for the machine's next request; `None` if the run was started with a model or
    /// key that this process does not have.
    pub(crate) fn provider_of(&self, machine: &ReactMachine) -> Option<&Arc<dyn Provider>> {
        let own = (&self.provider, &self.keys[..]);
        fallback::provider(machine.config(), machine.target(), own, &self.fallbacks)
    }
}

archon_types::debug_fields!(Driver: provider);
