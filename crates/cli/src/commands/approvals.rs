//! `archon approvals`: the questions that wait for an answer, and answering them.

use std::sync::Arc;

use archon::{
    Approvals,
    types::{Answer, Json, PendingApproval, QuestionKind},
};
use clap::Subcommand;

use crate::{app::App, exit::Exit, failure::Failure, output::Look, question, text::visible};

/// What to do with questions.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// The questions of runs that wait
    List,
    /// All of a question: what is going to happen, the differences and the arguments
    Show {
        /// The question's id, or the beginning of it
        question: String,
    },
    /// Say yes; the run goes on when it is resumed
    Approve {
        /// The question's id, or the beginning of it
        question: String,
        /// Do it with these arguments instead: a JSON object
        #[arg(long, value_name = "JSON")]
        edit: Option<String>,
    },
    /// Say what a call came to, in its place: for one that asks you, or that was cut off and has happened
    Reply {
        /// The question's id, or the beginning of it
        question: String,
        /// The result of the call, for the model
        text: String,
    },
    /// Say no
    Deny {
        /// The question's id, or the beginning of it
        question: String,
        /// Why, for the model
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
}

impl ApprovalsCommand {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let approvals = Approvals::new(Arc::new(app.journal()));
        let open = approvals.list(None).await?;
        match self {
            Self::List => {
                for pending in &open {
                    app.item(pending, || line(pending));
                }
                if !open.is_empty() && !app.json {
                    app.output.note(Look::Dim, "all of a question: archon approvals show QUESTION");
                }
                Ok(Exit::Finished)
            }
            Self::Show { question } => {
                let pending = meant(&open, &question)?;
                app.item(pending, || whole(pending));
                Ok(Exit::Finished)
            }
            Self::Approve { question, edit } => {
                let answer = match edit {
                    None => Answer::Approve,
                    Some(text) => Answer::Edit { arguments: arguments(&text)? },
                };
                answered(&approvals, &open, &question, answer, app).await
            }
            Self::Reply { question, text } => {
                answered(&approvals, &open, &question, Answer::Reply { text }, app).await
            }
            Self::Deny { question, reason } => {
                answered(&approvals, &open, &question, Answer::Cancel { reason }, app).await
            }
        }
    }
}

async fn answered(
    approvals: &Approvals,
    open: &[PendingApproval],
    question: &str,
    answer: Answer,
    app: &App,
) -> Result<Exit, Failure> {
    let pending = meant(open, question)?;
    if matches!(answer, Answer::Edit { .. }) && !pending.request.allow_modification {
        return Err(Failure::usage("this call must not be changed", "approve or deny it"));
    }
    if matches!(answer, Answer::Reply { .. })
        && !pending.request.options.iter().any(|option| option == "reply")
    {
        return Err(Failure::usage("this question takes no text for an answer", "approve or deny it"));
    }
    if !approvals.answer(pending, answer).await? {
        return Err(Failure::failed(
            "somebody else has answered it",
            "`archon approvals list` shows what waits",
        ));
    }
    let resume = super::run::resume_line(app, pending.run.as_str(), None);
    app.output.note(Look::Plain, format!("resume with: {resume}"));
    let note = "what the run had of --memory, --embedder, --workspace and --project-file, say again";
    app.output.note(Look::Dim, note);
    Ok(Exit::Finished)
}

/// The one question whose id this is, or begins.
fn meant<'o>(open: &'o [PendingApproval], question: &str) -> Result<&'o PendingApproval, Failure> {
    let mut meant = open.iter().filter(|pending| pending.request.request_id.starts_with(question));
    match (meant.next(), meant.next()) {
        (Some(pending), None) => Ok(pending),
        _ => {
            let what = format!("{question:?} is not the id of one question that waits");
            Err(Failure::usage(what, "`archon approvals list` shows which do"))
        }
    }
}

/// What is going to happen, with a mark if that is more than a line holds.
fn line(pending: &PendingApproval) -> String {
    let request = &pending.request;
    let summary = visible(&request.action_summary);
    let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    // Who is to look whether a call has happened has to see the call.
    let most = if request.kind == QuestionKind::InDoubt { usize::MAX } else { SUMMARY };
    let more = summary.chars().count().saturating_sub(most);
    let shown: String = summary.chars().take(most).collect();
    let id = &request.request_id;
    match more {
        0 => format!("{id}  {}  {shown}", pending.run),
        more => format!(
            "{id}  {}  {shown} ... {more} more characters not shown: `archon approvals show {id}` prints all",
            pending.run
        ),
    }
}

/// Characters of what is going to happen that stand in the list.
const SUMMARY: usize = 100;

fn whole(pending: &PendingApproval) -> String {
    let lines = question::whole(&pending.request).into_iter().map(|(_, line)| line);
    let ids = format!("{}  {}", pending.request.request_id, pending.run);
    [ids].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn arguments(text: &str) -> Result<Json, Failure> {
    match serde_json::from_str::<Json>(text) {
        Ok(arguments) if arguments.is_object() => Ok(arguments),
        _ => {
            Err(Failure::usage("the arguments are no JSON object", "say them as '{\"path\": \"notes.txt\"}'"))
        }
    }
}
