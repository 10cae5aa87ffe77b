//! `archon runs`: the runs there are, and what happened in them.

use archon::types::{Journal, RunHead, RunId};
use clap::Subcommand;

use crate::{
    app::App,
    exit::Exit,
    failure::Failure,
    output::{Look, one_line},
    render::replay,
};

/// What to show.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// All runs, the last written first
    List,
    /// One run from its beginning
    Show {
        /// The run's id
        run: String,
    },
}

impl RunsCommand {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::List => list(app).await,
            Self::Show { run } => show(app, RunId::new(run)).await,
        }
    }
}

async fn list(app: &App) -> Result<Exit, Failure> {
    let heads = app.journal().list().await?;
    if heads.is_empty() && !app.json {
        app.output.note(Look::Dim, format!("no runs in {}", app.data_dir.display()));
    }
    for head in &heads {
        app.item(head, || row(head));
    }
    Ok(Exit::Finished)
}

fn row(head: &RunHead) -> String {
    let about = head.problem.as_ref().unwrap_or(&head.task);
    let when: String = head.updated_at.to_string().chars().take("2026-01-31T08:00:00".len()).collect();
    format!("{}  {:<10}  {}Z  {}", head.run_id, head.status, when, one_line(about, 80))
}

/// Shows what can be read even of a damaged log; the damage is said, and the exit code tells.
async fn show(app: &App, run: RunId) -> Result<Exit, Failure> {
    let salvaged = app.journal().salvage(&run).await?;
    replay(&run, &salvaged.records, app.json, &app.output);
    salvaged.damage.map_or(Ok(Exit::Finished), |damage| Err(damage.into()))
}
