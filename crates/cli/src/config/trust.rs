//! What a project's archon.toml may not do.
//!
//! The file comes with a repository that its user may just have cloned. It may choose a model and
//! tools; it may not choose where keys and files go. What is refused here can be said in the user's
//! own file, the environment or a flag. (A `base_url` is allowed: the user's keys are not sent to it;
//! see `choose.rs`.)

use std::path::{Component, Path};

use super::Settings;
use crate::failure::Failure;

/// Refuses a layer that oversteps.
pub(super) fn check(path: &Path, layer: &Settings) -> Result<(), Failure> {
    let refuse = |key: &str, why: &str| {
        let what = format!("{}: `{key}` {why}", path.display());
        Err(Failure::usage(
            what,
            format!("say it with a flag or in your own settings, or remove `{key}` there"),
        ))
    };
    if layer.api_key_env.is_some() {
        return refuse(
            "api_key_env",
            "may not stand in a project's settings: a project does not choose your keys",
        );
    }
    if layer.data_dir.is_some() {
        return refuse(
            "data_dir",
            "may not stand in a project's settings: a project does not choose where logs go",
        );
    }
    match (&layer.workspace, path.parent()) {
        (Some(workspace), Some(project)) if !is_inside(workspace, project) => {
            refuse("workspace", "leads out of the project")
        }
        _ => Ok(()),
    }
}

fn is_inside(path: &Path, project: &Path) -> bool {
    let climbs = path.components().any(|c| c == Component::ParentDir);
    let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_owned());
    !climbs && real(path).starts_with(real(project))
}
