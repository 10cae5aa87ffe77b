//! Builds agents from settings, or from the configuration in a log. The settings' agents are tools of the
//! main agent: each call is a child run under the same rules, limits and questions.

use std::{path::PathBuf, sync::Arc, time::Duration};

use archon::{
    AgentMemory, Archon, ArchonBuilder, ProjectFile, SubAgentTool,
    memory::{KnowledgeExtractor, Memory, RuleExtractor},
    react_loop::Fallback,
    tools::{Ask, EngineOptions},
    types::{AskLater, ExecutionLimits, MemoryConfig, RequestOptions, RunConfig, Tool},
};

use crate::{
    agent_files,
    app::{AGENT, App, Consent},
    ask::{Asking, Prompt},
    choose,
    chosen::Chosen,
    config::{AgentSettings, EmbedderChoice, ExtractorChoice, Settings, ToolSelection},
    credentials,
    exit::Exit,
    failure::Failure,
    hooks::with_hooks,
    instructions_file::with_instructions,
    mcp, memory, permissions,
    servers::Tools,
    skills::{ACTIVATE_SKILL, with_recorded_skills, with_skills},
    text::visible_path,
    toolset::{self, Picked},
};

/// Builds the agent of the settings, with its model, and with a memory if `memory` is set. `last` is the configuration
/// of the session's last run. Tools that the last run deferred (the model must search for them) stay deferred, and
/// tools that its requests defined stay defined, so that all requests of the session define the same tools. A resource
/// tool that `last` does not have is left out until another session, unless it can be deferred.
pub(crate) async fn chosen(
    app: &App,
    memory: Option<Memory>,
    last: Option<&RunConfig>,
) -> Result<Archon, Failure> {
    let picked = toolset::chosen(app).await?;
    let chosen = choose::model(app, None).await?;
    Ok(with(app, picked, chosen, memory, last).await?.build()?)
}

/// Does the same as [`chosen`], but with these tools and this model, and returns the builder of the agent.
pub(crate) async fn with(
    app: &App,
    mut picked: Picked,
    chosen: Chosen,
    memory: Option<Memory>,
    last: Option<&RunConfig>,
) -> Result<ArchonBuilder, Failure> {
    let selection = app.config.settings.tools.as_ref();
    if let Some(last) = last {
        remove_new_resource_tools(&mut picked.tools, last, selection);
    }
    let tools = with_agents(app, picked, &chosen).await?;
    let mut builder = by_settings(app, chosen, tools).await?;
    if let Some(last) = last {
        builder = with_recorded_deferral(builder, last, selection);
    }
    // A person who wants no tools also wants none that loads skills.
    if !matches!(selection, Some(ToolSelection::None)) {
        builder = with_skills(app, builder);
    }
    Ok(with_memory(app, with_instructions(app, with_accounts(app, builder)), memory))
}

/// Adds the stored keys, for tools that send one of them (`account` of an API). Adds none if the store cannot be
/// opened; the command has warned about that at its start.
fn with_accounts(app: &App, builder: ArchonBuilder) -> ArchonBuilder {
    match credentials::open_store(&app.data_dir, &app.sources) {
        Ok(Some(store)) => builder.credentials(store),
        Ok(None) | Err(_) => builder,
    }
}

/// Removes the resource tools that the session's last run did not have, unless that run deferred tools. Otherwise a
/// server that begins to offer resources would change the tools that requests define.
fn remove_new_resource_tools(tools: &mut Tools, last: &RunConfig, selection: Option<&ToolSelection>) {
    if !last.deferred_tools.is_empty() {
        return;
    }
    tools.retain(|tool| {
        let name = &tool.spec().name;
        let is_of_resources = mcp::RESOURCE_TOOLS.contains(&name.as_str());
        !is_of_resources || last.tool(name).is_some() || named(selection).contains(name)
    });
}

