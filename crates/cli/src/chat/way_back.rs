//! The way back to an earlier message of the person: the point of the session before it.

use archon::types::{RecordBody, RunId};

use super::history_of_session::{History, message_of_person};
use crate::assemble::asks_no_model;

/// A point of a session from which it can be continued another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The beginning: what is sent from here begins a new session.
    Beginning,
    /// The end of a turn of a run.
    After {
        /// The run.
        run: RunId,
        /// The number of its turns before the point.
        turns: u32,
    },
}

/// An earlier message of the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) text: String,
    /// The point before the message.
    pub(crate) from: Point,
    /// The number of messages and answers that are left behind, this message included.
    pub(crate) left: usize,
}

/// Returns the messages of the person, newest first. Lines that the person ran are none, because they were not for the
/// agent.
pub(crate) fn earlier(history: &History) -> Vec<Earlier> {
    let (mut point, mut at_point) = (Point::Beginning, 0);
    let (mut turns, mut count, mut is_for_agent) = (0, 0, true);
    let (mut newest, mut found) = (None, Vec::new());
    for (run, record) in &history.records {
        if newest.replace(run) != Some(run) {
            turns = 0;
        }
        match &record.body {
            RecordBody::RunStarted(started) => is_for_agent = !asks_no_model(&started.config),
            RecordBody::ModelCallFinished { .. } => {
                turns += 1;
                count += 1;
                (point, at_point) = (Point::After { run: run.clone(), turns }, count);
            }
            RecordBody::MessageAdded { .. } => {
                let Some(text) = message_of_person(record) else { continue };
                if is_for_agent {
                    found.push((Earlier { text, from: point.clone(), left: 0 }, at_point));
                }
                count += 1;
            }
            _ => {}
        }
    }
    found.into_iter().rev().map(|(message, before)| Earlier { left: count - before, ..message }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archon::types::{
        AgentMessage, AssistantMessage, CommandId, Message, PromptSource, Record, Timestamp,
    };

    use super::*;

    fn history(bodies: Vec<(&str, RecordBody)>) -> History {
        let record = |(seq, (run, body)): (u64, (&str, RecordBody))| {
            (RunId::new(run), Arc::new(Record { seq, at: Timestamp::default(), body }))
        };
        History { records: (0..).zip(bodies).map(record).collect(), ..History::default() }
    }

    fn prompt(text: &str) -> RecordBody {
        let message = AgentMessage::from(Message::user(text, Timestamp::default()));
        RecordBody::MessageAdded { message, source: PromptSource::Prompt }
    }

    fn answer() -> RecordBody {
        RecordBody::ModelCallFinished {
            command: CommandId(0),
            attempt: 0,
            message: Box::new(AssistantMessage::default()),
        }
    }

    // spec: CL-04
    #[test]
    fn earlier_messages_are_newest_first_with_the_turn_before_each() {
        let history = history(vec![
            ("run_1", prompt("one")),
            ("run_1", answer()),
            ("run_1", answer()),
            ("run_2", prompt("two")),
            ("run_2", answer()),
            ("run_2", prompt("three")),
        ]);
        let after = |run: &str, turns| Point::After { run: RunId::new(run), turns };
        let expected = [
            ("three", after("run_2", 1), 1),
            // The turns of a run are counted from its beginning.
            ("two", after("run_1", 2), 3),
            ("one", Point::Beginning, 6),
        ];
        let found = earlier(&history);
        let found: Vec<_> = found.iter().map(|e| (e.text.as_str(), e.from.clone(), e.left)).collect();
        assert_eq!(found, expected);
    }
}
