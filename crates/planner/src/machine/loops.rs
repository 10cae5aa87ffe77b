//! Loops over a list that is known only when the loop starts: the loop's subtasks are added to the plan,
//! and the loop waits for them.

use archon_types::{CallId, Json, SubTask, SubTaskId, Timestamp, ToolResult};

use super::PlanMachine;

impl PlanMachine {
    pub(super) fn unfolded(&mut self, call: CallId, subtasks: &[SubTask], results: &[Vec<SubTaskId>]) {
        let Some(index) = self.nodes.ready_call(call) else { return };
        let node = self.nodes.get_mut(index);
        if node.subtask.rules.each.is_none() || node.items.is_some() {
            return;
        }
        node.items = Some(results.to_vec());
        let after = node.subtask.dependencies().iter().chain(subtasks.iter().map(|subtask| &subtask.id));
        *node.subtask = SubTask::clone(&node.subtask).after(after.cloned());
        self.add(subtasks);
        if let Err(problem) = self.nodes.rebuild() {
            self.break_off("the loop over a list cannot be executed", &problem);
        }
    }

    /// Joins the results of a loop's items to a list, which is the result of the loop.
    pub(super) fn join(&mut self, call: CallId, at: Timestamp) {
        let Some(index) = self.nodes.ready_call(call) else { return };
        let Some(items) = self.nodes.get(index).items.clone() else { return };
        let result = |item: &Vec<SubTaskId>| {
            let mut values = item.iter().filter_map(|id| self.value(id.as_str()));
            values.find(|value| !value.is_null()).unwrap_or(Json::Null)
        };
        let list: Vec<Json> = items.iter().map(result).collect();
        self.done(index, ToolResult::success(Json::Array(list).to_string()), at);
    }
}
