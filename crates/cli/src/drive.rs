//! Follows a run to its end: shows its events, cancels it on Ctrl-C, and prints its end.

use std::sync::Arc;

use archon::{
    Runs, SystemClock,
    planner::open_questions,
    types::{
        Answer, AnswerRuns, Approver, CancellationToken, Clock, Decision, Event, JournalError, LimitReached,
        ModelErrorCode, ModelFailure, MoreLimits, Outcome, OutcomeStatus, Record, RecordBody, RunError,
        RunId, RunKind, RunRefused, RunStarted, StartRuns, ToolResult, metadata, pending_approvals,
    },
};
use futures_util::StreamExt;

use crate::{
    app::App,
    ask::{Asking, Prompt},
    command_line::{quoted, resume_line},
    confirm::print_how_to_answer,
    exit::Exit,
    failure::{Failure, more_of},
    interrupt,
    output::Look,
    planning::ask_about_plan,
    render::renderer,
    text::one_line,
};

/// The maximum number of shown characters of an error.
const SHOWN: usize = 400;

/// Shows a run that works in this process until it has ended, and returns the exit code. Questions of a plan
/// or a team are asked at the terminal. `before` has the records that the run already had.
pub(crate) async fn follow(
    app: &App,
    runs: &Runs,
    run: &RunId,
    mut before: Vec<Arc<Record>>,
) -> Result<Exit, Failure> {
    let resume = resume_line(app, run.as_str());
    loop {
        let ended = watch(app, runs, run, &before).await?;
        if ended.outcome.status != OutcomeStatus::Suspended {
            return ended.report(&resume, app);
        }
        before = runs.records(run, None).await?.records;
        loop {
            let (question, answer) = match ask(app, run, &before).await? {
                Asked::Answered(question, answer) => (question, answer),
                Asked::Later => return Ok(Exit::Suspended),
                Asked::Nothing => return ended.report(&resume, app),
            };
            let is_edit = matches!(answer, Answer::Edit { .. });
            match give(app, runs, (run, &before[..]), &question, answer).await {
                // A wrong edited plan was rejected, and the question is still open.
                Err(error) if is_edit => app.output.failure(&error.into()),
                answered => {
                    answered?;
                    break;
                }
            }
        }
    }
}

/// Answers a question of a run for the person at the terminal, and resumes the run. The answer may trust a rule that
/// the question does not offer, since the rules of this folder are the person's own; the run service would refuse such
/// a rule.
async fn give(
    app: &App,
    runs: &Runs,
    (run, records): (&RunId, &[Arc<Record>]),
    question: &str,
    answer: Answer,
) -> Result<(), RunError> {
    let open = pending_approvals(records).into_iter().find(|open| open.request.request_id == question);
    let Some(open) = open.filter(|open| open.request.rule_not_offered(&answer).is_some()) else {
        return runs.answer(question, answer).await.map(drop);
    };
    open.answer(answer, SystemClock.now(), &app.journal()).await?;
    match runs.resume(run, &MoreLimits::default()).await {
        // Another process works on the run, or has ended it.
        Err(RunError::Journal(JournalError::Locked { .. }) | RunError::Refused(RunRefused::Ended { .. })) => {
            Ok(())
        }
        resumed => resumed.map(drop),
    }
}

enum Asked {
    /// The id of the question, and the answer.
    Answered(String, Answer),
    /// The question waits, and the ways to answer it were printed.
    Later,
    /// No person can be asked here, or the run is a loop, which asks by itself while it works.
    Nothing,
}

/// Asks the person at the terminal a question of a plan or a team; loops ask by themselves while they work.
async fn ask(app: &App, run: &RunId, records: &[Arc<Record>]) -> Result<Asked, Failure> {
    match RunStarted::of(records).map(|started| started.kind) {
        Some(RunKind::Plan) => {
            let Some((_, request)) = open_questions(records).first().copied() else {
                return Ok(Asked::Nothing);
            };
            Ok(match ask_about_plan(app, records).await? {
                Some(answer) => Asked::Answered(request.request_id.clone(), answer),
                None => {
                    print_how_to_answer(app, run, request);
                    Asked::Later
                }
            })
        }
        Some(RunKind::Team) if Asking::of(app) == Asking::Here => {
            let open = pending_approvals(records).into_iter().find(|open| open.request.call_path.is_empty());
            let Some(open) = open else { return Ok(Asked::Nothing) };
            Ok(match Prompt::of(app).decide(&open.request).await {
                Decision::Now(answer) => Asked::Answered(open.request.request_id, answer),
                _ => Asked::Nothing,
            })
        }
        _ => Ok(Asked::Nothing),
    }
}

