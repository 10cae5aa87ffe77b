//! The replacement without the feature `mcp`: explains that the program must be built with the feature.

use super::not_built;
use crate::{
    app::App,
    config::Problem,
    failure::Failure,
    servers::{Connected, Tools},
};

/// Returns no tools, and writes a warning about servers in the settings.
pub(crate) async fn tools(app: &App) -> Tools {
    for (_, found) in findings(app).await {
        app.output.warn(format!("the servers of the settings are not used: {found}"));
    }
    Vec::new()
}

/// Does the same as [`tools`].
pub(crate) async fn named(app: &App, _: &[&str]) -> Tools {
    tools(app).await
}

/// Does nothing: there are no servers.
pub(crate) async fn settle(_: &App, _: &[&str]) {}

/// Does nothing: there are no servers.
pub(crate) async fn settle_all(_: &App) {}

/// Does nothing: there are no servers.
pub(crate) fn retain_callable(_: &App, _: &mut Tools) {}

/// Returns `None`: without the feature `mcp` there are no servers, so no missing tool is one of a server.
pub(crate) fn missing(_: &App, _: &str) -> Option<Failure> {
    None
}

/// Does nothing: there are no servers.
pub(crate) async fn close(app: &App) {
    let Connected = *app.mcp;
}

/// Describes the servers of the settings for `archon doctor`.
pub(crate) async fn findings(app: &App) -> Vec<(bool, String)> {
    let has_servers = app.config.settings.mcp.as_ref().is_some_and(|servers| servers.iter().next().is_some());
    let failure = not_built().filter(|_| has_servers);
    failure.into_iter().map(|e| (false, e.line())).collect()
}

/// Returns no problems, since the file is not read.
pub(crate) fn file_problems(_: &str) -> Vec<Problem> {
    Vec::new()
}
