//! The agents whose runs clients start.

use std::sync::Arc;

use archon::{
    Archon, Runs,
    memory::Memory,
    server::{Server, axum::Router},
    types::{Confirm, RunAgent},
};

use super::{by_log::ByLog, own_folder::OwnFolder, tokens::Access};
#[cfg(all(unix, feature = "mcp-serve"))]
use crate::commands::mcp::offer::Offer;
use crate::{
    app::{AGENT, App},
    assemble,
    config::ServeSettings,
    failure::Failure,
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
    #[cfg(all(unix, feature = "mcp-serve"))]
    offer: Option<Offer>,
}

impl Agents {
    /// Builds the default agent of the settings, also for plans, and the others by their names.
    ///
    /// # Errors
    /// [`Failure`] if there is no model, or a tool or an agent of the settings cannot be used.
    pub(super) async fn build(
        app: &App,
        settings: &ServeSettings,
        memory: Option<&Memory>,
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
        let own = assemble::chosen(app, memory.cloned(), None).await?;
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
            #[cfg(all(unix, feature = "mcp-serve"))]
            offer,
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
        let begin = |runs: Runs, agent: Arc<dyn RunAgent>| {
            runs.with_agent(Arc::new(ByLog::new(agent, journal.clone(), recorded.clone())))
        };
        let runs = begin(runs, self.own.run_agent());
        let runs = self.others.iter().cloned().fold(runs, begin);
        #[cfg(all(unix, feature = "mcp-serve"))]
        let runs = self.offer.iter().flat_map(Offer::run_agents).fold(runs, begin);
        Ok(runs)
    }

    /// Returns the agents of the settings that clients may start, with their descriptions.
    pub(super) fn described(&self) -> &[(String, String)] {
        &self.described
    }

    /// Returns the ids of the agents: the default one, and the others.
    fn names(&self) -> impl Iterator<Item = &str> + Clone {
        std::iter::once(AGENT).chain(self.described.iter().map(|(name, _)| name.as_str()))
    }

    /// Returns the router of the server, with those for OpenAI clients and, if they are served, for MCP clients.
    pub(super) fn mount(&self, server: &Server, tokens: &[Access]) -> Router {
        let router = server.router().merge(super::models::router(self.names(), server, tokens));
        #[cfg(all(unix, feature = "mcp-serve"))]
        if let Some(offer) = &self.offer {
            return router.merge(super::mcp::router(offer, server, tokens));
        }
        router
    }
}