/// Adds a memory, with the reader of facts that `extractor` in the settings chooses; changes nothing without a memory.
pub(crate) fn with_memory(app: &App, builder: ArchonBuilder, memory: Option<Memory>) -> ArchonBuilder {
    let Some(memory) = memory else { return builder };
    let by_model = match app.config.settings.extractor.unwrap_or_default() {
        ExtractorChoice::Rules => None,
        ExtractorChoice::Model => builder.own_model_extractor(),
    };
    let extractor: Arc<dyn KnowledgeExtractor> = match by_model {
        Some(model) => Arc::new(model),
        None => Arc::new(RuleExtractor),
    };
    builder.memory(AgentMemory::from(memory).with_extractor(extractor))
}

/// Builds an agent with this model and these tools; everything else is from the settings.
pub(crate) async fn by_settings(app: &App, chosen: Chosen, tools: Tools) -> Result<ArchonBuilder, Failure> {
    let settings = &app.config.settings;
    let fallbacks = choose::fallbacks(app, None).await?;
    let mut limits = ExecutionLimits::default();
    apply_limits(settings, &mut limits);
    let mut builder = assemble(app, chosen, fallbacks, tools, limits)?;
    if let Some(system) = &settings.system {
        builder = builder.system(system);
    }
    if let Some(file) = &settings.project_file {
        builder = builder.project_file(ProjectFile::new(file));
    }
    if let Some(mode) = settings.mode {
        builder = builder.tool_mode(mode.into());
    }
    if let Some(execution) = settings.tool_execution {
        builder = builder.tool_execution(execution.0);
    }
    if let Some(thinking) = settings.thinking {
        builder = builder.request_options(RequestOptions::default().with_thinking(thinking.into()));
    }
    Ok(with_deferral(builder, settings, settings.tools.as_ref()))
}

/// Sets the rules for deferred tools, which requests do not define and for which the model must search: if the
/// definitions exceed the budget, the tools of MCP servers and APIs are deferred, except those that the settings name.
#[cfg(any(feature = "mcp", feature = "openapi"))]
fn with_deferral(
    builder: ArchonBuilder,
    settings: &Settings,
    selection: Option<&ToolSelection>,
) -> ArchonBuilder {
    let builder = builder.always_defined(named(selection));
    match settings.definition_budget {
        Some(tokens) => builder.definition_budget(tokens),
        None => builder,
    }
}

#[cfg(not(any(feature = "mcp", feature = "openapi")))]
fn with_deferral(builder: ArchonBuilder, _: &Settings, _: Option<&ToolSelection>) -> ArchonBuilder {
    builder
}

/// Keeps the deferral of a recorded run: tools that the run defined stay defined. If the run deferred tools, all others
/// are deferred, except those that `selection` names.
#[cfg(any(feature = "mcp", feature = "openapi"))]
fn with_recorded_deferral(
    builder: ArchonBuilder,
    config: &RunConfig,
    selection: Option<&ToolSelection>,
) -> ArchonBuilder {
    let defined = config.tools.iter().map(|tool| tool.name.as_str());
    let named = named(selection).iter().map(String::as_str);
    let builder = builder.always_defined(defined.chain(named));
    if config.deferred_tools.is_empty() { builder } else { builder.definition_budget(0) }
}

fn named(selection: Option<&ToolSelection>) -> &[String] {
    match selection {
        Some(ToolSelection::Names(names)) => names,
        _ => &[],
    }
}

#[cfg(not(any(feature = "mcp", feature = "openapi")))]
fn with_recorded_deferral(builder: ArchonBuilder, _: &RunConfig, _: Option<&ToolSelection>) -> ArchonBuilder {
    builder
}

