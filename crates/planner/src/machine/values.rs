//! Values of the plan: results under their names, and arguments with values in place of references.

use archon_types::{CallId, ForEach, Json, Task, ToolDefinition};

use super::{NodeState, PlanMachine, PlanNode};
use crate::{
    arguments,
    condition::{Condition, FAILED},
    references::{Unresolved, resolve, value_of_result},
};

impl PlanMachine {
    /// Returns the current task: its subtasks with states and results, and all known values.
    pub fn task(&self) -> Task {
        let mut task = self.task.clone();
        task.subtasks = self.nodes.live().map(PlanNode::as_subtask).collect();
        for node in self.nodes.live() {
            if let Some(value) = value(node) {
                if let Some(name) = &node.subtask.rules.save_as
                    && (!value.is_null() || !task.context.contains_key(name))
                {
                    task.context.insert(name.clone(), value.clone());
                }
                task.context.insert(node.subtask.id.to_string(), value);
            }
        }
        task
    }

    /// Returns the value with this name: a subtask's result by id, an initial value, or a result by its
    /// `save_as` name.
    pub fn value(&self, name: &str) -> Option<Json> {
        if let Some(node) = self.nodes.of_id(name) {
            return value(node);
        }
        if let Some(known) = self.task.context.get(name) {
            return Some(known.clone());
        }
        let named = self.nodes.live().filter(|n| n.subtask.rules.save_as.as_deref() == Some(name));
        // The first value that is not null, otherwise null.
        named.filter_map(value).min_by_key(Json::is_null)
    }

    /// Returns the value with this name, like [`value`](Self::value). For `<step> failed`, returns
    /// whether the step failed and the plan continues without it.
    fn fact(&self, name: &str) -> Option<Json> {
        let Some(step) = name.strip_suffix(FAILED) else { return self.value(name) };
        let named = |n: &&PlanNode| n.subtask.rules.save_as.as_deref() == Some(step);
        let node = self.nodes.of_id(step).or_else(|| self.nodes.live().find(named))?;
        node.lets_go().then(|| (node.state == NodeState::DoneWithout).into())
    }

    /// Returns the arguments of a call with values in place of references; `None` if the plan sets no
    /// arguments for the call. Missing arguments are taken from the initial values.
    ///
    /// # Errors
    /// A reference in the arguments or in the condition of the subtask has no value.
    pub fn arguments(&self, call: CallId, tool: Option<&ToolDefinition>) -> Result<Option<Json>, Unresolved> {
        let Some(node) = self.nodes.of_call(call) else { return Ok(None) };
        self.condition_of(node)?;
        let Some(planned) = node.subtask.tool_args() else { return Ok(None) };
        let resolved = resolve(planned, &|name| self.value(name))?;
        Ok(Some(arguments::fitted(tool, resolved, &self.task.context)))
    }

    /// Returns the current list of a loop.
    ///
    /// # Errors
    /// A reference in the list has no value.
    pub fn list_of(&self, each: &ForEach) -> Result<Json, Unresolved> {
        resolve(&each.list, &|name| self.value(name))
    }

    pub(super) fn condition_of(&self, node: &PlanNode) -> Result<bool, Unresolved> {
        let Some(condition) = &node.subtask.rules.when else { return Ok(true) };
        match Condition::parse(condition) {
            Ok(condition) => condition.holds(&|name| self.fact(name)),
            // The check refuses a plan with such a condition. If the check was skipped, the subtask does
            // not start.
            Err(problem) => Err(Unresolved::Unknown { reference: format!("{condition:?} ({problem})") }),
        }
    }
}

/// Returns the value of a subtask for other subtasks: its result, or null if the subtask was skipped or the
/// plan continues without it; `None` in all other states.
fn value(node: &PlanNode) -> Option<Json> {
    match node.state {
        NodeState::Done => node.result.as_deref().map(value_of_result),
        NodeState::Skipped | NodeState::DoneWithout => Some(Json::Null),
        _ => None,
    }
}
