//! The error of a command, for people: a line with the problem, and advice.

use std::{io, path::Path};

use archon::{
    BuildError, RunError,
    orchestrator::TeamError,
    planner::{PlanProblem, PlanRunError, with_remedy},
    react_loop::LoopError,
    store::JsonlJournal,
    types::{LimitReached, PlanError, RunId, RunRefused, RunStatus},
};

use crate::{exit::Exit, text::one_line};

/// An error that ends a command with a message and an exit code. The message and each line of advice are
/// single lines and never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    exit: Exit,
    what: String,
    advice: Vec<String>,
    damaged: Option<RunId>,
    unknown: Option<RunId>,
}

/// The maximum number of shown characters of a line.
const SHOWN: usize = 600;

impl Failure {
    /// Creates an error for wrong usage, or for a missing prerequisite of the command.
    pub(crate) fn usage(what: impl AsRef<str>, advice: impl AsRef<str>) -> Self {
        Self::new(Exit::Usage, what, advice)
    }

    pub(crate) fn failed(what: impl AsRef<str>, advice: impl AsRef<str>) -> Self {
        Self::new(Exit::Failed, what, advice)
    }

    /// Creates an error with this exit code: `what` has the failed operation, its object and the reason;
    /// `advice` has the remedy.
    pub(crate) fn new(exit: Exit, what: impl AsRef<str>, advice: impl AsRef<str>) -> Self {
        Self::choices(exit, what, &[advice.as_ref()])
    }

    /// Does the same as [`new`](Self::new), with several lines of advice.
    pub(crate) fn choices(exit: Exit, what: impl AsRef<str>, choices: &[impl AsRef<str>]) -> Self {
        let line = |text: &str| Some(one_line(text, SHOWN)).filter(|line| !line.is_empty());
        let mut advice: Vec<_> = choices.iter().filter_map(|choice| line(choice.as_ref())).collect();
        if advice.is_empty() {
            advice.push(ANYTHING.to_owned());
        }
        let what = line(what.as_ref()).unwrap_or_else(|| "the command failed".to_owned());
        Self { exit, what, advice, damaged: None, unknown: None }
    }

    /// Creates the error for a file of the user that cannot be read.
    pub(crate) fn unreadable(path: &Path, e: &io::Error, advice: &str) -> Self {
        Self::usage(format!("cannot read {}: {e}", path.display()), advice)
    }

    /// Creates the error for a file that cannot be written.
    pub(crate) fn unwritable(path: &Path, e: &io::Error, advice: &str) -> Self {
        Self::failed(format!("cannot write {}: {e}", path.display()), advice)
    }

    /// Puts the place of the error before its message.
    pub(crate) fn at(self, place: &str) -> Self {
        Self::choices(self.exit, format!("{place}: {}", self.what), &self.advice)
    }

    /// Adds the advice for a damaged or empty log, if the error is about one.
    pub(crate) async fn with_repair_advice(mut self, journal: &JsonlJournal) -> Self {
        if let Some(run) = &self.unknown
            && journal.path(run).is_ok_and(|log| log.exists())
        {
            self.what = format!(
                "the log of run {run} is empty: it was emptied, or its process was killed before the first record"
            );
            self.advice = vec![format!(
                "start the task again; `archon runs delete {run}` removes the rest of this run"
            )];
        }
        if let Some(run) = &self.damaged {
            self.advice = vec![match archon::react_loop::whole_turns(journal, run).await {
                Ok(turns) => format!(
                    "`archon runs fork {run} --at {turns}` continues from the {turns} turns before the damage, \
                     `archon runs show {run}` shows them"
                ),
                Err(_) => format!(
                    "check the work that was done (`archon runs show {run}` shows the undamaged part), then start the task again; \
                     `archon runs delete {run}` removes it"
                ),
            }];
        }
        self
    }

    /// Appends to the advice the command that resumes the run.
    pub(crate) fn then(mut self, resume: &str) -> Self {
        if let Some(last) = self.advice.last_mut() {
            *last = one_line(&format!("{last}; then resume the run: {resume}"), SHOWN);
        }
        self
    }

