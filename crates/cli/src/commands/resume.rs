//! `archon resume`: resumes a run from the end of its log. The log and the settings have everything that the
//! run needs.

use std::sync::Arc;

use archon::{
    Runs,
    types::{
        MoreLimits, Outcome, Record, ResumedRuns, RunHead, RunId, RunKind, RunStarted, RunStatus, StartRuns,
    },
};
use serde_json::json;

use super::{RecordedFlags, which::which_run};
use crate::{
    app::App,
    config::{Money, Span},
    confirm,
    drive::follow,
    exit::Exit,
    failure::Failure,
    output::Look,
    text::one_line,
};

#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(super) flags: RecordedFlags,
    #[command(flatten)]
    more: MoreFlags,
    /// Resume every run whose process died, and print the result of each
    #[arg(long, conflicts_with_all = ["run", "max_turns", "max_tokens", "max_cost", "max_duration"])]
    all: bool,
    /// The run's id, its beginning or end, or `last`
    #[arg(required_unless_present = "all")]
    run: Option<String>,
}

/// Larger limits for an existing run; each limit is for the whole run, including its past use.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
struct MoreFlags {
    /// The maximum number of model calls of the whole run; in a plan or a team, of each agent
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// The maximum number of tokens of the whole run, with those already used and those of its child runs
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// The maximum cost of the whole run with its child runs, in US dollars, as in 0.50
    #[arg(long, value_name = "USD")]
    max_cost: Option<Money>,
    /// The maximum time that the whole run may work: 90s, 20m or 2h
    #[arg(long, value_name = "TIME")]
    max_duration: Option<Span>,
}

impl MoreFlags {
    fn limits(self) -> MoreLimits {
        let mut more = MoreLimits::default();
        more.max_turns = self.max_turns;
        more.max_total_tokens = self.max_tokens;
        more.max_duration_ms = self.max_duration.map(|span| span.0);
        more.max_cost_micros = self.max_cost.map(|money| money.0);
        more
    }

    /// Checks that a maximum cost is given only for a run that has one: a run without it cannot get one
    /// later.
    fn check(self, run: &RunId, records: &[Arc<Record>]) -> Result<(), Failure> {
        let has_limit =
            RunStarted::of(records).is_some_and(|started| started.config.limits.max_cost_micros.is_some());
        match self.max_cost.is_some() && !has_limit {
            true => Err(Failure::usage(
                format!("run {run} was begun without --max-cost, so there is no limit to raise"),
                "leave --max-cost out, or limit it with --max-tokens",
            )),
            false => Ok(()),
        }
    }
}

impl ResumeArgs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let Some(run) = &self.run else { return all(app).await };
        let (run, runs) = (which_run(app, run).await?, app.open_runs()?);
        let records = runs.records(&run, None).await?.whole()?;
        self.more.check(&run, &records)?;
        let head = RunHead::of(run.clone(), &records);
        if head.kind == Some(RunKind::Plan) {
            confirm::show(app, &records);
        }
        let started = runs.resume(&run, &self.more.limits()).await?;
        // For a child run its top-level run is resumed.
        let before =
            if started.run == run { records } else { runs.records(&started.run, None).await?.records };
        let exit = follow(app, &runs, &started.run, before).await?;
        if head.status == RunStatus::Finished {
            app.output.note(Look::Plain, "the messages of the run are in the memory");
        }
        Ok(exit)
    }
}

/// Resumes every run whose process died, and waits until each one has ended or is suspended.
async fn all(app: &App) -> Result<Exit, Failure> {
    let runs = app.open_runs()?;
    let resumed = runs.resume_unfinished(None).await?;
    app.hint_if(resumed.is_empty(), "no run was interrupted");
    print_result(app, &runs, resumed, RunStatus::Interrupted).await
}

/// Waits for each resumed run and prints its status; a run that could not be resumed still has the status
/// `before`.
pub(super) async fn print_result(
    app: &App,
    runs: &Runs,
    resumed: ResumedRuns,
    before: RunStatus,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Finished;
    for (run, started) in resumed {
        let outcome = match started {
            Ok(_) => Outcome::of_result(runs.reply(&run).await),
            Err(error) => Err(error),
        };
        let (status, what) = match outcome {
            Ok(outcome) => {
                exit = if outcome.is_finished() { exit } else { Exit::of(&outcome) };
                (
                    RunStatus::from(outcome.status),
                    outcome.error.clone().or(outcome.last_text().map(str::to_owned)).unwrap_or_default(),
                )
            }
            Err(error) => {
                exit = Exit::Failed;
                (before, format!("{error} ({})", error.advice()))
            }
        };
        let item = json!({ "run_id": run, "status": status, "text": what });
        app.item(&item, || format!("{run}  {status:<11}  {}", one_line(&what, 80)));
    }
    Ok(exit)
}
