//! What an engine allows a call, and what it makes of a result.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use archon_types::OutputLevel;

use crate::{Permissions, ToolRetryPolicy};

/// What an engine allows a call, and what it makes of a result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Time limit of a call whose tool has none of its own. Default 30 s.
    pub timeout: Duration,
    /// Largest arguments, in bytes as JSON. Default 10 MB.
    pub max_argument_bytes: usize,
    /// Deepest nesting of arguments, in levels. Default 128, which is what the JSON parser allows.
    pub max_argument_depth: usize,
    /// The permissions that tools have, for instance `fs_write`; see
    /// [`ToolAnnotations::permissions`](archon_types::ToolAnnotations::permissions). Default none: tools that
    /// need one are refused.
    pub grants: BTreeSet<String>,
    /// What callers of each [permission level](archon_types::ToolInvocationRequest::permission_level) have of the
    /// [`grants`](Self::grants). The level `default` has all of them, and a level that is not here has none.
    pub levels: BTreeMap<String, BTreeSet<String>>,
    /// What is allowed, asked about or denied by rule. Default no rules.
    pub permissions: Permissions,
    /// Which calls a person is asked about that no rule speaks of. Default those of tools that require it, and of
    /// those that may destroy what cannot be brought back.
    pub ask: Ask,
    /// What is tried again of calls outside a run ([`ToolEngine::invoke`](crate::ToolEngine::invoke)); in a run the
    /// loop decides.
    pub retry: ToolRetryPolicy,
    /// How much detail results have whose caller and tool do not say. Default none: as the tool wrote them.
    pub output_level: Option<OutputLevel>,
    /// How failures are told to the model.
    pub error_text: ErrorText,
    /// Where large results are kept, in its subfolder `tool_data`. Default none: they are kept nowhere.
    pub storage_dir: Option<PathBuf>,
    /// How often the tools of these names may be called. Default none: as often as anybody likes. Calls beyond
    /// that wait in the order in which they came; the wait does not count against their time limit.
    pub rates: BTreeMap<String, CallRate>,
    /// Which arguments that were refused a tool may set right itself, once for each call, by the
    /// [kind](archon_types::Correction::kind) of correction. Of the tools here `write_file` knows `empty_content` (no
    /// content for a file that is not there), which is the default, and `edit_file` knows `replace_all` (a text that
    /// stands in several places). The model reads what was changed.
    pub corrections: BTreeSet<String>,
    /// Elements that are taken out of results, with what is in them. Where one of them could still be read, and for words
    /// that chat templates mark turns with (`<|im_start|>`, `</function_results>`, `[INST]` and others), a space is put
    /// behind the first character, `< |im_start|>`, and the model is told so.
    pub stripped_tags: Vec<String>,
}

/// So many calls at once, and no more than that in each period thereafter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallRate {
    /// Calls; 0 counts as 1.
    pub calls: u32,
    /// How long that many calls take to be allowed again.
    pub period: Duration,
}

impl CallRate {
    /// So many calls in a minute.
    pub fn per_minute(calls: u32) -> Self {
        Self { calls, period: Duration::from_secs(60) }
    }

    /// So many calls in each `period`.
    pub fn new(calls: u32, period: Duration) -> Self {
        Self { calls, period }
    }
}

/// Which calls a person is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ask {
    /// Those of tools that require it.
    WhereRequired,
    /// Those too of tools that may destroy what cannot be brought back.
    #[default]
    BeforeDestruction,
    /// Those too that may change something.
    BeforeChanges,
}

/// How failures are told to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorText {
    /// In a line: `Error: …`.
    #[default]
    Short,
    /// With their type, code and call: `Operation failed.` and five lines.
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
            retry: ToolRetryPolicy::default(),
            output_level: None,
            error_text: ErrorText::default(),
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
    /// For tools that are agents or run commands: 120 s.
    pub fn for_agent_tools() -> Self {
        Self { timeout: Duration::from_secs(120), ..Self::default() }
    }

    /// The same options with other limits of arguments: bytes as JSON, and levels of nesting.
    pub fn with_max_arguments(mut self, bytes: usize, levels: usize) -> Self {
        (self.max_argument_bytes, self.max_argument_depth) = (bytes, levels);
        self
    }

    /// The same options with another policy for calls outside a run.
    pub fn with_retry(mut self, policy: ToolRetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// The same options, with results of this much detail.
    pub fn with_output_level(mut self, level: OutputLevel) -> Self {
        self.output_level = Some(level);
        self
    }

    /// The same options, which tell the model of failures so.
    pub fn with_error_text(mut self, text: ErrorText) -> Self {
        self.error_text = text;
        self
    }

    /// The same options with a folder for large data.
    pub fn with_storage_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.storage_dir = Some(folder.into());
        self
    }

    /// The same options, which take these tags out of results.
    pub fn stripping_tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.stripped_tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// The same options under which a person is asked about these calls.
    pub fn asking(mut self, ask: Ask) -> Self {
        self.ask = ask;
        self
    }

    /// The same options with these rules.
    pub fn with_permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// The same options with another time limit of calls whose tools have none of their own.
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// The same options with a limit on how often the tool of this name is called.
    pub fn limiting(mut self, tool: impl Into<String>, rate: CallRate) -> Self {
        self.rates.insert(tool.into(), rate);
        self
    }

    /// The same options with these kinds of correction as well.
    pub fn correcting<T: Into<String>>(mut self, kinds: impl IntoIterator<Item = T>) -> Self {
        self.corrections.extend(kinds.into_iter().map(Into::into));
        self
    }

    /// The same options whose callers of this level have these permissions, as far as they are granted.
    pub fn with_level<T: Into<String>>(
        mut self,
        level: impl Into<String>,
        permissions: impl IntoIterator<Item = T>,
    ) -> Self {
        self.levels.insert(level.into(), permissions.into_iter().map(Into::into).collect());
        self
    }

    /// The permissions that a caller of this level has; without one, of the level `default`.
    pub(crate) fn has(&self, permission: &str, level: Option<&str>) -> bool {
        let of_level = match level {
            None | Some("default") => self.levels.get("default").is_none_or(|own| own.contains(permission)),
            Some(level) => self.levels.get(level).is_some_and(|own| own.contains(permission)),
        };
        of_level && self.grants.contains(permission)
    }

    /// The same options with these permissions as well.
    pub fn granting<T: Into<String>>(mut self, permissions: impl IntoIterator<Item = T>) -> Self {
        self.grants.extend(permissions.into_iter().map(Into::into));
        self
    }
}
