//! The ways in which a trigger of a file starts its task: times, events and conditions.

use std::{str::FromStr as _, time::Duration};

use archon::{
    skills::{AgentFile, AgentFileProblem},
    triggers::{EventFilter, Expression, Schedule, Trigger, TriggerCondition},
    types::{Effect, Json, Timestamp, ToolSpec},
};

use super::{Part, Surroundings};
use crate::{config::Span, tasks};

/// Reads the trigger of an item.
pub(super) fn trigger(
    file: &AgentFile,
    item: &Part<'_>,
    around: &Surroundings,
) -> Result<Trigger, AgentFileProblem> {
    let has = |key: &str| item.entry(key).is_some();
    let of = [
        ("zone", &["cron", "at", "until"][..]),
        ("if", &["on"]),
        ("probe", &["when"]),
        ("arguments", &["when"]),
    ];
    for (key, users) in of {
        if let Some(part) = item.entry(key).filter(|_| !users.iter().any(|user| has(user))) {
            return Err(part.wrong(format!("`{key}` is for `{}`", users.join("`, `"))));
        }
    }
    // The pause between two looks at a condition is no way of its own.
    let ways =
        ["cron", "every", "at", "on", "when"].into_iter().filter(|key| *key != "every" || !has("when"));
    let ways: Vec<_> = ways.filter_map(|key| Some((key, item.entry(key)?))).collect();
    let [(way, part)] = &ways[..] else {
        return Err(item.wrong("a trigger needs one of `cron`, `every`, `at`, `on` and `when`"));
    };
    let text = part.text()?;
    let zone = item.entry_text("zone")?.unwrap_or(&around.zone);
    let schedule = match *way {
        "cron" => Schedule::cron(text, zone),
        // From a fixed time, so that the task is the same at each start of the command.
        "every" => Schedule::every(span(part)?, Timestamp::default()),
        "at" => Ok(Schedule::Once(time(part, zone)?)),
        "on" => return event(item, text),
        _ => return condition(file, item, part, around),
    };
    schedule.map(Trigger::from).map_err(|error| part.wrong(error.to_string()))
}

fn span(part: &Part<'_>) -> Result<Duration, AgentFileProblem> {
    let span = Span::from_str(part.text()?).map_err(|problem| part.wrong(problem))?;
    Ok(Duration::from_millis(span.0))
}

/// Reads a time: with a zone of its own, or in `zone`.
pub(super) fn time(part: &Part<'_>, zone: &str) -> Result<Timestamp, AgentFileProblem> {
    let text = part.text()?;
    tasks::time(text, zone).map_err(|(problem, advice)| part.wrong(format!("`{text}` {problem}: {advice}")))
}

fn event(item: &Part<'_>, pattern: &str) -> Result<Trigger, AgentFileProblem> {
    let filter = EventFilter::new(pattern);
    let Some(part) = item.entry("if") else { return Ok(filter.into()) };
    Ok(filter.condition(expression(&part)?).into())
}

fn expression(part: &Part<'_>) -> Result<Expression, AgentFileProblem> {
    Expression::new(part.text()?).map_err(|error| part.wrong(error.to_string()))
}

fn condition(
    file: &AgentFile,
    item: &Part<'_>,
    when: &Part<'_>,
    around: &Surroundings,
) -> Result<Trigger, AgentFileProblem> {
    let missing = |key: &str, meaning: &str| item.wrong(format!("`when` needs `{key}`: {meaning}"));
    let probe =
        item.entry("probe").ok_or_else(|| missing("probe", "the tool of the agent that reads the data"))?;
    let every =
        item.entry("every").ok_or_else(|| missing("every", "the pause between two looks, as in 10m"))?;
    let seconds = span(&every)?.as_secs();
    if seconds == 0 {
        return Err(every.wrong("`every` must be at least 1s"));
    }
    let tool = tool(file, &probe, around)?;
    let condition = TriggerCondition::new(format!("{}/{}", file.name, tool.name), expression(when)?, seconds);
    let arguments = item.entry("arguments").map(|part| part.entries()).transpose()?.unwrap_or_default();
    let condition = arguments.into_iter().fold(condition, |condition, (name, part)| {
        condition.argument(name, argument(&tool.parameters["properties"][name], part.value()))
    });
    Ok(condition.into())
}

/// Returns the tool that a condition reads. Nobody is asked before a look, so the tool must change nothing.
fn tool<'a>(
    file: &AgentFile,
    probe: &Part<'_>,
    around: &'a Surroundings,
) -> Result<&'a ToolSpec, AgentFileProblem> {
    let name = probe.text()?;
    let is_own = file.tools.is_some() && file.has_tool(name);
    let Some(tool) = around.tools.iter().find(|tool| is_own && tool.name == name) else {
        return Err(probe.wrong(format!("`probe` names `{name}`, which is not among `tools`")));
    };
    match tool.annotations.effect {
        Effect::ReadOnly => Ok(tool),
        _ => Err(probe
            .wrong(format!("`probe` names `{name}`, which changes something: name a tool that only reads"))),
    }
}

/// Returns the value of an argument, whose scalars are texts, as its schema has it.
fn argument(schema: &Json, value: &Json) -> Json {
    match value {
        Json::String(text) if schema["type"] != "string" => {
            serde_json::from_str(text).unwrap_or_else(|_| value.clone())
        }
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn argument_has_the_type_of_its_schema() {
        let of = |kind: Json, value: Json| argument(&json!({ "type": kind }), &value);
        assert_eq!(of(json!("integer"), json!("5")), json!(5));
        assert_eq!(of(json!("string"), json!("5")), json!("5"));
        assert_eq!(of(json!(["boolean", "null"]), json!("true")), json!(true));
        assert_eq!(of(json!("integer"), json!("many")), json!("many"));
        assert_eq!(of(json!("array"), json!(["a"])), json!(["a"]));
    }
}
