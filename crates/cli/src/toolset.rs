//! Chooses the tools of an agent by name.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon::{tools::builtin, types::Tool};

use crate::{
    app::App, config::ToolSelection, credentials::SEARCH_KEY, failure::Failure, mcp,
    name_advice::name_advice, openapi, servers::Tools, tool_workspace::tool_workspace,
};

/// The chosen tools, and the chosen agents of the settings, which are not built yet.
#[derive(Default)]
pub(crate) struct Picked {
    pub(crate) tools: Tools,
    pub(crate) agents: Vec<String>,
}

impl Picked {
    /// Returns the names of the tools and the agents.
    pub(crate) fn names(&self) -> Vec<String> {
        let tools = self.tools.iter().map(|tool| tool.spec().name.clone());
        tools.chain(self.agents.iter().cloned()).collect()
    }
}

/// Returns the tools and agents that the settings choose. The default is the tools that change nothing, those
/// of MCP servers and APIs, and all agents of the settings.
pub(crate) async fn chosen(app: &App) -> Result<Picked, Failure> {
    match &app.config.settings.tools {
        None => {
            let mut tools = harmless(app)?;
            let agents = agents(app, &all(app)?)?;
            tools.extend(foreign(app).await);
            Ok(Picked { tools, agents })
        }
        Some(ToolSelection::None) => Ok(Picked::default()),
        Some(ToolSelection::All) => {
            let tools = with_servers(app).await?;
            Ok(Picked { agents: agents(app, &tools)?, tools })
        }
        Some(ToolSelection::Names(names)) => {
            pick(names.iter().map(String::as_str), NamesOf::Settings, app).await
        }
    }
}

/// Returns the tools and agents of a conversation on the terminal: those that the settings choose, otherwise all that
/// work in a workspace, since a person is there to answer the questions of those that change something.
#[cfg(feature = "chat")]
pub(crate) async fn of_conversation(app: &App) -> Result<Picked, Failure> {
    if app.config.settings.tools.is_some() {
        return chosen(app).await;
    }
    let mut tools = all(app)?;
    let agents = agents(app, &tools)?;
    tools.retain(|tool| !NOT_IN_CONVERSATIONS.contains(&tool.spec().name.as_str()));
    tools.extend(foreign(app).await);
    Ok(Picked { tools, agents })
}

/// The built-in tools that a conversation has only if the settings choose them. `bash` does the work of the first one.
/// The model needs no tools that ask a person, because a person is there and reads its answers.
#[cfg(feature = "chat")]
const NOT_IN_CONVERSATIONS: &[&str] =
    &["bash_readonly", "cleanup_tool_call", "human_approval", "human_guidance"];

/// Waits at most 2 s for the MCP servers whose tools [`chosen`] adds although the settings do not name them.
pub(crate) async fn settle(app: &App) {
    if !matches!(app.config.settings.tools, Some(ToolSelection::None | ToolSelection::Names(_))) {
        mcp::settle_all(app).await;
    }
}

/// Returns the tools and agents of a run that is resumed. If the MCP server of a tool has not answered, returns the
/// stand-in for all tools of this server. Writes a warning about each tool that is not offered any more.
pub(crate) async fn recorded<'a>(names: impl Iterator<Item = &'a str>, app: &App) -> Result<Picked, Failure> {
    pick(names, NamesOf::Log, app).await
}

/// Returns the tools and agents with these names.
pub(crate) async fn by_name<'a>(names: impl Iterator<Item = &'a str>, app: &App) -> Result<Picked, Failure> {
    pick(names, NamesOf::Command, app).await
}

/// The origin of tool names, which decides how an unknown name is handled.
#[derive(Clone, Copy)]
enum NamesOf {
    /// A command, or an agent that others call: an unknown name is an error, also if its server has not answered.
    Command,
    /// Settings: `SERVER__*` stands for the tools of an MCP server that has not answered; an unknown name is an error.
    Settings,
    /// The log of a run: each name stands for the tools of its server if that has not answered; an unknown name is
    /// left out, with a warning.
    Log,
}

async fn pick<'a>(names: impl Iterator<Item = &'a str>, of: NamesOf, app: &App) -> Result<Picked, Failure> {
    let (agents, names) = split(names.collect(), app)?;
    Ok(Picked { tools: by_names(&names, of, &agents, app).await?, agents })
}

/// Separates the agents of the settings from the tools.
fn split<'a>(names: Vec<&'a str>, app: &App) -> Result<(Vec<String>, Vec<&'a str>), Failure> {
    if names.is_empty() {
        return Ok((Vec::new(), names));
    }
    let agents = agents(app, &all(app)?)?;
    let (of_agents, of_tools): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| agents.iter().any(|agent| agent == name));
    Ok((of_agents.into_iter().map(str::to_owned).collect(), of_tools))
}

