//! `archon runs`: lists, shows, explains, forks, watches, steers, cancels and deletes runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
};

use archon::{
    SystemClock,
    types::{
        AgentId, AgentMessage, AnswerRuns, Clock, Event, ManageRuns, Message, Outcome, RunFilter, RunHead,
        RunId, RunStatus, Spending, StartRuns, Timestamp, format_money,
    },
    views::{Cycle, ErrorContext, ErrorSeverity, Evidence, Explanation},
};
use clap::Subcommand;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{RecordedFlags, fork::ForkArgs, which::WhichRun};
use crate::{
    app::App,
    config::{Settings, Span},
    exit::Exit,
    failure::Failure,
    output::Look,
    render::{record_line, renderer, replay},
    text::{format_time, one_line},
};

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the last 20 runs, last written first
    List {
        /// List all runs
        #[arg(long)]
        all: bool,
        /// Only runs with this status: begun, running, interrupted, suspended, finished, failed, limit,
        /// cancelled, unreadable
        #[arg(long, value_name = "STATUS", value_parser = status)]
        status: Vec<RunStatus>,
        /// List what is left of pruned runs instead: a line each, last pruned first
        #[arg(long, conflicts_with = "status")]
        pruned: bool,
    },
    /// Show one run from its beginning
    Show(WhichRun),
    /// Print the log of one run, one record per line
    Events {
        #[command(flatten)]
        which: WhichRun,
        /// Print one entry per turn instead: its thinking, its tool calls and their results
        #[arg(long)]
        cycles: bool,
    },
    /// Print the answer of a run and the results of tools that it has words of
    Explain(WhichRun),
    /// Begin a new run with the records of another run up to a place
    Fork(ForkArgs),
    /// Show a run while another process works on it, until the run ends or is suspended
    Watch(WhichRun),
    /// Send a message to a run that another process works on: the run's model reads it next
    Steer {
        /// Let the run finish first, and send the message then
        #[arg(long)]
        later: bool,
        #[command(flatten)]
        which: WhichRun,
        /// The message
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Stop a run, in any process
    Cancel {
        #[command(flatten)]
        flags: RecordedFlags,
        #[command(flatten)]
        which: WhichRun,
    },
    /// Remove a run that no other run needs
    Delete(WhichRun),
    /// Remove old runs and keep a line about each (`list --pruned`); runs that failed, that asked a person or that other
    /// runs need stay
    Prune {
        /// The minimum time since the last record: 90s, 20m or 720h
        #[arg(long, value_name = "TIME")]
        older_than: Span,
    },
}

impl RunsCommand {
    pub(crate) fn settings(&self) -> Option<Settings> {
        match self {
            Self::Cancel { flags, .. } => Some(flags.settings()),
            Self::Fork(args) => args.settings(),
            _ => None,
        }
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::List { all, pruned: true, .. } => list_pruned(app, all).await,
            Self::List { all, status, .. } => list(app, all, status).await,
            Self::Show(which) => show(app, which.find(app).await?).await,
            Self::Events { which, cycles: false } => events(app, which.find(app).await?).await,
            Self::Events { which, cycles: true } => cycles(app, which.find(app).await?).await,
            Self::Explain(which) => explain(app, which.find(app).await?).await,
            Self::Fork(args) => args.run(app).await,
            Self::Watch(which) => watch(app, which.find(app).await?).await,
            Self::Steer { later, which, text } => {
                steer(app, which.find(app).await?, text.join(" "), later).await
            }
            Self::Cancel { which, .. } => cancel(app, which.find(app).await?).await,
            Self::Delete(which) => delete(app, which.find(app).await?).await,
            Self::Prune { older_than } => prune(app, older_than).await,
        }
    }
}

const LISTED: usize = 20;
/// The file in the data folder with a line about each run that was pruned.
const SUMMARIES: &str = "summaries.jsonl";

fn status(name: &str) -> Result<RunStatus, String> {
    let names = || RunStatus::ALL.map(RunStatus::as_str).join(", ");
    RunStatus::of_name(name).ok_or_else(|| format!("one of {}", names()))
}

