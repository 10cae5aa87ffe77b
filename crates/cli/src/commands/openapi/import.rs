//! `archon openapi import` and `archon openapi remove`: APIs in the user's settings.

use std::path::Path;

use archon::openapi::OpenApiDocument;
use toml::{Table, Value};

use super::{ImportArgs, auth, summary::Summary};
use crate::{
    app::App,
    config::{ApiSettings, Edit, Name, Owner, is_address, sha256},
    exit::Exit,
    failure::Failure,
    openapi,
    text::visible_path,
};

/// Maximum number of characters of a name that is made from a title.
const LONGEST_NAME: usize = 24;

impl ImportArgs {
    pub(super) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let file = own_settings(app)?;
        let document = match is_address(&self.document) {
            true => {
                app.output.wait("fetching the document");
                let fetched = OpenApiDocument::from_url(&self.document).await;
                app.output.stop_waiting();
                fetched
            }
            false => OpenApiDocument::from_file(&self.document),
        };
        let document = document.map_err(|e| openapi::unusable(&e))?;
        let is_named = self.name.is_some();
        let name = self.name.clone().unwrap_or_else(|| name_of(&document.title()));
        self.check_name(app, &name, file)?;
        let schemes = document.security_schemes();
        let auth = self.auth.clone().unwrap_or_else(|| auth::chosen(&schemes));
        let auth = auth.table(&name, &self.oauth)?;
        let digest = sha256(document.text());
        let table = self.table(&document, &digest, auth);
        let (settings, tools) = checked_tools(&name, &document, &table)?;
        if !is_named {
            check_variables(app, &name, &settings, &tools)?;
        }
        check_servers(app, &name, &settings, &tools)?;
        let copy = openapi::keep(app, document.text(), &digest)?;
        let before = own(app, &name).map(|before| before.digest.clone());
        write(file, &name, table)?;
        if let Some(before) = before.filter(|before| *before != digest) {
            remove_copy(app, &name, &before)?;
        }
        let summary = Summary { name: &name, document: &document, tools: &tools, schemes: &schemes };
        summary.print(app, &settings, file, &copy);
        Ok(Exit::Finished)
    }

    fn check_name(&self, app: &App, name: &str, file: &Path) -> Result<(), Failure> {
        let is_there = Edit::of(file, Owner::User)?.remove(&of_api(name));
        let file = visible_path(file);
        if is_there && !self.replace {
            let what = format!("{file} has an API {name:?} already");
            return Err(Failure::usage(
                what,
                "replace it with --replace, or give the new one a name: --name NAME",
            ));
        }
        if app.config.settings.mcp.as_ref().is_some_and(|servers| servers.has(name)) {
            let what = format!("{file} has an MCP server {name:?}, whose tools would have the same names");
            return Err(Failure::usage(what, "give the API another name: --name NAME"));
        }
        Ok(())
    }

    fn table(self, document: &OpenApiDocument, digest: &str, auth: Option<Table>) -> Table {
        let list = |words: Vec<String>| {
            (!words.is_empty()).then(|| Value::Array(words.into_iter().map(Value::from).collect()))
        };
        let parts = [
            ("document", Some(Value::from(place(document)))),
            ("digest", Some(Value::from(digest))),
            ("base_url", self.base_url.map(Value::from)),
            ("auth", auth.map(Value::Table)),
            ("tags", list(self.tag)),
            ("name_by_path", self.name_by_path.then_some(Value::from(true))),
        ];
        parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// Creates the tools as a run would, but with placeholders for the secrets, which may not be stored yet.
fn checked_tools(
    name: &str,
    document: &OpenApiDocument,
    table: &Table,
) -> Result<(ApiSettings, archon::openapi::OpenApiTools), Failure> {
    let settings: ApiSettings = table.clone().try_into().map_err(|e: toml::de::Error| {
        Failure::usage(format!("API '{name}': {}", e.message()), "correct the flags")
    })?;
    let config = openapi::config(name, &settings, &openapi::placeholders())?;
    let tools = document.tools(config, &openapi::filter(&settings)).map_err(|e| openapi::wrong(name, &e))?;
    if tools.tools.is_empty() {
        let why = tools.warnings.first().map(|warning| format!(": {warning}")).unwrap_or_default();
        let what = format!("API '{name}': no operation of the document can be a tool{why}");
        let advice = match settings.tags.is_empty() {
            true => "correct the document, or set the address of the API: --base-url URL",
            false => "check the tags of --tag",
        };
        return Err(Failure::usage(what, advice));
    }
    Ok((settings, tools))
}

/// Checks that no variable of the credentials has a value already. The variables are named after the API: with a title
/// such as "GitHub", a token for another service would be sent to the servers of the document.
fn check_variables(
    app: &App,
    name: &str,
    settings: &ApiSettings,
    tools: &archon::openapi::OpenApiTools,
) -> Result<(), Failure> {
    let Some(variable) = settings.variables().into_iter().find(|variable| app.env(variable).is_some()) else {
        return Ok(());
    };
    let servers = tools.servers().join(", ");
    Err(Failure::usage(
        format!(
            "API '{name}' has its name from its document, and would send {variable}, which is set, to {servers}"
        ),
        format!("if it should, say the name: --name {name}; else give it another one: --name NAME"),
    ))
}

/// Checks that an API that replaces another one sends its credentials to no server that the earlier one did not have. The
/// keys are stored already, and the new document may be a stranger's. A server that a person names is not checked.
fn check_servers(
    app: &App,
    name: &str,
    settings: &ApiSettings,
    tools: &archon::openapi::OpenApiTools,
) -> Result<(), Failure> {
    let sends = settings.secrets_in_words();
    let Some(before) = own(app, name).filter(|_| settings.base_url.is_none() && !sends.is_empty()) else {
        return Ok(());
    };
    let known = match openapi::servers(app, name, before) {
        Ok(known) => known,
        // The copy is lost, but the same document has the same servers.
        Err(_) if before.digest == settings.digest && before.base_url.is_none() => return Ok(()),
        Err(_) => Vec::new(),
    };
    let mut new = tools.servers();
    new.retain(|server| !known.contains(server));
    if new.is_empty() {
        return Ok(());
    }
    let known = if known.is_empty() { "not known".to_owned() } else { known.join(", ") };
    let (sends, new) = (sends.join(", "), new.join(", "));
    Err(Failure::usage(
        format!(
            "API '{name}' would send {sends} to {new}; the servers of the document that it replaces are {known}"
        ),
        format!(
            "if that server may have it, name it: --base-url URL; or remove the API first: archon openapi remove {name}"
        ),
    ))
}

/// Returns the address of a document, or the whole path of its file.
fn place(document: &OpenApiDocument) -> String {
    let origin = document.origin();
    let path = Path::new(origin).canonicalize().ok().filter(|_| !is_address(origin));
    path.map_or_else(|| origin.to_owned(), |path| path.display().to_string())
}

/// Returns a name in the form of the names of APIs, from a document's title.
fn name_of(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let name = name[..name.len().min(LONGEST_NAME)].trim_end_matches('-');
    if name.is_empty() { "api".to_owned() } else { name.to_owned() }
}

fn write(file: &Path, name: &str, table: Table) -> Result<(), Failure> {
    let mut edit = Edit::of(file, Owner::User)?;
    edit.remove(&of_api(name));
    edit.set(&of_api(name), &Value::Table(table).to_string())?;
    edit.write()
}

/// Removes an API from the user's settings, and the copy of its document if no other API has it.
pub(super) fn remove(app: &App, name: &str) -> Result<Exit, Failure> {
    let file = own_settings(app)?;
    let mut edit = Edit::of(file, Owner::User)?;
    if !edit.remove(&of_api(name)) {
        let what = format!("{} has no API {name:?}", visible_path(file));
        return Err(Failure::usage(what, "show the APIs: archon openapi list"));
    }
    let digest = own(app, name).map(|settings| settings.digest.clone());
    edit.write()?;
    if let Some(digest) = digest {
        remove_copy(app, name, &digest)?;
    }
    let item = serde_json::json!({ "name": name, "removed": true });
    app.report(&item, format!("{}: [openapi.{name}] is removed", visible_path(file)));
    Ok(Exit::Finished)
}

fn remove_copy(app: &App, name: &str, digest: &str) -> Result<(), Failure> {
    let mut apis = app.config.settings.openapi.iter().flat_map(|apis| apis.iter());
    match apis.any(|(other, settings)| other != name && settings.digest == digest) {
        true => Ok(()),
        false => openapi::remove(app, digest),
    }
}

/// Returns the API of the user's own settings with this name.
fn own<'a>(app: &'a App, name: &str) -> Option<&'a ApiSettings> {
    let api = app.config.settings.openapi.as_ref().and_then(|apis| apis.get(name));
    api.filter(|api| !api.is_of_project)
}

fn own_settings(app: &App) -> Result<&Path, Failure> {
    let file = app.sources.user.as_deref();
    file.ok_or_else(|| Failure::usage("there is no home directory with settings", "set HOME"))
}

fn of_api(name: &str) -> Name {
    Name::of_key("openapi").of_part(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_title_is_legal() {
        for (title, expected) in [
            ("Petstore", "petstore"),
            ("GitHub v3 REST API", "github-v3-rest-api"),
            ("2FA: the API", "fa-the-api"),
            ("An API whose title is far too long", "an-api-whose-title-is-fa"),
            ("…", "api"),
        ] {
            assert_eq!(name_of(title), expected, "{title}");
        }
    }
}