/// Returns the tools of an agent that other agents call. Such an agent has no agents itself.
pub(crate) async fn of_agent(selection: Option<&ToolSelection>, app: &App) -> Result<Tools, Failure> {
    match selection {
        None => harmless(app),
        Some(ToolSelection::None) => Ok(Vec::new()),
        Some(ToolSelection::All) => with_servers(app).await,
        Some(ToolSelection::Names(names)) => {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            by_names(&names, NamesOf::Command, &[], app).await
        }
    }
}

/// Returns the names of all tools. Waits for the MCP servers, at most 2 s.
pub(crate) async fn names(app: &App) -> Result<Vec<String>, Failure> {
    mcp::settle_all(app).await;
    let mut known = with_servers(app).await?;
    mcp::retain_callable(app, &mut known);
    Ok(known.iter().filter(|tool| tool.source().is_none()).map(|tool| tool.spec().name.clone()).collect())
}

/// Returns all tools, including those of MCP servers and APIs.
async fn with_servers(app: &App) -> Result<Tools, Failure> {
    let mut tools = all(app)?;
    tools.extend(foreign(app).await);
    Ok(tools)
}

/// Returns the known tools of MCP servers, and those of APIs.
async fn foreign(app: &App) -> Tools {
    let mut tools = mcp::tools(app).await;
    tools.extend(openapi::tools(app));
    tools
}

/// Returns the tools with these names; `SERVER__*` stands for all tools of an MCP server or an API. The servers are
/// started only if a name is not that of a tool that is built in or of an API.
///
/// # Errors
/// [`Failure`] if there is no such tool, also because its server has not answered, unless [`NamesOf`] says otherwise.
async fn by_names(names: &[&str], of: NamesOf, agents: &[String], app: &App) -> Result<Tools, Failure> {
    let mut known = all(app)?;
    if !unmet(names, &known).is_empty() {
        known.extend(openapi::tools(app));
    }
    let others = unmet(names, &known);
    if !others.is_empty() {
        known.extend(mcp::named(app, &others).await);
    }
    if let NamesOf::Command = of {
        mcp::retain_callable(app, &mut known);
    }
    if let NamesOf::Log = of {
        warn_of_refused(names, &known, app);
    }
    let mut chosen = Tools::new();
    for name in names {
        let mut meant: Tools =
            known.iter().filter(|tool| mcp::is_meant(name, &tool.spec().name)).cloned().collect();
        if meant.is_empty() {
            meant.extend(known.iter().find(|tool| stands_for(&tool.spec().name, name, of)).cloned());
        }
        match (meant.is_empty(), of) {
            (false, _) => add(&mut chosen, meant),
            (true, NamesOf::Log) => warn_of_missing(name, app),
            (true, _) => return Err(not_found(name, &known, agents, app)),
        }
    }
    Ok(chosen)
}

/// Returns the names that none of the tools has.
fn unmet<'n>(names: &[&'n str], known: &Tools) -> Vec<&'n str> {
    let is_known = |name: &str| known.iter().any(|tool| mcp::is_meant(name, &tool.spec().name));
    names.iter().filter(|name| !is_known(name)).copied().collect()
}

/// Warns about tools that the run keeps although their server changed or removed them.
fn warn_of_refused(names: &[&str], known: &[Arc<dyn Tool>], app: &App) {
    let mut callable = known.to_vec();
    mcp::retain_callable(app, &mut callable);
    let has = |tools: &[Arc<dyn Tool>], name: &str| tools.iter().any(|tool| tool.spec().name == name);
    for name in names.iter().filter(|name| has(known, name) && !has(&callable, name)) {
        warn_of_missing(name, app);
    }
}

fn warn_of_missing(name: &str, app: &App) {
    let why = missing_of_server(name, app).map(|e| format!(": {}", e.line())).unwrap_or_default();
    app.output.warn(format!("the tool {name} of this run is not offered any more, so its calls fail{why}"));
}

/// Returns true if `tool` stands for all tools of an MCP server that has not answered, and `name` may mean them.
fn stands_for(tool: &str, name: &str, of: NamesOf) -> bool {
    match of {
        NamesOf::Command => false,
        NamesOf::Settings => tool == name,
        NamesOf::Log => tool.strip_suffix('*').is_some_and(|server| name.starts_with(server)),
    }
}

