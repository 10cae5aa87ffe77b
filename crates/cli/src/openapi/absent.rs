//! The replacement without the feature `openapi`: explains that the program must be built with the feature.

use crate::{app::App, config::Apis, failure::Failure, servers::Tools};

/// Returns no tools, and writes a warning about APIs in the settings.
pub(crate) fn tools(app: &App) -> Tools {
    app.apis.warned.get_or_init(|| {
        for (_, found) in findings(app) {
            app.output.warn(format!("the APIs of the settings are not used: {found}"));
        }
    });
    Tools::new()
}

/// Returns `None`: without the feature no missing tool is one of an API.
pub(crate) fn missing(_: &App, _: &str) -> Option<Failure> {
    None
}

/// Returns no lines: without the feature no document is read. The settings themselves are shown.
pub(crate) fn agreement_lines(_: &App, _: &Apis) -> Vec<String> {
    Vec::new()
}

/// Describes the APIs of the settings for `archon doctor`.
pub(crate) fn findings(app: &App) -> Vec<(bool, String)> {
    let has_apis = app.config.settings.openapi.as_ref().is_some_and(|apis| apis.iter().next().is_some());
    let failure = Failure::usage("OpenAPI is not in this build", "build with `--features openapi`");
    has_apis.then(|| (false, failure.line())).into_iter().collect()
}
