//! `archon plan approve` and `archon plan reject`: answer a question of a plan's run, and resume the run.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use archon::{
    planner::{fold, open_questions},
    types::{Answer, AnswerRuns, OutcomeStatus, StartRuns},
};

use super::WhichRun;
use crate::{
    app::App,
    command_line::resume_line,
    commands::RecordedFlags,
    confirm::edited,
    drive::{follow, watch},
    exit::Exit,
    failure::Failure,
    output::Look,
    text::one_line,
};

#[derive(Debug, clap::Args)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(super) flags: RecordedFlags,
    /// Follow this plan instead: a file in the format of `archon plan show RUN --format json`; `-` reads
    /// standard input
    #[arg(long, value_name = "FILE")]
    edit: Option<PathBuf>,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    pub(super) flags: RecordedFlags,
    /// The reason, for the next plan
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The question's id, if the run has several questions
    #[arg(long, value_name = "ID")]
    question: Option<String>,
    #[command(flatten)]
    run: WhichRun,
}

enum Reply {
    Yes,
    Edited(PathBuf),
    No(String),
}

impl ApproveArgs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let reply = self.edit.map_or(Reply::Yes, Reply::Edited);
        answer(app, &self.which, reply).await
    }
}

impl RejectArgs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        answer(app, &self.which, Reply::No(self.reason.unwrap_or_default())).await
    }
}

async fn answer(app: &App, which: &Which, reply: Reply) -> Result<Exit, Failure> {
    let (run, runs) = (which.run.find(app).await?, app.open_runs()?);
    let records = runs.records(&run, None).await?.whole()?;
    let shows = |text: &str| format!("`archon {text} {run}` shows its state");
    let Some(machine) = fold(&records) else {
        return Err(Failure::usage(format!("run {run} has no plan"), shows("runs show")));
    };
    let open = open_questions(&records);
    let wanted = |id: &str| open.iter().find(|(_, request)| request.request_id == id);
    let (call, request) = match (which.question.as_deref(), open.as_slice()) {
        (_, []) => return Err(Failure::usage(format!("run {run} has no open question"), shows("plan show"))),
        (None, [only]) => only,
        (Some(id), _) if wanted(id).is_some() => wanted(id).unwrap_or(&open[0]),
        _ => {
            let name = |(_, request): &(_, &archon::types::ApprovalRequest)| {
                let what = one_line(&request.action_summary, 120);
                format!("--question {}: {what}", request.request_id)
            };
            let all: Vec<String> = open.iter().map(name).collect();
            let what = format!("run {run} has another open question, or several");
            return Err(Failure::choices(Exit::Usage, what, &all));
        }
    };
    let is_of_plan = machine.node(*call).is_none();
    let (answer, is_no) = match reply {
        Reply::Yes => (Answer::Approve, false),
        Reply::Edited(_) if !is_of_plan => {
            return Err(Failure::usage("the question is about a subtask, not the plan", "leave --edit out"));
        }
        Reply::Edited(file) => {
            let asked_about = machine.proposal().map_or_else(|| machine.task(), |(_, task)| task);
            (edited(&asked_about, &text_of(&file)?)?, false)
        }
        Reply::No(reason) => (Answer::Cancel { reason }, true),
    };
    if !runs.answer(&request.request_id, answer).await? {
        let what = format!("question {} was answered before, or has expired", request.request_id);
        let advice = format!(
            "`archon plan show {run}` shows the state of the run; `archon resume {run}` continues it"
        );
        return Err(Failure::failed(what, advice));
    }
    if is_no && is_of_plan {
        let ended = watch(app, &runs, &run, &records).await?;
        // After a no, a failed run is the wanted result.
        return match ended.outcome.status {
            OutcomeStatus::Failed => {
                app.output.note(Look::Dim, format!("no subtask of the plan of {run} was started"));
                Ok(Exit::Finished)
            }
            _ => ended.report(&resume_line(app, run.as_str()), app),
        };
    }
    follow(app, &runs, &run, records).await
}

fn text_of(file: &Path) -> Result<String, Failure> {
    let read = match file.as_os_str() == "-" {
        true => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => std::fs::read_to_string(file),
    };
    let advice = "give the path of a file in the format of `archon plan show RUN --format json`";
    read.map_err(|e| Failure::usage(format!("cannot read the plan in {}: {e}", file.display()), advice))
}
