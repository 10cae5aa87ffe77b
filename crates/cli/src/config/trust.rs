//! Limits on a project's archon.toml: settings that it may never have, and settings that need a person's
//! agreement.
//!
//! The file comes with a repository that the user may just have cloned. A setting that chooses the model,
//! its instructions, its tools or its limits has an effect only after a person has [agreed](super::agreed)
//! to the exact text of the file (`archon trust`): the model reads the project's files, and instructions and
//! tools decide what the model does with them. Even then no key is sent to an address that the file chose
//! (see `choose.rs`). The file may never choose the key that is sent, the folder of logs, the local servers
//! to look for, or a workspace or instructions outside the project. All of these can be set in the user's
//! own file, the environment or a flag.

use std::path::{Component, Path, PathBuf};

use super::{
    Agreements, Config, Origin, Settings, Sources,
    file::{self, File},
};
use crate::{failure::Failure, text::visible};

/// The settings that choose the model, its instructions, its tools or its limits.
pub(super) const AFTER_AGREEMENT: &[&str] = &[
    "model",
    "fallback",
    "base_url",
    "tools",
    "agents",
    "system",
    "project_file",
    "max_tokens",
    "max_cost",
    "max_duration",
];

/// The settings of a project's file that need a person's agreement.
#[derive(Clone, Debug)]
pub(crate) struct Asks {
    /// The path of the project's file.
    pub(crate) path: PathBuf,
    /// The whole text of the file.
    pub(crate) text: String,
    /// The names of the settings.
    pub(crate) keys: Vec<&'static str>,
    /// True if a person agreed to the file with this text.
    pub(crate) is_agreed: bool,
}

impl Asks {
    /// Returns these settings as text for people, one line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let table: toml::Table = toml::from_str(&self.text).unwrap_or_default();
        let line = |key: &&str| Some(visible(&format!("{key} = {}", table.get(*key)?)));
        self.keys.iter().filter_map(line).collect()
    }
}

/// Returns the settings of the project's file that need an agreement, with or without an agreement; `None`
/// if there is no such file or setting.
pub(crate) fn asks(sources: &Sources, agreements: &Agreements) -> Result<Option<Asks>, Failure> {
    match file::read(sources.project.as_deref())? {
        Some(file) => Ok(split(&file, Some(agreements))?.0),
        None => Ok(None),
    }
}

/// Removes the settings of a project's file to which no person has agreed. Returns the removed settings that
/// would have had an effect; `without` has all other layers.
pub(super) fn restrict(
    file: &mut File,
    without: &Config,
    sources: &Sources,
) -> Result<Option<Asks>, Failure> {
    // Without a data folder there can be no agreement.
    let agreements = without.data_dir(sources).ok().map(|folder| Agreements::in_folder(&folder));
    let (asks, rest) = split(file, agreements.as_ref())?;
    let Some(mut asks) = asks.filter(|asks| !asks.is_agreed) else { return Ok(None) };
    file.settings = rest;
    asks.keys.retain(|key| !matches!(without.origin(key), Some(Origin::Env(_) | Origin::Flag(_))));
    Ok(Some(asks).filter(|asks| !asks.keys.is_empty()))
}

/// Splits the settings of a file into those that need an agreement and the others.
fn split(file: &File, agreements: Option<&Agreements>) -> Result<(Option<Asks>, Settings), Failure> {
    check(&file.path, &file.settings)?;
    let mut rest = file.settings.clone();
    let keys: Vec<_> = AFTER_AGREEMENT.iter().copied().filter(|key| rest.forget(key)).collect();
    let is_agreed = match agreements {
        Some(agreements) if !keys.is_empty() => agreements.hold(&file.path, &file.text)?,
        _ => false,
    };
    let asks = Asks { path: file.path.clone(), text: file.text.clone(), keys, is_agreed };
    Ok((Some(asks).filter(|asks| !asks.keys.is_empty()), rest))
}

/// Returns an error for a layer with forbidden settings.
pub(super) fn check(path: &Path, layer: &Settings) -> Result<(), Failure> {
    match refusals(path, layer).first() {
        None => Ok(()),
        Some((key, why)) => Err(Failure::usage(format!("{}: `{key}` {why}", path.display()), remedy(key))),
    }
}

/// Returns the remedy for a forbidden setting.
pub(crate) fn remedy(key: &str) -> String {
    format!("set it with a flag or in your own settings, or remove `{key}` there")
}

/// Returns the names of the forbidden settings of a layer, each with the reason.
pub(crate) fn refusals(path: &Path, layer: &Settings) -> Vec<(&'static str, &'static str)> {
    let allows = layer.permissions.as_ref().is_some_and(|rules| !rules.allow.is_empty());
    let leads_out = |place: &Option<PathBuf>| {
        place.as_ref().zip(path.parent()).is_some_and(|(place, project)| !is_inside(place, project))
    };
    let refusals = [
        (
            layer.api_key_env.is_some(),
            "api_key_env",
            "is not allowed in a project's settings: a project may not choose your keys",
        ),
        (
            layer.allow_plain_http.is_some(),
            "allow_plain_http",
            "is not allowed in a project's settings: a project may not send your keys unencrypted",
        ),
        (
            layer.data_dir.is_some(),
            "data_dir",
            "is not allowed in a project's settings: a project may not choose the folder of the logs",
        ),
        (
            layer.search_url.is_some(),
            "search_url",
            "is not allowed in a project's settings: a project may not choose the service that receives your searches",
        ),
        (
            layer.mcp.is_some(),
            "mcp",
            "is not allowed in a project's settings: a project's servers are in .mcp.json, and each needs your agreement",
        ),
        (
            layer.models.is_some(),
            "models",
            "is not allowed in a project's settings: a project may not change prices and properties of models",
        ),
        (
            layer.local_servers.is_some(),
            "local_servers",
            "is not allowed in a project's settings: a project may not choose the local servers",
        ),
        (
            allows,
            "permissions",
            "may not allow calls in a project's settings: a project may not extend its own permissions",
        ),
        (leads_out(&layer.workspace), "workspace", "is a path outside the project"),
        (leads_out(&layer.project_file), "project_file", "is a path outside the project"),
    ];
    refusals.into_iter().filter(|(is_there, ..)| *is_there).map(|(_, key, why)| (key, why)).collect()
}

fn is_inside(path: &Path, project: &Path) -> bool {
    let climbs = path.components().any(|c| c == Component::ParentDir);
    let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_owned());
    !climbs && real(path).starts_with(real(project))
}
