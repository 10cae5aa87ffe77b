//! The points of a run at which hooks are called.

use serde::{Deserialize, Serialize};

/// The hook that stopped a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookPoint {
    /// [`Hooks::before_loop`](crate::Hooks::before_loop).
    BeforeLoop,
    /// [`Hooks::before_turn`](crate::Hooks::before_turn).
    BeforeTurn,
}
