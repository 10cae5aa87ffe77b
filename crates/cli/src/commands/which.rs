//! Finds the run that a person means: by its id, by the beginning or the end of the id, or by `last`.

use archon::types::{RunFilter, RunId, StartRuns};

use crate::{app::App, failure::Failure};

/// The run of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct WhichRun {
    /// The run's id, its beginning or end, or `last`
    run: String,
}

impl WhichRun {
    /// Returns the id of the run; see [`which_run`].
    pub(crate) async fn find(&self, app: &App) -> Result<RunId, Failure> {
        which_run(app, &self.run).await
    }
}

/// The maximum number of runs that are shown if a word fits several.
const NAMED: usize = 5;

/// Returns the run that a word means.
///
/// # Errors
/// No run fits the word, or several runs do; the error for several runs has their ids.
pub(crate) async fn which_run(app: &App, word: &str) -> Result<RunId, Failure> {
    let (runs, id) = (app.runs()?, RunId::new(word));
    // An empty log is not a run, but can be removed.
    if app.journal().path(&id).is_ok_and(|log| log.exists()) {
        return Ok(id);
    }
    if word == "last" {
        let newest = runs.list(&RunFilter::all().top_level().limit(1)).await?.pop();
        let none = || Failure::usage("there is no run yet", "begin one: archon run TASK");
        return newest.map(|head| head.run_id).ok_or_else(none);
    }
    let fits =
        |run: &RunId| !word.is_empty() && (run.as_str().starts_with(word) || run.as_str().ends_with(word));
    let heads = runs.list(&RunFilter::all()).await?;
    let mut found: Vec<_> = heads.into_iter().filter(|head| fits(&head.run_id)).collect();
    // The id of a child run begins with that of its caller.
    if found.iter().any(|head| head.called_by.is_none()) {
        found.retain(|head| head.called_by.is_none());
    }
    let mut found: Vec<RunId> = found.into_iter().map(|head| head.run_id).collect();
    match found.len() {
        0 => runs.get(&id).await.map(|head| head.run_id).map_err(Failure::from),
        1 => Ok(found.swap_remove(0)),
        count => {
            let names: Vec<_> = found.iter().take(NAMED).map(RunId::as_str).collect();
            let more = if count > NAMED { ", …" } else { "" };
            let what = format!("{count} runs begin or end with {word:?}");
            Err(Failure::usage(what, format!("give more of the id: {}{more}", names.join(", "))))
        }
    }
}
