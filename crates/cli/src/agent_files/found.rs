//! Reads agent files, with the feature `skills`.

use std::{path::Path, sync::Arc};

use archon::{
    providers::ModelRef,
    skills::{AgentFilePlaces, AgentFiles, SkillSet},
    types::{CALL_TOOL, TOOL_SEARCH},
};
use serde_json::json;

use crate::{
    app::{AGENT, App},
    choose,
    config::{AgentFile, AgentSettings, AgreedTable, sha256},
    exit::Exit,
    failure::Failure,
    local,
    project_parts::{self, Agreement, ProjectPart, lines_to_show, trust_command},
    servers::Tools,
    skills::{self, ACTIVATE_SKILL},
    text::{one_line, visible_line, visible_path},
};

/// Loads the agent files, adds their agents to those of the settings, and warns about files that are left out.
pub(crate) fn add(app: &mut App) {
    app.agent_files = Arc::new(load(app));
    for warning in warnings(app) {
        app.output.warn(warning);
    }
    let usable = usable(app);
    if usable.is_empty() {
        return;
    }
    let agents = app.config.settings.agents.get_or_insert_default();
    agents.extend(usable.into_iter().map(|file| (file.name.clone(), settings(file))));
}

/// Loads the agent files of the project that is the workspace now, in place of those of the previous project.
pub(crate) fn replace(app: &mut App) {
    if let Some(agents) = &mut app.config.settings.agents {
        agents.retain(|_, agent| agent.file.is_none());
    }
    add(app);
}

fn usable(app: &App) -> Vec<Arc<AgentFile>> {
    app.agent_files.iter().filter(|file| problem_of_name(app, file).is_none()).cloned().collect()
}

fn load(app: &App) -> AgentFiles {
    let mut places = AgentFilePlaces::new();
    if let Some(home) = app.env("HOME") {
        places = places.with_user(home);
    }
    if let Some(project) = project_parts::folder(app) {
        places = places.with_project(project);
    }
    AgentFiles::discover(&places, &|file, digest| is_agreed(app, file, digest))
}

fn is_agreed(app: &App, file: &Path, digest: &str) -> bool {
    Agreement::to(app, AgreedTable::Files, file, digest) == Agreement::Holds
}

/// Returns the files of the project that wait for an agreement.
pub(crate) fn waiting(app: &App) -> Vec<ProjectPart> {
    load(app).untrusted().iter().filter_map(|file| part(file)).collect()
}

/// Returns a file with its whole text; `None` if it has changed since it was read.
fn part(file: &AgentFile) -> Option<ProjectPart> {
    let text = std::fs::read_to_string(&file.file).ok().filter(|text| sha256(text) == file.digest)?;
    Some(ProjectPart {
        table: AgreedTable::Files,
        path: file.file.clone(),
        hash: file.digest.clone(),
        about: format!("the agent {} in {}:", visible_line(&file.name), visible_path(&file.file)),
        lines: lines_to_show(&text, &file.file),
    })
}

/// Returns the problems of the files, each as one line with the file and its line.
pub(crate) fn warnings(app: &App) -> Vec<String> {
    let files = &app.agent_files;
    let broken = files.warnings().iter().map(ToString::to_string);
    let of_names = files.iter().filter_map(|file| problem_of_name(app, file));
    let untrusted: Vec<String> = files.untrusted().iter().map(|file| visible_path(&file.file)).collect();
    let unheard = (!untrusted.is_empty()).then(|| {
        let (agree, files) = (trust_command(app), untrusted.join(", "));
        format!("no person has agreed to these files with agents, so they are left out: {files}. Show them and agree: {agree}")
    });
    // A name in a project's file must not look like several lines.
    broken.chain(of_names).map(|text| visible_line(&text)).chain(unheard).collect()
}

/// Describes the agent files for `archon doctor`: the problems of [`warnings`], and unknown models and skills. An agent
/// with an unknown model or skill is left out when the agents are built.
pub(crate) fn findings(app: &App) -> Vec<String> {
    let mut found = warnings(app);
    for file in usable(app) {
        let agent = settings(file.clone());
        let problems = [check_model(app, &agent).err(), system_prompt(app, &file).err()];
        found.extend(problems.into_iter().flatten().map(|problem| visible_line(&problem.line())));
    }
    found
}

