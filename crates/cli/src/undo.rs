//! Undo: the snapshots of runs, and what an undo or a redo of a run shows and asks.

use std::{path::Path, sync::Arc};

use archon::{
    ArchonBuilder, Undo,
    snapshots::{Restored, SnapshotError},
    types::{Effect, Record, RunId, RunStarted, StartRuns},
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

/// Lets runs take snapshots of the folder that their tools work in.
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
    let records = app.runs()?.records(run, None).await?.whole()?;
    let workspace = RunStarted::of(&records).and_then(|started| started.config.workspace.clone());
    let Some(workspace) = workspace else {
        let what = format!("run {run} worked in no folder, so there are no files to take back");
        return Err(Failure::usage(what, "choose another run: archon runs list"));
    };
    let undo = open(app, Path::new(&workspace)).map_err(|error| failed(&error))?;
    Ok((undo, records))
}

/// Shows what `act` will change, asks the person, and does it. `what` is the name of the command.
pub(crate) fn carry_out(
    app: &App,
    flags: &UndoFlags,
    what: &str,
    preview: Result<Restored, SnapshotError>,
    act: impl FnOnce() -> Result<Restored, SnapshotError>,
) -> Result<Exit, Failure> {
    let preview = preview.map_err(|error| failed(&error))?;
    if flags.dry_run || preview.is_empty() {
        report(app, &preview, false);
        app.note_if(preview.is_empty(), format!("there is nothing to {what}; nothing was changed"));
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

/// What no snapshot takes back.
pub(crate) const OUT_OF_REACH: &str = "not taken back: what was done over the network, by processes that still run, outside of \
                            the folder, to files that git ignores, and to .git (such as commits)";

fn open(app: &App, workspace: &Path) -> Result<Undo, SnapshotError> {
    Ok(Undo::open(app.data_dir.join("snapshots"), workspace)?.without(&app.data_dir))
}

/// Prints what was done or will be done.
pub(crate) fn report(app: &App, restored: &Restored, is_done: bool) {
    if app.json {
        let left = restored.left.iter().map(|left| json!({ "path": left.path, "why": left.why }));
        let left: Vec<_> = left.collect();
        let item = json!({
            "done": is_done, "written": restored.written, "removed": restored.removed, "left": left,
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
            "only the latest 200 snapshots of a folder are kept; take the work back with git, or by hand"
        }
        _ => "then do the same again",
    };
    Failure::failed(visible(&error.to_string()), advice)
}