    /// Returns the error of a plan with problems: a line for each problem, with its remedy.
    pub(crate) fn of_problems(problems: &[PlanProblem]) -> Self {
        let lines: Vec<String> = problems.iter().filter(|p| p.is_error()).map(with_remedy).collect();
        Self::choices(Exit::Failed, CANNOT_BE_FOLLOWED, &lines)
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns the line with the failed operation, its object and the reason.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    pub(crate) fn advice(&self) -> &[String] {
        &self.advice
    }

    /// Returns the advice as one line.
    pub(crate) fn advice_line(&self) -> String {
        self.advice.join("; ")
    }

    /// Returns the message and the advice as one line.
    pub(crate) fn line(&self) -> String {
        format!("{}; {}", self.what, self.advice_line())
    }
}

const CANNOT_BE_FOLLOWED: &str = "the plan cannot be followed";

/// The advice if there is no more specific advice.
const ANYTHING: &str = "`archon doctor` shows what can be used";

impl From<archon::types::JournalError> for Failure {
    fn from(e: archon::types::JournalError) -> Self {
        use archon::types::JournalError::{BadId, Corrupt, UnknownRun};
        let exit = if matches!(e, UnknownRun { .. } | BadId { .. }) { Exit::Usage } else { Exit::Failed };
        let failure = Self::new(exit, e.to_string(), e.advice());
        match e {
            Corrupt { run, .. } => Self { damaged: Some(run), ..failure },
            UnknownRun { run } => Self { unknown: Some(run), ..failure },
            _ => failure,
        }
    }
}

impl From<archon::types::MemoryError> for Failure {
    fn from(e: archon::types::MemoryError) -> Self {
        use archon::types::MemoryError::{Collection, Invalid, OutOfScope};
        let usage = matches!(e, Collection { .. } | Invalid { .. } | OutOfScope { .. });
        Self::new(if usage { Exit::Usage } else { Exit::Failed }, e.to_string(), e.advice())
    }
}

impl From<archon::views::SessionError> for Failure {
    fn from(e: archon::views::SessionError) -> Self {
        use archon::views::SessionError::{BadId, Unknown};
        let exit = if matches!(e, Unknown { .. } | BadId { .. }) { Exit::Usage } else { Exit::Failed };
        Self::new(exit, e.to_string(), e.advice())
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        match e {
            RunError::Journal(e) => return e.into(),
            RunError::Stopped { ref error, .. } if matches!(**error, RunError::Agent { .. }) => {
                return of_agent(error);
            }
            RunError::Agent { .. } => return of_agent(&e),
            RunError::EmptyPrompt => {
                let advice = "describe the task: archon run \"What is 15% of 200?\"";
                return Self::usage("the task is empty", advice);
            }
            _ => {}
        }
        let exit = match e {
            RunError::Failed { .. }
            | RunError::NotFinished { .. }
            | RunError::NotTyped { .. }
            | RunError::Stopped { .. }
            | RunError::Lost { .. } => Exit::Failed,
            _ => Exit::Usage,
        };
        let unknown = match &e {
            RunError::UnknownRun { run, .. } => Some(run.clone()),
            _ => None,
        };
        Self { unknown, ..Self::new(exit, e.to_string(), advice(&e)) }
    }
}

/// Returns the advice for an error of a run, with the commands of this program.
fn advice(e: &RunError) -> String {
    match e {
        RunError::Refused(RunRefused::Ended { run }) => {
            format!("`archon runs show {run}` shows the run; continue with `archon run --continue TASK`")
        }
        RunError::Refused(RunRefused::AtLimit { run, limit }) => at_limit(run, limit),
        RunError::SessionBusy { run, status: RunStatus::Suspended } => format!(
            "answer its question (`archon approvals list`), and the run continues, or leave it with `archon runs fork {run}`"
        ),
        RunError::SessionBusy { run, status: RunStatus::Interrupted } => {
            format!("resume it first: `archon resume {run}`; or leave it with `archon runs fork {run}`")
        }
        RunError::SessionBusy { run, .. } => format!(
            "wait until it has ended, send the text to the run (`archon runs steer {run} TEXT`), or stop it with `archon runs cancel {run}`"
        ),
        RunError::WentOn { run, .. } => {
            format!(
                "continue with `archon run --continue TASK`, or leave the run with `archon runs fork {run}`"
            )
        }
        RunError::NoForkPlace { run, .. } => {
            format!("`archon runs events {run}` shows its records, and with `--cycles` its turns")
        }
        RunError::NothingToContinue => "`archon runs list --json` shows runs and their sessions".to_owned(),
        e => e.advice().into(),
    }
}

/// Returns the error of an agent of any kind, or of the builder.
fn of_agent(e: &RunError) -> Failure {
    if let Some(failure) = e.cause::<Failure>() {
        return failure.clone();
    }
    if let Some(plan) = e.cause::<PlanRunError>() {
        return of_plan(plan);
    }
    if let Some(team) = e.cause::<TeamError>() {
        return of_team(team);
    }
    if e.cause::<BuildError>().is_some() {
        return Failure::usage(e.to_string(), e.advice());
    }
    match e.cause::<LoopError>() {
        Some(LoopError::ProcessesLeft { group, .. }) => Failure::failed(
            e.to_string(),
            format!("end the process yourself (kill -9 -{group}), then resume the run"),
        ),
        _ => Failure::failed(e.to_string(), e.advice()),
    }
}

/// Returns the error for an agent that could not be built from a run's log.
impl From<Failure> for RunError {
    fn from(failure: Failure) -> Self {
        let advice = failure.advice_line();
        Self::agent(failure, advice)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// Implements the conversion of errors of agents.
macro_rules! from_agent_errors {
    ($($error:ty),+) => {$(
        impl From<$error> for Failure {
            fn from(e: $error) -> Self {
                RunError::from(e).into()
            }
        }
    )+};
}

from_agent_errors!(BuildError, LoopError, PlanRunError);

/// Returns the error of a team: a line for each problem, with its remedy.
fn of_team(e: &TeamError) -> Failure {
    match e {
        TeamError::Problems { problems } => {
            let lines: Vec<String> =
                problems.iter().map(|problem| format!("{problem} ({})", problem.advice())).collect();
            Failure::choices(Exit::Usage, "the team cannot work", &lines)
        }
        e => Failure::failed(e.to_string(), e.advice()),
    }
}

/// Returns the error of a plan run: a line for each problem, with its remedy.
fn of_plan(e: &PlanRunError) -> Failure {
    match e {
        PlanRunError::Problems { problems } => Failure::of_problems(problems),
        PlanRunError::Plan(PlanError::Unreadable { problem })
        | PlanRunError::NoDraft { error: PlanError::Unreadable { problem }, .. } => {
            let larger = "a larger model makes better plans: --model PROVIDER:MODEL";
            let lines: Vec<&str> = problem.split("; ").chain([larger]).collect();
            Failure::choices(Exit::Failed, CANNOT_BE_FOLLOWED, &lines)
        }
        e => Failure::failed(e.to_string(), e.advice()),
    }
}

/// Returns the flag of `archon resume` that raises this limit, if there is such a flag.
pub(crate) fn more_of(limit: &LimitReached) -> Option<&'static str> {
    match limit {
        LimitReached::Turns { .. } => Some("--max-turns N"),
        LimitReached::Tokens { .. } => Some("--max-tokens N"),
        LimitReached::Duration { .. } => Some("--max-duration TIME"),
        LimitReached::Cost { .. } => Some("--max-cost USD"),
        _ => None,
    }
}

/// Returns the advice for a run that has reached a limit.
fn at_limit(run: &RunId, limit: &LimitReached) -> String {
    match more_of(limit) {
        Some(flag) => format!(
            "continue it with `archon resume {run} {flag}`: the value is for the whole run, and must be higher than before"
        ),
        None => "continue with `archon run --continue TASK`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archon::{
        SessionId,
        types::{EvaluationError, ForkPlace, JournalError},
        views::SessionError,
    };
    use clap::Parser as _;
    use expect_test::{Expect, expect};

    use super::*;

    fn check_shape(failure: &Failure) {
        assert_eq!(failure.advice.len(), 1, "{failure:?}");
        for line in failure.advice.iter().chain([&failure.what]) {
            assert!(!line.trim().is_empty() && !line.contains('\n'), "{failure:?}");
        }
        // The advice is in the second line only.
        assert!(!failure.what.contains("; ") && !failure.what.contains(". "), "{failure:?}");
        assert_ne!(failure.advice[0], failure.what);
    }

    #[test]
    fn a_failure_without_advice_cannot_be_made() {
        check_shape(&Failure::usage("the file is broken", ""));
        check_shape(&Failure::failed("", " \n"));
        check_shape(&Failure::failed("two\nlines", "and\r\nmore\x1b[2J"));
    }

    #[test]
    fn failure_of_each_run_error_has_text_and_advice() {
        let run = || RunId::new("run_1");
        let gone = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let place = || "the log".to_owned();
        let journal = [
            JournalError::UnknownRun { run: run() },
            JournalError::Locked { run: run() },
            JournalError::BadId { id: "/".into() },
            JournalError::Storage { action: "write", place: place(), source: gone() },
        ];
        let session = SessionId::new("session_1");
        let sessions = [
            SessionError::Unknown { session: session.clone() },
            SessionError::Locked { session: session.clone() },
            SessionError::BadId { id: "/".into() },
            SessionError::Corrupt { session: session.clone(), problem: "no JSON".into() },
            SessionError::Unsupported { action: "list" },
            SessionError::Storage { action: "write", place: place(), source: gone() },
        ];
        let loops = [
            LoopError::EmptyPrompt,
            LoopError::NotARun { run: run() },
            LoopError::NothingAsked { run: run() },
            LoopError::NoForkPlace { run: run(), place: ForkPlace::Turns(3), turns: 2, records: 9 },
            LoopError::NothingToAnswer,
            LoopError::Unpaired,
            LoopError::UnknownPrice { model: "m".into(), max_cost_micros: 5 },
            LoopError::TooDeep { depth: 6, max: 5 },
            LoopError::NoBranch,
            LoopError::Evaluation(EvaluationError::Cancelled),
            LoopError::OtherKind { run: run(), kind: archon::types::RunKind::Plan },
            LoopError::OtherBranches { run: run(), found: 2, given: 3 },
            RunRefused::AtLimit { run: run(), limit: archon::types::LimitReached::Turns { max: 3 } }.into(),
            RunRefused::Ended { run: run() }.into(),
        ];
        let others = [
            BuildError::NoModel.into(),
            RunError::SessionBusy { run: run(), status: RunStatus::Suspended },
            RunError::SessionBusy { run: run(), status: RunStatus::Running },
            RunError::SessionBusy { run: run(), status: RunStatus::Interrupted },
            RunError::WentOn { run: run(), by: run() },
            RunError::NothingToContinue,
            RunError::Lost { run: run() },
            RunError::Stopped { run: run(), error: Arc::new(RunError::Lost { run: run() }) },
        ];
        for failure in journal
            .map(Failure::from)
            .into_iter()
            .chain(sessions.map(Failure::from))
            .chain(loops.map(Failure::from))
            .chain(others.map(Failure::from))
        {
            check_shape(&failure);
            assert_ne!(failure.advice[0], ANYTHING, "{failure:?}");
        }
    }

    #[test]
    fn a_wrong_command_line_is_answered_in_the_same_form() {
        let check = |line: &str, expected: Expect| {
            let failure = Failure::from(&crate::args::Args::try_parse_from(line.split(' ')).unwrap_err());
            check_shape(&failure);
            expected.assert_eq(&format!("{}\n  {}", failure.what, failure.advice[0]));
        };
        check(
            "archon run",
            expect![[r#"
                the following required arguments were not provided: <TASK>...
                  usage: archon run <TASK>...; --help shows more"#]],
        );
        check(
            "archon run --mode loud hi",
            expect![[r#"
                invalid value 'loud' for '--mode <MODE>'
                  [possible values: native, text]; --help shows more"#]],
        );
        check(
            "archon rnu hi",
            expect![[r#"
                unrecognized subcommand 'rnu'
                  did you mean `run`? --help shows more"#]],
        );
        check(
            "archon run --modle M hi",
            expect![[r#"
                unexpected argument '--modle' found
                  did you mean `--model`? --help shows more"#]],
        );
        check(
            "archon runs lits",
            expect![[r#"
                unrecognized subcommand 'lits'
                  did you mean `list`? --help shows more"#]],
        );
        check(
            "archon run --continue --session s hi",
            expect![[r#"
                the argument '--continue' cannot be used with '--session <NAME>'
                  usage: archon run --continue <TASK>...; --help shows more"#]],
        );
        check(
            "archon run --max-turns 0 hi",
            expect![[r#"
                invalid value '0' for '--max-turns <N>': 0 is not in 1..=4294967295
                  --help shows more"#]],
        );
    }
}
