//! The agents of a folder, ready to serve.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use archon::{
    Archon, ArchonBuilder, RandomIds, Runs, SystemClock,
    memory::{InMemoryStore, Memory},
    orchestrator::{
        AgentPool, AgentTool, Assistant, Incoming, LongTermSteps, ModelReader, Steps, TenantContext, Zone,
    },
    server::{Server, axum::Router},
    triggers::{TriggerEngine, TriggerParts},
    types::{BoxFuture, CredentialStore, LongTerm, MemoryStore, Tool},
};

use super::{
    ASSISTANT, Folder,
    accounts::{SomeAccounts, WithAccounts},
    conversations::{OpenQuestions, ServedConversations},
    description::Description,
    file_tasks, folder, id_of,
    messages::Messages,
    probes,
};
use crate::{
    agent_files,
    app::App,
    assemble, choose,
    config::{AgentSettings, ToolSelection},
    credentials,
    failure::Failure,
    memory,
};

/// Agents by their names, as in settings.
type Agents = BTreeMap<String, AgentSettings>;

/// The agents of a folder, built for the tenants of the tokens.
pub(crate) struct Assisted {
    folder: Folder,
    main: Archon,
    /// The agents without a caller, whose runs the triggers start.
    agents: Vec<Archon>,
    tools: Vec<AgentTool>,
    /// The probes that the conditions of the tasks read.
    task_parts: TriggerParts,
    memories: BTreeMap<String, Memory>,
    /// The tenant of each token.
    tenants: BTreeMap<String, String>,
}

impl Assisted {
    /// Builds the agents. `tenants` has the tenant of each token.
    ///
    /// # Errors
    /// [`Failure`] if there is no model, or an agent or a memory cannot be used.
    pub(crate) async fn build(
        app: &App,
        folder: Folder,
        tenants: BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let names: BTreeSet<String> = tenants.values().cloned().collect();
        let memories = memory::of_tenants(app, names.into_iter()).await?;
        let all: Agents = folder
            .agents
            .iter()
            .map(|agent| (agent.file.name.clone(), folder::settings(&agent.file)))
            .collect();
        let (mut agents, mut tools, mut task_parts) = (Vec::new(), Vec::new(), TriggerParts::new());
        for agent in &folder.agents {
            let accounts = accounts(app, agent)?;
            let of_agent = with_rules(app, agent);
            task_parts = probes::add(task_parts, &of_agent, &agent.triggers, accounts.as_ref()).await?;
            let builder = builder(&of_agent, agent, Agents::new()).await?;
            let built = match &accounts {
                Some(accounts) => builder.credentials(accounts.clone()).build()?,
                None => builder.build()?,
            };
            tools.push(tool(agent, built.clone(), accounts));
            agents.push(built);
        }
        let exposed = tools.iter().map(|tool| Arc::new(tool.clone()) as Arc<dyn Tool>);
        let main = builder(&with_rules(app, &folder.persona), &folder.persona, all).await?;
        let main = main.tools(exposed).build()?;
        Ok(Self { folder, main, agents, tools, task_parts, memories, tenants })
    }

    /// Returns the main agent.
    pub(crate) fn main(&self) -> &Archon {
        &self.main
    }

    /// Returns the agents of the files.
    pub(crate) fn agents(&self) -> &[Archon] {
        &self.agents
    }

    /// Returns the ids of the agents of the files, with their descriptions.
    pub(crate) fn described(&self) -> Vec<(String, String)> {
        let files = self.folder.agents.iter().map(|agent| &agent.file);
        files.map(|file| (id_of(&file.name), file.description.clone())).collect()
    }

    /// Returns the probes that the tasks of agent files need.
    pub(crate) fn task_parts(&self) -> TriggerParts {
        self.task_parts.clone()
    }

    /// Returns the memories of a tenant.
    pub(crate) fn memories_of(&self, tenant: &str) -> Option<Arc<dyn MemoryStore>> {
        self.memories.get(tenant).map(|memory| memory.store().clone())
    }

    /// Creates, replaces and deletes stored tasks, so that they follow the triggers in the agent files.
    ///
    /// # Errors
    /// [`Failure`] if the tasks cannot be read or stored.
    pub(crate) async fn settle_tasks(&self, app: &App, engine: &TriggerEngine) -> Result<(), Failure> {
        let triggers = self.folder.agents.iter().flat_map(|agent| &agent.triggers);
        file_tasks::settle(app, engine, triggers, |agent| self.folder.knows_triggers_of(agent)).await
    }

