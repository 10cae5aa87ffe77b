//! `archon plan`: makes a plan for a goal and shows it, follows it, or shows the plan of a run.

use std::sync::Arc;

use archon::{
    Archon, Error, Planning, RunOptions,
    planner::{PlanFormat, PlanRunError, fold, is_plan, render, with_remedy},
    types::{Json, RunId, Task},
};
use clap::{Subcommand, ValueEnum};

use super::{ModelFlags, ToolFlags, run};
use crate::{
    app::App, config::Settings, drive::drive, exit::Exit, failure::Failure, output::Look, text::printable,
};

/// What `archon plan` takes.
#[derive(Debug, clap::Args)]
#[command(subcommand_negates_reqs = true)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    command: Option<PlanCommand>,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    /// How the plan is drawn [default: text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Follow the plan and print the answer; what is drawn goes to standard error
    #[arg(long)]
    execute: bool,
    /// The goal, best in quotes; `-` reads it from standard input
    #[arg(required = true, value_name = "GOAL")]
    goal: Vec<String>,
}

/// What else can be done with plans.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// The plan of a run, with how far its subtasks are and its longest way
    Show {
        /// The run's id
        run: String,
        /// How it is drawn [default: text]
        #[arg(long, value_enum)]
        format: Option<Format>,
    },
}

/// How a plan is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line for each subtask
    Text,
    /// A Mermaid flowchart
    Mermaid,
    /// A Graphviz digraph
    Dot,
    /// The task, its graph, its order and its critical path
    Json,
}

impl From<Format> for PlanFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Mermaid => Self::Mermaid,
            Format::Dot => Self::Dot,
            Format::Json => Self::Json,
        }
    }
}

impl PlanArgs {
    pub(crate) fn settings(&self) -> Settings {
        super::settings(&self.model, &self.tools)
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        if let Some(PlanCommand::Show { run, format }) = self.command {
            return show(app, RunId::new(run), format.or(self.format)).await;
        }
        let goal = run::task(&self.goal)?;
        let archon = run::chosen(app, self.tools.asking(app)).await?;
        match self.execute {
            true => follow_drawn(app, &archon, goal, self.format).await,
            false => draft(app, &archon, &goal, self.format).await,
        }
    }
}

/// The agent that follows the plans that its own model makes.
pub(crate) fn planning(archon: &Archon) -> Planning {
    archon.planning(Arc::new(archon.planner()))
}

/// Makes a plan and follows it.
pub(crate) async fn follow(app: &App, archon: &Archon, goal: String) -> Result<Exit, Failure> {
    follow_drawn(app, archon, goal, None).await
}

async fn follow_drawn(
    app: &App,
    archon: &Archon,
    goal: String,
    format: Option<Format>,
) -> Result<Exit, Failure> {
    let handle = planning(archon).start(goal, RunOptions::default()).await?;
    let run = handle.run_id().clone();
    let resume = run::resume_line(app, run.as_str());
    let exit = drive(handle, &[], &resume, app).await;
    if let Some(format) = format
        && let Ok(records) = archon.journal().read(&run).await
        && let Some(machine) = fold(&records)
    {
        app.output.note(Look::Plain, drawn(&machine.task(), format));
    }
    exit
}

/// Makes a plan and says what is wrong with it. Nothing is begun and nothing is kept.
async fn draft(app: &App, archon: &Archon, goal: &str, format: Option<Format>) -> Result<Exit, Failure> {
    app.output.wait("planning");
    let drafted = planning(archon).draft(goal).await;
    app.output.stop_waiting();
    let (task, problems) = drafted?;
    if problems.iter().any(|problem| problem.is_error()) {
        return Err(Error::Plan(PlanRunError::Problems { problems }).into());
    }
    print(app, &task, format);
    for warning in &problems {
        app.output.note(Look::Warning, with_remedy(warning));
    }
    Ok(Exit::Finished)
}

/// Shows what can be read even of a damaged log; the damage is said, and the exit code tells.
async fn show(app: &App, run: RunId, format: Option<Format>) -> Result<Exit, Failure> {
    let salvaged = app.journal().salvage(&run).await?;
    let machine = fold(&salvaged.records).filter(|_| is_plan(&salvaged.records));
    let Some(machine) = machine else {
        let advice = format!("`archon runs show {run}` shows what happened in it");
        return Err(Failure::usage(format!("run {run} follows no plan"), advice));
    };
    let task = machine.task();
    print(app, &task, format);
    if task.subtasks.is_empty() && !app.json {
        app.output.note(Look::Dim, "there is no plan yet");
    }
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}

/// On a line for programs, unless they want another form.
fn print(app: &App, task: &Task, format: Option<Format>) {
    let text = drawn(task, format.unwrap_or(Format::Text));
    let json: Result<Json, _> = serde_json::from_str(&render(task, PlanFormat::Json));
    match (json, format) {
        (Ok(json), None | Some(Format::Json)) => app.item(&json, || text),
        _ => app.output.line(text),
    }
}

fn drawn(task: &Task, format: Format) -> String {
    let text = render(task, format.into());
    printable(text.trim_end())
}
