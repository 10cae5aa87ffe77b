//! Undo: the snapshots of runs, and what an undo or a redo of a run shows and asks.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use archon::{
    ArchonBuilder, Undo,
    snapshots::{Restored, SnapshotError},
    types::{Effect, Record, RunId, RunStarted, RunStatus, StartRuns},
};
use serde_json::json;

use crate::{
    app::App,
    ask::Prompt,
    exit::Exit,
    failure::Failure,
    output::Look,
    servers::Tools,
    text::{visible, visible_path},
};

/// Flags of `archon undo` and `archon redo`.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoFlags {
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do it without a question, for scripts
    #[arg(long)]
    yes: bool,
}

/// Returns true if a tool may change something.
pub(crate) fn has_effects(tools: &Tools) -> bool {
    tools.iter().any(|tool| tool.spec().annotations.effect != Effect::ReadOnly)
}

/// Lets runs take snapshots of the folder that their tools work in, so that changes can be undone. Writes a note if
/// that is not possible.
pub(crate) fn with_snapshots(app: &App, builder: ArchonBuilder, workspace: &Path) -> ArchonBuilder {
    match open(app, workspace) {
        Ok(undo) => builder.snapshots(Arc::new(undo)),
        Err(error) => {
            app.output.note_once(visible(&format!("what the tools change cannot be undone: {error}")));
            builder
        }
    }
}

/// Returns the snapshots of a run's workspace, and the records of the run.
pub(crate) async fn of_run(app: &App, run: &RunId) -> Result<(Undo, Vec<Arc<Record>>), Failure> {
    let runs = app.runs()?;
    if runs.get(run).await?.status == RunStatus::Running {
        let advice = format!("wait until it ends, or cancel it: archon runs cancel {run}");
        return Err(Failure::usage(format!("run {run} is still working"), advice));
    }
    let records = runs.records(run, None).await?.whole()?;
    let workspace = RunStarted::of(&records).and_then(|started| started.config.workspace.clone());
    let Some(workspace) = workspace else {
        let what = format!("run {run} worked in no folder, so there are no files to take back");
        return Err(Failure::usage(what, "choose another run: archon runs list"));
    };
    let undo = open(app, Path::new(&workspace)).map_err(|error| failed(&error))?;
    Ok((undo, records))
}

/// Shows the changes in `preview`, asks the person, and makes them with `act`. `what` is the name of the command.
/// `further` is the flag with which more can be undone.
pub(crate) fn carry_out(
    app: &App,
    flags: &UndoFlags,
    (what, further): (&str, Option<String>),
    preview: Result<Restored, SnapshotError>,
    act: impl FnOnce() -> Result<Restored, SnapshotError>,
) -> Result<Exit, Failure> {
    let preview = preview.map_err(|error| failed(&error))?;
    if flags.dry_run || preview.is_empty() {
        report(app, &preview, false);
        app.note_if(!preview.is_empty(), OUT_OF_REACH);
        app.note_if(preview.is_empty(), nothing_to(what, &preview, further));
        return Ok(Exit::Finished);
    }
    if !flags.yes {
        if !app.can_ask() {
            let problem = format!("cannot {what}: there is no terminal on which to ask");
            let advice = format!("see what would change with --dry-run, then: archon {what} RUN --yes");
            return Err(Failure::usage(problem, advice));
        }
        report(app, &preview, false);
        app.output.note(Look::Plain, OUT_OF_REACH);
        if !Prompt::asks_yes(app, &format!("Really {what}? [y/N] ")) {
            app.note("nothing was changed");
            return Ok(Exit::Finished);
        }
    }
    let restored = act().map_err(|error| failed(&error))?;
    report(app, &restored, true);
    Ok(Exit::Finished)
}

/// The note about changes that undo cannot take back.
pub(crate) const OUT_OF_REACH: &str = "not taken back: changes over the network, by processes that still run, outside of the \
                            folder, of files that git ignores, and of .git (such as commits)";

/// Returns the reason why nothing is changed.
pub(crate) fn nothing_to(what: &str, preview: &Restored, further: Option<String>) -> String {
    if preview.left.is_empty() {
        return format!("there is nothing to {what}; nothing was changed");
    }
    let further = further.map(|flag| format!(" To reach further back: archon {what} RUN {flag}"));
    format!("all files to {what} are left; nothing was changed.{}", further.unwrap_or_default())
}

fn open(app: &App, workspace: &Path) -> Result<Undo, SnapshotError> {
    Ok(Undo::open(app.data_dir.join("snapshots"), workspace)?.without(&app.data_dir))
}

/// Prints the changes that were made, or that would be made if `is_done` is false.
pub(crate) fn report(app: &App, restored: &Restored, is_done: bool) {
    if app.json {
        // A path that is not UTF-8 has no form in JSON, so paths are shown.
        let shown = |path: &PathBuf| path.display().to_string();
        let paths = |paths: &[PathBuf]| paths.iter().map(shown).collect::<Vec<_>>();
        let left = restored.left.iter().map(|left| json!({ "path": shown(&left.path), "why": left.why }));
        let left: Vec<_> = left.collect();
        let item = json!({
            "done": is_done, "written": paths(&restored.written), "removed": paths(&restored.removed), "left": left,
        });
        app.item(&item, String::new);
        return;
    }
    for (look, row) in rows(restored, is_done) {
        app.output.note(look, format!("  {row}"));
    }
}

/// Returns a row for each path that was or will be restored, removed or left.
pub(crate) fn rows(restored: &Restored, is_done: bool) -> Vec<(Look, String)> {
    let words = if is_done { ("restored", "removed") } else { ("restore", "remove") };
    let row = |word: &str, path: &Path| format!("{word:<8}  {}", visible_path(path));
    let written = restored.written.iter().map(|path| (Look::Plain, row(words.0, path)));
    let removed = restored.removed.iter().map(|path| (Look::Plain, row(words.1, path)));
    let left = restored.left.iter();
    let left =
        left.map(|left| (Look::Warning, format!("{}: {}", row("leave", &left.path), visible(&left.why))));
    written.chain(removed).chain(left).collect()
}

pub(crate) fn failed(error: &SnapshotError) -> Failure {
    let advice = match error {
        SnapshotError::Nothing { .. } => "see which runs there are: archon runs list",
        SnapshotError::Missing { .. } => {
            "at most the latest 200 snapshots of a folder and 4 GB are kept; take the work back with git, or by hand"
        }
        _ => "then do the same again",
    };
    Failure::failed(visible(&error.to_string()), advice)
}
