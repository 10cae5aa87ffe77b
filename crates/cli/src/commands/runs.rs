//! `archon runs`: the runs there are, what happened in them, and what can be done with one.

use std::sync::Arc;

use archon::{
    RandomIds, SystemClock, react_loop,
    types::{
        Clock, Context, Cycle, Event, Ids, InboxEntry, InboxRequest, Journal, RunFilter, RunHead, RunId,
        RunStatus, SessionId,
    },
};
use clap::Subcommand;
use serde_json::json;

use super::which::which_run;
use crate::{
    app::App,
    exit::Exit,
    failure::Failure,
    output::Look,
    render::{record_line, replay},
    text::{format_time, one_line},
};

/// What to show or do.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// The last 20 runs, the last written first
    List {
        /// All runs
        #[arg(long)]
        all: bool,
        /// Only runs that are so: begun, running, interrupted, suspended, finished, failed, limit, cancelled, unreadable
        #[arg(long, value_name = "STATUS", value_parser = status)]
        status: Vec<RunStatus>,
    },
    /// One run from its beginning
    Show {
        /// The run's id, its beginning or end, or `last`
        run: String,
    },
    /// The log of one run, one record a line
    Events {
        /// The run's id, its beginning or end, or `last`
        run: String,
        /// One entry a turn instead: what was thought, done and observed
        #[arg(long)]
        cycles: bool,
    },
    /// Begin a new run where another stood after one of its turns
    Fork {
        /// The run's id, its beginning or end, or `last`
        run: String,
        /// How many of its turns are kept [default: all]
        #[arg(long, value_name = "TURN")]
        at: Option<u32>,
    },
    /// Stop a run, whichever process works on it
    Cancel {
        /// The run's id, its beginning or end, or `last`
        run: String,
    },
    /// Remove a run that no other run needs
    Delete {
        /// The run's id, its beginning or end, or `last`
        run: String,
    },
}

impl RunsCommand {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::List { all, status } => list(app, all, status).await,
            Self::Show { run } => show(app, which_run(app, &run).await?).await,
            Self::Events { run, cycles: false } => events(app, which_run(app, &run).await?).await,
            Self::Events { run, cycles: true } => cycles(app, which_run(app, &run).await?).await,
            Self::Fork { run, at } => fork(app, which_run(app, &run).await?, at).await,
            Self::Cancel { run } => cancel(app, which_run(app, &run).await?).await,
            Self::Delete { run } => delete(app, which_run(app, &run).await?).await,
        }
    }
}

/// How many runs are listed unless all are asked for.
const LISTED: usize = 20;

fn status(name: &str) -> Result<RunStatus, String> {
    let names = || RunStatus::ALL.map(RunStatus::as_str).join(", ");
    RunStatus::of_name(name).ok_or_else(|| format!("one of {}", names()))
}

async fn list(app: &App, all: bool, status: Vec<RunStatus>) -> Result<Exit, Failure> {
    let such = if status.is_empty() { "no runs" } else { "no such runs" };
    let mut filter = RunFilter::all().status(status);
    filter.limit = (!all).then_some(LISTED + 1);
    let heads = app.journal().list(&filter).await?;
    if heads.is_empty() && !app.json {
        app.output.note(Look::Dim, format!("{such} in {}", app.data_dir.display()));
    }
    let shown = if all { heads.len() } else { LISTED };
    for head in heads.iter().take(shown) {
        app.item(head, || row(head));
    }
    if heads.len() > shown && !app.json {
        app.output.note(Look::Dim, "there are more: archon runs list --all");
    }
    Ok(Exit::Finished)
}

fn row(head: &RunHead) -> String {
    let about = head.problem.as_ref().unwrap_or(&head.task);
    let called = head.called_by.as_ref().map(|by| format!("[called by {by}] ")).unwrap_or_default();
    format!(
        "{}  {:<11}  {:<16}  {called}{}",
        head.run_id,
        head.status,
        format_time(head.updated_at),
        one_line(about, 80)
    )
}

/// Shows what can be read even of a damaged log; the damage is said, and the exit code tells.
async fn show(app: &App, run: RunId) -> Result<Exit, Failure> {
    let salvaged = app.journal().salvage(&run).await?;
    replay(&run, &salvaged.records, app.json, &app.output);
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}

/// As `show`, but every record as it is, and nothing else.
async fn events(app: &App, run: RunId) -> Result<Exit, Failure> {
    let salvaged = app.journal().salvage(&run).await?;
    for record in salvaged.records {
        let event = Event::Record { run: run.clone(), record: record.clone() };
        app.item(&event, || record_line(&record));
    }
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}

/// The log as one structured entry for each turn.
async fn cycles(app: &App, run: RunId) -> Result<Exit, Failure> {
    let salvaged = app.journal().salvage(&run).await?;
    for cycle in Cycle::of(&salvaged.records) {
        app.item(&cycle, || {
            let state = format!("{:?}", cycle.state).to_lowercase();
            let head = format!("[{}] {} {state}", cycle.cycle, cycle.timestamp);
            let lines = cycle.lines();
            std::iter::once(head)
                .chain(lines.iter().map(|line| one_line(line, 240)))
                .collect::<Vec<_>>()
                .join("\n")
        });
    }
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}

async fn fork(app: &App, run: RunId, at: Option<u32>) -> Result<Exit, Failure> {
    let new = RunId::new(RandomIds.fresh("run"));
    let context = Context::new(new, SessionId::new(""), Arc::new(SystemClock), Arc::new(RandomIds));
    let fork = react_loop::fork(&app.journal(), &run, at, &context).await?;
    app.item(&fork, || fork.run.to_string());
    if !app.json {
        let turns = if fork.turns == 1 { "turn" } else { "turns" };
        let next = match fork.wants_answer {
            true => super::run::resume_line(app, fork.run.as_str(), None),
            false => format!("archon run --session {} TASK", fork.session),
        };
        app.output.note(Look::Dim, format!("forked {run} after {} {turns}; go on with: {next}", fork.turns));
    }
    Ok(Exit::Finished)
}

/// The wish is kept until somebody reads it: the process that works on the run, or else the next resume.
async fn cancel(app: &App, run: RunId) -> Result<Exit, Failure> {
    let request = InboxRequest::Cancel { reason: "archon runs cancel".to_owned() };
    let entry = InboxEntry::new(RandomIds.fresh("in"), SystemClock.now(), request);
    react_loop::post(&app.journal(), &run, entry).await?;
    app.item(&json!({ "cancelled": run }), || format!("asked {run} to stop"));
    if !app.json {
        let note = "if no process works on it, the next `archon resume` ends it as cancelled";
        app.output.note(Look::Dim, note);
    }
    Ok(Exit::Finished)
}

async fn delete(app: &App, run: RunId) -> Result<Exit, Failure> {
    app.journal().delete(&run).await?;
    app.item(&json!({ "deleted": run }), || format!("deleted {run}"));
    Ok(Exit::Finished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_another_called_says_so() {
        let mut head = RunHead::unreadable(RunId::new("run_1.0-0"), String::new());
        (head.problem, head.task) = (None, "Count the\npeople of Paris".to_owned());
        assert!(row(&head).ends_with("  Count the people of Paris"), "{}", row(&head));
        head.called_by = Some(RunId::new("run_1"));
        assert!(row(&head).ends_with("  [called by run_1] Count the people of Paris"), "{}", row(&head));
    }
}
