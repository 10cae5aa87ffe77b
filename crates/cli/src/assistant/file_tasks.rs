//! The tasks that stand for the triggers of agent files.

use std::collections::BTreeMap;

use archon::{
    triggers::{TriggerAction, TriggerEngine, TriggerError, TriggerTask},
    types::TaskId,
};

use super::{file_triggers::FileTrigger, id_of};
use crate::{app::App, failure::Failure, text::visible_line};

/// Makes the stored tasks of agent files equal to the triggers in the files: creates, replaces and deletes tasks. A
/// task that did not change keeps its state, also if a person paused it. A task that cannot be created is left out,
/// with a warning. Tasks are deleted only if all triggers of their agent are known (`is_known`), so that a mistake in a
/// file does not lose their history.
///
/// # Errors
/// [`Failure`] if the tasks cannot be read or stored.
pub(super) async fn settle<'t>(
    app: &App,
    engine: &TriggerEngine,
    triggers: impl Iterator<Item = &'t FileTrigger>,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    let tasks = triggers.flat_map(FileTrigger::tasks);
    let mut wanted: BTreeMap<TaskId, TriggerTask> = tasks.map(|task| (task.id.clone(), task)).collect();
    for listed in engine.list_tasks(None).await? {
        match wanted.get_mut(&listed.task.id) {
            Some(task) if is_same(task, &listed.task) => drop(wanted.remove(&listed.task.id)),
            Some(task) => {
                // A person paused it, and the change may be one of the settings.
                (task.paused, task.resumed_at) = (listed.task.paused, listed.task.resumed_at);
                engine.delete_task(&listed.task.id).await?;
            }
            None if agent_of(&listed.task).is_some_and(&is_known) => {
                engine.delete_task(&listed.task.id).await?
            }
            None => {}
        }
    }
    for (id, task) in wanted {
        match engine.create_task(task).await {
            Ok(()) => {}
            Err(error @ TriggerError::Store(_)) => return Err(error.into()),
            Err(error) => app.output.warn(visible_line(&format!("the task {id} is left out: {error}"))),
        }
    }
    Ok(())
}

/// Returns true if a stored task has this definition.
fn is_same(task: &TriggerTask, stored: &TriggerTask) -> bool {
    let mut expected = task.clone();
    (expected.created_at, expected.paused, expected.resumed_at) =
        (stored.created_at, stored.paused, stored.resumed_at);
    expected == *stored
}

/// Returns the agent of a task with an id that a file gives; `None` for other tasks.
fn agent_of(task: &TriggerTask) -> Option<&str> {
    let TriggerAction::Agent { agent: Some(agent), .. } = &task.action else { return None };
    let (name, _) = task.id.as_str().split_once("--")?;
    let is_of_file =
        id_of(name) == agent.as_str() && task.id.as_str().ends_with(&format!("--{}", task.tenant));
    is_of_file.then_some(name)
}
