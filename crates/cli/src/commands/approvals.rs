//! `archon approvals`: the questions that wait for an answer, and answering them.

use std::sync::Arc;

use archon::{
    Approvals,
    types::{Answer, Json, PendingApproval},
};
use clap::Subcommand;

use crate::{
    app::App,
    exit::Exit,
    failure::Failure,
    output::Look,
    text::{one_line, printable},
};

/// What to do with questions.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// The questions of runs that wait
    List,
    /// Say yes; the run goes on when it is resumed
    Approve {
        /// The question's id, or the beginning of it
        question: String,
        /// Do it with these arguments instead: a JSON object
        #[arg(long, value_name = "JSON")]
        edit: Option<String>,
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
                Ok(Exit::Finished)
            }
            Self::Approve { question, edit } => {
                let answer = match edit {
                    None => Answer::Approve,
                    Some(text) => Answer::Edit { arguments: arguments(&text)? },
                };
                answered(&approvals, &open, &question, answer, app).await
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
    let mut meant = open.iter().filter(|pending| pending.request.request_id.starts_with(question));
    let (Some(pending), None) = (meant.next(), meant.next()) else {
        let what = format!("{question:?} is not the id of one question that waits");
        return Err(Failure::usage(what, "`archon approvals list` shows which do"));
    };
    if matches!(answer, Answer::Edit { .. }) && !pending.request.allow_modification {
        return Err(Failure::usage("this call must not be changed", "approve or deny it"));
    }
    if !approvals.answer(pending, answer).await? {
        return Err(Failure::failed(
            "somebody else has answered it",
            "`archon approvals list` shows what waits",
        ));
    }
    app.output.note(Look::Plain, format!("resume with: archon resume {}", pending.run));
    Ok(Exit::Finished)
}

fn line(pending: &PendingApproval) -> String {
    let request = &pending.request;
    let summary = printable(&one_line(&request.action_summary, 100));
    format!("{}  {}  {summary}", request.request_id, pending.run)
}

fn arguments(text: &str) -> Result<Json, Failure> {
    match serde_json::from_str::<Json>(text) {
        Ok(arguments) if arguments.is_object() => Ok(arguments),
        _ => {
            Err(Failure::usage("the arguments are no JSON object", "say them as '{\"path\": \"notes.txt\"}'"))
        }
    }
}