/// Returns true if this is a built-in tool, or an agent of the settings.
pub(crate) fn is_built_in(name: &str, app: &App) -> Result<bool, Failure> {
    let tools = all(app)?;
    let is_tool = tools.iter().any(|tool| tool.spec().name == name);
    Ok(is_tool || agents(app, &tools)?.iter().any(|agent| agent == name))
}

fn not_found(name: &str, known: &Tools, agents: &[String], app: &App) -> Failure {
    missing_of_server(name, app).unwrap_or_else(|| {
        let tools = known.iter().map(|tool| tool.spec().name.as_str());
        unknown(name, tools.chain(agents.iter().map(String::as_str)))
    })
}

/// Returns the reason why a tool of an MCP server or an API is missing.
fn missing_of_server(name: &str, app: &App) -> Option<Failure> {
    mcp::missing(app, name).or_else(|| openapi::missing(app, name))
}

/// Adds the tools of `more` that are not in `tools` yet.
fn add(tools: &mut Tools, more: Tools) {
    for tool in more {
        if tools.iter().all(|other| other.spec().name != tool.spec().name) {
            tools.push(tool);
        }
    }
}

fn harmless(app: &App) -> Result<Tools, Failure> {
    Ok(builtin::default_tools(&tool_workspace(app)?))
}

/// Returns all built-in tools: those that only read, those that change files, the shell, commands in the background,
/// and those of the features of this build.
fn all(app: &App) -> Result<Tools, Failure> {
    let workspace = &tool_workspace(app)?;
    let mut tools = builtin::builtin_tools(workspace);
    for tool in builtin::file_tools(workspace) {
        if !tools.iter().any(|other| other.spec().name == tool.spec().name) {
            tools.push(tool);
        }
    }
    #[cfg(unix)]
    {
        tools.push(Arc::new(builtin::Bash::new(workspace.clone(), bash_options(workspace))));
        tools.push(Arc::new(builtin::Bash::read_only(workspace.clone(), bash_options(workspace))));
        tools.extend(builtin::background_tools(workspace, bash_options(workspace), &app.commands));
    }
    #[cfg(all(unix, feature = "git"))]
    {
        let options = archon::tools::sandbox::SandboxOptions::default;
        tools.push(Arc::new(builtin::GitDiff::new(workspace.clone(), options())));
        tools.push(Arc::new(builtin::GitLog::new(workspace.clone(), options())));
        tools.push(Arc::new(builtin::GitStatus::new(workspace.clone(), options())));
    }
    #[cfg(feature = "web")]
    {
        tools.push(Arc::new(builtin::WebFetch::new(archon::tools::WebOptions::default()).asking()));
        tools.extend(web_search(app)?);
    }
    #[cfg(any(feature = "python", feature = "javascript"))]
    tools.push(Arc::new(archon::code::CodeExecutor::new(archon::code::CodeOptions::default())));
    tools.push(Arc::new(builtin::CleanupToolCall::new()));
    tools.push(Arc::new(builtin::FinishPlan::new()));
    tools.push(Arc::new(builtin::HumanApproval::new()));
    tools.push(Arc::new(builtin::HumanGuidance::new()));
    tools.push(Arc::new(builtin::UpdatePlan::new()));
    tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
    Ok(tools)
}

/// Allows the user's own compilers in the sandbox, so that projects can be built.
#[cfg(unix)]
fn bash_options(workspace: &archon::tools::Workspace) -> builtin::BashOptions {
    let mut options = builtin::BashOptions::default();
    options.sandbox = options.sandbox.with_toolchains(workspace);
    options
}

/// Returns the tool `web_search`, if there is a key.
#[cfg(feature = "web")]
fn web_search(app: &App) -> Result<Option<Arc<dyn Tool>>, Failure> {
    let Some(key) = app.env(SEARCH_KEY).map(str::trim) else { return Ok(None) };
    let key = archon::types::Secret::new(key.to_owned());
    let backend = match app.config.settings.search_url.as_deref() {
        None => builtin::BraveSearch::new(key),
        Some(url) => {
            let mut options = archon::tools::WebOptions::default();
            // A configured server is allowed, even in a private network.
            options.private_servers.extend(server(url));
            builtin::BraveSearch::at(url, key, options)
        }
    };
    let backend = backend.map_err(|e| Failure::failed(format!("web_search: {e}"), "use other tools"))?;
    Ok(Some(Arc::new(builtin::WebSearch::new(backend))))
}

/// Returns the `host:port` of an address.
#[cfg(feature = "web")]
fn server(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if scheme.eq_ignore_ascii_case("http") { 80 } else { 443 };
    Some(if has_port { host.to_owned() } else { format!("{host}:{port}") })
}

