//! Options of the tool engine: limits for calls, permissions, and the form of results.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use archon_types::OutputLevel;

use crate::{Permissions, ToolRetryPolicy};

/// Options of a [`ToolEngine`](crate::ToolEngine).
///
/// ```
/// use std::time::Duration;
///
/// use archon_tools::{Ask, CallRate, EngineOptions, ErrorStyle, Permissions, ToolRetryPolicy};
/// use archon_types::OutputLevel;
///
/// let options = EngineOptions::for_agent_tools()
///     .with_timeout(Duration::from_secs(60))
///     .with_max_arguments(1 << 20, 32) // bytes, levels
///     .with_permissions(Permissions::parse(["bash"], [], ["read_file"])?)
///     .asking(Ask::BeforeChanges)
///     .granting(["fs_read", "fs_write"])
///     .with_level("reviewer", ["fs_read"])
///     .limiting("web_search", CallRate::per_minute(10))
///     .with_output_level(OutputLevel::Brief)
///     .with_error_text(ErrorStyle::Standard)
///     .with_storage_dir("data")
///     .stripping_tags(["system-reminder"])
///     .correcting(["replace_all"])
///     .with_retry(ToolRetryPolicy::never())
///     .without_plan_mode();
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Time limit of a call whose tool sets none. Default 30 s.
    pub timeout: Duration,
    /// Maximum size of the arguments of a call, in bytes of JSON. Default 10 MB.
    pub max_argument_bytes: usize,
    /// Maximum number of objects and lists that are nested in each other in arguments. Default 128, the limit
    /// of the JSON parser.
    pub max_argument_depth: usize,
    /// The granted permissions, for instance `fs_write`; see
    /// [`ToolAnnotations::permissions`](archon_types::ToolAnnotations::permissions). Default none: tools
    /// that need a permission are refused.
    pub grants: BTreeSet<String>,
    /// The permissions of each [permission level](archon_types::ToolInvocationRequest::permission_level). A level has
    /// only those of its permissions that are also in [`grants`](Self::grants). If the level `default` is not listed,
    /// it has all `grants`; any other level that is not listed has none.
    pub levels: BTreeMap<String, BTreeSet<String>>,
    /// Rules that allow, ask about or deny calls. Default none.
    pub permissions: Permissions,
    /// Decides which calls need a person's approval if no rule matches. Default [`Ask::BeforeDestruction`]:
    /// calls of tools that require approval or may do irreversible damage.
    pub ask: Ask,
    /// True if calls that may change something are refused in plan mode, the session mode in which a model only plans.
    /// Default true. Set it to false only for an agent whose calls a person chose, such as lines of a shell; then
    /// permission rules and the sandbox still apply.
    pub has_plan_mode: bool,
    /// Retries of failed calls outside of a run ([`ToolEngine::invoke`](crate::ToolEngine::invoke)). Within a
    /// run the agent loop decides about retries.
    pub retry: ToolRetryPolicy,
    /// Level of detail of results, if neither the caller nor the tool sets one. Default none: results stay as
    /// the tool wrote them.
    pub output_level: Option<OutputLevel>,
    /// Form of the error texts that the model reads. Default [`ErrorStyle::Short`].
    pub error_text: ErrorStyle,
    /// Folder for large results: each is stored as a file in the subfolder `tool_data`, and the model reads
    /// the file's path and a summary. Default none: results are not stored.
    pub storage_dir: Option<PathBuf>,
    /// Rate limits by tool name. Default none. Calls beyond the limit wait in order of arrival; the wait does not count
    /// against the time limit of a call.
    pub rates: BTreeMap<String, CallRate>,
    /// The [kinds](archon_types::Correction::kind) of corrections that a tool may make, once for each call, in
    /// arguments that it refused. A note tells the model of the change. The built-in tools have two kinds:
    /// `empty_content` of `write_file` creates an empty file if the call has no content, and `replace_all` of
    /// `edit_file` replaces a text that occurs several times. Default: only `empty_content`.
    pub corrections: BTreeSet<String>,
    /// Names of tags: everything between `<NAME>` and `</NAME>` is removed from results, because such tags can pass for
    /// instructions. In tags with these names that remain, the `<` is replaced. Default `tool_response`,
    /// `search_reminders` and `automated_reminder_from_anthropic`. Tokens of chat templates, such as `<|im_start|>` and
    /// `[INST]`, always get a space after their first character, and a note tells the model.
    pub stripped_tags: Vec<String>,
}

/// A rate limit: up to `calls` calls can be made at once; after that, `calls` further calls in each `period`, evenly
/// spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallRate {
    /// Number of calls; 0 counts as 1.
    pub calls: u32,
    /// Time in which `calls` further calls become possible.
    pub period: Duration,
}

impl CallRate {
    /// Allows `calls` calls in each minute. 0 counts as 1.
    pub fn per_minute(calls: u32) -> Self {
        Self { calls, period: Duration::from_secs(60) }
    }

