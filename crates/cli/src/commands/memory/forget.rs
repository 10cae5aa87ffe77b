//! `archon memory forget`: forgets memories, names the places that still have them, and erases these if a person agrees.
//!
//! The steps are in an order in which nothing looks forgotten but is not:
//!
//! 1. The places that have the texts are searched for. Nothing is changed.
//! 2. The database deletes the memories and, in the same change, notes these places under their ids.
//! 3. The bytes of the memories are removed from the files of the database.
//! 4. The places are erased, if the person agrees.
//! 5. The notes are removed.
//!
//! If a step fails or the program ends, the same command again finds the notes and does the rest.

use std::sync::Arc;

use archon::{
    memory::Memory,
    types::{MemoryChange, MemoryEntry, MemoryFilter, MemoryKind},
};
use serde_json::json;

use super::{Of, for_each_page, memories::not_forgotten, open};
use crate::{
    app::App,
    ask::Prompt,
    command_line::{in_data_dir, quoted},
    exit::Exit,
    failure::Failure,
    text::visible,
    traces::{Texts, Traces},
};

/// The name of the note in a marker: the places that still have the text.
const STILL_IN: &str = "still_in";

#[derive(Debug, clap::Args)]
pub(crate) struct ForgetFlags {
    /// Also erase what still has the texts: runs, with the runs that need them, snapshots for undo, lines of drafts and
    /// logs, tasks and notifications. They are listed, and a question follows. This can also be done after a `forget`
    /// without this flag, with the same ids
    #[arg(long)]
    erase_runs: bool,
    /// Erase without a question, for scripts
    #[arg(long, requires = "erase_runs")]
    yes: bool,
    /// The ids
    #[arg(required = true)]
    ids: Vec<String>,
}

impl ForgetFlags {
    pub(super) async fn forget(self, app: &App, of: &Of) -> Result<Exit, Failure> {
        let memory = open(app, &of.collection).await?;
        let (ids, begun) = self.ids_to_forget(&memory, of).await?;
        let gone = memory.entries_to_forget(&ids).await?;
        let texts = Arc::new(Texts::of(gone.iter().map(|entry| entry.content.as_str())));
        let mut traces = Traces::find(app, &texts).await?;
        for traces_before in begun {
            traces.add(app, traces_before).await?;
        }
        traces.add_runs(app, gone.iter().filter_map(|entry| entry.run.clone()));
        traces.add_needing_runs(app).await?;
        if traces.can_be_erased() && self.erase_runs && !self.yes && !app.can_ask() {
            let item = json!({"forgotten": [], "still_in": traces.show(app).await?});
            app.report_json(&item);
            return Err(Failure::usage(
                "nothing was forgotten or erased: there is no terminal on which to ask whether to erase these",
                "add --yes to erase them, or leave out --erase-runs to keep them",
            ));
        }
        let others = others_with(&memory, &texts, &gone).await?;
        let note = [(STILL_IN.to_owned(), json!(traces))];
        memory.forget_with_note(&ids, note.into_iter().collect()).await?;
        self.remove_bytes(&memory).await?;
        app.note_if(
            texts.too_short() > 0,
            "texts of fewer than 8 bytes were not searched for outside of the memory",
        );
        app.note_if(
            !others.is_empty(),
            format!("other memories have it, too: {}", visible(&others.join(", "))),
        );
        self.erase(app, of, &memory, (&traces, &texts)).await
    }

    /// Returns the ids of the memories that are not forgotten yet, and what is left to do of those that are.
    async fn ids_to_forget(&self, memory: &Memory, of: &Of) -> Result<(Vec<String>, Vec<Traces>), Failure> {
        let (mut ids, mut begun) = (Vec::new(), Vec::new());
        for id in &self.ids {
            let found = Found::of(memory, id).await?;
            if found.has_content {
                ids.push(id.clone());
            } else if found.begun.is_empty() {
                let what = format!("there is no memory {id} in {}", of.collection);
                return Err(Failure::usage(what, "`archon memory list` shows the ids"));
            }
            for marker in &found.begun {
                begun.push(note_of(marker)?);
            }
        }
        Ok((ids, begun))
    }

    async fn remove_bytes(&self, memory: &Memory) -> Result<(), Failure> {
        memory.store().erase_deleted().await.map_err(|e| {
            let what = format!("the memories are forgotten, but bytes of them may be left: {e}");
            Failure::failed(
                what,
                "end the program that reads it, or free space on the disk; then give the same command again",
            )
        })
    }

