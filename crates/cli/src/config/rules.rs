//! Permission rules in settings.

use schemars::JsonSchema;
use serde::Deserialize;

/// `[permissions]` of a settings file: rules such as `bash(git status:*)`, `write_file(src/**)` or
/// `mcp__github__*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PermissionRules {
    /// Rules of calls that are never allowed.
    pub(crate) deny: Vec<String>,
    /// Rules of calls that need an approval each time.
    pub(crate) ask: Vec<String>,
    /// Rules of calls that are allowed without a question. Not in a project's settings.
    pub(crate) allow: Vec<String>,
}

impl PermissionRules {
    /// Adds the rules of another layer; a layer cannot remove rules.
    pub(crate) fn and(mut self, more: Self) -> Self {
        self.deny.extend(more.deny);
        self.ask.extend(more.ask);
        self.allow.extend(more.allow);
        self
    }
}
