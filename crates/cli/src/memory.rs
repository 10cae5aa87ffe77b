//! Opens memories, with the embedder that the settings choose.

use std::sync::Arc;

use archon::{
    RandomIds, SystemClock,
    memory::{HashEmbedder, Memory},
    store::SqliteMemory,
    types::{Clock as _, Collection, Embedder, Listing, MemoryFilter, MemoryKind, MemoryOrder},
};

use crate::{app::App, config::EmbedderChoice, failure::Failure};

/// Opens a memory for a command that is about memories.
///
/// # Errors
/// The database cannot be opened, or the embedder that the settings name cannot be loaded.
pub(crate) async fn open(app: &App, collection: &Collection) -> Result<Memory, Failure> {
    let memory = without_embedder(app, collection)?;
    Ok(with(memory, embedder(app).await?))
}

/// Opens a memory for a run. Warns if the memory cannot be used, and returns `None`; warns if its embedder cannot be
/// loaded, and finds memories by words. Says what the memory lacks.
pub(crate) async fn open_for_run(app: &App, collection: &Collection) -> Option<Memory> {
    let warn = |failure: &Failure, instead: &str| app.output.warn(format!("{}; {instead}", failure.line()));
    let memory = match without_embedder(app, collection) {
        Ok(memory) => memory,
        Err(failure) => {
            warn(&failure, "the run goes on without memories");
            return None;
        }
    };
    let embedder = embedder(app).await.unwrap_or_else(|failure| {
        warn(&failure, "memories are found by their words only");
        None
    });
    let is_automatic = app.config.settings.embedder.unwrap_or_default() == EmbedderChoice::Auto;
    if embedder.is_none() && is_automatic {
        app.output.note_once(match cfg!(feature = "embedder") {
            true => "memories are found by their words only; with a table of words, which `archon model pull wordllama-256` fetches (19 MB), also in other words",
            false => "memories are found by their words only: the embedders are not in this build",
        });
    }
    let memory = with(memory, embedder);
    note_problems(app, &memory).await;
    Some(memory)
}

/// Opens the memories of tenants: for each the collection `tenant:NAME`, all with one embedder.
///
/// # Errors
/// The database cannot be opened, or the name of a tenant cannot be that of a collection.
#[cfg(all(feature = "serve", feature = "skills", feature = "triggers"))]
pub(crate) async fn of_tenants(
    app: &App,
    tenants: impl Iterator<Item = String>,
) -> Result<std::collections::BTreeMap<String, Memory>, Failure> {
    let embedder = embedder(app).await?;
    let open = |tenant: String| {
        // `a:b` would be a collection within that of the tenant `a`.
        if tenant.contains(':') {
            let what = format!("the tenant {tenant:?} has a colon in its name, so it can have no memory");
            return Err(Failure::usage(what, "give the tenant another name under [serve.tokens]"));
        }
        let collection = Collection::new(format!("tenant:{tenant}"))?;
        let memory = with(without_embedder(app, &collection)?, embedder.clone());
        Ok((tenant, memory))
    };
    tenants.map(open).collect()
}

/// Warns of memories that are found less well: if the newest one has a time in the future, or if some have no vector.
async fn note_problems(app: &App, memory: &Memory) {
    let first = async |filter, order| {
        let page = memory.store().list(&Listing::new(filter, order, 1)).await.ok();
        page.and_then(|mut page| page.entries.pop())
    };
    let (newest, now) = (first(MemoryFilter::all(), MemoryOrder::Latest).await, SystemClock.now());
    if let Some(newest) = newest.map(|entry| entry.timestamp).filter(|newest| *newest > now) {
        app.output.warn(format!("the newest memory is of {newest}, but the clock says {now}: set the clock, or facts that were learnt later do not hold yet"));
    }
    let mut lacking = MemoryFilter::default();
    lacking.kinds = vec![MemoryKind::Note, MemoryKind::Turn, MemoryKind::Fact];
    lacking.not_embedded_by = memory.embedder().map(|embedder| embedder.id().to_owned());
    if lacking.not_embedded_by.is_some() && first(lacking, MemoryOrder::First).await.is_some() {
        app.output.note_once(
            "some memories have no vector of this embedder and are found by their words only: `archon memory embed`",
        );
    }
}

/// Returns the name of the table of words that [`open_for_run`] asks for; `None` if an embedder is there, if the settings
/// choose one or none, or if this build cannot fetch or use the table.
#[cfg(feature = "setup")]
pub(crate) fn missing_table(app: &App) -> Option<&'static str> {
    let is_automatic = app.config.settings.embedder.unwrap_or_default() == EmbedderChoice::Auto;
    let can_fetch = cfg!(all(feature = "embedder", feature = "local"));
    (is_automatic && can_fetch && !local::is_any_there(app)).then_some("wordllama-256")
}

