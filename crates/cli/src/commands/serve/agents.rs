//! The agents whose runs clients start.

use std::sync::Arc;

use archon::{
    Archon, Runs,
    memory::Memory,
    server::{Scope, Server, axum::Router},
    types::{Collection, Confirm, MemoryStore, RunAgent},
};

use super::{
    Offered,
    by_log::ByLog,
    own_folder::OwnFolder,
    tasks::{TaskParts, Tasks},
    tokens::{Access, Tokens},
};
#[cfg(all(unix, feature = "mcp-serve"))]
use crate::commands::mcp::offer::Offer;
use crate::{
    app::{AGENT, App},
    assemble,
    config::ServeSettings,
    failure::Failure,
    memory,
    planning::planning,
    toolset,
};

/// The agents of a server.
pub(super) struct Agents {
    /// The default agent, for requests that name no agent.
    own: Archon,
    others: Vec<Arc<dyn RunAgent>>,
    /// The agents of the settings that clients may start, with their descriptions.
    described: Vec<(String, String)>,
    /// The memory of the default agent.
    memory: Option<Memory>,
    #[cfg(all(unix, feature = "mcp-serve"))]
    offer: Option<Offer>,
    /// The assistant whose agents these are; `None` for agents of the settings.
    #[cfg(all(feature = "skills", feature = "triggers"))]
    assisted: Option<crate::assistant::Assisted>,
}

impl Agents {
    /// Builds the agents that a server offers to the holders of these tokens.
    ///
    /// # Errors
    /// [`Failure`] if there is no model, or a memory, a tool or an agent cannot be used.
    pub(super) async fn build(
        app: &App,
        settings: &ServeSettings,
        offered: Offered,
        tokens: &Tokens,
    ) -> Result<Self, Failure> {
        match offered {
            Offered::Settings(collection) => {
                let memory = match &collection {
                    Some(collection) => Some(open_memory(app, collection, tokens).await?),
                    None => None,
                };
                Self::of_settings(app, settings, memory).await
            }
            #[cfg(all(feature = "skills", feature = "triggers"))]
            Offered::Assistant(folder) => {
                let assisted = crate::assistant::Assisted::build(app, folder, tokens.tenants()).await?;
                Ok(Self {
                    own: assisted.main().clone(),
                    others: assisted.agents().iter().map(Archon::run_agent).collect(),
                    described: assisted.described(),
                    memory: None,
                    #[cfg(all(unix, feature = "mcp-serve"))]
                    offer: None,
                    assisted: Some(assisted),
                })
            }
        }
    }

    /// Builds the default agent of the settings, also for plans, and the others by their names.
    async fn of_settings(
        app: &App,
        settings: &ServeSettings,
        memory: Option<Memory>,
    ) -> Result<Self, Failure> {
        if settings.mcp && !cfg!(all(unix, feature = "mcp-serve")) {
            let what = "`archon serve --mcp` is not in this build";
            return Err(Failure::usage(what, "build with `--features mcp-serve`, on Linux or macOS"));
        }
        // Agents of files are served only by name: a person has them for other programs, too.
        let known = app.config.settings.agents.iter().flatten().filter(|(_, agent)| agent.file.is_none());
        let known = known.map(|(name, _)| name.clone());
        let names: Vec<String> = settings.agents.clone().unwrap_or_else(|| known.collect());
        if names.iter().any(|name| name == AGENT) {
            let what = format!("[agents.{AGENT}]: the default agent of the server has this name");
            return Err(Failure::usage(what, "give the agent another name"));
        }
        // A plan can only use tools that are known.
        toolset::settle(app).await;
        let own = assemble::chosen(app, memory.clone(), None).await?;
        let mut others = vec![planning(&own, Confirm::Never).run_agent()];
        let mut described = Vec::new();
        for name in &names {
            let (builder, description) = assemble::alone(app, name).await?;
            described.push((name.clone(), description));
            others.push(builder.build()?.run_agent());
        }
        #[cfg(all(unix, feature = "mcp-serve"))]
        let offer = match settings.mcp {
            true => Some(Offer::build(app, toolset::of_agent(None, app).await?, &names).await?),
            false => None,
        };
        Ok(Self {
            own,
            others,
            described,
            memory,
            #[cfg(all(unix, feature = "mcp-serve"))]
            offer,
            #[cfg(all(feature = "skills", feature = "triggers"))]
            assisted: None,
        })
    }

