//! Conditions: data that is looked at again and again, and an expression over it.

use std::collections::BTreeMap;

use archon_types::Json;
use serde::{Deserialize, Serialize};

use crate::expression::Expression;

/// The shortest pause between two looks, in seconds.
const SHORTEST_PAUSE: u64 = 1;

/// A condition: a probe reads data from time to time, and a run starts each time that the expression becomes true. While
/// it stays true, no further run starts.
///
/// ```
/// use archon_triggers::{Expression, TriggerCondition, TriggerTask};
///
/// # fn main() -> Result<(), archon_triggers::ExpressionError> {
/// let falls = TriggerCondition::new("price", Expression::new("data.eur < 100.0")?, 60).argument("share", "ACME");
/// assert_eq!((falls.every, &falls.arguments["share"]), (60, &"ACME".into()));
/// let task = TriggerTask::new("buy", falls, "Tell me whether to buy.");
/// # let _ = task;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TriggerCondition {
    /// The name of the [`Probe`](crate::Probe) of the program that reads the data.
    pub probe: String,
    /// The arguments of the probe.
    #[serde(default)]
    pub arguments: BTreeMap<String, Json>,
    /// The expression. The variable `data` is the result of the probe.
    pub expression: Expression,
    /// The pause between two looks, in seconds; at least 1.
    pub every: u64,
}

impl TriggerCondition {
    /// Creates a condition that is looked at every `every` seconds.
    pub fn new(probe: impl Into<String>, expression: Expression, every: u64) -> Self {
        let every = every.max(SHORTEST_PAUSE);
        Self { probe: probe.into(), arguments: BTreeMap::new(), expression, every }
    }

    /// Adds an argument that the probe gets at each look.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.arguments.insert(name.into(), value.into());
        self
    }
}
