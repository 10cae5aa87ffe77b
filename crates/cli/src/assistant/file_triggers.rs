//! The triggers of agent files, and the tasks of tenants that they stand for.

use std::{collections::BTreeMap, str::FromStr as _, time::Duration};

use archon::{
    orchestrator::{InputField, task_with_fields},
    skills::{AgentFile, AgentFileProblem},
    triggers::{
        EventFilter, Expression, Schedule, Trigger, TriggerAction, TriggerEngine, TriggerError, TriggerTask,
    },
    types::{AgentId, Json, TaskId, Timestamp},
};

use super::{
    id_of,
    parts::{self, Part},
};
use crate::{app::App, config::Span, failure::Failure, text::visible_line};

const KEYS: &[&str] =
    &["name", "cron", "every", "at", "on", "zone", "if", "instruction", "fields", "notify", "tenants"];

/// The defaults and names that triggers use.
pub(super) struct Surroundings {
    /// The time zone of cron patterns that name none.
    pub(super) zone: String,
    /// The names of the notification channels.
    pub(super) channels: Vec<String>,
}

/// A trigger of an agent file.
pub(super) struct FileTrigger {
    agent: String,
    name: String,
    trigger: Trigger,
    /// The instruction, with the values of the agent's fields.
    task: String,
    notify: Vec<String>,
    /// The tenants that have the task; `None` for all.
    tenants: Option<Vec<String>>,
}

/// Reads the triggers of a file.
pub(super) fn read(
    file: &AgentFile,
    fields: &[InputField],
    around: &Surroundings,
) -> Result<Vec<FileTrigger>, AgentFileProblem> {
    let Some(part) = parts::field(file, "triggers") else { return Ok(Vec::new()) };
    let mut triggers: Vec<FileTrigger> = Vec::new();
    for item in part.items(KEYS)? {
        let name = item.obligatory_text("name")?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !name.chars().all(is_plain) || name.contains("--") {
            return Err(item.wrong(format!(
                "the trigger cannot have the name `{name}`: use letters, digits, `_` and `-`"
            )));
        }
        if triggers.iter().any(|other| other.name == name) {
            return Err(item.wrong(format!("there are two triggers `{name}`")));
        }
        let values = values(&item, fields)?;
        triggers.push(FileTrigger {
            agent: file.name.clone(),
            name: name.to_owned(),
            trigger: trigger(&item, &around.zone)?,
            task: task_with_fields(item.obligatory_text("instruction")?, &values),
            notify: notify(&item, around)?,
            tenants: names(&item, "tenants")?,
        });
    }
    Ok(triggers)
}

fn names(item: &Part<'_>, key: &str) -> Result<Option<Vec<String>>, AgentFileProblem> {
    item.entry(key).map(|part| part.names()).transpose()
}

fn notify(item: &Part<'_>, around: &Surroundings) -> Result<Vec<String>, AgentFileProblem> {
    let Some(part) = item.entry("notify") else { return Ok(Vec::new()) };
    let names = part.names()?;
    match names.iter().find(|name| !around.channels.contains(name)) {
        Some(name) => {
            let known = around.channels.join(", ");
            Err(part.wrong(format!("there is no notification channel `{name}`; the channels are: {known}")))
        }
        None => Ok(names),
    }
}

/// Returns the values of the fields. Nobody is asked when the task starts, so required values must be there.
fn values(item: &Part<'_>, fields: &[InputField]) -> Result<serde_json::Map<String, Json>, AgentFileProblem> {
    let given = item.entry("fields").map(|part| part.entries()).transpose()?.unwrap_or_default();
    let mut values = serde_json::Map::new();
    for (name, part) in &given {
        let Some(field) = fields.iter().find(|field| field.name == *name) else {
            return Err(part.wrong(format!("the agent has no field `{name}`")));
        };
        let value = field.read(part.text()?).map_err(|problem| part.wrong(problem))?;
        values.insert((*name).to_owned(), value);
    }
    for field in fields.iter().filter(|field| !given.iter().any(|(name, _)| field.name == *name)) {
        match &field.default {
            Some(default) => drop(values.insert(field.name.clone(), default.clone())),
            None if field.required => {
                return Err(
                    item.wrong(format!("the trigger gives no value for the required field `{}`", field.name))
                );
            }
            None => {}
        }
    }
    Ok(values)
}

