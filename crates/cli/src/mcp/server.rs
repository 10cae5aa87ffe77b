//! The settings of a server with the values of their variables.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use archon::{
    mcp::{FirstUse, McpServer, McpTimeouts, SignIn, SignInBy, Transport},
    tools::sandbox::{Network, SandboxOptions, ServerSandbox},
    types::Secret,
};

use crate::{
    app::App,
    config::{
        FirstTools, SandboxSettings, ServerSettings, SignInParty, SignInSettings,
        variables::{self, Missing},
    },
    credentials,
    failure::Failure,
    servers::Entry,
    tool_workspace::tool_workspace,
};

/// The places in which the value of a variable is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookedFor {
    /// The environment only.
    Environment,
    /// The environment, then the stored keys.
    AlsoStored,
}

/// Returns the server with these settings. The settings themselves must have no problem.
///
/// # Errors
/// [`Failure`] if a variable is missing.
pub(super) fn of(app: &App, entry: &Entry) -> Result<McpServer, Failure> {
    let (name, settings) = (&entry.name, &entry.settings);
    // A stored key never goes to a server that a project chose.
    let secret_places = if entry.project.is_some() { LookedFor::Environment } else { LookedFor::AlsoStored };
    let fill = |part: &str, text: &str, places| fill(app, name, part, text, places);
    // Other users of the machine can read a command line.
    let plain = |part: &str, text: &str| fill(part, text, LookedFor::Environment);
    let mut server = match &settings.url {
        Some(url) => {
            let mut server = McpServer::http(plain("url", url)?);
            for (header, text) in &settings.headers {
                server = server.with_secret(header, Secret::from(fill("headers", text, secret_places)?));
            }
            if let Some(sign_in) = &settings.sign_in {
                server =
                    server.with_sign_in(with_values(sign_in, |text| fill("sign_in", text, secret_places))?);
            }
            server
        }
        None => {
            let command = plain("command", settings.command.as_deref().unwrap_or_default())?;
            let args = settings.args.iter().map(|text| plain("args", text)).collect::<Result<Vec<_>, _>>()?;
            let mut server = McpServer::stdio(command, args);
            for (variable, text) in &settings.env {
                let value = fill("env", text, secret_places)?;
                server = match is_secret(variable, text) {
                    true => server.with_secret(variable, Secret::from(value)),
                    false => server.with_variable(variable, value),
                };
            }
            server
        }
    };
    server = without_values(app, settings, server);
    if let (Transport::Stdio(stdio), Some(folder)) = (&mut server.transport, &settings.cwd) {
        stdio.folder = Some(plain("cwd", folder)?.into());
    }
    if let Some(granted) = &settings.sandbox {
        server = server.with_sandbox(sandbox(app, name, granted)?);
    }
    server.reversible.clone_from(&settings.reversible);
    server.first_use = settings.first_use.map(|first| match first {
        FirstTools::Trust => FirstUse::Trust,
        FirstTools::HoldBack => FirstUse::HoldBack,
    });
    Ok(server.with_read_only(&settings.read_only).with_timeouts(timeouts(settings)))
}

/// Returns the server with the identity of its settings as written, without the values of variables. So the pins
/// contain no value, and no tool is held back after a change of a key. The values of variables in the command line or
/// the address count as secrets. A path is not a secret, because the results of a server for files contain it. But if
/// the name of its variable contains a part of [`SECRET`], it is one: a key can begin with a slash, too.
fn without_values(app: &App, settings: &ServerSettings, server: McpServer) -> McpServer {
    let written = match &settings.url {
        Some(url) => McpServer::http(url),
        None => McpServer::stdio(settings.command.as_deref().unwrap_or_default(), &settings.args),
    };
    let server = server.with_identity(written.identity());
    let texts = settings.url.iter().chain(&settings.command).chain(&settings.args);
    let used = texts.flat_map(|text| variables::names(text)).filter(|used| !HARMLESS.contains(used));
    let values = used.filter_map(|used| Some((used, app.sources.env.get(used)?)));
    let secrets = values.filter(|(used, value)| has_secret_name(used) || !value.starts_with('/'));
    secrets.fold(server, |server, (_, value)| server.with_hidden(value.as_str()))
}

