//! `archon doctor`: shows the state of this machine, and the model and tools that would be used, with the
//! reason. With `--fix` it repairs problems that can be repaired safely.

mod repair;

use archon::{
    providers::{LocalServer, ServerAnswer, ask_local_servers},
    tools::sandbox::{missing, not_held},
    types::{Journal, RunFilter},
};
use serde::Serialize;

use super::{ModelFlags, ToolFlags};
use crate::{
    app::App,
    choose,
    config::{KEYS, Settings},
    exit::Exit,
    failure::Failure,
    local, mcp,
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
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
}

/// The result of a check.
#[derive(Debug, Serialize)]
struct Finding {
    /// The name of the check.
    check: &'static str,
    /// True if the checked thing can be used.
    ok: bool,
    /// The description of the result, or the remedy.
    found: String,
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
        // First, so that the rest shows the mended state.
        let is_mended = self.repairs(app, show).await;
        show(data_directory(app).await);
        servers(app).await.into_iter().for_each(show);
        show(keys(app));
        show(engine(app));
        show(models(app));
        for (ok, found) in mcp::findings(app).await {
            show(Finding { check: "mcp", ok, found });
        }
        show(tools(app).await);
        show(sandbox());
        app.output.wait("choosing a model");
        let chosen = choose::model(app, None).await;
        app.output.stop_waiting();
        let exit = match chosen.as_ref().map_or_else(|failure| failure.exit(), |_| Exit::Finished) {
            Exit::Finished if !is_mended => Exit::Failed,
            exit => exit,
        };
        show(match chosen {
            Ok(c) => Finding {
                check: "model",
                ok: true,
                found: format!("{} from {}: {}", c.model, c.provider.id(), c.why),
            },
            Err(e) => Finding {
                check: "model",
                ok: false,
                found: format!("{}; {}", e.what(), e.advice().join("; ")),
            },
        });
        Ok(exit)
    }

    /// Shows the problems that can be repaired, or repairs them. Returns false if a repair failed.
    async fn repairs(&self, app: &App, show: impl Fn(Finding)) -> bool {
        let mut is_mended = true;
        for repair in repair::find(app).await {
            let problem = repair.problem();
            let (ok, found) = match self.fix {
                false => (false, format!("{problem}; `archon doctor --fix` repairs it")),
                true => match repair.mend(app).await {
                    Ok(done) => (true, format!("{problem}: {done}")),
                    Err(e) => {
                        is_mended = false;
                        (
                            false,
                            format!(
                                "{problem}, and could not be repaired: {}; {}",
                                e.what(),
                                e.advice().join("; ")
                            ),
                        )
                    }
                },
            };
            show(Finding { check: "fix", ok, found });
        }
        is_mended
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

async fn data_directory(app: &App) -> Finding {
    let dir = app.data_dir.display();
    // Lists the runs, since the question is whether their files can be read.
    match app.journal().list(&RunFilter::all()).await {
        Ok(heads) => Finding { check: "data", ok: true, found: format!("{dir}, {} runs", heads.len()) },
        Err(e) => Finding { check: "data", ok: false, found: format!("{e}; {}", e.advice()) },
    }
}

async fn servers(app: &App) -> Vec<Finding> {
    let answers = ask_local_servers(choose::local_servers(app), choose::PATIENCE).await.into_iter();
    let finding = |(server, answer): (LocalServer, ServerAnswer)| {
        let at = format!("{} at {}", server.profile, server.base_url);
        let (ok, found) = match answer {
            ServerAnswer::Models(models) => (true, format!("{at} has: {}", models.join(", "))),
            ServerAnswer::Late => (
                false,
                format!(
                    "{at} did not list its models within {} ms; a run that needs it waits longer",
                    choose::PATIENCE.as_millis()
                ),
            ),
            _ => (false, format!("no server answers as {at}")),
        };
        Finding { check: "server", ok, found }
    };
    answers.map(finding).collect()
}

/// Shows only names of variables and services, never a value.
fn keys(app: &App) -> Finding {
    let shown = |variable: String| match app.sources.env.contains_key(&variable) {
        true => variable,
        false => format!("{variable} (stored)"),
    };
    let set: Vec<_> = choose::keyed(app)
        .flat_map(|(_, variable)| choose::key_variables(app, variable))
        .map(shown)
        .collect();
    let found = if set.is_empty() {
        "no service's key is in the environment or stored".to_owned()
    } else {
        set.join(", ")
    };
    Finding { check: "keys", ok: !set.is_empty(), found }
}

/// Opens the engine for local models, since only that shows if the engine can be used.
fn engine(app: &App) -> Finding {
    match local::engine(app) {
        Ok(found) => Finding { check: "engine", ok: true, found },
        Err(e) => {
            Finding { check: "engine", ok: false, found: format!("{}; {}", e.what(), e.advice().join("; ")) }
        }
    }
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
    let found = match (missing(), not_held()) {
        (Some(missing), _) => {
            return Finding { check: "sandbox", ok: false, found: format!("{missing}; bash is refused") };
        }
        (None, Some(open)) => format!("commands are sandboxed, but {open}"),
        (None, None) => "commands are sandboxed".to_owned(),
    };
    Finding { check: "sandbox", ok: true, found }
}

async fn tools(app: &App) -> Finding {
    match toolset::chosen(app).await {
        Ok(picked) => Finding { check: "tools", ok: true, found: picked.names().join(", ") },
        Err(e) => {
            Finding { check: "tools", ok: false, found: format!("{}; {}", e.what(), e.advice().join("; ")) }
        }
    }
}
