//! The workspace of the command's tools.

use std::path::Path;

use archon::tools::Workspace;

use crate::{app::App, failure::Failure};

/// Returns the workspace of the settings, without Archon's own folders.
///
/// # Errors
/// [`Failure`] if the folder cannot be used.
pub(crate) fn tool_workspace(app: &App) -> Result<Workspace, Failure> {
    let path = app.config.settings.workspace.as_deref().unwrap_or(Path::new("."));
    let advice = "choose a folder that you may read: --workspace DIR, or use --tools none";
    let workspace = Workspace::new(path).map_err(|e| Failure::usage(e.to_string(), advice))?;
    // Excludes permission rules, agreements and the signing key: a tool that writes there could decide which
    // calls need an approval.
    let workspace = workspace.without(&app.data_dir, "Archon's data");
    Ok(match app.sources.user.as_deref().and_then(Path::parent) {
        Some(settings) => workspace.without(settings, "Archon's settings"),
        None => workspace,
    })
}
