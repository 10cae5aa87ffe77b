//! `archon run`: works on a task and prints the answer.

use std::path::PathBuf;

use archon::types::{RunKind, StartRun, StartRuns};

use super::{ModelFlags, ToolFlags, WorkFlags, plan, task::task};
use crate::{
    app::{AGENT, App},
    attach,
    config::Settings,
    drive::follow,
    exit::Exit,
    failure::Failure,
    planning::planning,
    toolset,
};

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    pub(super) work: WorkFlags,
    /// Make a plan first, and follow it
    #[arg(long)]
    plan: bool,
    /// Show the plan, and each plan that would replace it, and follow it only after a yes
    #[arg(long, requires = "plan")]
    confirm: bool,
    /// Send an image or a PDF file with the task; repeat for more files
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    attach: Vec<PathBuf>,
    /// The task; `-` reads it from standard input. Text that is piped in besides a task is data for the task
    #[arg(required = true, value_name = "TASK")]
    task: Vec<String>,
}

impl RunArgs {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = super::settings(&self.model, &self.tools);
        self.work.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let message = attach::message_with(task(app, &self.task)?, &self.attach)?;
        if self.plan {
            // A plan can only use tools that are known.
            toolset::settle(app).await;
        }
        let session = self.work.session.id(app).await?;
        let archon = self.work.archon(app, session.as_ref()).await?;
        let (agent, kind) = match self.plan {
            true => (planning(&archon, plan::confirm_if(self.confirm)).run_agent(), RunKind::Plan),
            false => (archon.run_agent(), RunKind::Loop),
        };
        let runs = app.open_runs()?.with_agent(agent);
        let mut request = StartRun::with_messages(vec![message.into()]).agent(AGENT).kind(kind);
        request.session = session;
        let run = runs.start(request).await?.run;
        follow(app, &runs, &run, Vec::new()).await
    }
}
