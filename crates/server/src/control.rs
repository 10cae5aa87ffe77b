//! Requests of people to a run: steer, follow up, cancel, resume, fork.

use archon_types::{AgentId, Content, ForkOptions, MoreLimits, RunError};
use axum::http::StatusCode;
use serde::Deserialize;

use crate::{
    problem::{Problem, Rule},
    reply::{Reply, empty, json},
    request::Call,
    runs::{StartedBody, message},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageBody {
    text: Option<String>,
    #[serde(default)]
    content: Vec<Content>,
}

pub(crate) async fn steer(mut call: Call) -> Reply {
    let run = call.run().await?;
    let body: MessageBody = call.json().await?;
    call.runs().steer(&run, message(body.text, body.content)?).await?;
    Ok(empty(StatusCode::ACCEPTED))
}

pub(crate) async fn follow_up(mut call: Call) -> Reply {
    let run = call.run().await?;
    let body: MessageBody = call.json().await?;
    call.runs().follow_up(&run, message(body.text, body.content)?).await?;
    Ok(empty(StatusCode::ACCEPTED))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelBody {
    reason: Option<String>,
}

pub(crate) async fn cancel(mut call: Call) -> Reply {
    let run = call.run().await?;
    let body: CancelBody = call.json().await?;
    let by = format!("cancelled by {}", call.token.name);
    let reason = body.reason.map_or(by.clone(), |reason| format!("{reason} ({by})"));
    call.runs().cancel(&run, &reason).await?;
    Ok(empty(StatusCode::ACCEPTED))
}

/// Larger limits; see [`MoreLimits`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResumeBody {
    max_turns: Option<u32>,
    max_total_tokens: Option<u64>,
    max_duration_ms: Option<u64>,
    max_cost_micros: Option<u64>,
}

pub(crate) async fn resume(mut call: Call) -> Reply {
    let run = call.run().await?;
    let body: ResumeBody = call.json().await?;
    let mut more = MoreLimits::default();
    more.max_turns = body.max_turns;
    more.max_total_tokens = body.max_total_tokens;
    more.max_duration_ms = body.max_duration_ms;
    more.max_cost_micros = body.max_cost_micros;
    let started = call.runs().resume(&run, &more).await?;
    json(StatusCode::ACCEPTED, &StartedBody::of(&started))
}

/// The options of a fork. `turns` or `record` sets the place; without both, the fork begins at the end of the
/// run. `text` or `content` is a message for the fork. `agent` is the agent whose configuration the fork gets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    turns: Option<u32>,
    record: Option<u64>,
    text: Option<String>,
    #[serde(default)]
    content: Vec<Content>,
    agent: Option<AgentId>,
}

pub(crate) async fn fork(mut call: Call) -> Reply {
    let run = call.run().await?;
    let body: ForkBody = call.json().await?;
    let mut options = match (body.turns, body.record) {
        (Some(_), Some(_)) => return Err(Problem::new(Rule::Body, "set `turns` or `record`, and not both")),
        (Some(turns), None) => ForkOptions::after(turns),
        (None, Some(record)) => ForkOptions::at_record(record),
        (None, None) => ForkOptions::default(),
    };
    if body.text.is_some() || !body.content.is_empty() {
        options.message = Some(message(body.text, body.content)?);
    }
    options.agent.clone_from(&body.agent);
    let fork = call.runs().fork(&run, options).await.map_err(|error| match error {
        // The request names the agent, not the log of a run.
        RunError::NoAgent { ref agent, .. } if body.agent.as_ref() == Some(agent) => {
            Problem::unknown_agent(&error)
        }
        error => error.into(),
    })?;
    json(StatusCode::CREATED, &fork)
}