/// Adds the agents to the tools. An agent has the model of `caller` unless the settings or its file give it another
/// model. An agent of a file that cannot be built is left out, with a warning.
pub(crate) async fn with_agents(app: &App, picked: Picked, caller: &Chosen) -> Result<Tools, Failure> {
    let Picked { mut tools, agents } = picked;
    let mut built = Tools::new();
    for name in &agents {
        let described = described(app, name).cloned().unwrap_or_default();
        match agent(app, name, &described, (caller, &tools)).await {
            Ok(agent) => built.push(agent),
            Err(e) if described.file.is_some() => {
                app.output.warn(format!("{}; the agent is left out", e.line()));
            }
            Err(e) => return Err(e),
        }
    }
    tools.extend(built);
    Ok(tools)
}

fn described<'a>(app: &'a App, name: &str) -> Option<&'a AgentSettings> {
    app.config.settings.agents.as_ref()?.get(name)
}

/// Returns the tools of an agent. An agent from a file gets the tools of its caller, `of_caller`, that its file names;
/// any other agent gets the tools that its settings name, by default those that change nothing.
pub(crate) async fn tools_of(
    app: &App,
    described: &AgentSettings,
    of_caller: &Tools,
) -> Result<Tools, Failure> {
    match &described.file {
        None => toolset::of_agent(described.tools.as_ref(), app).await,
        Some(file) => Ok(of_caller
            .iter()
            .filter(|tool| agent_files::has_tool(file, &tool.spec().name))
            .cloned()
            .collect()),
    }
}

/// Returns the builder and the description of an agent of the settings, for a person or a program that calls the agent.
/// Without a model of its own, the agent has the model of the settings. An agent from a file gets its tools from those
/// that the settings choose.
///
/// # Errors
/// [`Failure`] if the settings have no such agent.
pub(crate) async fn alone(app: &App, name: &str) -> Result<(ArchonBuilder, String), Failure> {
    let agents = app.config.settings.agents.clone().unwrap_or_default();
    let Some(described) = agents.get(name) else {
        let names = agents.keys().cloned().collect::<Vec<_>>().join(", ");
        let advice = match names.is_empty() {
            true => format!("describe it in your settings, under [agents.{name}]"),
            false => format!("the agents are: {names}"),
        };
        return Err(Failure::usage(format!("the settings have no agent {name:?}"), advice));
    };
    let mut app = app.clone();
    let settings = &mut app.config.settings;
    settings.max_turns = described.max_turns.or(settings.max_turns);
    settings.max_duration = described.max_duration.or(settings.max_duration);
    let caller = match described.file {
        None => Tools::new(),
        Some(_) => toolset::chosen(&app).await?.tools,
    };
    let builder = builder(&app, name, described, (None, &caller)).await?;
    Ok((builder, described.description.clone()))
}

/// Builds an agent of the settings. It has its own model, otherwise that of its caller, otherwise the model
/// of the settings.
async fn builder(
    app: &App,
    name: &str,
    described: &AgentSettings,
    (caller, of_caller): (Option<&Chosen>, &Tools),
) -> Result<ArchonBuilder, Failure> {
    let place = agent_files::place_of_model(name, described);
    let tools = tools_of(app, described, of_caller).await.map_err(|e| e.at(&place))?;
    agent_files::check_model(app, described)?;
    let chosen = match (&described.model, caller) {
        (Some(model), _) => choose::of_member(app, model, &place).await?,
        (None, Some(caller)) => caller.clone(),
        (None, None) => choose::model(app, None).await?,
    };
    let builder = by_settings(app, chosen, tools).await?.agent_id(name).name(name);
    let builder = with_deferral(builder, &app.config.settings, described.tools.as_ref());
    Ok(match (&described.file, &described.system) {
        (Some(file), _) => builder.system(agent_files::system_prompt(app, file)?),
        (None, Some(system)) => builder.system(system),
        (None, None) => builder,
    })
}

async fn agent(
    app: &App,
    name: &str,
    described: &AgentSettings,
    (caller, of_caller): (&Chosen, &Tools),
) -> Result<Arc<dyn Tool>, Failure> {
    let builder = builder(app, name, described, (Some(caller), of_caller)).await?;
    let mut tool = SubAgentTool::new(name, builder.build()?);
    if !described.description.is_empty() {
        tool = tool.with_description(&described.description);
    }
    if let Some(turns) = described.max_turns {
        tool = tool.with_max_turns(turns);
    }
    if let Some(span) = described.max_duration {
        tool = tool.with_time_limit(Duration::from_millis(span.0));
    }
    Ok(Arc::new(tool))
}

