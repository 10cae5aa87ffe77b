//! `archon runs fork`: begins a new run with the records of another run up to a place.

use archon::{
    Runs,
    types::{AgentId, ForkOptions, ManageRuns, RunId, RunStarted, StartRuns},
};

use super::{ModelFlags, which::WhichRun};
use crate::{app::App, command_line::resume_line, config::Settings, exit::Exit, failure::Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    which: WhichRun,
    /// The number of turns to keep [default: all]
    #[arg(long, value_name = "TURN", conflicts_with = "record")]
    at: Option<u32>,
    /// Begin again the turn that has this record, unless a tool of it had started by then
    #[arg(long, value_name = "N")]
    record: Option<u64>,
    /// A message that the model answers next, in place of the messages that came after the last turn that is kept
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    #[command(flatten)]
    model: ModelFlags,
}

impl ForkArgs {
    /// Returns the settings of the flags; `None` if the fork builds no agent, so that no settings are needed.
    pub(super) fn settings(&self) -> Option<Settings> {
        let mut settings = Settings::default();
        self.model.apply(&mut settings);
        (self.message.is_some() || self.has_other_model()).then_some(settings)
    }

    pub(super) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let (run, runs) = (self.which.find(app).await?, app.runs()?);
        let fork = runs.fork(&run, self.options(&runs, &run).await?).await?;
        app.item(&fork, || fork.run.to_string());
        let turns = if fork.turns == 1 { "turn" } else { "turns" };
        let next = match fork.wants_answer {
            true => resume_line(app, fork.run.as_str()),
            false => format!("archon run --session {} TASK", fork.session),
        };
        app.hint(format!("forked {run} after {} {turns}; continue with: {next}", fork.turns));
        Ok(Exit::Finished)
    }

    async fn options(&self, runs: &Runs, run: &RunId) -> Result<ForkOptions, Failure> {
        let mut options = match (self.at, self.record) {
            (Some(turns), _) => ForkOptions::after(turns),
            (None, Some(record)) => ForkOptions::at_record(record),
            (None, None) => ForkOptions::default(),
        };
        match &self.message {
            Some(text) if text.trim().is_empty() => {
                let advice = "give it: archon runs fork RUN --message \"Use the other file.\"";
                return Err(Failure::usage("the message is empty", advice));
            }
            Some(text) => options = options.with_message(text.as_str()),
            None => {}
        }
        if self.has_other_model() {
            // The agent of the log, which is built with the model of the flags.
            options.agent = Some(agent_of(runs, run).await?);
        }
        Ok(options)
    }

    fn has_other_model(&self) -> bool {
        self.model.model.is_some() || self.model.base_url.is_some()
    }
}

async fn agent_of(runs: &Runs, run: &RunId) -> Result<AgentId, Failure> {
    let log = runs.records(run, None).await?;
    match (RunStarted::of(&log.records), log.damage) {
        (Some(started), _) => Ok(started.agent.clone()),
        (None, Some(damage)) => Err(damage.into()),
        (None, None) => {
            let what = format!("the log of run {run} does not begin with the start of a run");
            Err(Failure::failed(what, "start the task again"))
        }
    }
}
