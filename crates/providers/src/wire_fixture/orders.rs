//! Feeds events to a decoder in invalid orders, and checks that the message stays consistent with its
//! deltas.

use std::collections::VecDeque;

use archon_types::{Content, ModelEvent, StopReason};

use crate::answer::BodyEnd;
use crate::http::events::{Decoder, Framing, Progress};

/// Feeds the events to a decoder, then ends or cancels the answer, and checks that the message agrees with
/// its deltas.
pub(crate) fn assert_survives<D: Decoder>(
    mut decoder: D,
    events: impl IntoIterator<Item = <D::Frames as Framing>::Event>,
    cancelled: bool,
) {
    let (mut out, mut failed) = (VecDeque::new(), false);
    for event in events {
        match decoder.event(event, &mut out) {
            Ok(Progress::More) => {}
            Ok(Progress::Last) => break,
            Err(_) => {
                failed = true;
                break;
            }
        }
    }
    if cancelled {
        let message = decoder.abort();
        assert_eq!(message.stop_reason, StopReason::Aborted);
        assert_eq!(message.tool_calls().count(), 0);
    } else if !failed && decoder.end(BodyEnd::Complete, &mut out).is_ok() {
        let Some(ModelEvent::Done(message)) = out.pop_back() else { panic!("no end") };
        let count = |is: fn(&ModelEvent) -> bool| out.iter().filter(|event| is(event)).count();
        let calls = message.tool_calls().count();
        assert_eq!(count(|e| matches!(e, ModelEvent::ToolCallStart { .. })), calls);
        assert_eq!(count(|e| matches!(e, ModelEvent::ToolCallEnd { .. })), calls);
        let shown = |of: fn(&ModelEvent) -> Option<&str>| -> String { out.iter().filter_map(of).collect() };
        let said =
            |of: fn(&Content) -> Option<&str>| -> String { message.content.iter().filter_map(of).collect() };
        let text = shown(|e| if let ModelEvent::TextDelta(text) = e { Some(text) } else { None });
        assert_eq!(text, said(Content::as_text));
        let thought = shown(|e| if let ModelEvent::ThinkingDelta(text) = e { Some(text) } else { None });
        assert_eq!(
            thought,
            said(|c| if let Content::Thinking { thinking, .. } = c { Some(thinking) } else { None })
        );
    }
}
