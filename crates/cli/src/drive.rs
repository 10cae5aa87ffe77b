//! Follows a run to its end: shows its events, lets Ctrl-C stop it, and says how it ended.

use std::sync::Arc;

use archon::{
    RunError, RunHandle,
    types::{
        Event, JournalError, LimitReached, ModelErrorCode, ModelFailure, Outcome, OutcomeStatus, Record,
        RecordBody, ToolResult, metadata,
    },
};
use futures_util::StreamExt;

use crate::{
    app::App,
    commands::{Asking, quoted},
    exit::Exit,
    failure::Failure,
    interrupt,
    output::Look,
    render::renderer,
    text::one_line,
};

/// Characters of an error that are shown.
const SHOWN: usize = 400;

/// Shows a run until it has ended, and says how. `before` are the records that it had already, `resume` is the
/// command line that takes it up again.
pub(crate) async fn drive(
    run: RunHandle,
    before: &[Arc<Record>],
    resume: &str,
    app: &App,
) -> Result<Exit, Failure> {
    watch(run, before, resume, app).await?.said(resume, app)
}

/// Shows a run until it has ended. If the storage fails meanwhile, the failure names the command line that takes the run up
/// again.
pub(crate) async fn watch(
    mut run: RunHandle,
    before: &[Arc<Record>],
    resume: &str,
    app: &App,
) -> Result<Ended, Failure> {
    let listener = interrupt::listen(run.cancel_token(), app.output.clone());
    let mut renderer = renderer(app.json);
    before.iter().for_each(|record| renderer.remember(record));
    let asks_here = Asking::of(app) == Asking::Here;
    let (mut failure, mut refused) = (None, Vec::new());
    let mut is_kept = !before.is_empty();
    while let Some(event) = run.next().await {
        match &event {
            // Who asks at the terminal shows the question there.
            Event::Record { record, .. }
                if asks_here && matches!(record.body, RecordBody::ToolAsked { .. }) =>
            {
                renderer.remember(record);
            }
            _ => renderer.event(&event, &app.output),
        }
        let Event::Record { run: of, record } = &event else { continue };
        is_kept |= of == run.run_id();
        match &record.body {
            RecordBody::ModelFailed { failure: last, .. } if of == run.run_id() => {
                failure = Some(last.clone())
            }
            RecordBody::ToolRefused { result, .. } | RecordBody::ToolFinished { result, .. } => {
                refused.extend(find_missing_rule(result));
            }
            _ => {}
        }
    }
    let outcome = Outcome::of_result(run.reply().await);
    listener.abort();
    app.output.stop_waiting();
    app.output.close_board();
    match outcome {
        Ok(outcome) => Ok(Ended { outcome, failure, refused }),
        Err(error) if is_kept && is_storage(&error) => Err(Failure::from(error).then(resume)),
        Err(error) => Err(error.into()),
    }
}

/// Whether the disk is full, or the folder of the logs cannot be written to.
fn is_storage(error: &RunError) -> bool {
    matches!(error, RunError::Journal(JournalError::Storage { .. }))
}

/// Of a call that was refused because nobody could be asked: the rule that would allow it, empty if none would.
fn find_missing_rule(result: &ToolResult) -> Option<String> {
    result.metadata.get(metadata::NOBODY_ASKED)?.as_str().map(str::to_owned)
}

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Why a model gave no answer the last time that it did not.
    pub(crate) failure: Option<ModelFailure>,
    /// For each call that was refused because nobody could be asked, the rule that would allow it.
    pub(crate) refused: Vec<String>,
}

impl Ended {
    /// Says it.
    pub(crate) fn said(&self, resume: &str, app: &App) -> Result<Exit, Failure> {
        let exit = said(&self.outcome, self.failure.as_ref(), resume, app)?;
        if self.refused.is_empty() {
            return Ok(exit);
        }
        app.output.note(Look::Warning, explain_refusals(&self.refused));
        Ok(if exit == Exit::Finished { Exit::NotAllowed } else { exit })
    }
}

/// How many rules are named in a line.
const NAMED: usize = 5;

/// Says how calls that were refused can be allowed.
fn explain_refusals(rules: &[String]) -> String {
    let (count, were, them) = match rules.len() {
        1 => ("1 call".to_owned(), "was", "it"),
        many => (format!("{many} calls"), "were", "them"),
    };
    let what = format!("{count} {were} not allowed, because nobody could be asked");
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

fn said(outcome: &Outcome, failure: Option<&ModelFailure>, resume: &str, app: &App) -> Result<Exit, Failure> {
    let exit = Exit::of(outcome);
    match outcome.status {
        OutcomeStatus::Finished => {}
        OutcomeStatus::Cancelled | OutcomeStatus::Suspended => {
            app.output.note(Look::Plain, format!("resume with: {resume}"));
        }
        OutcomeStatus::Limit(limit) => {
            app.output.note(Look::Plain, way_on(&limit, resume));
        }
        _ => {
            let what = outcome.error.clone().unwrap_or_else(|| "the run failed".to_owned());
            let advice = failure.filter(|f| what.contains(&f.message)).map_or_else(
                || format!("archon runs show {} tells what happened", outcome.run),
                |f| format!("{}; then: {resume}", advice(f.code)),
            );
            return Err(Failure::new(exit, one_line(&what, SHOWN), advice));
        }
    }
    Ok(exit)
}

/// What to do about a run that stopped at a limit.
fn way_on(limit: &LimitReached, resume: &str) -> String {
    const CONTINUE: &str = "`archon run --continue TASK`";
    match more_of(limit) {
        Some(flag) if resume.starts_with("archon team ") => format!("let it go on with `{resume} {flag}`"),
        _ if resume.starts_with("archon team ") => {
            "allow more in the team's file, and begin it anew".to_owned()
        }
        Some(flag) => format!("let it go on with `{resume} {flag}`, or go on with {CONTINUE}"),
        None if matches!(limit, LimitReached::Repeats { .. }) => {
            format!("put the task another way with {CONTINUE}")
        }
        None => format!("go on with {CONTINUE}"),
    }
}

/// The flag of `archon resume` that lets a run go beyond a limit, if there is one.
pub(crate) fn more_of(limit: &LimitReached) -> Option<&'static str> {
    match limit {
        LimitReached::Turns { .. } => Some("--max-turns N"),
        LimitReached::Tokens { .. } => Some("--max-tokens N"),
        LimitReached::Duration { .. } => Some("--max-duration TIME"),
        LimitReached::Cost { .. } => Some("--max-cost USD"),
        _ => None,
    }
}

/// What to do about a model that gave no answer, by the code of its failure.
fn advice(code: ModelErrorCode) -> &'static str {
    match code {
        ModelErrorCode::Auth => "check the key: `archon doctor` shows which one is used",
        ModelErrorCode::Unreachable => {
            "start the service, or mend the address: `archon doctor` shows what runs here"
        }
        ModelErrorCode::Network | ModelErrorCode::Timeout => {
            "check the connection, and that the service runs: `archon doctor`"
        }
        ModelErrorCode::RateLimited | ModelErrorCode::Overloaded => "wait a little",
        ModelErrorCode::ContextOverflow => "start a new session, or use a model with a larger context window",
        ModelErrorCode::Protocol => "check the address: something else may answer there",
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
