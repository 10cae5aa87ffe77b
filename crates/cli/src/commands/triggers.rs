//! `archon triggers`: adds, lists, pauses, starts and deletes tasks that start runs when nobody is there.

mod add;
mod publish;

use std::sync::Arc;

use archon::{
    SystemClock,
    triggers::{ListedTask, TriggerEngine, TriggerParts},
    types::{Clock as _, RunHead, RunId, StartRuns as _, TaskId, TaskStatus, TaskStore as _, format_money},
};
use clap::Subcommand;
use serde_json::json;

use self::add::AddArgs;
use crate::{
    app::App,
    config::Settings,
    exit::Exit,
    failure::Failure,
    tasks,
    text::{format_time, one_line, visible_line},
};

#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct TriggersArgs {
    #[command(subcommand)]
    command: TriggersCommand,
}

#[derive(Debug, Subcommand)]
enum TriggersCommand {
    /// Add a task that starts runs: at times, or for events
    Add(Box<AddArgs>),
    /// List the tasks, each with its status and its next time
    List,
    /// Pause a task: its run goes on, but no further run starts
    Pause(WhichTask),
    /// Resume a task that was paused or disabled
    Resume(WhichTask),
    /// Start a run of a task now, besides its times and events
    Run(WhichTask),
    /// Publish an event, which starts a run of each task that takes it
    Publish(publish::PublishArgs),
    /// List the last runs of a task, the newest first, and the problems of its channels and sources
    History(WhichTask),
    /// Delete a task; its run goes on
    Delete(WhichTask),
}

#[derive(Debug, clap::Args)]
struct WhichTask {
    /// The name of the task
    task: String,
}

impl WhichTask {
    fn id(&self) -> TaskId {
        TaskId::new(self.task.as_str())
    }
}

impl TriggersArgs {
    /// Returns the settings of the flags; `None` for a command that needs no settings.
    pub(crate) fn settings(&self) -> Option<Settings> {
        matches!(self.command, TriggersCommand::Add(_)).then(Settings::default)
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self.command {
            TriggersCommand::Add(args) => {
                let id = args.run(app, &engine(app)?).await?;
                app.report(&json!({ "task": id }), format!("added {id}"));
                hint_if_nobody_serves(app).await?;
            }
            TriggersCommand::List => list(app).await?,
            TriggersCommand::Pause(which) => {
                engine(app)?.pause_task(&which.id()).await?;
                app.report(&json!({ "task": which.task }), format!("paused {}", which.task));
            }
            TriggersCommand::Resume(which) => {
                engine(app)?.resume_task(&which.id()).await?;
                app.report(&json!({ "task": which.task }), format!("resumed {}", which.task));
            }
            TriggersCommand::Run(which) => {
                let name = format!("by-hand-{}", SystemClock.now().as_millis());
                engine(app)?.run_task(&which.id(), name).await?;
                app.report(&json!({ "task": which.task }), format!("a run of {} was asked for", which.task));
                hint_if_nobody_serves(app).await?;
            }
            TriggersCommand::Publish(args) => {
                args.run(app, &engine(app)?).await?;
                hint_if_nobody_serves(app).await?;
            }
            TriggersCommand::History(which) => history(app, &which.id()).await?,
            TriggersCommand::Delete(which) => {
                engine(app)?.delete_task(&which.id()).await?;
                app.report(&json!({ "task": which.task }), format!("deleted {}", which.task));
            }
        }
        Ok(Exit::Finished)
    }
}

fn engine(app: &App) -> Result<TriggerEngine, Failure> {
    tasks::engine(app, Arc::new(app.runs()?), TriggerParts::new(), tasks::names_of_channels(app))
}

/// Tells a person if no process starts the runs of tasks now.
async fn hint_if_nobody_serves(app: &App) -> Result<(), Failure> {
    let is_free = tasks::open(app)?.hold().await.is_ok_and(|hold| hold.is_some());
    app.hint_if(is_free, "`archon serve` starts the runs of tasks, and does not run now");
    Ok(())
}

/// Returns the tasks; none, and no new file, if there is no file of tasks.
async fn all(app: &App) -> Result<Vec<ListedTask>, Failure> {
    match tasks::exist(app) {
        true => Ok(engine(app)?.list_tasks(None).await?),
        false => Ok(Vec::new()),
    }
}

async fn list(app: &App) -> Result<(), Failure> {
    let listed = all(app).await?;
    app.hint_if(listed.is_empty(), "no tasks; `archon triggers add --help` shows how to add one");
    for one in &listed {
        app.item(&item(one), || row(one));
    }
    Ok(())
}

fn item(listed: &ListedTask) -> serde_json::Value {
    let ListedTask { task, state, next, .. } = listed;
    json!({
        "task": task, "status": listed.status(), "next": next, "runs": state.runs, "failures": state.failures,
        "problem": state.problem, "spent_micros": state.spent_micros, "last_runs": state.last_runs,
    })
}

fn row(listed: &ListedTask) -> String {
    let ListedTask { task, state, next, .. } = listed;
    let next = match (listed.status(), next, &state.current) {
        (_, _, Some(_)) => "a run works or waits".to_owned(),
        (TaskStatus::Active, Some(next), None) => format!("next {}", add::local(*next)),
        _ => String::new(),
    };
    let money = match state.spent_micros {
        0 => String::new(),
        spent => format!(", ${}", format_money(spent)),
    };
    let problem =
        state.problem.as_ref().map(|problem| format!("\n    {}", one_line(problem, 200))).unwrap_or_default();
    let (id, status, trigger) = (&task.id, listed.status(), visible_line(&add::in_words(&task.trigger)));
    format!("{id:<20}  {status:<9}  {trigger}  {next}  {} runs{money}{problem}", state.runs)
}

/// Lists the last runs of a task, with the runs that cannot be read, and the problems of its channels and sources.
async fn history(app: &App, id: &TaskId) -> Result<(), Failure> {
    let listed = all(app).await?.into_iter().find(|listed| listed.task.id == *id);
    let listed = listed.ok_or_else(|| {
        Failure::usage(format!("there is no task {id}"), "`archon triggers list` shows the tasks")
    })?;
    let runs = app.runs()?;
    app.hint_if(listed.state.last_runs.is_empty(), "the task has had no runs yet");
    for run in listed.state.last_runs.iter().rev() {
        match runs.get(run).await {
            Ok(head) => app.item(&head, || history_row(&head)),
            Err(_) => app.item(&json!({ "run_id": run, "status": "deleted" }), || deleted_row(run)),
        }
    }
    if let Some(problem) = &listed.state.problem {
        app.note(format!("the last failure: {}", one_line(problem, 500)));
    }
    for problem in &listed.state.problems {
        let row = || format!("{}  problem      {}", format_time(problem.at), one_line(&problem.text, 500));
        app.item(&json!({ "at": problem.at, "problem": problem.text }), row);
    }
    Ok(())
}

fn history_row(head: &RunHead) -> String {
    let about = head.problem.as_ref().unwrap_or(&head.task);
    format!(
        "{}  {:<11}  {:<16}  {}",
        head.run_id,
        head.status,
        format_time(head.started_at),
        one_line(about, 80)
    )
}

fn deleted_row(run: &RunId) -> String {
    format!("{run}  deleted")
}
