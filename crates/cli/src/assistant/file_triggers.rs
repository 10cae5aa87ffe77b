//! The triggers of agent files: a task for each tenant.

mod ways;

use std::{collections::BTreeMap, num::NonZeroU64, str::FromStr as _};

use archon::{
    orchestrator::{InputField, task_with_fields},
    skills::{AgentFile, AgentFileProblem},
    triggers::{MissedRuns, TaskLimits, Trigger, TriggerAction, TriggerTask},
    types::{AgentId, Json, ToolSpec},
};

use self::ways::{time, trigger};
use super::{
    id_of,
    parts::{self, Part},
};
use crate::config::Money;

const KEYS: &[&str] = &[
    "name",
    "cron",
    "every",
    "at",
    "on",
    "when",
    "zone",
    "if",
    "probe",
    "arguments",
    "instruction",
    "fields",
    "notify",
    "missed",
    "max_runs",
    "max_cost",
    "until",
    "tenants",
];

/// The placeholder for the name of the tenant in a channel's name.
const TENANT: &str = "{tenant}";

/// The defaults and names that triggers use.
pub(super) struct Surroundings {
    /// The time zone of local times for which a file names no zone.
    pub(super) zone: String,
    /// The notification channels by name, each with its tenant; `None` for a channel of all tenants.
    pub(super) channels: BTreeMap<String, Option<String>>,
    /// The tenants of the access tokens of the server.
    pub(super) tenants: Vec<String>,
    pub(super) tools: Vec<ToolSpec>,
}

/// A trigger of an agent file.
pub(super) struct FileTrigger {
    agent: String,
    name: String,
    trigger: Trigger,
    /// The instruction, with the values of the agent's fields.
    task: String,
    /// The notification channels of each tenant that has the task.
    channels: BTreeMap<String, Vec<String>>,
    missed: MissedRuns,
    limits: TaskLimits,
}

/// A probe: the tool that reads the data for the condition of a trigger.
pub(super) struct NamedProbe<'t> {
    /// The name in the task: `AGENT/TOOL`.
    pub(super) name: &'t str,
    pub(super) tool: &'t str,
    /// The tenants whose tasks use this probe.
    pub(super) tenants: Vec<&'t str>,
}

/// Reads the triggers of a file. Problems that do not leave the file out are added to `warnings`.
///
/// # Errors
/// The first problem that leaves the file out.
pub(super) fn read(
    file: &AgentFile,
    fields: &[InputField],
    around: &Surroundings,
    warnings: &mut Vec<AgentFileProblem>,
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
        let trigger = trigger(file, &item, around)?;
        let tenants = tenants(&item, name, around, warnings)?;
        triggers.push(FileTrigger {
            agent: file.name.clone(),
            name: name.to_owned(),
            missed: missed(&item, &trigger)?,
            limits: limits(&item, &around.zone)?,
            trigger,
            task: task_with_fields(item.obligatory_text("instruction")?, &values),
            channels: channels(&item, name, tenants, around, warnings)?,
        });
    }
    Ok(triggers)
}

/// Returns the tenants that have the task. A name that is no tenant is a warning: its token may follow.
fn tenants(
    item: &Part<'_>,
    trigger: &str,
    around: &Surroundings,
    warnings: &mut Vec<AgentFileProblem>,
) -> Result<Vec<String>, AgentFileProblem> {
    let Some(part) = item.entry("tenants") else { return Ok(around.tenants.clone()) };
    let (tenants, unknown): (Vec<_>, Vec<_>) =
        part.names()?.into_iter().partition(|name| around.tenants.contains(name));
    warnings.extend(unknown.iter().map(|name| {
        let known = around.tenants.join(", ");
        part.warning(format!(
            "`tenants` of the trigger `{trigger}` has `{name}`, and no token under [serve.tokens] has this tenant: add \
             a token, or remove the name; the tenants are: {known}"
        ))
    }));
    Ok(tenants)
}