    /// Returns the run service. A new run follows the current settings. An existing run continues as its log says, if
    /// it belongs to the server's folder.
    ///
    /// # Errors
    /// [`Failure`] if the journal's folder cannot be created.
    pub(super) fn runs(&self, app: &App) -> Result<Runs, Failure> {
        // The flags are for new runs.
        let by_settings = App { config: app.config.clone().without_flags(), ..app.clone() };
        let (journal, recorded) = (app.open_journal()?, Arc::new(OwnFolder::new(&by_settings)));
        let runs = Runs::new(self.own.clone()).with_source(recorded.clone());
        #[cfg(all(feature = "skills", feature = "triggers"))]
        if self.assisted.is_some() {
            // The logs of these agents do not have all their parts.
            return Ok(self.others.iter().cloned().fold(runs, Runs::with_agent));
        }
        let begin = |runs: Runs, agent: Arc<dyn RunAgent>| {
            runs.with_agent(Arc::new(ByLog::new(agent, journal.clone(), recorded.clone())))
        };
        let runs = begin(runs, self.own.run_agent());
        let runs = self.others.iter().cloned().fold(runs, begin);
        #[cfg(all(unix, feature = "mcp-serve"))]
        let runs = self.offer.iter().flat_map(Offer::run_agents).fold(runs, begin);
        Ok(runs)
    }

    /// Lets a token see the descriptions of the agents, and list memories. For an assistant, these are the memories of
    /// `tenant`, or of the tenant `local` for a token without a tenant; otherwise those of the default agent.
    pub(super) fn add_to(&self, scope: Scope, tenant: Option<&str>) -> Scope {
        let scope = self
            .described
            .iter()
            .fold(scope, |scope, (agent, description)| scope.with_description(agent.as_str(), description));
        match self.memories_of(tenant) {
            Some(memories) => scope.with_memories(memories),
            None => scope,
        }
    }

    fn memories_of(&self, tenant: Option<&str>) -> Option<Arc<dyn MemoryStore>> {
        #[cfg(all(feature = "skills", feature = "triggers"))]
        if let Some(assisted) = &self.assisted {
            return assisted.memories_of(tenant.unwrap_or(crate::config::LOCAL));
        }
        let _ = tenant;
        self.memory.as_ref().map(|memory| memory.store().clone())
    }

    /// Returns the probes that the triggers in agent files read; none without an assistant.
    pub(super) fn task_parts(&self) -> TaskParts {
        #[cfg(all(feature = "skills", feature = "triggers"))]
        if let Some(assisted) = &self.assisted {
            return assisted.task_parts();
        }
        TaskParts::default()
    }

    /// Makes the stored tasks follow the triggers in agent files; does nothing without an assistant.
    ///
    /// # Errors
    /// [`Failure`] if the tasks cannot be read or stored.
    #[cfg_attr(
        not(all(feature = "skills", feature = "triggers")),
        allow(clippy::unused_async, reason = "as with an assistant")
    )]
    pub(super) async fn settle_tasks(&self, app: &App, tasks: &Tasks) -> Result<(), Failure> {
        #[cfg(all(feature = "skills", feature = "triggers"))]
        if let Some(assisted) = &self.assisted {
            assisted.settle_tasks(app, tasks.engine()).await?;
        }
        let _ = (app, tasks);
        Ok(())
    }

    /// Returns the ids of the agents: the default one, and the others.
    fn names(&self) -> Vec<String> {
        let own = self.own.run_agent().id().to_string();
        std::iter::once(own).chain(self.described.iter().map(|(name, _)| name.clone())).collect()
    }

    /// Returns the router of the server, with those for OpenAI clients and, if they are served, for MCP clients and for
    /// messages to an assistant.
    ///
    /// # Errors
    /// [`Failure`] if the assistant cannot be used.
    #[cfg_attr(
        not(all(feature = "skills", feature = "triggers")),
        allow(clippy::unused_async, reason = "as with an assistant")
    )]
    pub(super) async fn mount(
        &self,
        app: &App,
        server: &Server,
        runs: &Runs,
        tokens: &[Access],
    ) -> Result<Router, Failure> {
        let names = self.names();
        let models = super::models::router(names.iter().map(String::as_str), server, tokens);
        let router = server.router().merge(models);
        #[cfg(all(feature = "skills", feature = "triggers"))]
        if let Some(assisted) = &self.assisted {
            return Ok(router.merge(assisted.router(app, server, runs).await?));
        }
        let _ = (app, runs);
        #[cfg(all(unix, feature = "mcp-serve"))]
        if let Some(offer) = &self.offer {
            return Ok(router.merge(super::mcp::router(offer, server, tokens)));
        }
        Ok(router)
    }
}

/// Opens the memory of the default agent.
async fn open_memory(app: &App, collection: &Collection, tokens: &Tokens) -> Result<Memory, Failure> {
    if let Some(name) = tokens.first_of_a_tenant() {
        return Err(Failure::usage(
            format!("the runs of the tenant of the token {name} would read the memory {collection}"),
            "leave the memory out, or serve tenants by a server of their own",
        ));
    }
    memory::open(app, collection).await
}