async fn list(app: &App, all: bool, status: Vec<RunStatus>) -> Result<Exit, Failure> {
    let none = if status.is_empty() { "no runs" } else { "no such runs" };
    let mut filter = RunFilter::all().status(status);
    filter.limit = (!all).then_some(LISTED + 1);
    let heads = app.runs()?.list(&filter).await?;
    let shown = if all { heads.len() } else { heads.len().min(LISTED) };
    app.list(&heads[..shown], &format!("{none} in {}", app.data_dir.display()), row);
    app.hint_if(heads.len() > shown, "there are more: archon runs list --all");
    Ok(Exit::Finished)
}

/// A line about a run that was pruned.
#[derive(Deserialize, Serialize)]
struct Summary {
    run: RunHead,
    agent: AgentId,
    turns: u32,
    spent: Spending,
}

async fn list_pruned(app: &App, all: bool) -> Result<Exit, Failure> {
    let path = app.data_dir.join(SUMMARIES);
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => {
            return Err(Failure::unreadable(&path, &e, "make the file readable, or move it away"));
        }
    };
    // A line is written before its run is deleted, which may fail; the newest line of a run counts.
    let there = app.runs()?.list(&RunFilter::all()).await?;
    let mut seen: BTreeSet<RunId> = there.into_iter().map(|head| head.run_id).collect();
    let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Summary>(line).ok());
    let summaries: Vec<Summary> = lines.filter(|line| seen.insert(line.run.run_id.clone())).collect();
    let shown = if all { summaries.len() } else { summaries.len().min(LISTED) };
    let none = format!("no runs were pruned in {}", app.data_dir.display());
    app.list(&summaries[..shown], &none, |Summary { run, agent, turns, spent }| {
        let cost = format_money(spent.cost_micros);
        format!("{}  ({agent}, {turns} turns, {} tokens, ${cost})", row(run), spent.tokens)
    });
    app.hint_if(summaries.len() > shown, "there are more: archon runs list --pruned --all");
    Ok(Exit::Finished)
}

fn row(head: &RunHead) -> String {
    let about = head.problem.as_ref().unwrap_or(&head.task);
    let called = head.called_by.as_ref().map(|by| format!("[called by {by}] ")).unwrap_or_default();
    let (when, about) = (format_time(head.updated_at), one_line(about, 80));
    format!("{}  {:<11}  {when:<16}  {called}{about}", head.run_id, head.status)
}

/// Returns the errors from which the run could not recover, each kind once with its count and severity.
fn severe_errors(errors: &[ErrorContext]) -> Option<String> {
    let mut kinds: BTreeMap<String, (usize, ErrorSeverity)> = BTreeMap::new();
    for error in errors {
        let (count, worst) = kinds.entry(format!("{} {}", error.component, error.error_type)).or_default();
        (*count, *worst) = (*count + 1, (*worst).max(error.severity));
    }
    let severe = kinds.iter().filter(|(_, (_, worst))| *worst >= ErrorSeverity::High);
    let lines: Vec<_> = severe.map(|(kind, (count, worst))| format!("{kind} x{count} ({worst})")).collect();
    (!lines.is_empty()).then(|| format!("errors: {}", lines.join(", ")))
}

/// Shows a run from its log. If the log is damaged, shows the readable part, then fails.
async fn show(app: &App, run: RunId) -> Result<Exit, Failure> {
    let salvaged = app.runs()?.records(&run, None).await?;
    replay(&run, &salvaged.records, app.json, &app.output);
    if let Some(line) = severe_errors(&ErrorContext::of(&salvaged.records)) {
        app.hint(line);
    }
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}

/// Prints every record of a log, and fails if the log is damaged.
async fn events(app: &App, run: RunId) -> Result<Exit, Failure> {
    let salvaged = app.runs()?.records(&run, None).await?;
    for record in salvaged.records {
        let event = Event::Record { run: run.clone(), record: record.clone() };
        app.item(&event, || record_line(&record));
    }
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}

/// Prints the log as one structured entry per turn.
async fn cycles(app: &App, run: RunId) -> Result<Exit, Failure> {
    let salvaged = app.runs()?.records(&run, None).await?;
    for cycle in Cycle::of(&salvaged.records) {
        app.item(&cycle, || {
            let state = format!("{:?}", cycle.state).to_lowercase();
            let mut lines = vec![format!("[{}] {} {state}", cycle.cycle, cycle.timestamp)];
            lines.extend(cycle.lines().iter().map(|line| one_line(line, 240)));
            lines.join("\n")
        });
    }
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}