/// Returns the channels of each tenant: those in `notify` that belong to the tenant or to all tenants.
fn channels(
    item: &Part<'_>,
    trigger: &str,
    tenants: Vec<String>,
    around: &Surroundings,
    warnings: &mut Vec<AgentFileProblem>,
) -> Result<BTreeMap<String, Vec<String>>, AgentFileProblem> {
    let Some(part) = item.entry("notify") else {
        return Ok(tenants.into_iter().map(|tenant| (tenant, Vec::new())).collect());
    };
    let names = part.names()?;
    let is_known = |name: &String| name.contains(TENANT) || around.channels.contains_key(name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        let known = around.channels.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(
            part.wrong(format!("there is no notification channel `{name}`; the channels are: {known}"))
        );
    }
    let mut channels = BTreeMap::new();
    for tenant in tenants {
        let named: Vec<String> = names.iter().map(|name| name.replace(TENANT, &tenant)).collect();
        let is_of = |owner: &Option<String>| owner.as_ref().is_none_or(|owner| *owner == tenant);
        let own = named.iter().filter(|name| around.channels.get(*name).is_some_and(is_of));
        let own: Vec<String> = own.cloned().collect();
        if own.is_empty() {
            let advice = match names.iter().position(|name| name.contains(TENANT)).map(|at| &named[at]) {
                Some(name) => format!("set [channels.{name}] with `tenant = \"{tenant}\"`"),
                None => {
                    format!("name a channel with `tenant = \"{tenant}\"`, too, or one with `tenant = \"*\"`")
                }
            };
            warnings.push(part.warning(format!(
                "`notify` of the trigger `{trigger}` names no channel of the tenant `{tenant}`, whose task notifies \
                 nobody: {advice}"
            )));
        }
        channels.insert(tenant, own);
    }
    Ok(channels)
}

/// Returns the rule for times that passed while no run could start.
fn missed(item: &Part<'_>, trigger: &Trigger) -> Result<MissedRuns, AgentFileProblem> {
    let Some(part) = item.entry("missed") else { return Ok(MissedRuns::default()) };
    if !matches!(trigger, Trigger::Schedule(_)) {
        return Err(part.wrong("`missed` is for `cron`, `every` and `at`: no other trigger has times"));
    }
    match part.text()? {
        "skip" => Ok(MissedRuns::Skip),
        "once" => Ok(MissedRuns::Once),
        "all" => Ok(MissedRuns::All),
        other => {
            Err(part.wrong(format!("`missed` must be skip, once or all, and `{other}` is none of them")))
        }
    }
}

/// Returns the limits of the task.
fn limits(item: &Part<'_>, zone: &str) -> Result<TaskLimits, AgentFileProblem> {
    let mut limits = TaskLimits::default();
    if let Some(part) = item.entry("max_runs") {
        let text = part.text()?;
        let wrong = || part.wrong(format!("`max_runs` must be a whole number from 1, and `{text}` is none"));
        limits.runs = Some(text.parse::<NonZeroU64>().map_err(|_| wrong())?.get());
    }
    if let Some(part) = item.entry("max_cost") {
        let text = part.text()?;
        let money = Money::from_str(text)
            .map_err(|problem| part.wrong(format!("`max_cost` is `{text}`: {problem}")))?;
        limits.cost_micros = Some(money.0);
    }
    if let Some(part) = item.entry("until") {
        limits.until = Some(time(&part, item.entry_text("zone")?.unwrap_or(zone))?);
    }
    Ok(limits)
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

impl FileTrigger {
    /// Returns the task of each tenant that has it.
    pub(super) fn tasks(&self) -> impl Iterator<Item = TriggerTask> + '_ {
        self.channels.iter().map(|(tenant, channels)| {
            let id = format!("{}--{}--{tenant}", self.agent, self.name);
            let agent = Some(AgentId::new(id_of(&self.agent)));
            let action = TriggerAction::Agent { agent, instruction: self.task.clone() };
            let task = TriggerTask::new(id.as_str(), self.trigger.clone(), "").action(action);
            let task = task.tenant(tenant.as_str()).missed(self.missed).limits(self.limits.clone());
            channels.iter().fold(task, TriggerTask::notify)
        })
    }

    /// Returns the probe of the trigger's condition; `None` for a trigger without a condition.
    pub(super) fn probe(&self) -> Option<NamedProbe<'_>> {
        let Trigger::Condition(condition) = &self.trigger else { return None };
        let (_, tool) = condition.probe.split_once('/')?;
        let tenants = self.channels.keys().map(String::as_str).collect();
        Some(NamedProbe { name: &condition.probe, tool, tenants })
    }
}
