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
    Agreements, Apis, Config, Origin, Settings, Sources,
    file::{self, File},
};
use crate::{failure::Failure, text::visible};

/// The settings of a project's file that take effect only after a person agreed to the file: they choose the
/// model, its instructions, its tools or its limits.
pub(super) const AFTER_AGREEMENT: &[&str] = &[
    "model",
    "fallback",
    "base_url",
    "tools",
    "agents",
    "openapi",
    "system",
    "project_file",
    "extractor",
    "max_tokens",
    "max_cost",
    "max_duration",
];

/// The settings of a project's file that need a person's agreement.
#[derive(Clone, Debug)]
pub(crate) struct Asks {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) keys: Vec<&'static str>,
    /// The APIs of the file.
    pub(crate) apis: Apis,
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

/// Removes from a project's file the settings that need an agreement, unless a person has agreed to the file.
/// Returns the removed settings, except those that the environment or a flag sets anyway; `without` has the
/// settings of all other layers.
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
    let mut apis = file.settings.openapi.clone().unwrap_or_default();
    apis.mark_as_of_project();
    let asks = Asks { path: file.path.clone(), text: file.text.clone(), keys, apis, is_agreed };
    Ok((Some(asks).filter(|asks| !asks.keys.is_empty()), rest))
}

/// The settings that a project's file may never have, each with the reason.
pub(super) const FORBIDDEN: &[(&str, &str)] = &[
    ("api_key_env", "a project may not choose your keys"),
    ("allow_plain_http", "a project may not send your keys unencrypted"),
    ("data_dir", "a project may not choose the folder of the logs"),
    ("search_url", "a project may not choose the service that receives your searches"),
    ("mcp", "a project's servers are in .mcp.json, and each needs your agreement"),
    ("sandbox_hooks", "a project may not choose the rights of its own commands"),
    ("models", "a project may not change prices and properties of models"),
    ("local_servers", "a project may not choose the local servers"),
    ("keys", "a project may not change your keys"),
    ("serve", "a project may not choose who listens, and who may come in"),
    ("channels", "a project may not choose who hears about your runs"),
    ("events", "a project may not choose what starts your tasks"),
    ("chat", "a project may not change how your terminal looks and sounds"),
];

pub(super) fn check(path: &Path, layer: &Settings) -> Result<(), Failure> {
    match refusals(path, layer).first() {
        None => Ok(()),
        Some((key, why)) => Err(Failure::usage(format!("{}: `{key}` {why}", path.display()), remedy(key))),
    }
}

/// Returns the advice for a setting that a project's file may not have.
pub(crate) fn remedy(key: &str) -> String {
    format!("set it with a flag or in your own settings, or remove `{key}` there")
}

/// Returns the names of the forbidden settings of a layer, each with the reason.
pub(crate) fn refusals(path: &Path, layer: &Settings) -> Vec<(&'static str, String)> {
    let allows = layer.permissions.as_ref().is_some_and(|rules| !rules.allow.is_empty());
    let leads_out = |place: &Option<PathBuf>| {
        place.as_ref().zip(path.parent()).is_some_and(|(place, project)| !is_inside(place, project))
    };
    let outside = || "is a path outside the project".to_owned();
    let extends = "may not allow calls in a project's settings: a project may not extend its own permissions";
    let mut refusals = Vec::new();
    let mut layer_without = layer.clone();
    for (key, why) in FORBIDDEN {
        if layer_without.forget(key) {
            refusals.push((*key, format!("is not allowed in a project's settings: {why}")));
        }
    }
    refusals.extend(allows.then(|| ("permissions", extends.to_owned())));
    refusals.extend(leads_out(&layer.workspace).then(|| ("workspace", outside())));
    refusals.extend(leads_out(&layer.project_file).then(|| ("project_file", outside())));
    refusals
}

fn is_inside(path: &Path, project: &Path) -> bool {
    let climbs = path.components().any(|c| c == Component::ParentDir);
    let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_owned());
    !climbs && real(path).starts_with(real(project))
}
