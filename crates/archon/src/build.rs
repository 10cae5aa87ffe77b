//! Builds agents from the parts of a builder, and builders from agents.

use std::sync::Arc;

use archon_react_loop::{Fallback, ReactAgent, ReactAgentOptions};
use archon_store::InMemoryJournal;
use archon_tools::{CallGuard, EngineOptions, ToolEngine, ToolRegistry};
use archon_types::{
    AgentId, ContextConfig, Instructions, Journal, Provider, RunMemory, Tool, Toolbox, WorkspaceSnapshots,
};

use crate::{
    Archon, ArchonBuilder, BuildError, RandomIds, SystemClock,
    builder::{FallbackChoice, Runs},
};

impl Archon {
    /// Returns an empty builder. Set at least a model before you call [`build`](ArchonBuilder::build).
    ///
    /// ```
    /// let builder = archon::Archon::builder().model("ollama:qwen3").system("You answer customers.");
    /// ```
    pub fn builder() -> ArchonBuilder {
        ArchonBuilder::default()
    }

    /// Returns a builder with all parts of this agent, including its journal, clock and ids, to build an
    /// agent that differs in some parts.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), archon::RunError> {
    /// use archon::Archon;
    ///
    /// let desk = Archon::builder().model("anthropic:claude-sonnet-4-5").data_dir("runs").build()?;
    /// let cheap = desk.to_builder().model("ollama:qwen3").system("Answer in one sentence.").build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_builder(&self) -> ArchonBuilder {
        let mut builder = ArchonBuilder::clone(&self.parts);
        builder.copy_changes_of(self);
        builder
    }
}

/// The skills and the event hooks of a builder, which wrap the toolbox.
struct Extensions {
    #[cfg(feature = "skills")]
    skills: Option<Arc<archon_skills::SkillConversations>>,
    #[cfg(feature = "hooks")]
    events: Option<archon_hooks::EventHooks>,
}

impl Extensions {
    /// Returns the toolbox within the limits of active skills, with hooks around its calls.
    fn around(self, toolbox: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
        #[cfg(feature = "skills")]
        let toolbox = crate::skill_toolbox::within_skills(toolbox, self.skills);
        #[cfg(feature = "hooks")]
        let toolbox: Arc<dyn Toolbox> = match self.events {
            Some(events) => Arc::new(events.toolbox(toolbox)),
            None => toolbox,
        };
        toolbox
    }
}

impl ArchonBuilder {
    /// Builds the agent: checks the settings and opens the journal, which is in memory by default.
    ///
    /// ```
    /// # fn example() -> Result<(), archon::RunError> {
    /// let agent = archon::Archon::builder().model("ollama:qwen3").system("You answer customers.").build()?;
    /// println!("{:?}", agent.limits());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No model was set, the name of the model is unknown, two tools have the same name, the directory or database of
    /// the journal cannot be used, an agent file names an unknown model or skill, or a setting has no effect:
    /// [`BuildError::NoEffect`], [`BuildError::Needs`].
    pub fn build(mut self) -> Result<Archon, BuildError> {
        self.check()?;
        let mut parts = self.clone();
        #[cfg(feature = "skills")]
        self.add_file_agents()?;
        let extensions = self.take_extensions();
        #[cfg(feature = "skills")]
        let skills = extensions.skills.clone();
        let http = &self.http.unwrap_or_default();
        let (mut providers, model) = self.model.ok_or(BuildError::NoModel)?.ready(&self.keys, http)?;
        let keys = providers.split_off(1);
        let provider = providers.swap_remove(0);
        let ready = |choice: FallbackChoice| choice.ready(http);
        let fallbacks: Vec<Fallback> = self.fallbacks.into_iter().map(ready).collect::<Result<_, _>>()?;
        let toolbox = match self.toolbox {
            Some(toolbox) => toolbox,
            None => registry_of(self.tools, self.engine.unwrap_or_default(), self.guards)?,
        };
        let toolbox = extensions.around(toolbox);
        let journal = journal_of(self.journal.as_ref())?;
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let ids = self.ids.unwrap_or_else(|| Arc::new(RandomIds));
        parts.journal = Some(Runs::Given(journal.clone()));
        (parts.clock, parts.ids) = (Some(clock.clone()), Some(ids.clone()));
        let mut options = self.options;
        options.model = model;
        options.agent_id = self.agent_id.unwrap_or_else(|| AgentId::new(ids.fresh("agent")));
        fit_window(self.context, &mut options, &*provider);
        #[cfg(feature = "planner")]
        let models =
            crate::models::Models::new((&provider, &keys), &fallbacks, &options.retry, (&clock, &ids));
        let mut agent = ReactAgent::new(provider, journal.clone(), options)
            .with_keys(keys)
            .with_fallbacks(fallbacks)
            .with_toolbox(toolbox.clone())
            .with_context_parts(self.context_parts.unwrap_or_default())
            .with_input_filters(self.filters);
        if let Some(hooks) = self.hooks {
            agent = agent.with_hooks(hooks);
        }
        if let Some(approver) = self.approver {
            agent = agent.with_approver(approver);
        }
        agent = with_surroundings(agent, self.run_memory, self.instructions, self.snapshots);
        Ok(Archon {
            agent,
            parts: Arc::new(parts),
            #[cfg(feature = "planner")]
            models,
            toolbox,
            journal,
            clock,
            ids,
            auto_save: self.auto_save,
            memory_limit: self.memory_limit,
            credentials: self.credentials,
            #[cfg(feature = "skills")]
            skills,
        })
    }

