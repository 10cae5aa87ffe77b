//! `archon replay`: checks that a run's log follows from its inputs, without a call of a model or a tool.

use archon::{
    react_loop::{LoopError, Replay, replay},
    types::RecordBody,
};

use super::which::which_run;
use crate::{app::App, exit::Exit, failure::Failure, output::Look, render::body_line, text::one_line};

/// Arguments of `archon replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The run's id, its beginning or end, or `last`
    run: String,
}

impl ReplayArgs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        // From the journal instead of the run service: the state is folded from the logs of all earlier runs.
        let found = replay(&app.journal(), &which_run(app, &self.run).await?).await.map_err(refused)?;
        app.item(&found, || verdict(&found));
        match &found {
            Replay::Identical { records } if !app.json => {
                app.output.note(Look::Dim, format!("{records} records"));
            }
            _ => {}
        }
        Ok(if found.is_identical() { Exit::Finished } else { Exit::Failed })
    }
}

fn refused(e: LoopError) -> Failure {
    match e {
        LoopError::OtherKind { run, kind } => Failure::usage(
            format!("run {run} has the kind {kind}, but only a loop can be replayed"),
            format!("replay its child runs, as {run}.2-0: `archon runs events {run}` names them"),
        ),
        e => e.into(),
    }
}

fn verdict(found: &Replay) -> String {
    let Replay::Differs { record, expected, found } = found else { return "identical".to_owned() };
    let line = |body: &RecordBody| one_line(&body_line(body), SHOWN);
    let expected = match expected {
        Some(expected) => line(expected),
        None => "nothing, until an answer, a result or a prompt comes".to_owned(),
    };
    format!("differs at record {record}\n  expected  {expected}\n  found     {}", line(found))
}

/// The maximum number of characters of a record that are shown.
const SHOWN: usize = 200;