/// Returns the sandbox with these grants. It has the user's toolchains too, so that `npx` and its like start.
fn sandbox(app: &App, name: &str, granted: &SandboxSettings) -> Result<ServerSandbox, Failure> {
    let all = |texts: &[String]| {
        let texts = texts.iter().map(|text| fill(app, name, "sandbox", text, LookedFor::Environment));
        texts.map(|text| real(name, &text?)).collect::<Result<Vec<_>, _>>()
    };
    let mut options = SandboxOptions::default();
    options.read = all(&granted.read)?;
    options.write = all(&granted.write)?;
    options.network = if granted.network { Network::Granted } else { Network::Denied };
    let workspace = tool_workspace(app)?;
    Ok(ServerSandbox::new(&workspace, options.with_toolchains(&workspace)))
}

/// Returns a granted file or folder without links.
fn real(name: &str, granted: &str) -> Result<PathBuf, Failure> {
    Path::new(granted).canonicalize().map_err(|e| {
        Failure::usage(
            format!("MCP server '{name}': `sandbox` grants {granted:?}, which cannot be used: {e}"),
            "correct its settings; your home folder is ${HOME}",
        )
    })
}

/// Returns the sign-in with the values of its variables.
fn with_values(
    settings: &SignInSettings,
    fill: impl Fn(&str) -> Result<String, Failure>,
) -> Result<SignIn, Failure> {
    let fill = |text: &Option<String>| text.as_deref().map(&fill).transpose();
    let mut sign_in = SignIn::person();
    sign_in.by = match settings.by.unwrap_or_default() {
        SignInParty::Person => SignInBy::Person,
        SignInParty::Program => SignInBy::Program,
    };
    sign_in.client_id = fill(&settings.client_id)?;
    sign_in.client_secret = fill(&settings.client_secret)?.map(Secret::from);
    sign_in.client_document = fill(&settings.client_document)?;
    sign_in.issuer = fill(&settings.issuer)?;
    let scopes = settings.scopes.iter().map(|scope| fill(&Some(scope.clone())));
    sign_in.scopes = scopes.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    Ok(sign_in)
}

fn timeouts(settings: &ServerSettings) -> McpTimeouts {
    let (mut limits, set) = (McpTimeouts::default(), settings.timeouts.clone().unwrap_or_default());
    for (limit, span) in [
        (&mut limits.initialize, set.initialize),
        (&mut limits.list, set.list),
        (&mut limits.call, set.call),
        (&mut limits.close, set.close),
    ] {
        *limit = span.map_or(*limit, |span| Duration::from_millis(span.0));
    }
    limits
}

fn fill(app: &App, name: &str, part: &str, text: &str, places: LookedFor) -> Result<String, Failure> {
    let value = |variable: &str| match places {
        LookedFor::Environment => app.sources.env.get(variable).cloned(),
        LookedFor::AlsoStored => app.env(variable).map(str::to_owned),
    };
    variables::expand(text, value).map_err(|missing| match missing {
        Missing::Problem(problem) => {
            Failure::usage(format!("MCP server '{name}': `{part}`: {problem}"), "correct its settings")
        }
        Missing::Variable(variable) => {
            let keep = match places {
                LookedFor::Environment => String::new(),
                LookedFor::AlsoStored => {
                    let stored_as =
                        credentials::service_of(&variable).map_or(&*variable, |service| service.name);
                    format!(", store it: archon credentials add {stored_as},")
                }
            };
            Failure::usage(
                format!("MCP server '{name}': `{part}` needs the variable {variable}, which is not set"),
                format!("set it: export {variable}=…{keep} or give a default: ${{{variable}:-TEXT}}"),
            )
        }
    })
}

