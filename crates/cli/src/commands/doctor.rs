//! `archon doctor`: shows the state of this machine, and the model and tools that would be used, with the
//! reason. With `--fix` it repairs problems that can be repaired safely.

mod repair;

use archon::{
    providers::{LocalServer, ServerAnswer, ask_local_servers},
    tools::sandbox::{gaps, missing},
    types::{Journal, RunFilter},
};
use serde::Serialize;

use super::{ModelFlags, ToolFlags};
use crate::{
    agent_files,
    app::App,
    choose,
    config::{KEYS, Settings},
    exit::Exit,
    failure::Failure,
    hooks, instructions_file, local, mcp, openapi, skills,
    text::one_line,
    toolset,
};

/// Arguments of `archon doctor`, as for `archon run`.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Repair problems that can be repaired safely: missing folders and models, permissions of secrets,
    /// stale locks and indexes
    #[arg(long)]
    fix: bool,
    /// Check the files of this folder of `archon assistant` [default: ~/.archon/assistant, if it exists]
    #[cfg(all(feature = "serve", feature = "skills", feature = "triggers"))]
    #[arg(long, value_name = "FOLDER")]
    assistant: Option<std::path::PathBuf>,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
}

/// The result of a check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    /// True if the checked thing can be used.
    ok: bool,
    /// The description of the result, or the remedy.
    found: String,
}

impl Finding {
    /// Creates a finding: what was found, or the error with its remedy.
    fn of(check: &'static str, result: Result<String, Failure>) -> Self {
        let ok = result.is_ok();
        Self { check, ok, found: result.unwrap_or_else(|e| e.line()) }
    }
}

impl DoctorArgs {
    pub(crate) fn settings(&self) -> Settings {
        super::settings(&self.model, &self.tools)
    }

    /// Prints the results; fails if no model can be used, so that scripts can check it.
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let show = |finding: Finding| {
            let mark = if finding.ok { "ok" } else { "--" };
            app.item(&finding, || {
                format!("{mark}  {:<9}  {}", finding.check, one_line(&finding.found, usize::MAX))
            });
        };
        settings(app).into_iter().for_each(show);
        // First, so that the rest shows the repaired state.
        let is_repaired = self.repairs(app, show).await;
        show(data_directory(app).await);
        servers(app).await.into_iter().for_each(show);
        show(keys(app));
        // Opens the engine for local models, since only that shows if the engine can be used.
        show(Finding::of("engine", local::engine(app)));
        show(models(app));
        for (ok, found) in mcp::findings(app).await {
            show(Finding { check: "mcp", ok, found });
        }
        for (ok, found) in openapi::findings(app) {
            show(Finding { check: "openapi", ok, found });
        }
        for found in agent_files::findings(app) {
            show(Finding { check: "agents", ok: false, found });
        }
        #[cfg(all(feature = "serve", feature = "skills", feature = "triggers"))]
        for found in crate::assistant::Folder::findings(app, self.assistant.as_deref()).await {
            show(Finding { check: "assistant", ok: false, found });
        }
        project(app).into_iter().for_each(show);
        show(Finding::of("tools", toolset::chosen(app).await.map(|picked| picked.names().join(", "))));
        show(sandbox());
        app.output.wait("choosing a model");
        let chosen = choose::model(app, None).await;
        app.output.stop_waiting();
        let exit = match chosen.as_ref().map_or_else(|failure| failure.exit(), |_| Exit::Finished) {
            Exit::Finished if !is_repaired => Exit::Failed,
            exit => exit,
        };
        let about = chosen.map(|c| format!("{} from {}: {}", c.model, c.provider.id(), c.why));
        show(Finding::of("model", about));
        Ok(exit)
    }

    /// Shows the problems that can be repaired, or repairs them. Returns false if a repair failed.
    async fn repairs(&self, app: &App, show: impl Fn(Finding)) -> bool {
        let mut is_repaired = true;
        for repair in repair::find(app).await {
            let problem = repair.problem();
            let (ok, found) = match self.fix {
                false => (false, format!("{problem}; `archon doctor --fix` repairs it")),
                true => match repair.apply(app).await {
                    Ok(done) => (true, format!("{problem}: {done}")),
                    Err(e) => {
                        is_repaired = false;
                        (false, format!("{problem}, and could not be repaired: {}", e.line()))
                    }
                },
            };
            show(Finding { check: "fix", ok, found });
        }
        is_repaired
    }
}

