//! `archon plan`: makes a plan for a goal and shows it, follows it, shows the plan of a run, or answers its
//! questions.

mod answer;
mod template;

use std::path::PathBuf;

use archon::{
    Planning, RunOptions, Runs,
    planner::{PlanDraft, PlanFormat, PlanRunError, fold, render, with_remedy},
    types::{Confirm, Json, RunId, RunKind, SessionId, Spending, StartRun, StartRuns, Task},
};
use clap::{Subcommand, ValueEnum};

use super::{ModelFlags, ToolFlags, WorkFlags, task, which::WhichRun};
use crate::{
    app::{AGENT, App},
    config::Settings,
    drive,
    exit::Exit,
    failure::Failure,
    output::Look,
    planning::planning,
    toolset,
};

use answer::{ApproveArgs, RejectArgs};

#[derive(Debug, clap::Args)]
#[command(subcommand_negates_reqs = true)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    command: Option<PlanCommand>,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    pub(super) work: WorkFlags,
    /// The format of the plan's drawing [default: text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Follow the plan and print the answer; the drawing goes to standard error
    #[arg(long)]
    execute: bool,
    /// Show the plan, and each plan that would replace it, and follow it only after a yes
    #[arg(long, requires = "execute")]
    confirm: bool,
    /// Use the plan of this workflow template, in YAML or JSON
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// The value of a parameter of the template; may be given again
    #[arg(long, value_name = "NAME=VALUE", requires = "template")]
    set: Vec<String>,
    /// The goal, best in quotes; `-` reads it from standard input [with a template, its description]
    #[arg(required_unless_present = "template", value_name = "GOAL")]
    goal: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Show the plan of a run, with the state of its subtasks and its critical path
    Show {
        #[command(flatten)]
        which: WhichRun,
        /// The format of the plan's drawing [default: text]
        #[arg(long, value_enum)]
        format: Option<Format>,
    },
    /// Answer yes to the question of a plan's run: about its plan, or about a subtask
    Approve(ApproveArgs),
    /// Answer no to the question of a plan's run
    Reject(RejectArgs),
}

/// The format in which a plan is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line for each subtask
    Text,
    /// A picture
    Svg,
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
            Format::Svg => Self::Svg,
            Format::Mermaid => Self::Mermaid,
            Format::Dot => Self::Dot,
            Format::Json => Self::Json,
        }
    }
}

impl PlanArgs {
    pub(crate) fn settings(&self) -> Settings {
        match &self.command {
            Some(PlanCommand::Approve(args)) => args.flags.settings(),
            Some(PlanCommand::Reject(args)) => args.flags.settings(),
            _ => {
                let mut settings = super::settings(&self.model, &self.tools);
                self.work.apply(&mut settings);
                settings
            }
        }
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self.command {
            Some(PlanCommand::Show { which, format }) => {
                return show(app, which.find(app).await?, format.or(self.format)).await;
            }
            Some(PlanCommand::Approve(args)) => return args.run(app).await,
            Some(PlanCommand::Reject(args)) => return args.run(app).await,
            None => {}
        }
        let used = self.template.as_deref().map(|file| template::used(file, &self.set)).transpose()?;
        let goal = match &used {
            Some(used) if self.goal.is_empty() => used.goal.clone(),
            _ => task::task(app, &self.goal)?,
        };
        // A plan can only use tools that are known.
        toolset::settle(app).await;
        let session = self.work.session.id(app).await?;
        let archon = self.work.archon(app, session.as_ref()).await?;
        let confirm = confirm_if(self.confirm && self.execute);
        let planning = match used {
            Some(used) => used.planning(&archon, confirm),
            None => planning(&archon, confirm),
        };
        if !self.execute {
            return draft(app, &planning, &goal, session, self.format).await;
        }
        let mut request = StartRun::new(goal).agent(AGENT).kind(RunKind::Plan);
        request.session = session;
        let runs = app.open_runs()?.with_agent(planning.run_agent());
        let run = runs.start(request).await?.run;
        follow(app, &runs, &run, self.format).await
    }
}

/// Shows the run until it has ended; then draws the plan with its results, if a format is given.
async fn follow(app: &App, runs: &Runs, run: &RunId, format: Option<Format>) -> Result<Exit, Failure> {
    let exit = drive::follow(app, runs, run, Vec::new()).await;
    if let Some(format) = format
        && let Ok(log) = runs.records(run, None).await
        && let Some(machine) = fold(&log.records)
    {
        app.output.note(Look::Plain, drawn(&machine.task(), format));
    }
    exit
}

/// Returns the setting for the flag `--confirm`.
pub(crate) fn confirm_if(asked: bool) -> Confirm {
    if asked { Confirm::Each } else { Confirm::Never }
}

/// Makes a plan and checks it, without starting or storing anything.
async fn draft(
    app: &App,
    planning: &Planning,
    goal: &str,
    session: Option<SessionId>,
    format: Option<Format>,
) -> Result<Exit, Failure> {
    app.output.wait("planning");
    let mut options = RunOptions::default();
    options.session = session;
    let drafted = planning.draft_with(goal, options).await;
    app.output.stop_waiting();
    let spent = match &drafted {
        Ok(draft) => draft.spent,
        Err(error) => match error.cause() {
            Some(PlanRunError::NoDraft { spent, .. }) => *spent,
            _ => Spending::default(),
        },
    };
    let money =
        if spent.cost_micros > 0 { format!(", {} millionths", spent.cost_micros) } else { String::new() };
    app.hint_if(spent != Spending::default(), format!("planned: {} tokens{money}", spent.tokens));
    let PlanDraft { task, problems, .. } = drafted?;
    if problems.iter().any(|problem| problem.is_error()) {
        return Err(PlanRunError::Problems { problems }.into());
    }
    print(app, &task, format);
    for warning in &problems {
        app.output.note(Look::Warning, with_remedy(warning));
    }
    Ok(Exit::Finished)
}

/// Shows the plan of a run. If the log is damaged, shows the plan from the readable part, then fails.
async fn show(app: &App, run: RunId, format: Option<Format>) -> Result<Exit, Failure> {
    let salvaged = app.runs()?.records(&run, None).await?;
    let Some(machine) = fold(&salvaged.records) else {
        let advice = format!("`archon runs show {run}` shows its records");
        return Err(Failure::usage(format!("run {run} has no plan"), advice));
    };
    let task = machine.task();
    print(app, &task, format);
    app.hint_if(task.subtasks.is_empty(), "there is no plan yet");
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}

/// Prints a plan: for programs as a line of JSON, unless another format is set.
fn print(app: &App, task: &Task, format: Option<Format>) {
    let text = drawn(task, format.unwrap_or(Format::Text));
    let json: Result<Json, _> = serde_json::from_str(&render(task, PlanFormat::Json));
    match (json, format) {
        (Ok(json), None | Some(Format::Json)) => app.item(&json, || text),
        _ => app.output.line(text),
    }
}

fn drawn(task: &Task, format: Format) -> String {
    render(task, format.into()).trim_end().to_owned()
}
