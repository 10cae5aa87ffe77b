//! `archon resume`: takes up a run where its log ends.

use std::path::PathBuf;

use archon::{
    planner::is_plan,
    types::{Journal, RecordBody, RunId},
};

use super::{ModelFlags, ToolFlags, plan, run};
use crate::{app::App, choose, config::Settings, drive::drive, exit::Exit, failure::Failure, toolset};

/// What `archon resume` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    /// A file with the project's instructions, read anew before each question
    #[arg(long, value_name = "FILE")]
    project_file: Option<PathBuf>,
    /// The run's id
    run: String,
}

impl ResumeArgs {
    pub(crate) fn settings(&self) -> Settings {
        let project_file = self.project_file.clone();
        Settings { project_file, ..super::settings(&self.model, &self.tools) }
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let run = RunId::new(self.run);
        let records = app.journal().read(&run).await?;
        let Some(RecordBody::RunStarted(started)) = records.first().map(|r| &r.body) else {
            return Err(archon::Error::Run(archon::react_loop::LoopError::NotARun { run }).into());
        };
        let config = &started.config;
        let tools = match self.tools.tools {
            Some(_) => toolset::chosen(&app.config.settings)?,
            None => toolset::recorded(config.tools.iter().map(|t| t.name.as_str()), &app.config.settings)?,
        };
        let recorded = format!("{}:{}", config.provider, config.model);
        let chosen = choose::model(app, Some(&recorded)).await?;
        let recorded = config.failure.as_ref().map_or(&[][..], |policy| &policy.fallbacks);
        let fallbacks = choose::fallbacks(app, Some(recorded)).await?;
        let archon = run::assemble(app, chosen, fallbacks, tools, None)?;
        let resume = run::resume_line(app, run.as_str());
        let handle = match is_plan(&records) {
            true => plan::planning(&archon).resume(run).await?,
            false => archon.resume(run).await?,
        };
        drive(handle, &records, &resume, app).await
    }
}
