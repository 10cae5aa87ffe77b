//! Builds the agent that follows plans, and asks its questions.

use std::sync::Arc;

use archon::{
    Archon, Planning,
    planner::{fold, open_questions},
    types::{Answer, Approver, Confirm, Decision, Json, Record, SubTask},
};
use serde_json::Map;

use crate::{
    app::App,
    ask::{Asking, Prompt},
    confirm,
    failure::Failure,
    toolset,
};

/// Builds the agent that makes plans with the model of `archon` and follows them; the same model writes the
/// answer.
pub(crate) fn planning(archon: &Archon, confirm: Confirm) -> Planning {
    planning_by(archon, confirm, Map::new(), None)
}

/// Does the same as [`planning`], with values that each run has at its start, and with an optional fixed plan. With a
/// fixed plan, no model makes a plan.
pub(crate) fn planning_by(
    archon: &Archon,
    confirm: Confirm,
    values: Map<String, Json>,
    plan: Option<Vec<SubTask>>,
) -> Planning {
    let mut options = archon.planning_options();
    (options.settings.confirm, options.values, options.plan) = (confirm, values, plan);
    options.missing_tools = toolset::missing();
    let conclusion = Arc::new(archon.conclusion());
    archon.planning_with(Arc::new(archon.planner()), options).with(|agent| agent.with_conclusion(conclusion))
}

/// Asks the person at the terminal the first open question of a plan's run; `None` if no person can be
/// asked.
pub(crate) async fn ask_about_plan(app: &App, records: &[Arc<Record>]) -> Result<Option<Answer>, Failure> {
    let Some(machine) = fold(records) else { return Ok(None) };
    let Some((call, request)) = open_questions(records).first().copied() else { return Ok(None) };
    // Questions about tool calls, of this run or of child runs, are asked as in any other run.
    let is_of_call = machine.takes_reply(call);
    if (is_of_call || !request.call_path.is_empty()) && Asking::of(app) == Asking::Here {
        return Ok(match Prompt::of(app).decide(request).await {
            Decision::Now(answer) => Some(answer),
            _ => None,
        });
    }
    confirm::ask(app, &machine, call, request).await
}
