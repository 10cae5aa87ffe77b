//! The open questions of runs to people, with the sources of the arguments of calls; and the answers to the
//! questions.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use archon_types::{Answer, PendingApproval, Record, RunId, RunService, TenantId};
use archon_views::{ArgumentSource, SourceLogs, TextSources};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    problem::{Problem, Rule},
    reply::{Reply, json},
    request::Call,
};

/// The maximum number of runs whose logs are read for one list. Runs with the oldest questions come first.
const RUNS: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalsQuery {
    tenant: Option<TenantId>,
    /// False to leave out the sources of arguments; then no logs are read.
    #[serde(default = "yes")]
    provenance: bool,
}

const fn yes() -> bool {
    true
}

#[derive(Serialize)]
struct ApprovalBody<'a> {
    #[serde(flatten)]
    question: &'a PendingApproval,
    /// The sources of the call's arguments; null if they were not requested, or if a log that contains them
    /// cannot be read.
    provenance: Option<Vec<ArgumentSource>>,
}

pub(crate) async fn list(call: Call) -> Reply {
    let ApprovalsQuery { tenant, provenance } = call.query()?;
    let runs = call.runs().clone();
    let questions = runs.questions(tenant.as_ref()).await?;
    let mut sources = match provenance {
        true => find_sources(&*runs, &questions).await,
        false => HashMap::new(),
    };
    let approvals: Vec<_> = questions
        .iter()
        .map(|question| ApprovalBody { question, provenance: sources.remove(&question.request.request_id) })
        .collect();
    json(StatusCode::OK, &json!({ "approvals": approvals }))
}

/// Returns the sources of the arguments in questions, by the id of the question. A question is missing if a log
/// cannot be read. The logs of each run are read once.
async fn find_sources(
    runs: &dyn RunService,
    questions: &[PendingApproval],
) -> HashMap<String, Vec<ArgumentSource>> {
    let (mut found, mut read) = (HashMap::new(), HashSet::new());
    for first in questions.iter().filter(|question| question.request.details["arguments"].is_object()) {
        if read.len() == RUNS || !read.insert(first.asker()) {
            continue;
        }
        let Some(texts) = texts_of(runs, first).await else { continue };
        for question in questions.iter().filter(|question| question.asker() == first.asker()) {
            found.insert(question.request.request_id.clone(), texts.of_request(&question.request));
        }
    }
    found
}

/// Reads the texts of the run that asks, and of the earlier runs that it continues. Returns `None` if a log
/// cannot be read, since that log may contain the earliest record with a text.
async fn texts_of(runs: &dyn RunService, question: &PendingApproval) -> Option<TextSources> {
    let mut log = log_of(runs, question.asker()).await?;
    if log.is_empty() {
        // An agent without a log asks in that of its caller.
        log = log_of(runs, &question.run).await?;
    }
    let mut logs = SourceLogs::new(log);
    while let Some(run) = logs.missing().cloned() {
        logs.add(log_of(runs, &run).await?);
    }
    Some(logs.into_sources())
}

/// Returns the readable part of a log, which is empty if there is no log; `None` if the log cannot be read.
async fn log_of(runs: &dyn RunService, run: &RunId) -> Option<Vec<Arc<Record>>> {
    match runs.records(run, None).await {
        Ok(salvaged) => Some(salvaged.records),
        Err(error) if error.http_status() == 404 => Some(Vec::new()),
        Err(error) => {
            tracing::warn!(target: "archon::server", %run, %error, "the sources of a question are not shown");
            None
        }
    }
}

pub(crate) async fn answer(mut call: Call) -> Reply {
    let request = call.parameter("request").await?;
    let answer: Answer = call.json().await?;
    if matches!(answer, Answer::Expired | Answer::Withdrawn { .. }) {
        return Err(Problem::new(Rule::Body, "a person answers approve, edit, cancel, trust or reply"));
    }
    match call.runs().answer(&request, answer).await? {
        true => json(StatusCode::OK, &json!({ "request": request })),
        false => {
            let detail = format!("question {request} was answered before, has expired, or is not there");
            Err(Problem::new(Rule::Answered, detail).advise("GET /v1/approvals lists the open questions"))
        }
    }
}
