//! The mode of a session: which calls of its runs need a person.

use serde::{Deserialize, Serialize};

/// The name of the tool with which a model ends its work in the mode [`SessionMode::Plan`]. A person decides
/// about the plan in its arguments.
pub const PLAN_TOOL: &str = "finish_plan";

/// The mode of a session. A person changes it; it applies to all runs of the session from then on, and to
/// their child runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionMode {
    /// People are asked as the tools, the settings and the permission rules want it.
    #[default]
    Ask,
    /// The same, but tools that change files of the workspace need no question, unless a permission rule or a
    /// warning about the change asks for one.
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
