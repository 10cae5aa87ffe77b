//! The summary of an imported document: operations, servers, credentials, variables, and the parts that were left out.

use std::path::Path;

use archon::openapi::{OpenApiDocument, OpenApiTools, SecurityScheme};
use serde_json::json;

use super::auth::in_words;
use crate::{
    app::App,
    command_line::in_data_dir,
    config::ApiSettings,
    credentials,
    text::{one_line, visible_path},
};

/// Maximum number of parts that are named for a person.
const NAMED: usize = 10;

/// The data for the summary of an import.
pub(super) struct Summary<'i> {
    pub(super) name: &'i str,
    pub(super) document: &'i OpenApiDocument,
    pub(super) tools: &'i OpenApiTools,
    pub(super) schemes: &'i [SecurityScheme],
}

impl Summary<'_> {
    /// Prints the summary, then the next steps.
    pub(super) fn print(&self, app: &App, settings: &ApiSettings, file: &Path, copy: &Path) {
        let Self { name, document, tools, schemes } = self;
        let servers = tools.servers();
        let left_out: Vec<_> = tools
            .warnings
            .iter()
            .map(|one| json!({ "line": one.line, "pointer": one.pointer, "problem": one.problem }))
            .collect();
        let credentials: Vec<_> =
            schemes.iter().map(|one| json!({ "scheme": one.name, "form": in_words(&one.kind) })).collect();
        let sends = settings.variables();
        let missing: Vec<&str> =
            sends.iter().copied().filter(|variable| app.env(variable).is_none()).collect();
        let item = json!({
            "name": name, "title": document.title(), "tools": tools.tools.len(), "left_out": left_out,
            "servers": servers, "credentials": credentials, "sends": sends, "missing_variables": missing,
            "file": file, "copy": copy, "digest": settings.digest,
        });
        app.item(&item, || self.text(&servers, &settings.secrets_in_words()));
        app.note(format!("{}: [openapi.{name}]; the copy: {}", visible_path(file), visible_path(copy)));
        if settings.has_person_sign_in() {
            let command = in_data_dir(app, &format!("archon openapi login {name}"));
            app.note(format!("sign in with a browser: {command}"));
        }
        for variable in missing {
            let service = credentials::service_of(variable).map_or(variable, |service| service.name);
            let command = in_data_dir(app, &format!("archon credentials add {service}"));
            app.note(format!("{variable} is missing; store it: {command}"));
        }
    }

    fn text(&self, servers: &[String], sends: &[&str]) -> String {
        let Self { name, document, tools, schemes } = self;
        let (made, left_out) = (tools.tools.len(), tools.warnings.len());
        let mut lines = vec![format!("{}: {made} tools, named {name}__…", document.title())];
        lines.extend(servers.iter().map(|server| format!("  server       {server}")));
        lines.extend(
            schemes
                .iter()
                .map(|scheme| format!("  credentials  {}: {}", scheme.name, in_words(&scheme.kind))),
        );
        lines.extend(sends.iter().map(|variable| format!("  sends        {variable}")));
        let warnings = tools.warnings.iter().take(NAMED);
        lines.extend(
            warnings.map(|warning| format!("  left out     {}", one_line(&warning.to_string(), 500))),
        );
        if left_out > NAMED {
            lines.push(format!("  left out     {} more parts; --json names all", left_out - NAMED));
        }
        lines.join("\n")
    }
}
