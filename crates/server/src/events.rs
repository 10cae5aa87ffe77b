//! The events of a run as server-sent events: its records with their numbers as ids, and deltas between them.

use std::sync::Arc;

use archon_types::{
    Event, Record, RecordBody, RunError, RunHead, RunId, RunService, RunStatus, Timestamp, Watch,
};
use axum::http::StatusCode;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch as change};

use crate::{
    problem::{Problem, Rule},
    reply::{HEARTBEAT, Reply, empty, event_stream},
    request::Call,
    state::State,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The sequence number of the last record that the client has. The header `Last-Event-ID` has precedence.
    after: Option<u64>,
    /// True to send the events of child runs, too.
    #[serde(default)]
    children: bool,
}

pub(crate) async fn watch(mut call: Call) -> Reply {
    let run = call.run().await?;
    let EventsQuery { after, children } = call.query()?;
    let after = last_id(&call)?.or(after);
    let head = call.runs().get(&run).await?;
    if let Some(after) = after
        && head.status.has_ended()
        && !has_more(&**call.runs(), &run, Some(after)).await?
    {
        // An `EventSource` connects again after the end of a stream, unless it gets this status.
        return Ok(empty(StatusCode::NO_CONTENT));
    }
    let permit = call.token.open_stream()?;
    let changes = call.state.changes.subscribe();
    let events = call.runs().watch(&run, after).await?;
    let feed = Feed {
        runs: call.runs().clone(),
        state: call.state,
        run,
        after,
        with_children: children,
        phase: Phase::Watching(events),
        written_at: head.updated_at,
        is_idle: true,
        is_over: false,
        changes,
        _permit: permit,
    };
    Ok(event_stream(stream::unfold(feed, |mut feed| async move {
        let text = feed.next().await?;
        Some((text, feed))
    })))
}

/// Returns true if the log has records after the record `after`, or has a damaged end. A watch reports both.
async fn has_more(runs: &dyn RunService, run: &RunId, after: Option<u64>) -> Result<bool, RunError> {
    let last = runs.records_before(run, None, 1).await?;
    let is_behind = |record: &Arc<Record>| after.is_none_or(|after| record.seq > after);
    Ok(last.damage.is_some() || last.records.last().is_some_and(is_behind))
}

/// Returns the id of the header `Last-Event-ID`.
fn last_id(call: &Call) -> Result<Option<u64>, Problem> {
    let Some(id) = call.header("last-event-id")?.filter(|id| !id.is_empty()) else { return Ok(None) };
    id.parse().map(Some).map_err(|_| {
        Problem::new(Rule::Header, format!("Last-Event-ID: {id:?} is not the number of a record"))
    })
}

/// The state of one stream.
struct Feed {
    state: Arc<State>,
    runs: Arc<dyn RunService>,
    run: RunId,
    /// The number of the last record that was sent.
    after: Option<u64>,
    with_children: bool,
    phase: Phase,
    /// The time of the last record that this stream knows.
    written_at: Timestamp,
    /// True if the current watch has not returned an event of the run yet.
    is_idle: bool,
    /// True if the last record that was sent is the outcome of the run.
    is_over: bool,
    changes: change::Receiver<u64>,
    _permit: OwnedSemaphorePermit,
}

enum Phase {
    /// The run works, or its log is being read.
    Watching(Watch),
    /// The run is suspended, or no process works on it.
    Resting,
    /// Everything was sent.
    Done,
}

impl Feed {
    /// Returns the next text of the stream: an event, or a comment after a pause. `None` at the end.
    async fn next(&mut self) -> Option<String> {
        let state = self.state.clone();
        let pause = state.clock.sleep_until(state.now() + state.options.heartbeat);
        tokio::select! {
            biased;
            // Without the event `end`: a browser connects to the next server, and gets what follows.
            () = state.options.end.cancelled() => None,
            text = self.next_event() => text,
            () = pause => Some(HEARTBEAT.to_owned()),
        }
    }