/// Returns the builder of the agent that a run's log describes. Flags override its model, tools and folder. The tools
/// in `leave_out` are left out, unless a flag sets the tools.
pub(crate) async fn from_config(
    app: &App,
    config: &RunConfig,
    leave_out: &[String],
) -> Result<ArchonBuilder, Failure> {
    let app = &in_its_folder(app, config)?;
    let picked = match app.config.is_flag("tools") {
        true => toolset::chosen(app).await?,
        false => {
            let names = config.tool_names().filter(|name| *name != ACTIVATE_SKILL);
            toolset::recorded(names.filter(|name| leave_out.iter().all(|other| other != name)), app).await?
        }
    };
    let model = format!("{}:{}", config.provider, config.model);
    let chosen = match without_model(config) {
        Some(chosen) => chosen,
        None => choose::model(app, Some(&model)).await?,
    };
    let tools = with_agents(app, picked, &chosen).await?;
    let fallbacks = config.failure_policy.as_ref().map_or(&[][..], |policy| &policy.fallbacks);
    let fallbacks = choose::fallbacks(app, Some(fallbacks)).await?;
    let mut builder =
        assemble(app, chosen, fallbacks, tools, config.limits.clone())?.tool_mode(config.tool_mode);
    if let Some(system) = &config.system {
        builder = builder.system(system.as_str());
    }
    builder = match app.config.is_flag("tools") {
        true => with_deferral(builder, &app.config.settings, app.config.settings.tools.as_ref()),
        false => with_recorded_deferral(builder, config, None),
    };
    builder = with_recorded_skills(app, builder, config);
    if config.project_files.is_empty() && !asks_no_model(config) {
        builder = with_instructions(app, builder);
    }
    with_surroundings(app, with_accounts(app, builder), config).await
}

/// Returns true for a run whose calls a person or an MCP client chooses, not a model. The configuration of such a run
/// says nothing about the agents of the session.
pub(crate) fn asks_no_model(config: &RunConfig) -> bool {
    without_model(config).is_some()
}

/// Returns the provider of a run that asks no model; `None` for other runs.
fn without_model(config: &RunConfig) -> Option<Chosen> {
    client_calls(config).or_else(|| line_of_a_person(config))
}

/// Returns the provider of a run that makes the call of a client of `archon mcp serve`; `None` for other runs. The
/// provider asks no model.
#[cfg(all(unix, feature = "mcp-serve"))]
fn client_calls(config: &RunConfig) -> Option<Chosen> {
    use archon::{mcp_serve::ClientCalls, types::Provider};

    if config.provider != ClientCalls::ID {
        return None;
    }
    let provider: Arc<dyn Provider> = Arc::new(ClientCalls);
    let why = "a client chose the call".to_owned();
    Some(Chosen::new((provider, Vec::new()), ClientCalls::MODEL, why))
}

#[cfg(not(all(unix, feature = "mcp-serve")))]
fn client_calls(_: &RunConfig) -> Option<Chosen> {
    None
}

/// Returns the provider of a run that runs a shell line of a person in a conversation; `None` for other runs. The
/// provider asks no model.
#[cfg(feature = "chat")]
fn line_of_a_person(config: &RunConfig) -> Option<Chosen> {
    use archon::types::Provider;

    use crate::person::Person;

    if config.provider != Person::ID {
        return None;
    }
    let provider: Arc<dyn Provider> = Arc::new(Person::default());
    let why = "a person chose the command".to_owned();
    Some(Chosen::new((provider, Vec::new()), Person::MODEL, why))
}

#[cfg(not(feature = "chat"))]
fn line_of_a_person(_: &RunConfig) -> Option<Chosen> {
    None
}

