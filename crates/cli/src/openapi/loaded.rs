//! The APIs of a command with their tools, read at their first use. An API that cannot be used is left out, and the others
//! work.

use std::sync::Arc;

use archon::{openapi::OpenApiTools, types::Tool};

use super::{copy, credentials::with_secrets, entry};
use crate::{
    app::App, config::ApiSettings, failure::Failure, loaded_apis::Api, servers::Tools, text::one_line,
};

/// Returns all APIs of the settings, ordered by name.
pub(crate) fn all(app: &App) -> &[Api] {
    app.apis.apis.get_or_init(|| {
        let apis = app.config.settings.openapi.iter().flat_map(|apis| apis.iter());
        apis.map(|(name, settings)| api(app, name, settings)).collect()
    })
}

fn api(app: &App, name: &str, settings: &ApiSettings) -> Api {
    let (name, none) = (name.to_owned(), Vec::new());
    if settings.enabled == Some(false) {
        return Api { name, tools: None, left_out: none };
    }
    match tools_of(app, &name, settings) {
        Ok(OpenApiTools { tools, warnings, .. }) => {
            let tools = tools.into_iter().map(|tool| tool as Arc<dyn Tool>).collect();
            let left_out = warnings.iter().map(|warning| one_line(&warning.to_string(), 500)).collect();
            Api { name, tools: Some(Ok(tools)), left_out }
        }
        Err(failure) => Api { name, tools: Some(Err(failure)), left_out: none },
    }
}

fn tools_of(app: &App, name: &str, settings: &ApiSettings) -> Result<OpenApiTools, Failure> {
    if app.config.settings.mcp.as_ref().is_some_and(|servers| servers.has(name)) {
        let what = format!("{}: an MCP server of the settings has the same name", entry::place(name));
        return Err(Failure::usage(what, "rename one of them: their tools would have the same names"));
    }
    let document = copy::read(app, name, settings)?;
    let config = with_secrets(app, name, settings, |secrets| entry::config(name, settings, secrets))?;
    document.tools(config, &entry::filter(settings)).map_err(|e| entry::wrong(name, &e))
}

/// The number of parts of a document that a text names.
const NAMED: usize = 5;

/// Returns the tools of all APIs. At the first call, writes a warning about each API that is left out, and about the parts
/// that are left out of the others.
pub(crate) fn tools(app: &App) -> Tools {
    let apis = all(app);
    app.apis.warned.get_or_init(|| {
        for failure in apis.iter().filter_map(|api| api.tools.as_ref()?.as_ref().err()) {
            app.output.warn(format!("{}: it is not used; {}", failure.what(), failure.advice_line()));
        }
        for api in apis.iter().filter(|api| !api.left_out.is_empty()) {
            app.output.warn(format!("{}: {}", entry::place(&api.name), first_left_out(&api.left_out)));
        }
        conflicts(app).for_each(|text| app.output.warn(text));
    });
    apis.iter().filter_map(|api| api.tools.as_ref()?.as_ref().ok()).flatten().cloned().collect()
}

/// Returns a text with the number of the parts that are left out, the first of them, and the way to see the others.
fn first_left_out(all: &[String]) -> String {
    let named = all[..all.len().min(NAMED)].join("; ");
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; {more} more: archon openapi list --json"),
    };
    format!("{} parts left out: {named}{more}", all.len())
}

/// Returns a line about each API of a project that is not used, because the user's own settings have an API with the
/// same name.
fn conflicts(app: &App) -> impl Iterator<Item = String> {
    let apis = app.config.settings.openapi.iter().flat_map(|apis| apis.iter());
    apis.filter(|(_, settings)| settings.hides_one_of_project).map(|(name, _)| {
        let place = entry::place(name);
        format!(
            "{place} of the project is not used: your own settings have one of this name; rename one of them"
        )
    })
}

/// Returns the reason why a tool of an API is missing; `None` if the tool's name belongs to no API.
pub(crate) fn missing(app: &App, tool: &str) -> Option<Failure> {
    let of_api = |api: &&Api| tool.strip_prefix(&api.name).is_some_and(|rest| rest.starts_with("__"));
    let api = all(app).iter().find(of_api)?;
    let place = entry::place(&api.name);
    Some(match &api.tools {
        None => {
            let advice = format!("enable it: archon config set openapi.{}.enabled true", api.name);
            Failure::usage(format!("{place} is not enabled"), advice)
        }
        Some(Err(failure)) => failure.clone(),
        Some(Ok(_)) => Failure::usage(
            format!("{place} has no operation for {tool:?}"),
            "list the tools: archon tools list; operations that are no tools: archon doctor",
        ),
    })
}

/// Describes the APIs for `archon doctor`: for each API true if all its operations can be used, and a line about it.
pub(crate) fn findings(app: &App) -> Vec<(bool, String)> {
    let line = |api: &Api| {
        let (is_ok, found) = match &api.tools {
            None => (true, "not enabled".to_owned()),
            Some(Err(failure)) => return (false, failure.line()),
            Some(Ok(tools)) => match api.left_out.as_slice() {
                [] => (true, format!("{} tools", tools.len())),
                all => (false, format!("{} tools; {}", tools.len(), first_left_out(all))),
            },
        };
        (is_ok, format!("{}: {found}", api.name))
    };
    all(app).iter().map(line).chain(conflicts(app).map(|text| (false, text))).collect()
}
