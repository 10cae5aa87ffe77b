//! The part of `archon trust` about the APIs of a project: for each, the document, the servers that requests go to, and
//! the values that are sent, each on a line of its own.

use super::{
    copy,
    credentials::placeholders,
    entry::{config, filter, wrong},
};
use crate::{
    app::App,
    config::{ApiAuthForm, ApiSettings, Apis},
    credentials::service_of,
    failure::Failure,
    text::visible_line,
};

/// Describes the APIs of a project for the person who is asked to agree to them.
pub(crate) fn agreement_lines(app: &App, apis: &Apis) -> Vec<String> {
    apis.iter().flat_map(|(name, settings)| of_api(app, name, settings)).collect()
}

fn of_api(app: &App, name: &str, settings: &ApiSettings) -> Vec<String> {
    let line = |what: &str, text: &str| format!("  {what:<17}{}", visible_line(text));
    let mut lines = vec![visible_line(&format!("[openapi.{name}]:")), line("document", &settings.document)];
    match servers(app, name, settings) {
        Ok(servers) => lines.extend(servers.iter().map(|server| line("requests go to", server))),
        Err(failure) => lines.push(line("it is of no use", &failure.line())),
    }
    let form = settings.auth.as_ref().and_then(|auth| auth.form());
    if let Some(ApiAuthForm::Program { token_url, .. }) = form {
        lines.push(line("tokens come from", token_url));
    }
    let mut variables = settings.variables();
    variables.sort_unstable();
    variables.dedup();
    lines.extend(variables.iter().map(|variable| line("sends", &in_words(variable))));
    if variables.is_empty() {
        lines.push(line("sends", "no variable of your environment"));
    }
    let own = app.config.settings.openapi.as_ref().and_then(|own| own.get(name));
    if own.is_some_and(|own| !own.is_of_project) {
        lines.push(line("it is not used", "your own settings have an API of this name"));
    }
    lines
}

/// Returns the servers that requests go to.
///
/// # Errors
/// [`Failure`] if the document cannot be read, or is not that of the settings.
pub(crate) fn servers(app: &App, name: &str, settings: &ApiSettings) -> Result<Vec<String>, Failure> {
    let document = copy::read(app, name, settings)?;
    let config = config(name, settings, &placeholders())?;
    let tools = document.tools(config, &filter(settings)).map_err(|e| wrong(name, &e))?;
    Ok(tools.servers())
}

fn in_words(variable: &str) -> String {
    match service_of(variable) {
        Some(service) => format!("nothing for {variable}: the key of {} is refused", service.name),
        None => format!("the variable {variable} of your environment"),
    }
}