    /// Shows the places that still have the texts, and erases them if the person agrees.
    async fn erase(
        &self,
        app: &App,
        of: &Of,
        memory: &Memory,
        (traces, texts): (&Traces, &Arc<Texts>),
    ) -> Result<Exit, Failure> {
        let still_in = if traces.is_empty() { json!({}) } else { traces.show(app).await? };
        if !traces.can_be_erased() {
            remove_notes(memory, &self.ids).await?;
            app.report_json(&json!({"forgotten": self.ids, "still_in": still_in}));
            return Ok(Exit::Finished);
        }
        let asks = || app.can_ask() && Prompt::asks_yes(app, "Erase these? [y/N] ");
        if !(self.yes || asks()) {
            app.hint(format!("to erase them: {}", self.again(app, of)));
            app.report_json(&json!({"forgotten": self.ids, "still_in": still_in}));
            return Ok(Exit::Finished);
        }
        let (erased, mut problems) = traces.erase(app).await;
        let left = Traces::find(app, texts).await?.names();
        problems.extend(left.into_iter().map(|place| format!("{place} still has it")));
        let erased: Vec<String> = erased.iter().map(ToString::to_string).collect();
        let item = json!({
            "forgotten": self.ids, "still_in": still_in, "erased": erased, "problems": problems,
        });
        app.report_json(&item);
        app.note_if(!erased.is_empty(), format!("erased: {}", erased.join(", ")));
        if problems.is_empty() {
            remove_notes(memory, &self.ids).await?;
            return Ok(Exit::Finished);
        }
        let what = format!("not everything could be erased: {}", visible(&problems.join("; ")));
        let advice = format!("end the programs that use these, then: {}", self.again(app, of));
        Err(Failure::failed(what, advice))
    }

    /// Returns the command that erases what is left.
    fn again(&self, app: &App, of: &Of) -> String {
        let ids: Vec<String> = self.ids.iter().map(|id| quoted(id)).collect();
        let collection = quoted(of.collection.as_str());
        let command = format!("archon memory forget --memory {collection} --erase-runs {}", ids.join(" "));
        visible(&in_data_dir(app, &command))
    }
}

/// The entries with one id.
#[derive(Default)]
struct Found {
    /// True if one of them has content, or is damaged.
    has_content: bool,
    /// The markers with a note.
    begun: Vec<MemoryEntry>,
}

impl Found {
    async fn of(memory: &Memory, id: &str) -> Result<Self, Failure> {
        let mut filter = MemoryFilter::all();
        filter.ids = vec![id.to_owned()];
        let mut found = Self::default();
        for_each_page(memory, filter, |page| {
            found.has_content |= !page.damaged.is_empty();
            for entry in page.entries {
                match entry.kind {
                    MemoryKind::Forgotten if entry.metadata.contains_key(STILL_IN) => found.begun.push(entry),
                    MemoryKind::Forgotten => {}
                    _ => found.has_content = true,
                }
            }
        })
        .await?;
        Ok(found)
    }
}

/// Returns the places that a marker notes.
fn note_of(marker: &MemoryEntry) -> Result<Traces, Failure> {
    let note = marker.metadata.get(STILL_IN).cloned().unwrap_or_default();
    serde_json::from_value(note).map_err(|e| {
        let id = visible(&marker.id);
        let what = format!(
            "nothing was forgotten or erased: the note of the places that still have {id} cannot be read: {e}"
        );
        let advice = format!(
            "use the version of Archon that wrote the note, or look through `archon runs list` yourself; other ids can be forgotten without {id}"
        );
        Failure::failed(what, advice)
    })
}

/// Returns the ids of memories that have one of the texts and stay.
async fn others_with(memory: &Memory, texts: &Texts, gone: &[MemoryEntry]) -> Result<Vec<String>, Failure> {
    let mut others = Vec::new();
    if texts.are_none() {
        return Ok(others);
    }
    let mut filter = not_forgotten();
    filter.without = gone.iter().map(|entry| entry.id.clone()).collect();
    for_each_page(memory, filter, |page| {
        let with_text = page.entries.into_iter().filter(|entry| texts.are_in(entry.content.as_bytes()));
        others.extend(with_text.map(|entry| entry.id));
    })
    .await?;
    Ok(others)
}

/// Removes the notes of the forgotten memories. Only the markers of what a run would store again stay.
async fn remove_notes(memory: &Memory, ids: &[String]) -> Result<(), Failure> {
    let mut changes = Vec::new();
    for id in ids {
        for mut marker in Found::of(memory, id).await?.begun {
            if marker.run.take().is_some() {
                marker.metadata.remove(STILL_IN);
                changes.push(MemoryChange::put(marker));
            } else {
                let mut filter = MemoryFilter::all().of(&[MemoryKind::Forgotten]).exactly(&marker.collection);
                filter.ids = vec![marker.id];
                changes.push(MemoryChange::Forget(filter));
            }
        }
    }
    memory.store().apply(changes).await?;
    Ok(())
}