/// Shows a run until it has ended or is suspended. Ctrl-C cancels the run. If the storage fails, the error
/// contains the command that resumes the run.
pub(crate) async fn watch(
    app: &App,
    runs: &Runs,
    run: &RunId,
    before: &[Arc<Record>],
) -> Result<Ended, Failure> {
    let stop = CancellationToken::new();
    let listener = interrupt::listen(stop.clone(), app.output.clone());
    let mut events = runs.watch(run, before.last().map(|record| record.seq)).await?;
    let mut renderer = renderer(app.json);
    before.iter().for_each(|record| renderer.remember(record));
    let asks_here = Asking::of(app) == Asking::Here;
    let (mut seen, mut is_stopped) = (Seen::default(), false);
    let stopped = loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = stop.cancelled(), if !is_stopped => {
                is_stopped = true;
                match runs.cancel(run, "interrupted at the terminal").await {
                    Ok(()) => continue,
                    Err(error) => break Some(error),
                }
            }
        };
        let event = match event {
            None => break None,
            Some(Err(error)) => break Some(error),
            Some(Ok(event)) => event,
        };
        match &event {
            // The question is shown by the prompt itself.
            Event::Record { record, .. }
                if asks_here && matches!(record.body, RecordBody::ApprovalRequested { .. }) =>
            {
                renderer.remember(record);
            }
            _ => renderer.event(&event, &app.output),
        }
        seen.note(run, &event);
    };
    listener.abort();
    app.output.stop_waiting();
    app.output.close_board();
    let Seen { failure, refused, end } = seen;
    let outcome = match (stopped, end) {
        (Some(error), _) if is_storage(&error) => {
            return Err(Failure::from(error).then(&resume_line(app, run.as_str())));
        }
        (Some(error), _) => return Err(error.into()),
        (None, Some(outcome)) => outcome,
        // The run had already ended.
        (None, None) => Outcome::of_result(runs.reply(run).await)?,
    };
    Ok(Ended { outcome, failure, refused })
}

/// The parts of a run's events that are needed at its end.
#[derive(Default)]
struct Seen {
    failure: Option<ModelFailure>,
    refused: Vec<String>,
    end: Option<Outcome>,
}

impl Seen {
    fn note(&mut self, run: &RunId, event: &Event) {
        let Event::Record { run: of, record } = event else { return };
        match &record.body {
            RecordBody::ModelCallFailed { failure, .. } if of == run => self.failure = Some(failure.clone()),
            RecordBody::RunFinished(outcome) if of == run => self.end = Some((**outcome).clone()),
            RecordBody::Suspended { .. } if of == run => {
                self.end = Some(Outcome::new(run.clone(), OutcomeStatus::Suspended));
            }
            RecordBody::ToolCallRefused { result, .. } | RecordBody::ToolCallFinished { result, .. } => {
                self.refused.extend(find_missing_rule(result));
            }
            _ => {}
        }
    }
}

/// Returns true if a log could not be read or written, for instance because the disk is full.
fn is_storage(error: &RunError) -> bool {
    match error {
        RunError::Stopped { error, .. } => is_storage(error),
        error => matches!(error, RunError::Journal(JournalError::Storage { .. })),
    }
}

/// Returns the rule that would allow a call that was rejected because no person could be asked; an empty text
/// if no rule would, and `None` if the call was not rejected for this reason.
pub(crate) fn find_missing_rule(result: &ToolResult) -> Option<String> {
    result.metadata.get(metadata::NOBODY_ASKED)?.as_str().map(str::to_owned)
}

pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) failure: Option<ModelFailure>,
    /// For each call that was rejected because no person could be asked, the rule that would allow it.
    pub(crate) refused: Vec<String>,
}

