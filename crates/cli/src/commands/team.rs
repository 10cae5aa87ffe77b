//! `archon team`: a team from a file works on a task, or goes on with one.

mod assemble;
mod file;

use std::{path::PathBuf, sync::Arc};

use archon::{
    RunHandle, RunOptions, Teamwork,
    types::{
        Approver, Decision, Journal, OutcomeStatus, Record, RunId, RunKind, RunStarted, pending_approvals,
    },
};
use clap::Subcommand;

use super::{AgentFlags, AllowFlags, Asking, ModelFlags, run};
use crate::{
    app::App, ask::Prompt, config::Settings, drive::watch, exit::Exit, failure::Failure, permissions,
    text::printable,
};

/// What `archon team` takes.
#[derive(Debug, Subcommand)]
pub(crate) enum TeamCommand {
    /// Let a team work on a task, show who does what, and print the answer
    Run {
        #[command(flatten)]
        flags: TeamFlags,
        /// The team: roles, members, their models and tools, the pattern, limits
        #[arg(value_name = "TEAM.toml")]
        team: PathBuf,
        /// What is to be done; `-` reads it from standard input
        #[arg(required = true, value_name = "TASK")]
        task: Vec<String>,
    },
    /// Take up a team's run that was interrupted, cancelled, met a limit or waits
    Resume {
        #[command(flatten)]
        flags: TeamFlags,
        /// The team that began it
        #[arg(value_name = "TEAM.toml")]
        team: PathBuf,
        /// The run's id
        run: String,
    },
}

/// Flags for a team.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TeamFlags {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    allow: AllowFlags,
    /// The folder that tools may see [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl TeamCommand {
    pub(crate) fn settings(&self) -> Settings {
        let (Self::Run { flags, .. } | Self::Resume { flags, .. }) = self;
        let mut settings = Settings { workspace: flags.workspace.clone(), ..Settings::default() };
        flags.model.apply(&mut settings);
        flags.agent.apply(&mut settings);
        flags.allow.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::Run { team, task, .. } => {
                let task = run::task(app, &task)?;
                let work = assemble::team(app, &team).await?;
                let handle = work.start(task, RunOptions::default()).await?;
                go_on(app, &work, &team, handle, Vec::new()).await
            }
            Self::Resume { flags, team, run } => {
                let run = RunId::new(run);
                let before = app.journal().read(&run).await?;
                if before.len() == 1 {
                    return Err(Failure::usage(
                        format!("run {run} was cut off before its task was kept"),
                        "begin it again: archon team run TEAM.toml TASK",
                    ));
                }
                if RunStarted::of(&before).is_none_or(|started| started.kind != RunKind::Team) {
                    return Err(Failure::usage(
                        format!("run {run} is not a team's"),
                        format!("take it up with `archon resume {run}`"),
                    ));
                }
                let work = assemble::team(app, &team).await?;
                let handle = work.resume_with(run, flags.agent.limits.more()).await?;
                go_on(app, &work, &team, handle, before).await
            }
        }
    }
}

/// Shows the run until it has ended; each time that the team itself asks something, so is who sits at the terminal.
async fn go_on(
    app: &App,
    work: &Teamwork,
    file: &std::path::Path,
    handle: RunHandle,
    mut before: Vec<Arc<Record>>,
) -> Result<Exit, Failure> {
    let run = handle.run_id().clone();
    let line = run::resume_line(app, run.as_str(), None);
    let resume = line.replacen(
        "archon resume ",
        &format!("archon team resume {} ", run::quoted(&printable(&file.display().to_string()))),
        1,
    );
    let mut ended = watch(handle, &before, &resume, app).await?;
    while ended.outcome.status == OutcomeStatus::Suspended && Asking::of(app) == Asking::Here {
        before = app.journal().read(&run).await?;
        let Some(open) = pending_approvals(&before).into_iter().find(|open| open.request.path.is_empty())
        else {
            break;
        };
        let prompt = Prompt::new(app.output.clone(), Prompt::keyboard(), permissions::kept(app));
        let Decision::Now(answer) = prompt.decide(&open.request).await else { break };
        ended = watch(work.answer(run.clone(), open.call, answer).await?, &before, &resume, app).await?;
    }
    ended.said(&resume, app)
}
