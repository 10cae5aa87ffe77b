//! Permission rules of this user and this project: from the settings, and from answers with `always`.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use archon::{
    tools::{Permissions, Ruling},
    types::{CLEANUP_TOOL, Effect, Subject},
};
use serde::{Deserialize, Serialize};

use crate::{app::App, failure::Failure, own_file, servers::Tools, toolset};

/// Returns all permission rules: those of the settings, those stored from answers with `always`, and those
/// that allow calls of agents and of the tool that clears results.
pub(crate) fn all(app: &App) -> Result<Permissions, Failure> {
    let mut rules = app.config.settings.permissions.clone().unwrap_or_default();
    if let Some(stored) = stored_rules(app) {
        let unreadable = |e| Failure::unreadable(&stored.file, &e, "correct the file, or move it away");
        rules.allow.extend(stored.rules().map_err(unreadable)?);
    }
    // Agents are allowed, since each asks for its own calls; clearing results is allowed, since it changes
    // only what the model reads.
    rules.allow.extend(app.config.settings.agents.iter().flat_map(|agents| agents.keys().cloned()));
    rules.allow.push(CLEANUP_TOOL.to_owned());
    Permissions::parse(&rules.deny, &rules.ask, &rules.allow).map_err(|e| {
        Failure::usage(e.to_string(), "write rules as bash(git status:*), write_file(src/**) or read_file")
    })
}

/// Writes a warning about each tool with effects if a rule allows every call of the tool.
pub(crate) fn warn_of_wide(tools: &Tools, rules: &Permissions, app: &App) {
    for spec in tools.iter().map(|tool| tool.spec()) {
        let annotations = &spec.annotations;
        if annotations.agent || spec.name == CLEANUP_TOOL {
            continue;
        }
        let asks = annotations.destructive || annotations.effect != Effect::ReadOnly;
        if asks && rules.ruling(&spec.name, &Subject::Unknown, &[]) == Ruling::Allow {
            app.output.warn(format!("a rule allows every call of {}: no person is asked", spec.name));
        }
    }
}

/// Returns the store of the rules from answers with `always`: a file in the folder of the user's settings,
/// with a list for each workspace.
pub(crate) fn stored_rules(app: &App) -> Option<StoredRules> {
    let file = app.sources.user.as_ref()?.parent()?.join("permissions.toml");
    let workspace = toolset::folder(app)?.display().to_string();
    Some(StoredRules { file, workspace })
}

/// The file that stores the rules from answers with `always`, and the workspace whose rules are meant.
#[derive(Clone, Debug)]
pub(crate) struct StoredRules {
    pub(crate) file: PathBuf,
    pub(crate) workspace: String,
}

/// The content of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Document {
    workspaces: BTreeMap<String, Rules>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    allow: Vec<String>,
}

impl StoredRules {
    /// Returns the stored rules of this workspace.
    pub(crate) fn rules(&self) -> io::Result<Vec<String>> {
        Ok(self.read()?.workspaces.remove(&self.workspace).unwrap_or_default().allow)
    }

    /// Adds a rule for this workspace to the file, which is replaced atomically.
    pub(crate) fn remember(&self, rule: &str) -> io::Result<()> {
        let mut document = self.read()?;
        let rules = document.workspaces.entry(self.workspace.clone()).or_default();
        if rules.allow.iter().any(|other| other == rule) {
            return Ok(());
        }
        rules.allow.push(rule.to_owned());
        self.write(&document)
    }

    /// Removes a rule of this workspace from the file, which is replaced atomically.
    #[cfg(feature = "chat")]
    pub(crate) fn forget(&self, rule: &str) -> io::Result<()> {
        let mut document = self.read()?;
        if let Some(rules) = document.workspaces.get_mut(&self.workspace) {
            rules.allow.retain(|other| other != rule);
        }
        self.write(&document)
    }

    fn write(&self, document: &Document) -> io::Result<()> {
        if let Some(dir) = self.file.parent() {
            fs::create_dir_all(dir)?;
        }
        let text = toml::to_string_pretty(document).map_err(io::Error::other)?;
        let about = "# Answered with `always`, each for its workspace. Rules may be changed or removed.";
        let new = self.file.with_extension("toml.new");
        fs::write(&new, format!("{about}\n\n{text}"))?;
        fs::rename(&new, &self.file)
    }

    fn read(&self) -> io::Result<Document> {
        let text = own_file::read(&self.file)?.unwrap_or_default();
        toml::from_str(&text).map_err(|e| io::Error::other(e.message().to_owned()))
    }
}