    /// Takes the skills and the event hooks out of the builder. Adds the tool that activates skills, and defers
    /// tools.
    fn take_extensions(&mut self) -> Extensions {
        #[cfg(feature = "skills")]
        let skills = self.take_skills();
        self.defer_tools();
        Extensions {
            #[cfg(feature = "skills")]
            skills,
            #[cfg(feature = "hooks")]
            events: self.take_event_hooks(),
        }
    }

    /// Defers tools if their definitions have more tokens than the budget, and adds the tools that search and
    /// call deferred tools.
    fn defer_tools(&mut self) {
        #[cfg(feature = "tool-search")]
        {
            let budget = self.definition_budget.unwrap_or(archon_tool_search::DEFINITION_TOKENS);
            let mut always = self.always_defined.clone();
            if let archon_types::ToolChoice::Tool(name) = &self.options.request.tool_choice {
                always.insert(name.clone());
            }
            let (sources, known): (Vec<_>, Vec<_>) =
                self.tools.iter().cloned().partition(|tool| tool.source().is_some());
            self.options.tool_sources = sources.iter().map(|tool| tool.spec().clone()).collect();
            let specs = known.iter().map(|tool| tool.spec());
            let embedder = self.tool_embedder.clone();
            let deferral = archon_tool_search::Deferral::new(specs, sources, &always, budget, embedder);
            if let Some(deferral) = deferral {
                self.tools.extend(deferral.tools);
                self.options.deferred_tools = Arc::new(deferral.names);
            }
        }
    }

    /// Takes the skills out of the builder. If a model may activate some of them, also adds the tool that activates
    /// skills and the note that lists them.
    #[cfg(feature = "skills")]
    fn take_skills(&mut self) -> Option<Arc<archon_skills::SkillConversations>> {
        let conversations = crate::skill_toolbox::conversations(self.skills.take()?);
        if let Some(tool) = archon_skills::ActivateSkill::new(conversations.clone()) {
            let note = crate::skill_toolbox::note(&conversations);
            self.options.tool_notes.insert(tool.spec().name.clone(), note);
            self.tools.push(Arc::new(tool));
        }
        Some(conversations)
    }

    /// Takes the event hooks (commands and HTTP endpoints) out of the builder, and also adds them as an input filter
    /// and as hooks.
    #[cfg(feature = "hooks")]
    fn take_event_hooks(&mut self) -> Option<archon_hooks::EventHooks> {
        let events = self.event_hooks.take()?;
        self.filters.push(Arc::new(events.clone()));
        let own = self.hooks.take();
        self.hooks =
            Some(Arc::new(own.into_iter().fold(events.clone(), archon_hooks::EventHooks::with_hooks)));
        Some(events)
    }

    /// Copies those settings of an agent that were changed after it was built.
    fn copy_changes_of(&mut self, archon: &Archon) {
        let own = archon.agent.options();
        self.options.request.response_format.clone_from(&own.request.response_format);
        self.options.output_check = own.output_check;
    }
}

/// Adds the memory, the instructions and the workspace snapshots, if they are given.
fn with_surroundings(
    mut agent: ReactAgent,
    memory: Option<Arc<dyn RunMemory>>,
    instructions: Option<Arc<dyn Instructions>>,
    snapshots: Option<Arc<dyn WorkspaceSnapshots>>,
) -> ReactAgent {
    if let Some(memory) = memory {
        agent = agent.with_memory(memory);
    }
    if let Some(instructions) = instructions {
        agent = agent.with_instructions(instructions);
    }
    if let Some(snapshots) = snapshots {
        agent = agent.with_snapshots(snapshots);
    }
    agent
}

/// Sets the size of the context window: the configured size, or else the size that the provider reports for the
/// model.
fn fit_window(
    context: Option<Option<ContextConfig>>,
    options: &mut ReactAgentOptions,
    provider: &dyn Provider,
) {
    match (context, &mut options.context) {
        (Some(context), _) => options.context = context,
        (None, Some(config)) => {
            let window = provider.capabilities(&options.model).context_window;
            config.max_context_tokens = window.unwrap_or(config.max_context_tokens);
        }
        (None, None) => {}
    }
}

/// Opens the journal; without one, creates a journal in memory.
fn journal_of(journal: Option<&Runs>) -> Result<Arc<dyn Journal>, BuildError> {
    match journal {
        Some(journal) => Ok(journal.opened()?),
        None => Ok(Arc::new(InMemoryJournal::new())),
    }
}

fn registry_of(
    tools: Vec<Arc<dyn Tool>>,
    options: EngineOptions,
    guards: Vec<Arc<dyn CallGuard>>,
) -> Result<Arc<dyn Toolbox>, BuildError> {
    let registry = ToolRegistry::new();
    registry.register_all(tools)?;
    Ok(Arc::new(ToolEngine::new(registry).with_options(options).with_guards(guards)))
}