    /// Returns the router for messages, behind the checks of the server.
    ///
    /// # Errors
    /// [`Failure`] if the persona or the journal cannot be used.
    pub(crate) async fn router(&self, app: &App, server: &Server, runs: &Runs) -> Result<Router, Failure> {
        let clock = Arc::new(SystemClock);
        let index = Arc::new(OpenQuestions(runs.clone()));
        let pool = AgentPool::new(index, app.open_journal()?, clock.clone(), Arc::new(RandomIds));
        let persona = agent_files::system_prompt(app, &self.folder.persona.file)?;
        let file = &self.folder.persona.file;
        let chosen = match &file.model {
            Some(model) => choose::of_member(app, model, &agent_files::path(file)).await?,
            None => choose::model(app, None).await?,
        };
        let memories = self.memories.clone();
        let steps =
            LongTermSteps::new(InZone(self.folder.zone.clone()), move |tenant| -> Arc<dyn LongTerm> {
                Arc::new(match memories.get(tenant.as_str()) {
                    Some(memory) => memory.long_term(),
                    // Messages come from the tenants of tokens only. Another one has nothing to recall.
                    None => Memory::new(
                        Arc::new(InMemoryStore::new()),
                        Arc::new(SystemClock),
                        Arc::new(RandomIds),
                    )
                    .long_term(),
                })
            });
        let conversations = Arc::new(ServedConversations(runs.clone()));
        let assistant = Assistant::new(persona, conversations, pool.with_agents(&self.tools), clock)
            .with_capabilities(&self.main.toolbox().specs())
            .with_steps(Arc::new(steps))
            .with_reader(Arc::new(ModelReader::new(chosen.provider, chosen.model)));
        let tenants = self.tenants.iter().map(|(token, tenant)| (token.clone(), tenant.as_str().into()));
        Ok(Messages::new(assistant, tenants.collect()).router(server))
    }
}

/// Returns the context of an agent, with the permission rules of its file.
fn with_rules(app: &App, agent: &Description) -> App {
    let mut app = app.clone();
    let permissions = app.config.settings.permissions.get_or_insert_default();
    permissions.ask.extend(agent.asking.iter().cloned());
    app
}

/// Returns the builder of an agent, which may call `agents` without a question.
async fn builder(app: &App, agent: &Description, mut agents: Agents) -> Result<ArchonBuilder, Failure> {
    let mut app = app.clone();
    let settings = &mut app.config.settings;
    let name = agent.file.name.as_str();
    agents.insert(name.to_owned(), folder::settings(&agent.file));
    settings.agents = Some(agents);
    settings.tools = Some(match agent.file.tools {
        Some(_) => ToolSelection::All,
        None => ToolSelection::None,
    });
    let place = agent_files::path(&agent.file);
    let (builder, _) = assemble::alone(&app, name).await.map_err(|e| e.at(&place))?;
    Ok(match name {
        ASSISTANT => builder,
        name => builder.agent_id(id_of(name)),
    })
}

fn tool(agent: &Description, built: Archon, accounts: Option<Arc<dyn CredentialStore>>) -> AgentTool {
    let inner = Arc::new(WithAccounts { agent: built, accounts });
    let tool = AgentTool::new(agent.file.name.as_str(), agent.file.description.as_str(), inner);
    let tool = agent.fields.iter().cloned().fold(tool, AgentTool::field);
    if agent.is_confirmed { tool.needs_approval() } else { tool }
}

/// Returns the accounts that the file of an agent names; `None` if it names none.
fn accounts(app: &App, agent: &Description) -> Result<Option<Arc<dyn CredentialStore>>, Failure> {
    if agent.credentials.is_empty() {
        return Ok(None);
    }
    let store = credentials::open(&app.data_dir, &app.sources)?;
    Ok(Some(Arc::new(SomeAccounts::new(store, agent.credentials.clone()))))
}

/// The time zone of all messages.
struct InZone(Zone);

impl Steps for InZone {
    fn prepare_context<'a>(&'a self, _: &'a Incoming) -> BoxFuture<'a, TenantContext> {
        let mut context = TenantContext::default();
        context.zone = self.0.clone();
        Box::pin(std::future::ready(context))
    }
}