    /// Allows `calls` calls in each `period`. 0 counts as 1.
    pub fn new(calls: u32, period: Duration) -> Self {
        Self { calls, period }
    }
}

/// Decides which calls need a person's approval if no permission rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ask {
    /// Only calls of tools that require approval for each call.
    WhereRequired,
    /// Calls of tools that may do irreversible damage, and calls of tools that require approval.
    #[default]
    BeforeDestruction,
    /// All calls that may change something, and calls of tools that require approval.
    BeforeChanges,
}

/// The form of the error texts that the model reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorStyle {
    /// One line: `Error: …`.
    #[default]
    Short,
    /// `Operation failed.`, then lines with the error's type, code and message, and the call's id.
    Standard,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_argument_bytes: 10_000_000,
            max_argument_depth: 128,
            grants: BTreeSet::new(),
            levels: BTreeMap::new(),
            permissions: Permissions::default(),
            ask: Ask::default(),
            has_plan_mode: true,
            retry: ToolRetryPolicy::default(),
            output_level: None,
            error_text: ErrorStyle::default(),
            storage_dir: None,
            rates: BTreeMap::new(),
            corrections: BTreeSet::from(["empty_content".to_owned()]),
            stripped_tags: ["tool_response", "search_reminders", "automated_reminder_from_anthropic"]
                .map(str::to_owned)
                .into(),
        }
    }
}

impl EngineOptions {
    /// Returns the default options, but with a time limit of 120 s for calls whose tool sets none: for tools that are
    /// agents or run commands.
    pub fn for_agent_tools() -> Self {
        Self { timeout: Duration::from_secs(120), ..Self::default() }
    }

    /// Sets the maximum size of arguments in bytes of JSON, and the maximum number of nested levels. Default
    /// 10 MB and 128 levels.
    pub fn with_max_arguments(mut self, bytes: usize, levels: usize) -> Self {
        (self.max_argument_bytes, self.max_argument_depth) = (bytes, levels);
        self
    }

    /// Sets the retries of failed calls outside of a run. Default: at most 2 retries.
    pub fn with_retry(mut self, policy: ToolRetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets the level of detail of results, if neither the caller nor the tool sets one.
    pub fn with_output_level(mut self, level: OutputLevel) -> Self {
        self.output_level = Some(level);
        self
    }

    /// Sets the form of the error texts that the model reads. Default [`ErrorStyle::Short`].
    pub fn with_error_text(mut self, text: ErrorStyle) -> Self {
        self.error_text = text;
        self
    }

    /// Sets the folder in which large results are stored. Default none: results are not stored.
    pub fn with_storage_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.storage_dir = Some(folder.into());
        self
    }

    /// Sets the names of tags that are removed from results with their content, in place of the default names.
    pub fn stripping_tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.stripped_tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets which calls need approval if no permission rule matches. Default [`Ask::BeforeDestruction`].
    pub fn asking(mut self, ask: Ask) -> Self {
        self.ask = ask;
        self
    }

    /// Sets the rules that allow, ask about or deny calls. Default: no rules.
    pub fn with_permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Lets calls that may change something run in plan mode, because a person chose them.
    pub fn without_plan_mode(mut self) -> Self {
        self.has_plan_mode = false;
        self
    }

    /// Sets the time limit of calls whose tool sets none. Default 30 s.
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Limits the rate of calls of the tool with this name. Calls beyond the limit wait.
    pub fn limiting(mut self, tool: impl Into<String>, rate: CallRate) -> Self {
        self.rates.insert(tool.into(), rate);
        self
    }

    /// Adds kinds of [corrections](Self::corrections) that tools may make in refused arguments.
    pub fn correcting<T: Into<String>>(mut self, kinds: impl IntoIterator<Item = T>) -> Self {
        self.corrections.extend(kinds.into_iter().map(Into::into));
        self
    }

    /// Sets the permissions of a [level](Self::levels). The level has only those permissions that are also
    /// [granted](Self::granting).
    pub fn with_level<T: Into<String>>(
        mut self,
        level: impl Into<String>,
        permissions: impl IntoIterator<Item = T>,
    ) -> Self {
        self.levels.insert(level.into(), permissions.into_iter().map(Into::into).collect());
        self
    }

    /// Returns whether a caller of this level has a permission; `None` is the level `default`.
    pub(crate) fn has(&self, permission: &str, level: Option<&str>) -> bool {
        let of_level = match level {
            None | Some("default") => self.levels.get("default").is_none_or(|own| own.contains(permission)),
            Some(level) => self.levels.get(level).is_some_and(|own| own.contains(permission)),
        };
        of_level && self.grants.contains(permission)
    }

    /// Grants permissions such as `fs_write`, in addition to those already granted. Default: none are granted.
    pub fn granting<T: Into<String>>(mut self, permissions: impl IntoIterator<Item = T>) -> Self {
        self.grants.extend(permissions.into_iter().map(Into::into));
        self
    }
}
