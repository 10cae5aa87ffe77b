//! The stand-in without the feature `mcp`: explains how to build the program with it.

use super::not_built;
use crate::{
    app::App,
    config::Problem,
    failure::Failure,
    servers::{Connected, Tools},
};

/// Returns no tools, and warns of servers in the settings.
pub(crate) async fn tools(app: &App) -> Tools {
    for (_, found) in findings(app).await {
        app.output.warn(format!("going on without the servers of the settings: {found}"));
    }
    Vec::new()
}

/// Returns the reason why a tool is missing: never a server.
pub(crate) fn missing(_: &App, _: &str) -> Option<Failure> {
    None
}

/// Closes nothing.
pub(crate) async fn close(app: &App) {
    let Connected = *app.mcp;
}

/// Describes the servers of the settings for `archon doctor`.
pub(crate) async fn findings(app: &App) -> Vec<(bool, String)> {
    let has_servers = app.config.settings.mcp.as_ref().is_some_and(|servers| servers.iter().next().is_some());
    let failure = not_built().filter(|_| has_servers);
    failure.into_iter().map(|e| (false, format!("{}; {}", e.what(), e.advice().join("; ")))).collect()
}

/// Returns no problems, since the file is not read.
pub(crate) fn file_problems(_: &str) -> Vec<Problem> {
    Vec::new()
}
