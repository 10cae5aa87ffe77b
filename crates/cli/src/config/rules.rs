//! Rules of permission as settings have them.

use schemars::JsonSchema;
use serde::Deserialize;

/// `[permissions]` of a settings file: rules such as `bash(git status:*)`, `write_file(src/**)` or `mcp__github__*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PermissionRules {
    /// What is never done.
    pub(crate) deny: Vec<String>,
    /// What is asked about each time.
    pub(crate) ask: Vec<String>,
    /// What is done without asking. Not in a project's settings.
    pub(crate) allow: Vec<String>,
}

impl PermissionRules {
    /// These rules and those of another layer: a layer only adds.
    pub(crate) fn and(mut self, more: Self) -> Self {
        self.deny.extend(more.deny);
        self.ask.extend(more.ask);
        self.allow.extend(more.allow);
        self
    }
}
