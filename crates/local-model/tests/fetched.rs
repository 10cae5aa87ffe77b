//! What `archon model pull` fetched into the default data folder of the command.

use std::path::PathBuf;

use archon_local_model::{LocalEngineOptions, prebuilt};

/// The data folder; none without a home.
fn data() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?;
    let data = std::env::var_os("XDG_DATA_HOME").map_or_else(|| home.join(".local/share"), PathBuf::from);
    Some(data.join("archon"))
}

/// The file of a model, if it was fetched. Without it this says so, and fails where `ARCHON_REQUIRE_MODELS` is set.
pub(crate) fn model(name: &str) -> Option<PathBuf> {
    let file = data()?.join("models").join(format!("{name}.gguf"));
    if file.is_file() {
        return Some(file);
    }
    assert!(std::env::var_os("ARCHON_REQUIRE_MODELS").is_none(), "{name} was not fetched");
    eprintln!("SKIP: no model file; run `archon model pull {name}`");
    None
}

/// The engine that was fetched.
pub(crate) fn engine() -> LocalEngineOptions {
    let folder = prebuilt().zip(data()).map(|(prebuilt, data)| data.join("engines").join(prebuilt.name()));
    LocalEngineOptions::default().with_folder(folder.unwrap_or_default())
}
