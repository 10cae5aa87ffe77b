//! `archon undo`: takes back what a run changed in its folder, the shell included.

use super::which::WhichRun;
use crate::{
    app::App,
    exit::Exit,
    failure::Failure,
    undo::{UndoFlags, carry_out, of_run},
};

#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    which: WhichRun,
    /// Only the last N turns that changed something [default: all turns]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    turns: Option<u32>,
    #[command(flatten)]
    flags: UndoFlags,
}

impl UndoArgs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let (undo, records) = of_run(app, &self.which.find(app).await?).await?;
        let preview = undo.preview(&records, self.turns);
        let further = self.turns.map(|turns| format!("--turns {}", turns.saturating_add(1)));
        carry_out(app, &self.flags, ("undo", further), preview, || undo.undo(&records, self.turns))
    }
}
