//! The folder of an assistant: the persona, and the agents.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use archon::{
    orchestrator::Zone,
    skills::{AgentFile, AgentFileProblem, AgentFiles},
    types::{CALL_TOOL, TOOL_SEARCH, ToolSpec},
};

use super::{
    ASSISTANT,
    description::{Description, OWN, unknown_tools},
    file_triggers::Surroundings,
    parts::{self, leave_out},
};
use crate::{
    agent_files,
    app::{AGENT, App},
    config::{AgentSettings, ToolSelection},
    failure::Failure,
    mcp,
    skills::ACTIVATE_SKILL,
    tasks,
    text::{visible_line, visible_path},
    toolset,
};

/// The persona of a folder without `assistant.md`.
const PERSONA: &str =
    "---\nname: assistant\ndescription: Answers messages.\n---\nYou are a helpful assistant.\n";

/// The agents of a folder.
pub(crate) struct Folder {
    pub(super) persona: Description,
    pub(super) zone: Zone,
    pub(super) agents: Vec<Description>,
    warnings: Vec<String>,
    /// True if a file of an agent was left out.
    has_left_out: bool,
}

impl Folder {
    /// Loads a folder; by default `~/.archon/assistant`.
    ///
    /// # Errors
    /// [`Failure`] if the folder does not exist, or its `assistant.md` has a problem.
    pub(crate) async fn load(app: &App, path: Option<&Path>) -> Result<Self, Failure> {
        let path = match (path, default_path(app)) {
            (Some(path), _) => path.to_owned(),
            (None, Some(path)) => path,
            (None, None) => {
                let what = "HOME is not set, so there is no folder ~/.archon/assistant";
                return Err(Failure::usage(what, "name the folder: archon assistant FOLDER"));
            }
        };
        if !path.is_dir() {
            let what = format!("there is no folder {}", visible_path(&path));
            let advice = "create it, with the file agents/NAME.md for each agent, or name another: archon assistant FOLDER";
            return Err(Failure::usage(what, advice));
        }
        let tools = all_tools(app).await?;
        let (persona, mut warnings) = persona(app, &path, &tools)?;
        let zone = zone(&persona).map_err(|problem| of_persona(&problem))?;
        let around = surroundings(app, &zone, tools);
        let persona = Description::read(persona, &around).map_err(|problem| of_persona(&problem))?;
        let files = AgentFiles::load_with([path.join("agents")], OWN);
        warnings.extend(files.warnings().iter().map(ToString::to_string));
        let mut has_left_out = !files.warnings().is_empty();
        let mut agents = Vec::new();
        for file in files.iter() {
            match check(app, file, &around.tools).and_then(|()| Description::read(file.clone(), &around)) {
                Ok(agent) => {
                    warnings.extend(agent.warnings.iter().map(ToString::to_string));
                    agents.push(agent);
                }
                Err(problem) => {
                    has_left_out = true;
                    warnings.push(problem.to_string());
                }
            }
        }
        Ok(Self { persona, zone, agents, warnings, has_left_out })
    }

    /// Returns true if all triggers of this agent are known: its file was read, or no file was left out.
    pub(super) fn knows_triggers_of(&self, agent: &str) -> bool {
        !self.has_left_out || self.agents.iter().any(|one| one.file.name == agent)
    }

    /// Returns the problems of files, each as one line with the file and its line.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.warnings.iter().map(|warning| visible_line(warning))
    }

    /// Describes the problems of a folder for `archon doctor`. Without a path, it is the default folder, if it exists.
    pub(crate) async fn findings(app: &App, path: Option<&Path>) -> Vec<String> {
        let exists = || default_path(app).is_some_and(|path| path.is_dir());
        if path.is_none() && !exists() {
            return Vec::new();
        }
        match Self::load(app, path).await {
            Ok(folder) => folder.warnings().collect(),
            Err(failure) => vec![failure.line()],
        }
    }
}

fn default_path(app: &App) -> Option<PathBuf> {
    app.env("HOME").map(|home| Path::new(home).join(".archon/assistant"))
}

/// Returns all tools.
async fn all_tools(app: &App) -> Result<Vec<ToolSpec>, Failure> {
    mcp::settle_all(app).await;
    let tools = toolset::of_agent(Some(&ToolSelection::All), app).await?;
    Ok(tools.iter().map(|tool| tool.spec().clone()).collect())
}

