//! What a project's archon.toml may not do.
//!
//! The file comes with a repository that its user may just have cloned. It may choose a model and
//! tools, and the address of the model's service: no key is sent to an address that it chose (see
//! `choose.rs`). It may not choose which key is sent, where logs go, which servers of this machine are
//! asked, or a workspace or instructions outside the project. What is refused here can be said in the user's own file,
//! the environment or a flag.

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
    if layer.local_servers.is_some() {
        return refuse(
            "local_servers",
            "may not stand in a project's settings: a project does not know your machine",
        );
    }
    if layer.permissions.as_ref().is_some_and(|rules| !rules.allow.is_empty()) {
        return refuse(
            "permissions",
            "may not allow anything in a project's settings: a project does not decide what it may do",
        );
    }
    for (key, place) in [("workspace", &layer.workspace), ("project_file", &layer.project_file)] {
        if let (Some(place), Some(project)) = (place, path.parent())
            && !is_inside(place, project)
        {
            return refuse(key, "leads out of the project");
        }
    }
    Ok(())
}

fn is_inside(path: &Path, project: &Path) -> bool {
    let climbs = path.components().any(|c| c == Component::ParentDir);
    let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_owned());
    !climbs && real(path).starts_with(real(project))
}
