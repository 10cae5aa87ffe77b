//! `archon redo`: takes back the last undo in the session of a run.

use super::which::WhichRun;
use crate::{
    app::App,
    exit::Exit,
    failure::Failure,
    undo::{UndoFlags, carry_out, of_run},
};

#[derive(Debug, clap::Args)]
pub(crate) struct RedoArgs {
    #[command(flatten)]
    which: WhichRun,
    #[command(flatten)]
    flags: UndoFlags,
}

impl RedoArgs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let (undo, records) = of_run(app, &self.which.find(app).await?).await?;
        carry_out(app, &self.flags, ("redo", None), undo.preview_redo(&records), || undo.redo(&records))
    }
}