/// Adds the memory and the project files that the configuration of a run names.
pub(crate) async fn with_surroundings(
    app: &App,
    mut builder: ArchonBuilder,
    config: &RunConfig,
) -> Result<ArchonBuilder, Failure> {
    if !config.project_files.is_empty() {
        builder = builder.project_file(ProjectFile::first_of(&config.project_files));
    }
    let memory = match &config.memory {
        Some(memory) => recorded_memory(app, memory).await,
        None => None,
    };
    Ok(with_memory(app, builder, memory))
}

/// Opens the memory that a log names, with the embedder that made its vectors.
async fn recorded_memory(app: &App, config: &MemoryConfig) -> Option<Memory> {
    let mut app = app.clone();
    let choice = config.embedder.as_deref().map_or(EmbedderChoice::None, memory::choice_of);
    app.config.settings.embedder = Some(choice);
    memory::open_for_run(&app, &config.collection).await
}

/// Sets the workspace to the folder in which the run began, even if the run is resumed in another folder.
fn in_its_folder(app: &App, config: &RunConfig) -> Result<App, Failure> {
    let mut app = app.clone();
    let is_flag = app.config.is_flag("workspace");
    let Some(folder) = config.workspace.as_ref().filter(|_| !is_flag) else { return Ok(app) };
    let folder = PathBuf::from(folder);
    if !folder.is_dir() {
        return Err(Failure::usage(
            format!("the run was begun in '{}', which is not a folder any more", folder.display()),
            "set the folder that its tools may see: --workspace DIR",
        ));
    }
    let is_other = toolset::folder(&app).as_ref() != Some(&folder);
    if is_other {
        let shown = visible_path(&folder);
        app.output.note_once(format!("its tools work in {shown}, where it was begun"));
    }
    app.config.settings.workspace = Some(folder);
    if is_other {
        agent_files::replace(&mut app);
    }
    Ok(app)
}

fn assemble(
    app: &App,
    chosen: Chosen,
    fallbacks: Vec<Chosen>,
    tools: Tools,
    limits: ExecutionLimits,
) -> Result<ArchonBuilder, Failure> {
    check_prices(app, &limits, std::iter::once(&chosen).chain(&fallbacks))?;
    let mut engine = engine_options(app, &tools)?;
    engine.output_level = app.config.settings.output_level.map(Into::into);
    let folder = if tools.is_empty() { None } else { toolset::folder(app) };
    #[cfg(all(unix, feature = "undo"))]
    let has_effects = crate::undo::has_effects(&tools);
    let mut builder = Archon::builder()
        .engine_options(engine)
        .agent_id(AGENT)
        .provider_with_keys(chosen.provider, chosen.keys, chosen.model)
        .tools(tools)
        .journal(app.open_journal()?)
        .limits(limits);
    for Chosen { provider, keys, model, .. } in fallbacks {
        builder = builder.fallback_provider(Fallback::new(provider, model).with_keys(keys));
    }
    #[cfg(all(feature = "embedder", feature = "mcp"))]
    {
        builder = crate::tool_embedder::add(app, builder);
    }
    builder = match (&app.consent, Asking::of(app)) {
        (Some(Consent { approver, settings }), _) => {
            builder.approver(approver.clone()).approval_settings(settings.clone())
        }
        (None, Asking::Here) => builder.approver(Arc::new(Prompt::of(app))),
        (None, Asking::Later) => builder.approver(Arc::new(AskLater)),
        (None, Asking::Nobody) => builder,
    };
    #[cfg(all(unix, feature = "undo"))]
    if let Some(folder) = folder.as_deref().filter(|_| has_effects) {
        builder = crate::undo::with_snapshots(app, builder, folder);
    }
    builder = with_hooks(app, builder)?;
    Ok(match folder {
        Some(folder) => builder.workspace(folder),
        None => builder,
    })
}

