//! Tests of the lines for the parser: whole, a few at a time, and of a limited length.

use std::{collections::VecDeque, convert::Infallible, task::Waker};

use archon_types::CancellationToken;
use http_body::Frame;
use proptest::prelude::*;

use super::*;
use crate::http::{Timeouts, watch::Watch};

/// A body of pieces that come at once, and that then stays open.
struct KeptOpen(VecDeque<Vec<u8>>);

impl http_body::Body for KeptOpen {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece.into())))),
            None => Poll::Pending,
        }
    }
}

fn body(pieces: impl IntoIterator<Item = Vec<u8>>) -> Body {
    let body = reqwest::Body::wrap(KeptOpen(pieces.into_iter().collect()));
    Body::of(body, Watch::new(CancellationToken::new(), Timeouts::default()))
}

/// Returns the items of a stream until it is pending.
fn at_once<S: Stream + Unpin>(mut stream: S) -> Vec<S::Item> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    while let Poll::Ready(Some(item)) = Pin::new(&mut stream).poll_next(&mut cx) {
        all.push(item);
    }
    all
}

// spec: P-30
#[tokio::test]
async fn the_parser_gets_whole_lines_a_few_at_a_time() {
    let line = |n: usize| format!("{}\r\n", "ä".repeat(n));
    let text = [line(10), line(3 * AT_ONCE), line(100).repeat(50)].concat();
    for size in [1, 7, 1_000, text.len()] {
        let pieces = (text.clone() + "unfinished").into_bytes();
        let parts = at_once(SseBytes::new(body(pieces.chunks(size).map(<[u8]>::to_vec))));
        let parts: Vec<_> =
            parts.into_iter().map(|part| String::from_utf8(part.unwrap().into()).unwrap()).collect();
        assert_eq!(parts.concat(), text, "{size}");
        assert!(parts.iter().all(|part| part.ends_with(['\r', '\n'])), "{size}: {parts:?}");
        assert!(
            parts.iter().all(|part| part.len() <= AT_ONCE + 202 || part.contains(&"ä".repeat(3 * AT_ONCE))),
            "{size}"
        );
    }
}

#[tokio::test]
async fn sse_invalid_utf8_line_is_reported_before_the_connection_ends() {
    let pieces = [b"data: a\n\ndata: \xFF".to_vec(), b"\n\n".to_vec(), b": ping\n\n".to_vec()];
    let events = at_once(Sse::new(body(pieces)));
    assert_eq!(events[0].as_ref().unwrap().data, "a");
    assert!(
        matches!(&events[1], Err(FrameError::Malformed(what)) if what.contains("UTF-8")),
        "{:?}",
        events[1]
    );
}

// An input that a fuzz target found: the parser panics on a mark.
#[tokio::test]
async fn sse_partial_byte_order_mark_is_invalid_utf8() {
    for size in [1, 2, 3, 9] {
        let pieces = b"\xEF\xEF\xBB\xBF\n\n".chunks(size).map(<[u8]>::to_vec);
        let events = at_once(Sse::new(body(pieces)));
        assert!(matches!(&events[..], [Err(FrameError::Malformed(_))]), "{size}: {events:?}");
    }
    let marked = at_once(Sse::new(body([b"\xEF\xBB\xBF\xEF".to_vec(), b"\xBB\xBFdata: a\n\n".to_vec()])));
    assert_eq!(marked[0].as_ref().unwrap().data, "a");
}

#[tokio::test]
async fn sse_line_without_an_end_fails_at_the_size_limit() {
    let pieces = std::iter::repeat_with(|| vec![b'x'; 1 << 20]).take(34);
    let events = at_once(SseBytes::new(body(pieces)));
    assert!(matches!(events[0], Err(BodyError::TooLong)), "{:?}", events.len());
}

/// Returns name and data of each event, by the parser alone.
fn parsed(text: &str) -> Vec<(String, String)> {
    let mut events = EventStream::new(futures_util::stream::iter([Ok::<_, Infallible>(text.to_owned())]));
    let mut cx = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    while let Poll::Ready(Some(event)) = Pin::new(&mut events).poll_next(&mut cx) {
        let event = event.unwrap();
        all.push((event.event, event.data));
    }
    all
}

proptest! {
    // spec: P-24
    #[test]
    fn sse_random_lines_and_chunks_equal_the_reference_parser(
        lines in proptest::collection::vec(proptest::sample::select(LINES), 1..24),
        cuts in proptest::collection::vec(1..40_usize, 1..24),
    ) {
        // At the end of a body an open event is closed.
        let text = lines.concat().trim_start_matches('\u{feff}').to_owned() + "\n\n";
        let mut rest = text.as_bytes();
        let mut pieces = Vec::new();
        for cut in cuts.iter().cycle() {
            let (piece, behind) = rest.split_at(rest.len().min(*cut));
            pieces.push(piece.to_vec());
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        // The timers of a body that stays open need a runtime.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = runtime.enter();
        let name = |name: String| if name.is_empty() { "message".to_owned() } else { name };
        let events = at_once(Sse::new(body(pieces))).into_iter().map(Result::unwrap);
        let events: Vec<_> = events.map(|event| (name(event.event), event.data)).collect();
        prop_assert_eq!(events, parsed(&text));
    }
}

/// Lines that begin, end, name and comment events, in all allowed spellings.
const LINES: &[&str] = &[
    "data: a\n\n",
    "data: a\n\n",
    "event: e\ndata: {\"b\": 1}\n\n",
    "data: c\n",
    "data:d\n",
    "data: \n\n",
    "data\n",
    "event: f\n",
    "event: \n",
    "event: g\r\n",
    "data: h\r\n\r\n",
    "data: i\r\r",
    "data: ä\rdata: j\n\n",
    "id: 1\n",
    "retry: 5\n",
    ": k\n\n",
    "\n",
    "\r\n",
    "datax: l\n\n",
    "\u{feff}data: m\n\n",
];
