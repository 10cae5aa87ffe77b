//! What the tests of plans share: agents with scripted models, tools that note their calls, and a run of a plan.

use std::sync::{Arc, Mutex};

use archon::{
    Context, Outcome, Provider, ToolEngine, ToolRegistry,
    providers::{ScriptedProvider, Step},
    react_loop::{ReactAgent, ReactAgentOptions},
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        Journal, Planner, Record, RecordBody, Request, SubTask, ToolAnnotations, ToolResult, ToolSpec,
        Toolbox,
    },
};
use archon_planner::{OnlyTool, PlanMachine, PlanningAgent, PlanningAgentOptions, fold};
use archon_testkit::{SeededIds, VirtualClock};
use serde_json::{Value, json};

/// The calls of tools, in order.
pub(crate) type Calls = Arc<Mutex<Vec<(String, Value)>>>;

pub(crate) struct World {
    pub(crate) registry: ToolRegistry,
    pub(crate) calls: Calls,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) options: PlanningAgentOptions,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            registry: ToolRegistry::new(),
            calls: Calls::default(),
            journal: Arc::new(InMemoryJournal::new()),
            options: PlanningAgentOptions::default(),
        }
    }

    /// Adds a read-only tool that notes its calls and answers what `answer` says.
    pub(crate) fn tool(
        self,
        name: &str,
        answer: impl Fn(&Value) -> ToolResult + Send + Sync + 'static,
    ) -> Self {
        let spec = ToolSpec::new(name, format!("Does {name}."), json!({"type": "object"}));
        let mut annotations = ToolAnnotations::read_only();
        annotations.concurrency_safe = true;
        let (calls, name) = (self.calls.clone(), name.to_owned());
        let tool = FnTool::new(spec.with_annotations(annotations), move |arguments, _| {
            calls.lock().unwrap().push((name.clone(), arguments.clone()));
            let result = answer(&arguments);
            async move { Ok(result) }
        });
        self.registry.register(tool).unwrap();
        self
    }

    pub(crate) fn called(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }

    /// An agent that follows plans; the model of its workers says what `reply` makes of the request.
    pub(crate) fn agent(
        &self,
        planner: impl Planner + 'static,
        reply: impl Fn(&Request) -> Step + Send + Sync + 'static,
    ) -> PlanningAgent {
        let toolbox: Arc<dyn Toolbox> = Arc::new(ToolEngine::new(self.registry.clone()));
        let provider: Arc<dyn Provider> = Arc::new(ScriptedProvider::new(vec![Step::reply(reply); 200]));
        let (journal, tools) = (self.journal.clone(), toolbox.clone());
        let worker = move |_: &SubTask, tool: Option<&str>| -> Arc<dyn archon::Agent> {
            let mut options = ReactAgentOptions::new("scripted");
            options.name = "worker".to_owned();
            let agent = ReactAgent::new(provider.clone(), journal.clone(), options);
            // spec: PL-15
            Arc::new(match tool {
                Some(tool) => agent.with_toolbox(Arc::new(OnlyTool::new(tools.clone(), tool))),
                None => agent.with_toolbox(tools.clone()),
            })
        };
        let nobody = worker(&SubTask::new("x", "x"), None);
        PlanningAgent::new(Arc::new(planner), nobody, self.journal.clone(), self.options.clone())
            .with_workers(Arc::new(worker))
            .with_toolbox(toolbox)
    }

    pub(crate) fn context(&self) -> Context {
        Context::new("run_1".into(), "s_1".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
    }

    pub(crate) async fn run(
        &self,
        agent: &PlanningAgent,
        goal: &str,
    ) -> (Outcome, PlanMachine, Vec<Arc<Record>>) {
        let outcome = agent.start(goal, &self.context()).await.unwrap();
        let records = self.journal.read(&"run_1".into()).await.unwrap();
        (outcome, fold(&records).unwrap(), records)
    }
}

/// The ids of subtasks in the order in which they began.
pub(crate) fn begun(machine: &PlanMachine, records: &[Arc<Record>]) -> Vec<String> {
    let id = |record: &Arc<Record>| match &record.body {
        RecordBody::ToolCallStarted { call, .. } => {
            machine.node(*call).map(|node| node.subtask.id.to_string())
        }
        _ => None,
    };
    records.iter().filter_map(id).collect()
}

/// What the request was asked last.
pub(crate) fn last(request: &Request) -> String {
    request.messages.iter().last().map(|message| message.text()).unwrap_or_default()
}

/// What the run was asked at first.
pub(crate) fn first(request: &Request) -> String {
    request.messages.iter().next().map(|message| message.text()).unwrap_or_default()
}

/// A planner's answer.
pub(crate) fn plan(subtasks: Value) -> Step {
    Step::text(json!({ "subtasks": subtasks }).to_string())
}