/// Prints the answer of a run, and the tool results that share words with it.
async fn explain(app: &App, run: RunId) -> Result<Exit, Failure> {
    let salvaged = app.runs()?.records(&run, None).await?;
    let Some(explanation) = Explanation::of(&salvaged.records) else {
        let what = format!("run {run} has no final answer to explain");
        let none = Failure::usage(what, format!("see what happened: archon runs show {run}"));
        return Err(salvaged.damage.map_or(none, Failure::from));
    };
    app.item(&explanation, || {
        let line = |found: &Evidence| format!("record {}: {}", found.record, found.source);
        let lines = explanation.evidence.iter().map(line);
        std::iter::once(explanation.paragraph()).chain(lines).collect::<Vec<_>>().join("\n")
    });
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}

/// Watches a run. Ctrl-C ends the watching, not the run.
async fn watch(app: &App, run: RunId) -> Result<Exit, Failure> {
    let mut events = app.runs()?.watch(&run, None).await?;
    let mut renderer = renderer(app.json);
    while let Some(event) = events.next().await {
        renderer.event(&event?, &app.output);
    }
    app.output.stop_waiting();
    app.output.close_board();
    Ok(Exit::Finished)
}

async fn steer(app: &App, run: RunId, text: String, later: bool) -> Result<Exit, Failure> {
    if text.trim().is_empty() {
        let advice = "give it: archon runs steer RUN \"Use the other file.\"";
        return Err(Failure::usage("the message is empty", advice));
    }
    let (runs, message) = (app.runs()?, AgentMessage::from(Message::user(text, Timestamp::default())));
    match later {
        true => runs.follow_up(&run, message).await?,
        false => runs.steer(&run, message).await?,
    }
    app.item(&json!({ "steered": run }), || format!("sent to {run}"));
    Ok(Exit::Finished)
}

/// Cancels a run. A run that no process works on is resumed here until it has ended.
async fn cancel(app: &App, run: RunId) -> Result<Exit, Failure> {
    let runs = app.open_runs()?;
    let is_elsewhere = runs.get(&run).await?.status == RunStatus::Running;
    runs.cancel(&run, "archon runs cancel").await?;
    if !is_elsewhere {
        Outcome::of_result(runs.reply(&run).await)?;
    }
    app.item(&json!({ "cancelled": run }), || match is_elsewhere {
        true => format!("asked {run} to stop"),
        false => format!("cancelled {run}"),
    });
    Ok(Exit::Finished)
}

async fn delete(app: &App, run: RunId) -> Result<Exit, Failure> {
    app.runs()?.delete(&run).await?;
    print_deleted(app, &run);
    Ok(Exit::Finished)
}

fn print_deleted(app: &App, run: &RunId) {
    app.item(&json!({ "deleted": run }), || format!("deleted {run}"));
}

async fn prune(app: &App, older_than: Span) -> Result<Exit, Failure> {
    let before = Timestamp::from_millis(SystemClock.now().as_millis().saturating_sub(older_than.0));
    let file = app.data_dir.join(SUMMARIES);
    let removed = app.runs()?.prune_with_summaries(before, &file, |_| false).await?;
    removed.runs.iter().for_each(|run| print_deleted(app, run));
    for (run, why) in &removed.failures {
        app.output.note(Look::Dim, format!("{run} stays: {why}"));
    }
    match removed.runs.is_empty() {
        true if removed.failures.is_empty() => {
            app.hint("no run that may go is that old: runs that failed or that asked a person stay");
        }
        true => {}
        false => app.hint(format!("a line about each is in {}: archon runs list --pruned", file.display())),
    }
    Ok(Exit::Finished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_row_of_a_child_run_names_its_caller() {
        let mut head = RunHead::unreadable(RunId::new("run_1.0-0"), String::new());
        (head.problem, head.task) = (None, "Count the\npeople of Paris".to_owned());
        assert!(row(&head).ends_with("  Count the people of Paris"), "{}", row(&head));
        head.called_by = Some(RunId::new("run_1"));
        assert!(row(&head).ends_with("  [called by run_1] Count the people of Paris"), "{}", row(&head));
    }
}
