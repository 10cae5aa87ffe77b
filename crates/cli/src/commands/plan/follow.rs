//! Follows a plan to its end, and asks whoever sits at the terminal where the plan has to ask.

use std::sync::Arc;

use archon::{
    Archon, Planning, RunHandle, RunOptions,
    planner::{fold, open_questions},
    types::{
        Answer, ApprovalRequest, Approver, CallId, Confirm, Decision, Json, MoreLimits, Outcome,
        OutcomeStatus, Record, RunId, SubTask,
    },
};
use serde_json::Map;

use super::{Format, confirm, drawn, run};
use crate::{
    app::App,
    ask::Prompt,
    commands::Asking,
    drive::{Ended, watch},
    exit::Exit,
    failure::Failure,
    output::Look,
    permissions,
};

/// The agent that follows the plans that its own model makes, and whose model puts the answer together.
pub(super) fn planning(archon: &Archon, confirm: Confirm) -> Planning {
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

/// Makes a plan and follows it.
pub(crate) async fn follow(
    app: &App,
    archon: &Archon,
    goal: String,
    confirm: Confirm,
) -> Result<Exit, Failure> {
    follow_drawn(app, archon, &planning(archon, confirm), goal, None).await
}

/// As [`follow`]; at the end the plan is drawn as far as it came, where a form is given.
pub(super) async fn follow_drawn(
    app: &App,
    archon: &Archon,
    planning: &Planning,
    goal: String,
    format: Option<Format>,
) -> Result<Exit, Failure> {
    let handle = planning.start(goal, RunOptions::default()).await?;
    let run = handle.run_id().clone();
    let exit = go_on(app, archon, planning, handle, Vec::new()).await;
    if let Some(format) = format
        && let Ok(records) = archon.journal().read(&run).await
        && let Some(machine) = fold(&records)
    {
        app.output.note(Look::Plain, drawn(&machine.task(), format));
    }
    exit
}

/// Takes up the run of a plan.
pub(crate) async fn resume(
    app: &App,
    archon: &Archon,
    run: RunId,
    more: MoreLimits,
    before: Vec<Arc<Record>>,
) -> Result<Exit, Failure> {
    let planning = planning(archon, Confirm::Never);
    confirm::show(app, &before);
    let handle = planning.resume_with(run, more).await?;
    go_on(app, archon, &planning, handle, before).await
}

/// Shows the run until it has ended; each time that it waits, who sits at the terminal is asked. Where nobody does,
/// the answer is not yes: the run is left as it stands.
pub(super) async fn go_on(
    app: &App,
    archon: &Archon,
    planning: &Planning,
    handle: RunHandle,
    before: Vec<Arc<Record>>,
) -> Result<Exit, Failure> {
    let run = handle.run_id().clone();
    let resume = run::resume_line(app, run.as_str(), None);
    let mut ended = watch(handle, &before, &resume, app).await?;
    loop {
        if ended.outcome.status != OutcomeStatus::Suspended {
            return ended.said(&resume, app);
        }
        let records = archon.journal().read(&run).await?;
        let Some((call, request)) = open_questions(&records).first().copied() else {
            return ended.said(&resume, app);
        };
        let Some(answer) = asked(app, &records, call, request).await? else {
            confirm::say_how_to_answer(app, &run, request);
            return Ok(Exit::Suspended);
        };
        let is_edit = matches!(answer, Answer::Edit { .. });
        let question = request.request_id.clone();
        let handle = planning.answer_question(run.clone(), question, answer).await?;
        let next = watch(handle, &records, &resume, app).await;
        ended = match next {
            // An edited plan that cannot be followed was not taken, and the question is still open.
            Err(failure) if is_edit => {
                app.output.failure(&failure);
                Ended {
                    outcome: Outcome::new(run.clone(), OutcomeStatus::Suspended),
                    failure: None,
                    refused: Vec::new(),
                }
            }
            next => next?,
        };
    }
}

async fn asked(
    app: &App,
    records: &[Arc<Record>],
    call: CallId,
    request: &ApprovalRequest,
) -> Result<Option<Answer>, Failure> {
    let Some(machine) = fold(records) else { return Ok(None) };
    // What tools ask, here or in runs below, is asked as in any other run.
    let is_of_call = machine.is_asked_by_tool(call) || machine.is_doubted(call);
    if (is_of_call || !request.path.is_empty()) && Asking::of(app) == Asking::Here {
        let prompt = Prompt::new(app.output.clone(), Prompt::keyboard(), permissions::kept(app));
        return Ok(match prompt.decide(request).await {
            Decision::Now(answer) => Some(answer),
            _ => None,
        });
    }
    confirm::ask(app, &machine, call, request).await
}
