//! The configured servers: those of the user's settings, and those of the project's file.

use archon::{mcp::McpServer, types::nearest};

use super::{project, server};
use crate::{
    app::App,
    command_line::in_data_dir,
    config::{Agreements, ServerSettings},
    failure::Failure,
    servers::{Entry, LeftOut, Place},
    text::visible_path,
};

/// The problem with a project's server that has the name of an API.
const SAME_NAME: &str = "an API of the settings has the same name";

/// Returns all servers, ordered by name. A server of the user's own settings replaces the project's server
/// with the same name.
///
/// # Errors
/// The second value is the problem with the project's file, if it cannot be read.
pub(crate) fn all(app: &App) -> (Vec<Entry>, Option<Failure>) {
    let own = app.config.settings.mcp.clone().unwrap_or_default();
    let mut entries: Vec<_> = own.iter().map(|(name, settings)| Entry::of(name, settings.clone())).collect();
    let Some(file) = project::path(app) else { return (entries, None) };
    let (written, problem) = match project::read(&file) {
        Ok(written) => (written, None),
        Err(e) => (Vec::new(), Some(e)),
    };
    for project::Written { name, text, settings } in written {
        if own.has(&name) {
            continue;
        }
        let has_api = app.config.settings.openapi.as_ref().is_some_and(|apis| apis.get(&name).is_some());
        let (settings, problem) = match settings {
            // What a person allowed the API would hold for the tools of the server.
            Ok(_) if has_api => (ServerSettings::default(), Some(SAME_NAME.to_owned())),
            Ok(settings) => (settings, None),
            Err(problem) => (ServerSettings::default(), Some(problem)),
        };
        entries.push(Entry { name, settings, project: Some(Place { file: file.clone(), text }), problem });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    (entries, problem)
}

/// Returns the server with this name.
///
/// # Errors
/// [`Failure`] if there is no such server; the advice has the nearest name, or the problem with the
/// project's file.
pub(crate) fn find(app: &App, name: &str) -> Result<Entry, Failure> {
    let (mut entries, problem) = all(app);
    if let Some(at) = entries.iter().position(|entry| entry.name == name) {
        return Ok(entries.swap_remove(at));
    }
    if let Some(problem) = problem {
        return Err(problem);
    }
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let advice = match nearest(name, names.iter().copied()) {
        Some(meant) => format!("did you mean {meant}?"),
        None if names.is_empty() => "add one: archon mcp add NAME -- COMMAND".to_owned(),
        None => format!("the servers are: {}", names.join(", ")),
    };
    Err(Failure::usage(format!("there is no MCP server {name:?}"), advice))
}

impl Entry {
    pub(super) fn of(name: &str, settings: ServerSettings) -> Self {
        Self { name: name.to_owned(), settings, project: None, problem: None }
    }

    /// Returns the settings of the server with the values of their variables.
    ///
    /// # Errors
    /// The reason for which the server is not used.
    pub(crate) fn server(&self, app: &App) -> Result<McpServer, LeftOut> {
        if self.settings.enabled == Some(false) {
            return Err(LeftOut::Disabled);
        }
        if let Some(problem) = &self.problem {
            return Err(LeftOut::Wrong(self.wrong(problem)));
        }
        if !self.is_agreed(app).map_err(LeftOut::Wrong)? {
            return Err(LeftOut::NotAgreed);
        }
        server::of(app, self).map_err(LeftOut::Wrong)
    }

    /// Returns true if the server may be used: it is the user's own, or a person agreed to its exact entry.
    pub(crate) fn is_agreed(&self, app: &App) -> Result<bool, Failure> {
        match &self.project {
            None => Ok(true),
            Some(place) => {
                Agreements::in_folder(&app.data_dir).hold_server(&place.file, &self.name, &place.text)
            }
        }
    }

    /// Returns the place of the server's settings, for people.
    pub(crate) fn display_place(&self, app: &App) -> String {
        let file = self.project.as_ref().map(|place| &place.file).or(app.sources.user.as_ref());
        file.map_or_else(|| "the settings".to_owned(), |file| visible_path(file))
    }

    fn wrong(&self, problem: &str) -> Failure {
        let file = self.project.as_ref().map(|place| place.file.display().to_string()).unwrap_or_default();
        Failure::usage(
            format!("{file}: the MCP server {:?}: {problem}", self.name),
            "correct the entry, or remove it",
        )
    }
}

impl LeftOut {
    /// Returns the error for a command that needs the server.
    pub(crate) fn failure(self, app: &App, entry: &Entry) -> Failure {
        let name = &entry.name;
        match self {
            Self::Disabled => {
                let what = format!("{}: the MCP server '{name}' is not enabled", entry.display_place(app));
                Failure::usage(what, format!("enable it: archon config set mcp.{name}.enabled true"))
            }
            Self::NotAgreed => {
                let what = format!(
                    "{}: no person has agreed to the MCP server '{name}' with this entry",
                    entry.display_place(app)
                );
                let command = in_data_dir(app, &format!("archon mcp approve {name}"));
                Failure::usage(what, format!("show it and agree: {command}"))
            }
            Self::Wrong(failure) => failure,
        }
    }
}