/// Returns the reason why an agent cannot have this name; `None` if it can.
#[cfg(feature = "skills")]
pub(crate) fn wrong_name(name: &str, app: &App) -> Result<Option<&'static str>, Failure> {
    Ok(problem_of_name(name, &all(app)?))
}

fn problem_of_name(name: &str, tools: &[Arc<dyn Tool>]) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match () {
        () if tools.iter().any(|tool| tool.spec().name == name) => Some("a tool has this name"),
        () if OF_FEATURES.iter().any(|(tool, ..)| *tool == name) => Some("a tool has this name"),
        () if name.contains("__") || mcp::RESOURCE_TOOLS.contains(&name) => {
            Some("names with __ and names of MCP resource tools are for tools of MCP servers and APIs")
        }
        () if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) => {
            Some("an agent's name must have 1 to 64 letters, digits, _ or -")
        }
        () => None,
    }
}

/// Returns the agents of the settings, or an error for an agent with the name of a tool or with an invalid
/// name.
fn agents(app: &App, tools: &[Arc<dyn Tool>]) -> Result<Vec<String>, Failure> {
    let names = app.config.settings.agents.iter().flat_map(|agents| agents.keys());
    let checked = |name: &String| match problem_of_name(name, tools) {
        None => Ok(name.clone()),
        Some(wrong) => {
            Err(Failure::usage(format!("[agents.{name}]: {wrong}"), "give the agent another name"))
        }
    };
    names.map(checked).collect()
}

/// The tools that need a feature of this program: name, feature, and true if the tool is in this build.
const OF_FEATURES: &[(&str, &str, bool)] = &[
    ("code_executor", "python", cfg!(any(feature = "python", feature = "javascript"))),
    ("git_diff", "git", cfg!(all(unix, feature = "git"))),
    ("git_log", "git", cfg!(all(unix, feature = "git"))),
    ("git_status", "git", cfg!(all(unix, feature = "git"))),
    ("web_fetch", "web", cfg!(feature = "web")),
    ("web_search", "web", cfg!(feature = "web")),
];

/// Returns the tools that this build does not have, each with the remedy.
pub(crate) fn missing() -> BTreeMap<String, String> {
    let missing = OF_FEATURES.iter().filter(|(.., is_built)| !is_built);
    let way = |feature: &str| match feature {
        "git" if !cfg!(unix) => "use Linux or macOS".to_owned(),
        feature => format!("build with `--features {feature}`"),
    };
    missing.map(|(name, feature, _)| ((*name).to_owned(), way(feature))).collect()
}

/// Returns the error for a tool that this build does not have.
pub(crate) fn not_built(name: &str) -> Option<Failure> {
    let way = missing().remove(name)?;
    Some(Failure::usage(format!("{name} is not in this build"), way))
}

/// Returns the error for a name that none of the `known` tools has. The advice has the feature or the key
/// that the tool needs, otherwise the list of tools.
pub(crate) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Failure {
    if let Some(failure) = not_built(name) {
        return failure;
    }
    if name == "web_search" {
        let advice = format!(
            "get one from Brave Search and set it: export {SEARCH_KEY}=…, or store it: archon credentials add brave-search"
        );
        return Failure::usage("web_search needs a key", advice);
    }
    Failure::usage(format!("there is no tool {name:?}"), name_advice(name, "tools", known))
}

