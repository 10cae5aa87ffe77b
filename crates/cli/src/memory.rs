//! Opens memories, with the embedder that the settings choose.

use std::sync::Arc;

use archon::{
    RandomIds, SystemClock,
    memory::{HashEmbedder, Memory},
    store::SqliteMemory,
    types::{Collection, Embedder},
};

use crate::{app::App, config::EmbedderChoice, failure::Failure};

pub(crate) async fn open(app: &App, collection: &Collection) -> Result<Memory, Failure> {
    let store = SqliteMemory::open(app.data_dir.join("memory.db"))?.collection(collection.clone())?;
    let memory = Memory::new(Arc::new(store), Arc::new(SystemClock), Arc::new(RandomIds));
    Ok(match embedder(app).await? {
        Some(embedder) => memory.with_embedder(embedder),
        None => memory,
    })
}

/// Returns the embedder of the settings, if they choose one.
async fn embedder(app: &App) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    match app.config.settings.embedder.unwrap_or_default() {
        EmbedderChoice::None => Ok(None),
        EmbedderChoice::Hash => Ok(Some(Arc::new(HashEmbedder))),
        EmbedderChoice::Local => local(app).await.map(Some),
    }
}

#[cfg(feature = "embedder")]
async fn local(app: &App) -> Result<Arc<dyn Embedder>, Failure> {
    let folder = crate::local::directory(app);
    app.output.wait("loading the embedder");
    let loaded = tokio::task::spawn_blocking(move || archon_local_embedder::MiniLm::in_folder(&folder)).await;
    app.output.stop_waiting();
    match loaded {
        Ok(Ok(model)) => Ok(Arc::new(model)),
        Ok(Err(e)) => Err(Failure::usage(e.to_string(), e.advice())),
        Err(e) => Err(Failure::failed(format!("cannot load the embedder: {e}"), "try again")),
    }
}

#[cfg(not(feature = "embedder"))]
#[allow(clippy::unused_async, reason = "as with the feature")]
async fn local(_: &App) -> Result<Arc<dyn Embedder>, Failure> {
    Err(missing())
}

/// Returns the error for an embedder that this build does not have; `name` is its name in the settings.
pub(crate) fn embedder_not_built(name: &str) -> Option<Failure> {
    (!cfg!(feature = "embedder") && name == "local").then(missing)
}

fn missing() -> Failure {
    Failure::usage("the embedder `local` is not in this build", "build with `--features embedder`")
}
