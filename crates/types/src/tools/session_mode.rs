//! The mode of a session: which calls of its runs need a person.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// The name of the tool with which a model ends its work in the mode [`SessionMode::Plan`]. The arguments
/// contain the plan, and a person decides about it.
pub const PLAN_TOOL: &str = "finish_plan";

/// The mode of a session. A person changes it; it applies to all runs of the session from then on, and to
/// their child runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionMode {
    /// A person is asked about a call if its tool, the settings or a permission rule require this.
    #[default]
    Ask,
    /// As [`Ask`](Self::Ask), but tools that change files of the workspace need no question, unless a
    /// permission rule or a warning about the change asks for one, or the file is one of git's own.
    AcceptEdits,
    /// Only tools that change nothing run. The model ends with a plan ([`PLAN_TOOL`]). After a person agreed
    /// to the plan, the mode is [`Ask`](Self::Ask), unless the person set another one.
    Plan,
}

crate::values::named! { SessionMode:
    Ask = "ask",
    AcceptEdits = "accept_edits",
    Plan = "plan",
}

/// The mode of a session while a run works: the run and all runs below it share one value, so that a change reaches
/// each of them before its next call. Clones share the value.
///
/// ```
/// use archon_types::{SessionMode, SharedMode};
///
/// let mode = SharedMode::default();
/// let of_child_run = mode.clone();
/// mode.set(SessionMode::Plan);
/// assert_eq!(of_child_run.get(), SessionMode::Plan);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SharedMode(Arc<Mutex<SessionMode>>);

impl SharedMode {
    /// Creates a mode that is shared only with its later clones.
    pub fn new(mode: SessionMode) -> Self {
        Self(Arc::new(Mutex::new(mode)))
    }

    /// Returns the mode.
    pub fn get(&self) -> SessionMode {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the mode for all runs that share the value.
    pub fn set(&self, mode: SessionMode) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }
}

/// The reason of a change of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModeSource {
    /// A person set the mode.
    Person,
    /// A person agreed to the plan of the model.
    AgreedPlan,
}