/// Returns the workspace as a path without symbolic links.
pub(crate) fn folder(app: &App) -> Option<PathBuf> {
    app.config.settings.workspace.as_deref().unwrap_or(Path::new(".")).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Settings, exit::Exit};

    async fn names_of(selection: ToolSelection) -> Result<Vec<String>, Failure> {
        let settings = Settings { tools: Some(selection), ..Settings::default() };
        Ok(chosen(&App::of(settings)).await?.names())
    }

    #[tokio::test]
    async fn tools_go_by_their_own_names() {
        let known = [
            "bash",
            "bash_readonly",
            "calculator",
            "cleanup_tool_call",
            "edit_file",
            "finish_plan",
            "glob",
            "human_approval",
            "human_guidance",
            "list_commands",
            "list_files",
            "read_file",
            "read_output",
            "search",
            "send_input",
            "start_command",
            "stop_command",
            "update_plan",
            "write_file",
        ];
        let mut all = names_of(ToolSelection::All).await.unwrap();
        let brought = all.extract_if(.., |name| name.starts_with("git_") || name.starts_with("web_"));
        let brought: Vec<_> = brought.collect();
        // Without a key nothing is searched.
        let git = if cfg!(feature = "git") { &["git_diff", "git_log", "git_status"][..] } else { &[] };
        let web = if cfg!(feature = "web") { &["web_fetch"][..] } else { &[] };
        assert_eq!(brought, [git, web].concat());
        // There with the languages only, and never among those of who chose none.
        let programs = all.iter().position(|name| name == "code_executor").map(|place| all.remove(place));
        assert_eq!(programs.is_some(), cfg!(any(feature = "python", feature = "javascript")));
        assert_eq!(all, known);
        assert_eq!(names_of(ToolSelection::None).await.unwrap(), Vec::<String>::new());
        assert_eq!(names_of(ToolSelection::Names(vec!["search".into()])).await.unwrap(), ["search"]);
    }

    #[cfg(feature = "chat")]
    #[tokio::test]
    async fn of_conversation_without_a_selection_has_the_tools_that_change_files_and_run_commands() {
        let names = of_conversation(&App::of(Settings::default())).await.unwrap().names();
        for name in ["bash", "edit_file", "read_file", "start_command", "write_file"] {
            assert!(names.iter().any(|other| other == name), "{name}: {names:?}");
        }
        assert!(names.iter().all(|name| !NOT_IN_CONVERSATIONS.contains(&name.as_str())), "{names:?}");
        let only =
            Settings { tools: Some(ToolSelection::Names(vec!["search".into()])), ..Settings::default() };
        assert_eq!(of_conversation(&App::of(only)).await.unwrap().names(), ["search"]);
    }

    #[tokio::test]
    async fn an_unknown_tool_is_a_usage_error_that_names_the_nearest() {
        let e = names_of(ToolSelection::Names(vec!["calclator".into()])).await.unwrap_err();
        assert_eq!(e.exit(), Exit::Usage);
        assert_eq!(e.what(), "there is no tool \"calclator\"");
        let known = names_of(ToolSelection::All).await.unwrap().join(", ");
        assert_eq!(e.advice(), [format!("did you mean calculator? the tools are: {known}")]);
    }

    #[tokio::test]
    async fn tool_of_a_feature_that_was_left_out_is_refused_with_the_feature() {
        let e = names_of(ToolSelection::Names(vec!["web_search".into()])).await.unwrap_err();
        let expected = match cfg!(feature = "web") {
            true => (
                "web_search needs a key",
                "get one from Brave Search and set it: export BRAVE_API_KEY=…, or store it: \
                 archon credentials add brave-search",
            ),
            false => ("web_search is not in this build", "build with `--features web`"),
        };
        assert_eq!((e.what(), e.advice().concat().as_str()), expected);
        if cfg!(not(any(feature = "python", feature = "javascript"))) {
            let e = names_of(ToolSelection::Names(vec!["code_executor".into()])).await.unwrap_err();
            assert_eq!(e.what(), "code_executor is not in this build");
            assert_eq!(e.advice(), ["build with `--features python`"]);
        }
    }

    #[cfg(feature = "web")]
    #[test]
    fn server_is_the_host_with_its_port() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/search", Some("127.0.0.1:8080")),
            ("http://localhost/search?x", Some("localhost:80")),
            ("https://search.example.org", Some("search.example.org:443")),
            ("search", None),
        ] {
            assert_eq!(server(url).as_deref(), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn agent_name_must_be_valid_and_differ_from_tool_names() {
        for (name, problem) in [
            ("reviewer", None),
            ("bash", Some("a tool has")),
            ("my agent", Some("letters")),
            ("notes__read", Some("tools of MCP servers")),
            ("read_mcp_resource", Some("tools of MCP servers")),
        ] {
            let agents = [(name.to_owned(), crate::config::AgentSettings::default())].into();
            let settings = Settings { agents: Some(agents), ..Settings::default() };
            let names = chosen(&App::of(settings)).await.map(|picked| picked.agents);
            match problem {
                None => assert_eq!(names.unwrap(), [name]),
                Some(problem) => assert!(names.unwrap_err().what().contains(problem), "{name}"),
            }
        }
    }

    #[tokio::test]
    async fn a_workspace_that_is_not_there_is_a_usage_error_unless_no_tool_needs_it() {
        let with = async |tools| {
            let workspace = Some("/nowhere/at/all".into());
            let settings = Settings { tools, workspace, ..Settings::default() };
            chosen(&App::of(settings)).await.map(|picked| picked.tools.len())
        };
        assert_eq!(with(Some(ToolSelection::None)).await, Ok(0));
        let e = with(None).await.unwrap_err();
        assert!(e.what().contains("/nowhere/at/all") && e.exit() == Exit::Usage, "{e:?}");
    }
}
