//! `archon team`: lets a team from a file work on a task.

mod assemble;
mod file;

use std::path::PathBuf;

use archon::types::{RunKind, StartRun, StartRuns};
use clap::Subcommand;

use super::{ModelFlags, WorkFlags, task};
use crate::{app::App, config::Settings, drive::follow, exit::Exit, failure::Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum TeamCommand {
    /// Let a team work on a task, show the work of each member, and print the answer
    Run {
        #[command(flatten)]
        flags: TeamFlags,
        /// The team: roles, members, their models and tools, the pattern, limits
        #[arg(value_name = "TEAM.toml")]
        team: PathBuf,
        /// The task; `-` reads it from standard input
        #[arg(required = true, value_name = "TASK")]
        task: Vec<String>,
    },
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TeamFlags {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    pub(super) work: WorkFlags,
    /// The folder that tools may see [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl TeamCommand {
    pub(crate) fn settings(&self) -> Settings {
        let Self::Run { flags, .. } = self;
        let mut settings = Settings { workspace: flags.workspace.clone(), ..Settings::default() };
        flags.model.apply(&mut settings);
        flags.work.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let Self::Run { flags, team, task } = self;
        let task = task::task(app, &task)?;
        let session = flags.work.session.id(app).await?;
        let work = assemble::team(app, &team, &flags.work).await?;
        let agent = work.team().options().agent_id.clone();
        let mut request = StartRun::new(task).agent(agent).kind(RunKind::Team);
        request.session = session;
        let runs = app.open_runs()?.with_agent(work.run_agent());
        let run = runs.start(request).await?.run;
        follow(app, &runs, &run, Vec::new()).await
    }
}
