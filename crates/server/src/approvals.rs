//! The open questions of runs to people, and their answers.

use archon_types::Answer;
use axum::http::StatusCode;
use serde_json::json;

use crate::{
    problem::{Problem, Rule},
    reply::{Reply, json},
    request::Call,
    runs::TenantQuery,
};

pub(crate) async fn list(call: Call) -> Reply {
    let TenantQuery { tenant } = call.query()?;
    let approvals = call.runs().questions(tenant.as_ref()).await?;
    json(StatusCode::OK, &json!({ "approvals": approvals }))
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
