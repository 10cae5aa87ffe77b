//! `archon assistant`: agents from a folder that serve many tenants over HTTP.

use std::path::PathBuf;

use super::{
    ModelFlags,
    serve::{ListenFlags, Offered, serve},
};
use crate::{app::App, assistant::Folder, config::Settings, exit::Exit, failure::Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct AssistantArgs {
    /// The folder with `assistant.md` and `agents/NAME.md` [default: ~/.archon/assistant]
    folder: Option<PathBuf>,
    #[command(flatten)]
    listen: ListenFlags,
    #[command(flatten)]
    model: ModelFlags,
    /// The folder that tools may see [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl AssistantArgs {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings { workspace: self.workspace.clone(), ..Settings::default() };
        self.model.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let folder = Folder::load(app, self.folder.as_deref()).await?;
        for warning in folder.warnings() {
            app.output.warn(warning);
        }
        let mut settings = self.listen.over(app.config.settings.serve.clone().unwrap_or_default());
        // These are for the agents of the settings, which the assistant does not serve.
        (settings.mcp, settings.memory, settings.agents) = (false, None, None);
        serve(app, settings, Offered::Assistant(folder)).await
    }
}