fn without_embedder(app: &App, collection: &Collection) -> Result<Memory, Failure> {
    let store = SqliteMemory::open(app.data_dir.join("memory.db"))?.collection(collection.clone())?;
    Ok(Memory::new(Arc::new(store), Arc::new(SystemClock), Arc::new(RandomIds)))
}

fn with(memory: Memory, embedder: Option<Arc<dyn Embedder>>) -> Memory {
    match embedder {
        Some(embedder) => memory.with_embedder(embedder),
        None => memory,
    }
}

/// Returns the embedder that the settings choose; `None` if they choose none, or if no fetched files fit `auto`.
async fn embedder(app: &App) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    match app.config.settings.embedder.unwrap_or_default() {
        EmbedderChoice::Auto => Ok(local::best(app).await),
        EmbedderChoice::None => Ok(None),
        EmbedderChoice::Hash => Ok(Some(Arc::new(HashEmbedder))),
        EmbedderChoice::Local => local::mini_lm(app).await.map(Some),
        EmbedderChoice::Table => local::table(app).await.map(Some),
    }
}

/// Returns the value of the setting `embedder` that chooses the embedder with this id.
pub(crate) fn choice_of(id: &str) -> EmbedderChoice {
    match id {
        HashEmbedder::ID => EmbedderChoice::Hash,
        id if id.starts_with("wordllama") => EmbedderChoice::Table,
        _ => EmbedderChoice::Local,
    }
}

/// Returns the error for an embedder that this build does not have; `name` is its name in the settings.
pub(crate) fn embedder_not_built(name: &str) -> Option<Failure> {
    (!cfg!(feature = "embedder") && matches!(name, "local" | "table")).then(|| missing(name))
}

fn missing(name: &str) -> Failure {
    Failure::usage(format!("the embedder `{name}` is not in this build"), "build with `--features embedder`")
}

#[cfg(feature = "embedder")]
mod local {
    use std::path::Path;

    use archon_local_embedder::{LocalEmbedderError, MINI_LM, MiniLm, WORD_TABLE, WordTable};

    use super::{App, Arc, Embedder, Failure};

    /// Returns the best embedder whose files were fetched, if there is one. Warns of files that cannot be used.
    pub(super) async fn best(app: &App) -> Option<Arc<dyn Embedder>> {
        let warn = |failure: Failure| app.output.warn(failure.line());
        if is_there(app, MINI_LM) {
            match mini_lm(app).await {
                Ok(embedder) => return Some(embedder),
                Err(failure) => warn(failure),
            }
        }
        if is_there(app, WORD_TABLE) {
            return table(app).await.map_err(warn).ok();
        }
        None
    }

    /// Returns true if the files of an embedder were fetched.
    pub(super) fn is_any_there(app: &App) -> bool {
        [MINI_LM, WORD_TABLE].iter().any(|name| is_there(app, name))
    }

    fn is_there(app: &App, name: &str) -> bool {
        crate::local::directory(app).join(format!("{name}.safetensors")).is_file()
    }

    pub(super) async fn mini_lm(app: &App) -> Result<Arc<dyn Embedder>, Failure> {
        load(app, |folder| Ok(Arc::new(MiniLm::in_folder(folder)?))).await
    }

    pub(super) async fn table(app: &App) -> Result<Arc<dyn Embedder>, Failure> {
        load(app, |folder| Ok(Arc::new(WordTable::in_folder(folder)?))).await
    }

    async fn load(
        app: &App,
        read: impl FnOnce(&Path) -> Result<Arc<dyn Embedder>, LocalEmbedderError> + Send + 'static,
    ) -> Result<Arc<dyn Embedder>, Failure> {
        let folder = crate::local::directory(app);
        app.output.wait("loading the embedder");
        let loaded = tokio::task::spawn_blocking(move || read(&folder)).await;
        app.output.stop_waiting();
        match loaded {
            Ok(loaded) => loaded.map_err(|e| Failure::usage(e.to_string(), e.advice())),
            Err(e) => Err(Failure::failed(format!("cannot load the embedder: {e}"), "try again")),
        }
    }
}

#[cfg(not(feature = "embedder"))]
#[allow(clippy::unused_async, reason = "as with the feature")]
mod local {
    use super::{App, Arc, Embedder, Failure, missing};

    pub(super) async fn best(_: &App) -> Option<Arc<dyn Embedder>> {
        None
    }

    #[cfg(feature = "setup")]
    pub(super) fn is_any_there(_: &App) -> bool {
        false
    }

    pub(super) async fn mini_lm(_: &App) -> Result<Arc<dyn Embedder>, Failure> {
        Err(missing("local"))
    }

    pub(super) async fn table(_: &App) -> Result<Arc<dyn Embedder>, Failure> {
        Err(missing("table"))
    }
}