fn trigger(item: &Part<'_>, zone: &str) -> Result<Trigger, AgentFileProblem> {
    let only = |key: &str, with: &str| match item.entry(key) {
        Some(part) if item.entry(with).is_none() => Err(part.wrong(format!("`{key}` is for `{with}`"))),
        _ => Ok(()),
    };
    only("zone", "cron")?;
    only("if", "on")?;
    let ways: Vec<_> =
        ["cron", "every", "at", "on"].iter().filter_map(|key| Some((*key, item.entry(key)?))).collect();
    let [(way, part)] = &ways[..] else {
        return Err(item.wrong("a trigger needs one of `cron`, `every`, `at` and `on`"));
    };
    let text = part.text()?;
    let schedule = match *way {
        "cron" => Schedule::cron(text, item.entry_text("zone")?.unwrap_or(zone)),
        "every" => {
            let span = Span::from_str(text).map_err(|problem| part.wrong(problem))?;
            // From a fixed time, so that the task is the same at each start of the command.
            Schedule::every(Duration::from_millis(span.0), Timestamp::default())
        }
        "at" => {
            let at = text.parse::<Timestamp>();
            Ok(Schedule::Once(
                at.map_err(|_| part.wrong(format!("`{text}` is no moment such as 2026-03-01T08:00:00Z")))?,
            ))
        }
        _ => return event(item, text),
    };
    schedule.map(Trigger::from).map_err(|error| part.wrong(error.to_string()))
}

fn event(item: &Part<'_>, pattern: &str) -> Result<Trigger, AgentFileProblem> {
    let filter = EventFilter::new(pattern);
    let Some(part) = item.entry("if") else { return Ok(filter.into()) };
    let condition = Expression::new(part.text()?).map_err(|error| part.wrong(error.to_string()))?;
    Ok(filter.condition(condition).into())
}

impl FileTrigger {
    /// Returns the task of a tenant; `None` if the tenant does not have it.
    fn task_of(&self, tenant: &str) -> Option<TriggerTask> {
        let is_meant = self.tenants.as_ref().is_none_or(|tenants| tenants.iter().any(|name| name == tenant));
        is_meant.then(|| {
            let id = format!("{}--{}--{tenant}", self.agent, self.name);
            let agent = Some(AgentId::new(id_of(&self.agent)));
            let action = TriggerAction::Agent { agent, instruction: self.task.clone() };
            let mut task =
                TriggerTask::new(id.as_str(), self.trigger.clone(), "").action(action).tenant(tenant);
            task.notify.clone_from(&self.notify);
            task
        })
    }
}

/// Makes the stored tasks of files equal to the triggers: creates, replaces and deletes tasks. A task that did not
/// change keeps its state, also if a person paused it. A task that cannot be created is left out, with a warning. Tasks
/// are deleted only if all triggers of their agent are known (`is_known`), so a mistake in a file does not lose their history.
///
/// # Errors
/// [`Failure`] if the tasks cannot be read or stored.
pub(super) async fn settle<'t>(
    app: &App,
    engine: &TriggerEngine,
    triggers: impl Iterator<Item = &'t FileTrigger> + Clone,
    tenants: impl Iterator<Item = &'t str>,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    let tasks =
        tenants.flat_map(|tenant| triggers.clone().filter_map(move |trigger| trigger.task_of(tenant)));
    let mut wanted: BTreeMap<TaskId, TriggerTask> = tasks.map(|task| (task.id.clone(), task)).collect();
    for listed in engine.list_tasks(None).await? {
        match wanted.get(&listed.task.id) {
            Some(task) if is_same(task, &listed.task) => drop(wanted.remove(&listed.task.id)),
            Some(_) => engine.delete_task(&listed.task.id).await?,
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
