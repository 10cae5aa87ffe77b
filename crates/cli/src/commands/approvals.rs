//! `archon approvals`: lists and answers the questions of suspended runs.

use archon::{
    types::{Answer, AnswerRuns, Json, PendingApproval, QuestionKind, RunStatus, StartRuns},
    views::ArgumentSource,
};
use clap::Subcommand;

use super::{RecordedFlags, resume::print_result};
use crate::{
    app::App, config::Settings, drive::follow, exit::Exit, failure::Failure, output::Look, provenance,
    question, text::visible,
};

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the questions of runs that wait
    List,
    /// Show the whole question: the effect of the call, the differences and the arguments
    Show {
        /// The question's id, or its beginning
        question: String,
    },
    /// Answer yes, and let the run continue
    Approve {
        #[command(flatten)]
        flags: RecordedFlags,
        /// The question's id, or its beginning
        question: String,
        /// Run the call with these arguments instead: a JSON object
        #[arg(long, value_name = "JSON")]
        edit: Option<String>,
    },
    /// Give the result of a call in its place: for a call that asks you, or that was interrupted after its
    /// effect
    Reply {
        #[command(flatten)]
        flags: RecordedFlags,
        /// The question's id, or its beginning
        question: String,
        /// The result of the call, for the model
        text: String,
    },
    /// Answer no, and let the run continue without the call
    Deny {
        #[command(flatten)]
        flags: RecordedFlags,
        /// The question's id, or its beginning
        question: String,
        /// The reason, for the model
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Let the runs whose questions have expired continue, as after a no
    Sweep {
        #[command(flatten)]
        flags: RecordedFlags,
    },
}

impl ApprovalsCommand {
    pub(crate) fn settings(&self) -> Option<Settings> {
        match self {
            Self::List | Self::Show { .. } => None,
            Self::Approve { flags, .. }
            | Self::Reply { flags, .. }
            | Self::Deny { flags, .. }
            | Self::Sweep { flags } => Some(flags.settings()),
        }
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::List => {
                let open = app.runs()?.questions(None).await?;
                open.iter().for_each(|pending| app.item(pending, || line(pending)));
                app.hint_if(!open.is_empty(), "the whole question: archon approvals show QUESTION");
                Ok(Exit::Finished)
            }
            Self::Show { question } => {
                let open = app.runs()?.questions(None).await?;
                let pending = find_question(&open, &question)?;
                let sources = provenance::of_pending(&app.journal(), pending).await;
                app.item(pending, || whole(pending, &sources));
                Ok(Exit::Finished)
            }
            Self::Approve { question, edit, .. } => {
                let answer = match edit {
                    None => Answer::Approve,
                    Some(text) => Answer::Edit { arguments: arguments(&text)? },
                };
                answered(app, &question, answer).await
            }
            Self::Reply { question, text, .. } => answered(app, &question, Answer::Reply { text }).await,
            Self::Deny { question, reason, .. } => answered(app, &question, Answer::Cancel { reason }).await,
            Self::Sweep { .. } => sweep(app).await,
        }
    }
}

/// Answers a question, and shows the run while it continues in this process. If another process works on the run, only
/// a note is shown.
async fn answered(app: &App, question: &str, answer: Answer) -> Result<Exit, Failure> {
    let runs = app.open_runs()?;
    let open = runs.questions(None).await?;
    let pending = find_question(&open, question)?;
    if matches!(answer, Answer::Edit { .. }) && !pending.request.allow_modification {
        return Err(Failure::usage("this call must not be changed", "approve or deny it"));
    }
    if matches!(answer, Answer::Reply { .. })
        && !pending.request.options.iter().any(|option| option == "reply")
    {
        return Err(Failure::usage("this question cannot be answered with a text", "approve or deny it"));
    }
    let before = runs.records(&pending.run, None).await?.records;
    let is_elsewhere = runs.get(&pending.run).await?.status == RunStatus::Running;
    if !runs.answer(&pending.request.request_id, answer).await? {
        return Err(Failure::failed(
            "another person or process has answered the question",
            "`archon approvals list` shows the open questions",
        ));
    }
    if is_elsewhere {
        app.output.note(Look::Plain, format!("another process works on {} and continues it", pending.run));
        return Ok(Exit::Finished);
    }
    follow(app, &runs, &pending.run, before).await
}

async fn sweep(app: &App) -> Result<Exit, Failure> {
    let runs = app.open_runs()?;
    let swept = runs.sweep().await?;
    app.hint_if(swept.is_empty(), "no question has expired");
    print_result(app, &runs, swept, RunStatus::Suspended).await
}

/// Returns the question with this id or beginning of an id, if exactly one question has it.
fn find_question<'o>(open: &'o [PendingApproval], question: &str) -> Result<&'o PendingApproval, Failure> {
    let mut found = open.iter().filter(|pending| pending.request.request_id.starts_with(question));
    match (found.next(), found.next()) {
        (Some(pending), None) => Ok(pending),
        _ => {
            let what = format!("{question:?} is not the id of exactly one open question");
            Err(Failure::usage(what, "`archon approvals list` shows the open questions"))
        }
    }
}

/// Formats a question as a line, with a mark if its text was cut.
fn line(pending: &PendingApproval) -> String {
    let request = &pending.request;
    let summary = visible(&request.action_summary);
    let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    // For a call in doubt the whole call is shown, since a person has to check whether it has happened.
    let most = if request.kind == QuestionKind::InDoubt { usize::MAX } else { SUMMARY };
    let more = summary.chars().count().saturating_sub(most);
    let shown: String = summary.chars().take(most).collect();
    let id = &request.request_id;
    let asker = question::asker(request).map(|name| format!("{name}: ")).unwrap_or_default();
    let line = format!("{id}  {}  {asker}{shown}", pending.run);
    match more {
        0 => line,
        more => {
            format!("{line} ... {more} more characters not shown: `archon approvals show {id}` prints all")
        }
    }
}

/// The maximum number of characters of a question's summary in the list.
const SUMMARY: usize = 100;

fn whole(pending: &PendingApproval, sources: &[ArgumentSource]) -> String {
    let lines = question::whole(&pending.request, sources).into_iter().map(|(_, line)| line);
    let ids = format!("{}  {}", pending.request.request_id, pending.run);
    [ids].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn arguments(text: &str) -> Result<Json, Failure> {
    match serde_json::from_str::<Json>(text) {
        Ok(arguments) if arguments.is_object() => Ok(arguments),
        _ => Err(Failure::usage(
            "the arguments are not a JSON object",
            "write them as '{\"path\": \"notes.txt\"}'",
        )),
    }
}
