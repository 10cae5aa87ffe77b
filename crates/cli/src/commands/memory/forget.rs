//! `archon memory forget`: forgets memories, and names the runs that still have them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use archon::{
    SystemClock,
    memory::Memory,
    types::{Clock as _, MemoryChange, MemoryEntry, MemoryFilter, MemoryKind, RunId},
};
use serde_json::json;

use super::{Of, for_each_page, open};
use crate::{
    app::App,
    ask::Prompt,
    exit::Exit,
    failure::Failure,
    text::visible,
    traces::{Texts, Traces},
};

/// The place in a forgotten memory's marker for the runs that still have its text.
const STILL_IN: &str = "still_in";

#[derive(Debug, clap::Args)]
pub(crate) struct ForgetFlags {
    /// Also erase the runs that still have what is forgotten, with the runs that need them, and the snapshots for undo
    /// that have it; this can also be done after a `forget` without this flag
    #[arg(long)]
    erase_runs: bool,
    /// The ids
    #[arg(required = true)]
    ids: Vec<String>,
}

impl ForgetFlags {
    pub(super) async fn forget(self, app: &App, of: &Of) -> Result<Exit, Failure> {
        let memory = open(app, &of.collection).await?;
        let mut traces = Traces::default();
        let mut gone = Vec::new();
        for id in &self.ids {
            let before = of_ids(&memory, id).await?;
            let facts = facts(&memory).await?;
            if memory.forget(id).await? {
                let after = self::facts(&memory).await?;
                gone.extend(before.into_iter().filter(|entry| entry.kind != MemoryKind::Forgotten));
                gone.extend(
                    facts.into_iter().filter(|(id, _)| !after.contains_key(id)).map(|(_, fact)| fact),
                );
            } else {
                let marked = before.iter().find_map(|entry| {
                    serde_json::from_value::<(BTreeSet<RunId>, BTreeSet<PathBuf>)>(
                        entry.metadata.get(STILL_IN)?.clone(),
                    )
                    .ok()
                });
                let Some((runs, snapshots)) = marked.filter(|_| self.erase_runs) else {
                    let what = format!("there is no memory {id} in {}", of.collection);
                    return Err(Failure::usage(what, "`archon memory list` shows the ids"));
                };
                traces.runs.extend(runs);
                traces.snapshots.extend(snapshots);
            }
        }
        let texts = Texts::of(gone.iter().map(|entry| entry.content.as_str()));
        let found =
            texts.find(&app.data_dir).and_then(|mut found| found.remove_lines(&texts).map(|()| found));
        let found = found.map_err(|e| Failure::unreadable(&app.data_dir, &e, "make its files readable"))?;
        traces.snapshots.extend(found.snapshots);
        traces.files.extend(found.files);
        traces.runs.extend(found.runs);
        // The run that said it may have been deleted.
        let has_log = |run: &RunId| app.journal().path(run).is_ok_and(|path| path.exists());
        traces.runs.extend(gone.iter().filter_map(|entry| entry.run.clone()).filter(has_log));
        self.erase(app, &memory, &traces, &texts).await
    }

    /// Names the runs and files that still have the texts, and erases them if the person wants that.
    async fn erase(
        &self,
        app: &App,
        memory: &Memory,
        traces: &Traces,
        texts: &Texts,
    ) -> Result<Exit, Failure> {
        let names =
            |runs: &mut dyn Iterator<Item = &RunId>| runs.map(ToString::to_string).collect::<Vec<_>>();
        let paths: Vec<_> =
            traces.files.iter().chain(&traces.snapshots).map(|p| p.display().to_string()).collect();
        let runs = names(&mut traces.runs.iter());
        if !traces.is_empty() && !self.erase_runs {
            let places: Vec<_> = runs.iter().map(|run| format!("run {run}")).chain(paths.clone()).collect();
            app.note(format!("what was forgotten is still in {}", visible(&places.join(", "))));
        }
        let wants = self.erase_runs
            || (!traces.is_empty()
                && app.can_ask()
                && Prompt::asks_yes(app, "Erase these, with the runs that need them? [y/N] "));
        if !wants {
            mark(memory, &self.ids, traces).await?;
            if !traces.is_empty() {
                app.hint(format!(
                    "to erase them: archon memory forget --erase-runs {}",
                    visible(&self.ids.join(" "))
                ));
            }
            let item = json!({"forgotten": self.ids, "still_in": {"runs": runs, "files": paths}});
            app.report_json(&item);
            return Ok(Exit::Finished);
        }
        let (erased, problems) = traces.erase(app, texts).await;
        let erased = names(&mut erased.iter());
        mark(memory, &self.ids, &Traces::default()).await?;
        app.report_json(&json!({"forgotten": self.ids, "erased": erased, "problems": problems}));
        app.note_if(!erased.is_empty(), format!("erased: {}", erased.join(", ")));
        match problems.is_empty() {
            true => Ok(Exit::Finished),
            false => {
                let what = format!("not everything could be erased: {}", visible(&problems.join("; ")));
                Err(Failure::failed(what, "end the programs that use these, and remove the files by hand"))
            }
        }
    }
}

/// Returns the entries with an id, also markers of forgotten ones.
async fn of_ids(memory: &Memory, id: &str) -> Result<Vec<MemoryEntry>, Failure> {
    let mut filter = MemoryFilter::all();
    filter.ids = vec![id.to_owned()];
    let mut entries = Vec::new();
    for_each_page(memory, filter, |page| entries.extend(page.entries)).await?;
    Ok(entries)
}

async fn facts(memory: &Memory) -> Result<BTreeMap<String, MemoryEntry>, Failure> {
    let mut facts = BTreeMap::new();
    let filter = MemoryFilter::all().of(&[MemoryKind::Fact]);
    let add = |page: archon::types::MemoryPage| {
        facts.extend(page.entries.into_iter().map(|fact| (fact.id.clone(), fact)));
    };
    for_each_page(memory, filter, add).await?;
    Ok(facts)
}

/// Stores, in the markers of the forgotten memories, the runs and snapshots that still have their texts, so that a later
/// command can erase these. A marker has no text.
async fn mark(memory: &Memory, ids: &[String], traces: &Traces) -> Result<(), Failure> {
    for id in ids {
        let mut markers = of_ids(memory, id).await?;
        if markers.is_empty() && !traces.is_empty() {
            // Only what a run stored has a marker so far.
            let now = SystemClock.now();
            let mut marker = MemoryEntry::new(id, "-", now);
            (marker.kind, marker.valid_from, marker.valid_to) = (MemoryKind::Forgotten, Some(now), Some(now));
            markers.push(marker);
        }
        for mut marker in markers.into_iter().filter(|entry| entry.kind == MemoryKind::Forgotten) {
            match traces.is_empty() {
                true => marker.metadata.remove(STILL_IN),
                false => {
                    marker.metadata.insert(STILL_IN.to_owned(), json!((&traces.runs, &traces.snapshots)))
                }
            };
            memory.store().apply(vec![MemoryChange::put(marker)]).await?;
        }
    }
    Ok(())
}
