//! What people do with a run: steer, follow up, cancel, resume, fork.

use std::sync::Arc;

use archon_types::{Content, MoreLimits, Record, RecordBody};
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

/// The place of a fork: a number of turns, or a record; the end of the run if neither is set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    turns: Option<u32>,
    record: Option<u64>,
}

pub(crate) async fn fork(mut call: Call) -> Reply {
    let run = call.run().await?;
    let body: ForkBody = call.json().await?;
    let turns = match (body.turns, body.record) {
        (Some(_), Some(_)) => return Err(Problem::new(Rule::Body, "set `turns` or `record`, and not both")),
        (turns, None) => turns,
        (None, Some(seq)) => Some(turns_before(&call.runs().records(&run, None).await?.records, seq)?),
    };
    let fork = call.runs().fork(&run, turns).await?;
    json(StatusCode::CREATED, &fork)
}

/// Returns the number of turns that a fork at a record keeps. The turn that has the record is begun again, unless a tool
/// call of this turn had started by then: its effects must not be repeated, so the whole turn is kept.
fn turns_before(records: &[Arc<Record>], seq: u64) -> Result<u32, Problem> {
    if records.last().is_none_or(|last| last.seq < seq) {
        return Err(Problem::new(Rule::Body, format!("record: the log has no record {seq}")));
    }
    let (mut turn, mut has_effects) = (0, false);
    for record in records.iter().take_while(|record| record.seq <= seq) {
        match &record.body {
            RecordBody::ModelCallStarted { turn: next, .. } => (turn, has_effects) = (*next, false),
            RecordBody::ToolCallStarted { .. } => has_effects = true,
            _ => {}
        }
    }
    Ok(turn + u32::from(has_effects))
}

#[cfg(test)]
mod tests {
    use archon_types::{CallId, CommandId, Effect, Timestamp};

    use super::*;

    #[test]
    fn turns_before_keeps_a_turn_whose_tools_have_started() {
        let asks = |turn| RecordBody::ModelCallStarted {
            command: CommandId(0),
            attempt: 0,
            turn,
            request_hash: String::new(),
        };
        let acts = || RecordBody::ToolCallStarted {
            call: CallId::new(CommandId(0), 0),
            attempt: 0,
            effect: Effect::SideEffect,
            child_run: None,
        };
        let bodies =
            [RecordBody::ClockRead, asks(0), acts(), RecordBody::ClockRead, asks(1), RecordBody::ClockRead];
        let record = |(seq, body)| Arc::new(Record { seq, at: Timestamp::default(), body });
        let records: Vec<_> = (0..).zip(bodies).map(record).collect();
        for (seq, turns) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1), (5, 1)] {
            assert_eq!(turns_before(&records, seq).unwrap(), turns, "record {seq}");
        }
        assert!(turns_before(&records, 6).is_err());
        assert!(turns_before(&[], 0).is_err());
    }
}