/// Returns the options with which this program executes tools: tools get all permissions that they require, the rules
/// are those of [`permissions::all`], and a change that no rule allows needs an approval.
pub(crate) fn engine_options(app: &App, tools: &Tools) -> Result<EngineOptions, Failure> {
    let mut engine = EngineOptions::default().granting(["code_exec", "fs_write", "network", "shell_exec"]);
    engine.ask = Ask::BeforeChanges;
    engine.permissions = permissions::all(app)?;
    permissions::warn_of_wide(tools, &engine.permissions, app);
    Ok(engine)
}

pub(crate) fn apply_limits(settings: &Settings, limits: &mut ExecutionLimits) {
    limits.max_turns = settings.max_turns.unwrap_or(limits.max_turns);
    limits.max_total_tokens = settings.max_tokens.unwrap_or(limits.max_total_tokens);
    limits.max_duration_ms = settings.max_duration.map_or(limits.max_duration_ms, |span| span.0);
    limits.max_cost_micros = settings.max_cost.map(|money| money.0).or(limits.max_cost_micros);
}

/// Checks that each model's price is known if the run has a limit on its cost.
fn check_prices<'a>(
    app: &App,
    limits: &ExecutionLimits,
    models: impl IntoIterator<Item = &'a Chosen>,
) -> Result<(), Failure> {
    let price = |of: &Chosen| of.provider.capabilities(&of.model).price;
    match (limits.max_cost_micros, models.into_iter().find(|of| price(of).is_none())) {
        (Some(_), Some(of)) => Err(no_price(app, of.provider.id(), &of.model)),
        _ => Ok(()),
    }
}

/// The error for a model without a price in a run with a limit on its cost; the advice has the lines to add
/// to the settings.
fn no_price(app: &App, provider: &str, model: &str) -> Failure {
    let file = app.sources.user.as_deref().map_or("archon.toml".into(), |file| file.to_string_lossy());
    let name = toml::Value::String(format!("{provider}:{model}"));
    let what = format!("the price of {model} from {provider} is not known, so --max-cost cannot be enforced");
    let how = format!(
        "use --max-tokens, or set the prices in {file}, in US dollars per million tokens, by three lines:"
    );
    let table = format!("[models.{name}]");
    Failure::choices(Exit::Usage, what, &[how.as_str(), &table, "input = DOLLARS", "output = DOLLARS"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Money, Sources, Span};

    #[test]
    fn apply_limits_sets_given_limits_and_leaves_the_others() {
        let mut limits = ExecutionLimits::default();
        apply_limits(&Settings::default(), &mut limits);
        assert_eq!(limits, ExecutionLimits::default());
        let settings = Settings {
            max_turns: Some(3),
            max_tokens: Some(4),
            max_cost: Some(Money(5)),
            max_duration: Some(Span(6)),
            ..Settings::default()
        };
        apply_limits(&settings, &mut limits);
        assert_eq!((limits.max_turns, limits.max_total_tokens), (3, 4));
        assert_eq!((limits.max_cost_micros, limits.max_duration_ms), (Some(5), 6));
    }

    #[tokio::test]
    async fn check_prices_refuses_a_limit_of_money_only_where_a_price_is_unknown() {
        let key = [("OPENAI_API_KEY".to_owned(), "sk".to_owned())];
        let mut limits = ExecutionLimits::default();
        for (model, max_cost, is_refused) in [
            ("openai:gpt-5-mini", Some(1), false),
            ("openai:unheard-of", Some(1), true),
            ("openai:unheard-of", None, false),
        ] {
            let app = App {
                sources: Sources { env: key.clone().into(), ..Sources::default() },
                ..App::of(Settings { model: Some(model.to_owned()), ..Settings::default() })
            };
            let chosen = choose::model(&app, None).await.unwrap();
            limits.max_cost_micros = max_cost;
            assert_eq!(check_prices(&app, &limits, [&chosen]).is_err(), is_refused, "{model}");
        }
    }
}