/// Returns the defaults and names that triggers use, from the settings.
fn surroundings(app: &App, zone: &Zone, tools: Vec<ToolSpec>) -> Surroundings {
    let settings = &app.config.settings;
    let channels = settings.channels.iter().flatten();
    let channels = channels.map(|(name, channel)| (name.clone(), channel.tenant().map(str::to_owned)));
    let serve = settings.serve.clone().unwrap_or_default();
    Surroundings {
        zone: zone.name().to_owned(),
        channels: channels.chain([(tasks::CONSOLE.to_owned(), None)]).collect(),
        tenants: serve.tenants().into_iter().map(str::to_owned).collect(),
        tools,
    }
}

fn persona(app: &App, folder: &Path, tools: &[ToolSpec]) -> Result<(Arc<AgentFile>, Vec<String>), Failure> {
    let path = folder.join("assistant.md");
    let content = match std::fs::read(&path) {
        Ok(content) => content,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => PERSONA.as_bytes().to_vec(),
        Err(e) => return Err(Failure::unreadable(&path, &e, "make the file readable, or remove it")),
    };
    let parsed = AgentFile::parse_with(&path, &content, OWN);
    let (mut file, warnings) = parsed.map_err(|problems| match problems.last() {
        Some(problem) => of_persona(problem),
        None => Failure::usage(format!("cannot use {}", visible_path(&path)), "correct the file"),
    })?;
    ASSISTANT.clone_into(&mut file.name);
    let file = Arc::new(file);
    let refused =
        ["fields", "triggers", "credentials"].into_iter().find(|name| file.more.contains_key(*name));
    let refused = refused.map(|name| {
        file.problem(name, format!("assistant.md has no `{name}`: put it into a file of agents"))
    });
    let problem = refused.or_else(|| unknown_tools(&file, tools)).or_else(|| parts_problem(app, &file));
    match problem {
        Some(problem) => Err(of_persona(&problem)),
        None => Ok((file, warnings.iter().map(ToString::to_string).collect())),
    }
}

fn of_persona(problem: &AgentFileProblem) -> Failure {
    let text = problem.text.trim_end_matches("; the file is left out");
    let what = format!("{}:{}: {text}", visible_path(&problem.file), problem.line);
    Failure::usage(visible_line(&what), "correct the file: it describes the main agent")
}

fn zone(persona: &AgentFile) -> Result<Zone, AgentFileProblem> {
    let Some(part) = parts::field(persona, "zone") else { return Ok(Zone::default()) };
    Zone::named(part.text()?).map_err(|error| part.wrong(error.to_string()))
}

/// Checks the name, the tools, the model and the skills of a file.
fn check(app: &App, file: &AgentFile, tools: &[ToolSpec]) -> Result<(), AgentFileProblem> {
    if let Some(part) = parts::field(file, "zone") {
        return Err(part.wrong("`zone` is a field of assistant.md; a trigger has its own"));
    }
    let reserved = [AGENT, ASSISTANT, CALL_TOOL, TOOL_SEARCH, ACTIVATE_SKILL];
    let why = match toolset::wrong_name(&file.name, app) {
        Ok(_) if reserved.contains(&file.name.as_str()) => Some("the name is reserved".to_owned()),
        // In the ids of tasks, this is between the names.
        Ok(_) if file.name.contains("--") => Some("it has two hyphens".to_owned()),
        Ok(wrong) => wrong.map(str::to_owned),
        Err(e) => Some(e.line()),
    };
    if let Some(why) = why {
        return Err(leave_out(
            file,
            "name",
            format!("the agent cannot have the name `{}`: {why}", file.name),
        ));
    }
    match unknown_tools(file, tools).or_else(|| parts_problem(app, file)) {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// Returns the problem of the model or of the skills.
fn parts_problem(app: &App, file: &AgentFile) -> Option<AgentFileProblem> {
    let of_model = agent_files::check_model(app, &settings(&Arc::new(file.clone()))).err();
    let found = match of_model {
        Some(e) => Some(("model", e)),
        None => agent_files::system_prompt(app, file).err().map(|e| ("skills", e)),
    };
    let (field, e) = found?;
    // These errors begin with the place.
    let (line, place) = (e.line(), file.problem(field, "").to_string());
    Some(leave_out(file, field, line.strip_prefix(&place).unwrap_or(&line)))
}

/// Returns the settings of the agent of a file.
pub(super) fn settings(file: &Arc<AgentFile>) -> AgentSettings {
    AgentSettings {
        description: file.description.clone(),
        model: file.model.clone(),
        max_turns: file.max_turns,
        file: Some(file.clone()),
        ..AgentSettings::default()
    }
}