/// Returns the reason why the agent of a file cannot have its name, if there is one. Permission rules allow calls of
/// agents by name, so an agent with the name of a tool would also allow calls of this tool.
fn problem_of_name(app: &App, file: &Arc<AgentFile>) -> Option<String> {
    let name = file.name.as_str();
    let described = app.config.settings.agents.as_ref().and_then(|agents| agents.get(name));
    let is_of_settings = described.is_some_and(|agent| agent.file.as_ref() != Some(file));
    let why = match () {
        () if is_of_settings => format!("the settings have an agent `{name}`, which is used"),
        () if [AGENT, CALL_TOOL, TOOL_SEARCH, ACTIVATE_SKILL].contains(&name) => {
            format!("the name `{name}` is reserved")
        }
        () => match crate::toolset::wrong_name(name, app) {
            Ok(wrong) => format!("the name `{name}`: {}", wrong?),
            Err(e) => e.line(),
        },
    };
    Some(
        file.problem("name", format!("{why}; the file is left out, give its agent another name")).to_string(),
    )
}

fn settings(file: Arc<AgentFile>) -> AgentSettings {
    AgentSettings {
        description: file.description.clone(),
        model: file.model.clone(),
        max_turns: file.max_turns,
        file: Some(file),
        ..AgentSettings::default()
    }
}

/// Returns the place where an agent's model and tools are set, for error texts.
pub(crate) fn place_of_model(name: &str, agent: &AgentSettings) -> String {
    match &agent.file {
        None => format!("[agents.{name}]"),
        Some(file) => {
            let place = file.problem("model", "");
            format!("{}:{}", visible_path(&place.file), place.line)
        }
    }
}

/// Returns an error for a file with a model that is neither `PROVIDER:MODEL` nor a local model. Files for other
/// programs may have short names such as `sonnet`, which no service here knows.
pub(crate) fn check_model(app: &App, agent: &AgentSettings) -> Result<(), Failure> {
    let (Some(file), Some(model)) = (&agent.file, &agent.model) else { return Ok(()) };
    if model.parse::<ModelRef>().is_ok() || local::is_meant(app, model) {
        return Ok(());
    }
    let what = file.problem("model", format!("there is no model `{model}`")).to_string();
    let services: Vec<&str> = choose::keyed(app).map(|(service, _)| service).collect();
    let known = match services.is_empty() {
        true => "`archon models list` shows the models".to_owned(),
        false => format!("services with a key are: {}", services.join(", ")),
    };
    Err(Failure::new(Exit::Usage, what, format!("write inherit, or PROVIDER:MODEL; {known}")))
}

/// Returns the system prompt of an agent, with the instructions of its skills: the person's own, and those of the project
/// to which a person agreed.
pub(crate) fn system_prompt(app: &App, file: &AgentFile) -> Result<String, Failure> {
    let set = match file.skills.is_empty() {
        true => SkillSet::new(),
        false => skills::discover(app),
    };
    file.system_prompt(&set).map_err(|problem| {
        let waits = set.untrusted().iter().any(|skill| file.skills.contains(&skill.name));
        let advice = match waits {
            true => format!("show the skill of the project and agree to it: {}", trust_command(app)),
            false => "put the skill into ~/.archon/skills or into .archon/skills of the project, or take it out of the file".to_owned(),
        };
        Failure::usage(problem.to_string(), advice)
    })
}

/// Lists the files of the project to which no person has agreed; true if there are any.
pub(crate) fn list_untrusted(app: &App) -> bool {
    for file in app.agent_files.untrusted() {
        let path = path(file);
        let item = json!({
            "name": file.name, "description": file.description, "file": path, "agreed": false,
        });
        app.item(&item, || {
            format!("{:<16}  not agreed to: {path}; {}", file.name, one_line(&file.description, 80))
        });
    }
    !app.agent_files.untrusted().is_empty()
}

/// Returns an error if the agent with this name is in a file that no person has agreed to.
pub(crate) fn check_agreed(app: &App, name: &str) -> Result<(), Failure> {
    let Some(file) = app.agent_files.untrusted().iter().find(|file| file.name == name) else { return Ok(()) };
    let what = format!("no person has agreed to {}", path(file));
    Err(Failure::usage(what, format!("read the file, then agree: {}", trust_command(app))))
}

/// Returns the path of the file, as one visible line.
pub(crate) fn path(file: &AgentFile) -> String {
    visible_path(&file.file)
}

/// Returns true if the agent of the file may use this tool of its caller.
pub(crate) fn has_tool(file: &AgentFile, tool: &str) -> bool {
    file.has_tool(tool)
}

/// Returns the problem if the file names tools that are not among `tools`.
pub(crate) fn unknown_tools(file: &AgentFile, tools: &Tools) -> Option<String> {
    let known = tools.iter().map(|tool| tool.spec().name.as_str());
    file.unknown_tools(known).map(|problem| problem.to_string())
}