fn settings(app: &App) -> Vec<Finding> {
    let set = KEYS.iter().filter_map(|key| Some((*key, app.config.origin(key)?)));
    let found: Vec<_> = set.map(|(key, origin)| format!("{key} is set by {origin}")).collect();
    let files = [&app.sources.user, &app.sources.project].into_iter().flatten();
    let files: Vec<_> =
        files.map(|f| format!("{} {}", if f.exists() { "read" } else { "no" }, f.display())).collect();
    [files, found].concat().into_iter().map(|found| Finding { check: "settings", ok: true, found }).collect()
}

/// Describes the hooks, skills and instructions that people and projects have, with each problem.
fn project(app: &App) -> Vec<Finding> {
    let of = |check, found: Vec<(bool, String)>| {
        found.into_iter().map(move |(ok, found)| Finding { check, ok, found })
    };
    let hooks = of("hooks", hooks::findings(app));
    let skills = of("skills", skills::findings(app));
    let instructions = of("project", instructions_file::finding(app).into_iter().collect());
    hooks.chain(skills).chain(instructions).collect()
}

async fn data_directory(app: &App) -> Finding {
    let dir = app.data_dir.display();
    // Lists the runs, since the question is whether their files can be read.
    let heads = app.journal().list(&RunFilter::all()).await;
    Finding::of("data", heads.map(|heads| format!("{dir}, {} runs", heads.len())).map_err(Failure::from))
}

async fn servers(app: &App) -> Vec<Finding> {
    let answers = ask_local_servers(choose::local_servers(app), choose::TIMEOUT).await.into_iter();
    let finding = |(server, answer): (LocalServer, ServerAnswer)| {
        let at = format!("{} at {}", server.profile, server.base_url);
        let (ok, found) = match answer {
            ServerAnswer::Models(models) => (true, format!("{at} has: {}", models.join(", "))),
            ServerAnswer::Late => {
                let ms = choose::TIMEOUT.as_millis();
                (
                    false,
                    format!("{at} did not list its models within {ms} ms; a run that needs it waits longer"),
                )
            }
            _ => (false, format!("no server answers as {at}")),
        };
        Finding { check: "server", ok, found }
    };
    answers.map(finding).collect()
}

/// Describes the keys that are set: only the names of variables and services, never a value.
fn keys(app: &App) -> Finding {
    let shown = |variable: String| match app.sources.env.contains_key(&variable) {
        true => variable,
        false => format!("{variable} (stored)"),
    };
    let set: Vec<_> = choose::keyed(app)
        .flat_map(|(_, variable)| choose::key_variables(app, variable))
        .map(shown)
        .collect();
    let found = match set.is_empty() {
        true => "no service's key is in the environment or stored".to_owned(),
        false => set.join(", "),
    };
    Finding { check: "keys", ok: !set.is_empty(), found }
}

fn models(app: &App) -> Finding {
    let names: Vec<_> = local::files(app).into_iter().map(|(name, _)| name).collect();
    let directory = local::directory(app);
    let found = match names.is_empty() {
        true => format!("no model files in {}", directory.display()),
        false => format!("in {}: {}", directory.display(), names.join(", ")),
    };
    Finding { check: "files", ok: !names.is_empty(), found }
}

/// Shows if the sandbox works on this machine, and what a sandboxed command can still do.
fn sandbox() -> Finding {
    let (ok, found) = match (missing(), gaps()) {
        (Some(missing), _) => (false, format!("{missing}; bash is refused")),
        (None, Some(open)) => (true, format!("commands are sandboxed, but {open}")),
        (None, None) => (true, "commands are sandboxed".to_owned()),
    };
    Finding { check: "sandbox", ok, found }
}
