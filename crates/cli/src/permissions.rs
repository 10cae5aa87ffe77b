//! The rules of this user and this project: from the settings, and from what was answered with `always`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use archon::tools::Permissions;

use crate::{app::App, config::PermissionRules, failure::Failure};

/// All rules that hold.
pub(crate) fn all(app: &App) -> Result<Permissions, Failure> {
    let mut rules = app.config.settings.permissions.clone().unwrap_or_default();
    if let Some(path) = place(app) {
        let remembered = remembered(&path).map_err(|e| {
            Failure::usage(format!("cannot read {}: {e}", path.display()), "mend the file, or move it away")
        })?;
        rules.allow.extend(remembered);
    }
    Permissions::parse(&rules.deny, &rules.ask, &rules.allow).map_err(|e| {
        Failure::usage(e.to_string(), "write rules as bash(git status:*), write_file(src/**) or read_file")
    })
}

/// Where rules are kept that hold always: beside the user's settings.
pub(crate) fn place(app: &App) -> Option<PathBuf> {
    app.sources.user.as_ref()?.parent().map(|dir| dir.join("permissions.toml"))
}

/// The rules that are kept in a file.
pub(crate) fn remembered(path: &Path) -> io::Result<Vec<String>> {
    let text = match fs::read_to_string(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let rules: PermissionRules =
        toml::from_str(&text).map_err(|e| io::Error::other(e.message().to_owned()))?;
    Ok(rules.allow)
}

/// Adds a rule to those in a file, which is replaced in one step.
pub(crate) fn remember(path: &Path, rule: &str) -> io::Result<()> {
    let mut rules = remembered(path)?;
    if rules.iter().any(|other| other == rule) {
        return Ok(());
    }
    rules.push(rule.to_owned());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    // A string of JSON is one of TOML.
    let lines: String =
        rules.iter().map(|rule| format!("    {},\n", serde_json::Value::from(rule.as_str()))).collect();
    let new = path.with_extension("toml.new");
    fs::write(
        &new,
        format!(
            "# What was answered with `always`. Rules may be changed or taken out.\nallow = [\n{lines}]\n"
        ),
    )?;
    fs::rename(&new, path)
}
