//! `archon mcp add` and `archon mcp remove`: servers in the user's settings.

#[cfg(not(feature = "setup"))]
use crate::{app::App, exit::Exit, failure::Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// The server's name: its tools are called NAME__TOOL
    name: String,
    /// The address of a server that is already running
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "env"])]
    url: Option<String>,
    /// A variable of the server's environment, as KEY='${KEY}', which keeps the value out of the settings;
    /// may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// A header for each request, as Authorization='Bearer ${TOKEN}'; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    header: Vec<(String, String)>,
    /// Tools that change nothing, by the server's names; `*` means all. Calls of the other tools need an
    /// approval
    #[arg(long, value_name = "a,b", value_delimiter = ',')]
    read_only: Vec<String>,
    /// Hold each tool back until `archon mcp approve`
    #[arg(long)]
    hold_back: bool,
    /// The command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url")]
    command: Vec<String>,
}

/// Parses `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

#[cfg(feature = "setup")]
pub(super) use with_setup::remove;

/// Returns the error that this build cannot change settings.
#[cfg(not(feature = "setup"))]
pub(super) fn remove(app: &App, _: &str) -> Result<Exit, Failure> {
    Err(without_setup(app, "`archon mcp remove`"))
}

#[cfg(not(feature = "setup"))]
fn without_setup(app: &App, what: &str) -> Failure {
    let file = app.sources.user.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    Failure::usage(
        format!("{what} is not in this build"),
        format!("write [mcp.NAME] into {file}, or build with `--features setup`"),
    )
}

#[cfg(not(feature = "setup"))]
impl AddArgs {
    pub(super) fn run(self, app: &App) -> Result<Exit, Failure> {
        Err(without_setup(app, "`archon mcp add`"))
    }
}

#[cfg(feature = "setup")]
mod with_setup {
    use std::path::Path;

    use serde_json::json;
    use toml::{Table, Value};

    use super::AddArgs;
    use crate::{
        app::App,
        command_line::in_data_dir,
        config::{Agreements, Edit, Name, Owner},
        exit::Exit,
        failure::Failure,
        mcp,
        output::Look,
        servers::Entry,
        text::visible_path,
    };

    impl AddArgs {
        pub(in super::super) fn run(self, app: &App) -> Result<Exit, Failure> {
            let (name, file) = (self.name.clone(), own_settings(app)?);
            if app.config.settings.mcp.as_ref().is_some_and(|servers| servers.has(&name)) {
                let what = format!("{} has a server {name:?} already", file.display());
                let advice = format!(
                    "give the new server another name, or remove the old one: archon mcp remove {name}"
                );
                return Err(Failure::usage(what, advice));
            }
            let mut edit = Edit::of(file, Owner::User)?;
            edit.set(&of_server(&name), &Value::Table(self.table()).to_string())?;
            edit.write()?;
            let shown = visible_path(file);
            let command = in_data_dir(app, &format!("archon mcp test {name}"));
            let item = json!({"name": name, "file": shown});
            app.report(&item, format!("{shown}: [mcp.{name}]; try it: {command}"));
            Ok(Exit::Finished)
        }

        fn table(self) -> Table {
            let list = |words: Vec<String>| {
                (!words.is_empty()).then(|| Value::Array(words.into_iter().map(Value::from).collect()))
            };
            let pairs = |pairs: Vec<(String, String)>| {
                let table: Table =
                    pairs.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
                (!table.is_empty()).then_some(Value::Table(table))
            };
            // A server with an address has no command.
            let mut words = self.command.into_iter();
            let parts = [
                ("url", self.url.map(Value::from)),
                ("command", words.next().map(Value::from)),
                ("args", list(words.collect())),
                ("env", pairs(self.env)),
                ("headers", pairs(self.header)),
                ("read_only", list(self.read_only)),
                ("first_use", self.hold_back.then(|| Value::from("hold-back"))),
            ];
            parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
        }
    }

    /// Removes a server from the user's settings, or takes back the agreement to a server of the project.
    pub(in super::super) fn remove(app: &App, name: &str) -> Result<Exit, Failure> {
        let entry = mcp::find(app, name)?;
        let done = match &entry.project {
            None => {
                let file = own_settings(app)?;
                let mut edit = Edit::of(file, Owner::User)?;
                if !edit.remove(&of_server(name)) {
                    let what = format!("{} has no server {name:?}", file.display());
                    return Err(Failure::usage(what, "remove it from the file by hand"));
                }
                edit.write()?;
                format!("{}: [mcp.{name}] is removed", visible_path(file))
            }
            Some(place) => {
                if !Agreements::in_folder(&app.data_dir).remove_server(&place.file, name)? {
                    let what = format!(
                        "no person has agreed to the MCP server {name:?} of {}",
                        place.file.display()
                    );
                    return Err(Failure::usage(what, "it is not used; `archon mcp list` shows the servers"));
                }
                format!("{}: the agreement to the MCP server {name} is taken back", entry.display_place(app))
            }
        };
        forget_pins(app, &entry)?;
        app.output.note(Look::Plain, done);
        Ok(Exit::Finished)
    }

    fn forget_pins(app: &App, entry: &Entry) -> Result<(), Failure> {
        mcp::forget(app, entry).map_err(|e| {
            let what = format!(
                "cannot remove the stored tool definitions (pins) of the MCP server '{}': {e}",
                entry.name
            );
            Failure::failed(what, format!("remove them by hand, below {}", app.data_dir.display()))
        })
    }

    fn own_settings(app: &App) -> Result<&Path, Failure> {
        app.sources
            .user
            .as_deref()
            .ok_or_else(|| Failure::usage("there is no home directory with settings", "set HOME"))
    }

    fn of_server(name: &str) -> Name {
        Name::of_key("mcp").of_part(name)
    }
}
