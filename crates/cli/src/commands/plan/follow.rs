//! The agent that follows plans, and what it asks.

use std::sync::Arc;

use archon::{
    Archon, Planning,
    planner::{fold, open_questions},
    types::{Answer, Approver, Confirm, Decision, Json, Record, SubTask},
};
use serde_json::Map;

use super::confirm;
use crate::{app::App, ask::Prompt, commands::Asking, failure::Failure};

/// The agent that follows the plans that its own model makes, and whose model puts the answer together.
pub(crate) fn planning(archon: &Archon, confirm: Confirm) -> Planning {
    planning_by(archon, confirm, Map::new(), None)
}

/// The same with what is known at the start, and perhaps with a plan that nobody is asked for.
pub(super) fn planning_by(
    archon: &Archon,
    confirm: Confirm,
    values: Map<String, Json>,
    plan: Option<Vec<SubTask>>,
) -> Planning {
    let mut options = archon.planning_options();
    (options.settings.confirm, options.values, options.plan) = (confirm, values, plan);
    let conclusion = Arc::new(archon.conclusion());
    archon.planning_with(Arc::new(archon.planner()), options).with(|agent| agent.with_conclusion(conclusion))
}

/// Asks who sits at the terminal about the first open question of a plan's run. Where nobody does, there is no answer.
pub(crate) async fn ask_about_plan(app: &App, records: &[Arc<Record>]) -> Result<Option<Answer>, Failure> {
    let Some(machine) = fold(records) else { return Ok(None) };
    let Some((call, request)) = open_questions(records).first().copied() else { return Ok(None) };
    // What tools ask, here or in runs below, is asked as in any other run.
    let is_of_call = machine.takes_reply(call);
    if (is_of_call || !request.path.is_empty()) && Asking::of(app) == Asking::Here {
        return Ok(match Prompt::of(app).decide(request).await {
            Decision::Now(answer) => Some(answer),
            _ => None,
        });
    }
    confirm::ask(app, &machine, call, request).await
}