impl Ended {
    /// Prints how the run ended, and returns the exit code.
    pub(crate) fn report(&self, resume: &str, app: &App) -> Result<Exit, Failure> {
        let exit = report_outcome(&self.outcome, self.failure.as_ref(), resume, app)?;
        if self.refused.is_empty() {
            return Ok(exit);
        }
        app.output.note(Look::Warning, explain_refusals(&self.refused));
        Ok(if exit == Exit::Finished { Exit::NotAllowed } else { exit })
    }
}

/// The maximum number of rules in a line.
const NAMED: usize = 5;

/// Explains the ways to allow rejected calls.
fn explain_refusals(rules: &[String]) -> String {
    let (count, were, them) = match rules.len() {
        1 => ("1 call".to_owned(), "was", "it"),
        many => (format!("{many} calls"), "were", "them"),
    };
    let what = format!("{count} {were} not allowed, because no person could be asked");
    let mut named: Vec<&String> = Vec::new();
    for rule in rules.iter().filter(|rule| !rule.is_empty()) {
        if !named.contains(&rule) {
            named.push(rule);
        }
    }
    let flags: Vec<_> = named.iter().take(NAMED).map(|rule| format!("--allow {}", quoted(rule))).collect();
    match flags.is_empty() {
        true => format!("{what}; let runs wait for an answer with --ask-later"),
        false => format!("{what}; allow {them} with {}", flags.join(" ")),
    }
}

fn report_outcome(
    outcome: &Outcome,
    failure: Option<&ModelFailure>,
    resume: &str,
    app: &App,
) -> Result<Exit, Failure> {
    let exit = Exit::of(outcome);
    match outcome.status {
        OutcomeStatus::Finished => {}
        OutcomeStatus::Cancelled | OutcomeStatus::Suspended => {
            app.output.note(Look::Plain, format!("resume with: {resume}"));
        }
        OutcomeStatus::Limit(limit) => {
            app.output.note(Look::Plain, advice_at_limit(&limit, resume));
        }
        _ => {
            let what = outcome.error.clone().unwrap_or_else(|| "the run failed".to_owned());
            let advice = match failure.filter(|f| what.contains(&f.message)) {
                Some(_) if app.cassette.is_replay() => {
                    "to record it again, give the same command with --record FILE in place of --replay FILE"
                        .to_owned()
                }
                Some(f) => format!("{}; then: {resume}", advice(f.code)),
                None => format!("archon runs show {} shows what happened", outcome.run),
            };
            return Err(Failure::new(exit, one_line(&what, SHOWN), advice));
        }
    }
    Ok(exit)
}

/// Returns the advice for a run that ended at a limit.
fn advice_at_limit(limit: &LimitReached, resume: &str) -> String {
    const CONTINUE: &str = "`archon run --continue TASK`";
    match more_of(limit) {
        Some(flag) => format!("continue it with `{resume} {flag}`, or start the next one with {CONTINUE}"),
        None if matches!(limit, LimitReached::Repeats { .. }) => {
            format!("phrase the task differently with {CONTINUE}")
        }
        None => format!("continue with {CONTINUE}"),
    }
}

/// Returns the advice for a failed model call, by its code.
fn advice(code: ModelErrorCode) -> &'static str {
    match code {
        ModelErrorCode::Auth => "check the key: `archon doctor` shows the key that is used",
        ModelErrorCode::Unreachable => {
            "start the service, or correct the address: `archon doctor` shows the services on this machine"
        }
        ModelErrorCode::Network | ModelErrorCode::Timeout => {
            "check the connection, and that the service is running: `archon doctor`"
        }
        ModelErrorCode::RateLimited | ModelErrorCode::Overloaded => "wait, then try again",
        ModelErrorCode::ContextOverflow => "start a new session, or use a model with a larger context window",
        ModelErrorCode::Protocol => "check the address: another program or service may answer there",
        ModelErrorCode::Api => "check the model's name: `archon models list`",
        _ => "try again, or choose another model",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_provider_has_advice() {
        for code in [
            ModelErrorCode::Auth,
            ModelErrorCode::Network,
            ModelErrorCode::Unreachable,
            ModelErrorCode::Timeout,
            ModelErrorCode::RateLimited,
            ModelErrorCode::Overloaded,
            ModelErrorCode::ContextOverflow,
            ModelErrorCode::Protocol,
            ModelErrorCode::Api,
        ] {
            assert_ne!(advice(code), advice(ModelErrorCode::Other), "{code}");
        }
    }
}
