//! Sessions: a list, and the messages of one session.

use std::collections::HashMap;

use archon_types::{Message, RunFilter, RunHead, RunId, RunStatus, SessionId, TenantId, Timestamp};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    reply::{Reply, json},
    request::Call,
    runs::TenantQuery,
};

/// The default and the maximum number of runs that are read for a list of sessions.
const RUNS: (usize, usize) = (500, 5_000);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionsQuery {
    tenant: Option<TenantId>,
    runs: Option<usize>,
}

/// A session in the list, with the status of its newest run.
#[derive(Debug, PartialEq, Serialize)]
struct SessionHead {
    session: SessionId,
    tenant: Option<TenantId>,
    /// The newest run.
    run: RunId,
    status: RunStatus,
    updated_at: Timestamp,
    /// The prompt of the oldest run that was read, cut to 80 characters.
    task: String,
    /// The number of runs that were read.
    runs: usize,
}

/// Lists the sessions of the newest runs, last written first.
pub(crate) async fn list(call: Call) -> Reply {
    let query: SessionsQuery = call.query()?;
    let mut filter = RunFilter::all().top_level();
    filter.tenant = query.tenant;
    filter.limit = Some(query.runs.unwrap_or(RUNS.0).clamp(1, RUNS.1));
    let heads = call.runs().list(&filter).await?;
    json(StatusCode::OK, &json!({ "sessions": sessions(heads) }))
}

pub(crate) async fn messages(mut call: Call) -> Reply {
    let session = SessionId::new(call.parameter("session").await?);
    let TenantQuery { tenant } = call.query()?;
    let messages = call.runs().history(&session, tenant.as_ref()).await?;
    let messages: Vec<_> = messages.iter().map(Message::without_media_data).collect();
    json(StatusCode::OK, &json!({ "messages": messages }))
}

/// Groups runs by tenant and session. `heads` must be ordered, last written first.
fn sessions(heads: Vec<RunHead>) -> Vec<SessionHead> {
    let mut places = HashMap::new();
    let mut sessions: Vec<SessionHead> = Vec::new();
    for head in heads {
        let Some(session) = head.session else { continue };
        let place = *places.entry((head.tenant.clone(), session.clone())).or_insert(sessions.len());
        match sessions.get_mut(place) {
            Some(known) => {
                known.runs += 1;
                known.task = head.task;
            }
            None => sessions.push(SessionHead {
                session,
                tenant: head.tenant,
                run: head.run_id,
                status: head.status,
                updated_at: head.updated_at,
                task: head.task,
                runs: 1,
            }),
        }
    }
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(run: &str, session: &str, tenant: &str, task: &str) -> RunHead {
        let mut head = RunHead::of(RunId::new(run), &[]);
        (head.session, head.tenant) = (Some(session.into()), Some(tenant.into()));
        head.task = task.to_owned();
        head
    }

    #[test]
    fn sessions_have_the_newest_run_and_the_oldest_prompt() {
        let heads = vec![
            head("r4", "a", "anna", "fourth"),
            head("r3", "b", "anna", "third"),
            head("r2", "a", "ben", "second"),
            head("r1", "a", "anna", "first"),
        ];
        let found: Vec<_> = sessions(heads)
            .into_iter()
            .map(|head| (head.run.to_string(), head.session.to_string(), head.task, head.runs))
            .collect();
        let row = |run: &str, session: &str, task: &str, runs| {
            (run.to_owned(), session.to_owned(), task.to_owned(), runs)
        };
        assert_eq!(
            found,
            [row("r4", "a", "first", 2), row("r3", "b", "third", 1), row("r2", "a", "second", 1)]
        );
    }
}