/// Variables of the environment without secrets.
const HARMLESS: &[&str] = &["HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "TZ", "USER"];

/// Parts of names of variables with secrets.
const SECRET: &[&str] = &["AUTH", "CREDENTIAL", "KEY", "PASS", "SECRET", "TOKEN"];

/// Returns true if the value of a server's variable counts as a secret: it comes from another variable, or
/// its name contains a part of [`SECRET`].
fn is_secret(variable: &str, text: &str) -> bool {
    has_secret_name(variable) || variables::names(text).any(|used| !HARMLESS.contains(&used))
}

fn has_secret_name(variable: &str) -> bool {
    let name = variable.to_uppercase();
    SECRET.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Settings, credentials::StoredKeys};

    fn server(text: &str) -> Result<McpServer, Failure> {
        let mut app = App::of(Settings::default());
        for (name, value) in [
            ("HOME", "/home/a"),
            ("NOTES", "/srv/notes"),
            ("TOKEN", "tok-hidden"),
            ("API_KEY", "/key+hidden"),
            ("EMPTY", ""),
        ] {
            app.sources.env.insert(name.to_owned(), value.to_owned());
        }
        app.stored_keys = std::sync::Arc::new(StoredKeys::of("OPENAI_API_KEY", "sk-hidden"));
        of(&app, &Entry::of("files", toml::from_str(text).unwrap()))
    }

    // spec: MC-01
    #[test]
    fn server_has_the_values_of_its_variables_and_knows_the_secret_ones() {
        let text = "command = '${HOME}/files'\nargs = ['--in', '${HOME}/notes', '${MODE:-fast}']\ncwd = '${HOME}'\n\
                    env = { ROOT = '${HOME}/notes', A = '${TOKEN}', B = '${OPENAI_API_KEY}', MY_KEY = 'written' }\n\
                    timeouts = { call = '5s' }\nread_only = ['read']\nreversible = ['write']";
        let made = server(text).unwrap();
        let Transport::Stdio(stdio) = &made.transport else { panic!("{made:?}") };
        assert_eq!(
            (&*stdio.command, stdio.args.join(" ")),
            ("/home/a/files", "--in /home/a/notes fast".into())
        );
        assert_eq!(stdio.folder.as_deref(), Some("/home/a".as_ref()));
        assert_eq!(stdio.plain_env.iter().collect::<Vec<_>>(), [(&"ROOT".into(), &"/home/a/notes".into())]);
        let secrets: Vec<_> = stdio.env.iter().map(|(name, value)| (&**name, &**value.expose())).collect();
        assert_eq!(secrets, [("A", "tok-hidden"), ("B", "sk-hidden"), ("MY_KEY", "written")]);
        assert_eq!(
            (made.timeouts.call, made.timeouts.list),
            (Duration::from_secs(5), Duration::from_secs(30))
        );
        assert_eq!((made.read_only, made.reversible), (vec!["read".to_owned()], vec!["write".to_owned()]));
        let text = "url = 'https://example.com'\nheaders = { Authorization = 'Bearer ${TOKEN}' }";
        let Transport::Http(http) = server(text).unwrap().transport else { panic!("no address") };
        assert_eq!(http.headers["Authorization"].expose(), "Bearer tok-hidden");
    }

    #[test]
    fn values_in_a_command_line_or_an_address_are_hidden_and_not_in_the_identity() {
        let check = |text: &str, identity: &str, secret: &str| {
            let made = server(text).unwrap();
            assert_eq!(made.identity(), identity);
            let hidden: Vec<_> = made.hidden.iter().map(|secret| &**secret.expose()).collect();
            assert_eq!(hidden, [secret], "a path is no secret: {text}");
        };
        check(
            "command = '${HOME}/files'\nargs = ['--key=${TOKEN}', '${NOTES}', '${MODE:-fast}']",
            "'${HOME}/files' '--key=${TOKEN}' '${NOTES}' '${MODE:-fast}'",
            "tok-hidden",
        );
        check("url = 'https://example.com/${TOKEN}'", "https://example.com/${TOKEN}", "tok-hidden");
        check("command = 'files'\nargs = ['${API_KEY}']", "files '${API_KEY}'", "/key+hidden");
    }

    #[test]
    fn missing_variable_is_named_with_its_server_and_what_to_do() {
        let check = |text: &str, what: &str, advice: &str| {
            let e = server(text).unwrap_err();
            assert_eq!((e.what(), e.advice().concat().as_str()), (what, advice));
        };
        check(
            "command = 'a'\nenv = { K = '${BRAVE_API_KEY}' }",
            "MCP server 'files': `env` needs the variable BRAVE_API_KEY, which is not set",
            "set it: export BRAVE_API_KEY=…, store it: archon credentials add brave-search, or give a default: \
             ${BRAVE_API_KEY:-TEXT}",
        );
        check(
            "command = 'a'\nenv = { K = '${EMPTY}' }",
            "MCP server 'files': `env` needs the variable EMPTY, which is not set",
            "set it: export EMPTY=…, store it: archon credentials add EMPTY, or give a default: ${EMPTY:-TEXT}",
        );
        // A stored key never appears in a command line.
        check(
            "command = 'a'\nargs = ['${OPENAI_API_KEY}']",
            "MCP server 'files': `args` needs the variable OPENAI_API_KEY, which is not set",
            "set it: export OPENAI_API_KEY=… or give a default: ${OPENAI_API_KEY:-TEXT}",
        );
    }
}
