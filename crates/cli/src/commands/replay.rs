//! `archon replay`: checks that a run's log follows from its inputs, without a call of a model or a tool.

use archon::{
    react_loop::{LoopError, Replay, replay},
    types::RecordBody,
};

use super::which::WhichRun;
use crate::{app::App, exit::Exit, failure::Failure, render::body_line, text::one_line};

pub(crate) async fn run(app: &App, which: &WhichRun) -> Result<Exit, Failure> {
    // From the journal instead of the run service: the state is folded from the logs of all earlier runs.
    let found = replay(&app.journal(), &which.find(app).await?).await.map_err(refused)?;
    app.item(&found, || verdict(&found));
    if let Replay::Identical { records } = &found {
        app.hint(format!("{records} records"));
    }
    Ok(if found.is_identical() { Exit::Finished } else { Exit::Failed })
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