    /// Returns the next event. The future may be dropped before it is ready: the next call begins the
    /// interrupted step again.
    async fn next_event(&mut self) -> Option<String> {
        loop {
            let event = match &mut self.phase {
                Phase::Done => return None,
                Phase::Resting => {
                    if let Some(text) = self.rest().await {
                        return Some(text);
                    }
                    continue;
                }
                Phase::Watching(events) => events.next().await,
            };
            match event {
                Some(Ok(event)) => {
                    if let Some(text) = self.text_of(&event) {
                        return Some(text);
                    }
                }
                Some(Err(error)) => return Some(self.fail(error)),
                None => self.phase = Phase::Resting,
            }
        }
    }

    /// Returns the text of an event; `None` for an event that is not sent.
    fn text_of(&mut self, event: &Event) -> Option<String> {
        let is_own = *event.run() == self.run;
        if is_own {
            self.is_idle = false;
        }
        match event {
            // No log has this record, so no number leads to it.
            Event::Record { record, .. }
                if is_own && !matches!(record.body, RecordBody::LogUnavailable { .. }) =>
            {
                self.after = Some(record.seq);
                self.written_at = record.at;
                self.is_over = matches!(record.body, RecordBody::RunFinished(_));
                Some(
                    self.state
                        .frames
                        .text(record, || frame(Some(record.seq), "record", &event.without_media_data())),
                )
            }
            _ if !is_own && !self.with_children => None,
            Event::Record { .. } => Some(frame(None, "record", &event.without_media_data())),
            _ => Some(frame(None, "delta", &event.without_media_data())),
        }
    }

    /// Checks if the run has ended or goes on. If neither, waits for a change, at most for the time
    /// [`ServerOptions::poll`](crate::ServerOptions::poll). Returns the last event of the stream if the run has
    /// ended or cannot be read.
    async fn rest(&mut self) -> Option<String> {
        let head = match self.runs.get(&self.run).await {
            Ok(head) => head,
            Err(error) => return Some(self.fail(error)),
        };
        if head.status.has_ended() {
            return self.end_of(&head).await;
        }
        let is_new = self.written_at != head.updated_at;
        // A watch of a run at work waits by itself; the pause is for a service whose watch does not.
        let is_running = head.status == RunStatus::Running && !self.is_idle;
        if is_new || is_running {
            (self.written_at, self.is_idle) = (head.updated_at, true);
            return self.watch_again().await;
        }
        let pause = self.state.clock.sleep_until(self.state.now() + self.state.options.poll);
        tokio::select! {
            // A request changed some run.
            _ = self.changes.changed() => {}
            () = pause => {}
        }
        self.is_idle = false;
        None
    }

    /// Ends the stream of a run that has ended. If the log has records that were not sent yet, watches the run
    /// again first.
    async fn end_of(&mut self, head: &RunHead) -> Option<String> {
        if !self.is_over {
            match has_more(&*self.runs, &self.run, self.after).await {
                Ok(true) => return self.watch_again().await,
                Ok(false) => {}
                Err(error) => return Some(self.fail(error)),
            }
        }
        self.phase = Phase::Done;
        Some(frame(None, "end", &json!({ "status": head.status })))
    }

    async fn watch_again(&mut self) -> Option<String> {
        match self.runs.watch(&self.run, self.after).await {
            Ok(events) => {
                self.phase = Phase::Watching(events);
                None
            }
            Err(error) => Some(self.fail(error)),
        }
    }

    fn fail(&mut self, error: RunError) -> String {
        self.phase = Phase::Done;
        text_frame(None, "failure", &Problem::from(error).text())
    }
}

/// Writes a server-sent event.
fn frame(id: Option<u64>, name: &str, data: &impl Serialize) -> String {
    match serde_json::to_string(data) {
        Ok(json) => text_frame(id, name, &json),
        Err(error) => {
            let problem = Problem::new(Rule::Internal, format!("an event cannot be written: {error}"));
            text_frame(None, "failure", &problem.text())
        }
    }
}

/// Writes a server-sent event. `data` is compact JSON, which contains no line breaks.
fn text_frame(id: Option<u64>, name: &str, data: &str) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_escapes_line_breaks_and_has_an_id_for_a_record_only() {
        let text = "one\ntwo\r\nthree";
        assert_eq!(
            frame(Some(7), "record", &json!({ "text": text })),
            "id: 7\nevent: record\ndata: {\"text\":\"one\\ntwo\\r\\nthree\"}\n\n"
        );
        assert_eq!(frame(None, "delta", &1), "event: delta\ndata: 1\n\n");
    }
}
