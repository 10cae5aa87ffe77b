//! Runs one streamed exchange: prepares and sends the request, checks the response, splits it into events,
//! and passes them to the decoder of a protocol.
//!
//! A state machine without tasks and channels: dropping the stream closes the connection, since the stream
//! owns everything, and no event is boxed.

use std::{
    collections::VecDeque,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use archon_types::{AssistantMessage, CancellationToken, ErrorText, ModelEvent, ProviderError, Timestamp};
use futures_core::Stream;
use reqwest::{
    Request, Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap},
};
use serde::de::IgnoredAny;
use tokio::time::{Sleep, sleep};

use super::{
    Pending, Transport,
    body::{Body, BodyError, MOST_BYTES, MOST_WHOLE_BYTES},
    retry_after::retry_after,
    watch::{Interrupt, Watch},
};
use crate::{
    answer::{Answer, BodyEnd},
    catalogue,
    classify::{self, Failure},
};

/// The maximum time to wait for the end of the body after the protocol's last event. Reading to the end lets
/// the connection be reused; a server that keeps the body open is not waited for.
const LINGER: Duration = Duration::from_millis(200);

pub(super) const NOT_UTF8: &str = "an event is not UTF-8";

/// The framing of a body, as a stream of its events.
pub(crate) trait Framing:
    Stream<Item = Result<<Self as Framing>::Event, FrameError>> + Send + Unpin + 'static
{
    /// The type of one event.
    type Event;

    /// The prefix of the content type of a body with this framing.
    const CONTENT_TYPE: &'static str;

    /// The possible first bytes of a body with this framing, if they are known. They identify such a body
    /// if its content type is another.
    const BEGINS: &'static [&'static [u8]];

    /// True if lines that begin with a colon are comments: services send them to keep a connection alive.
    const HAS_COMMENTS: bool;

    /// Creates the stream of events of this body.
    fn new(body: Body) -> Self;

    /// Makes the only event of a JSON body, which came instead of an event stream.
    fn whole(text: String) -> Self::Event;
}

/// The reason why no more events come.
#[derive(Debug)]
pub(crate) enum FrameError {
    /// Reading the body failed.
    Body(BodyError),
    /// The body ends within an event.
    BrokeOff(String),
    /// The body has another format.
    Malformed(String),
}

/// Turns the events of one response into model events.
pub(crate) trait Decoder: Send + Unpin + 'static {
    /// The framing of the protocol.
    type Frames: Framing;

    /// Decodes one event and adds its model events to `out`.
    fn event(
        &mut self,
        event: <Self::Frames as Framing>::Event,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<Progress, ProviderError>;

    /// Ends the answer: adds the last model events, or returns an error if something is missing. After a
    /// broken body, an answer is complete only if the service sent the finish reason and no part of the
    /// answer after it.
    fn end(&mut self, body: BodyEnd, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError>;

    /// Returns the answer so far.
    fn answer(&mut self) -> &mut Answer;

    /// Returns the message so far after a cancel.
    fn abort(&mut self) -> AssistantMessage {
        self.answer().abort()
    }
}

/// The state of a stream after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    /// The protocol declared that nothing follows.
    Last,
}

enum Phase<F> {
    /// The request is being prepared, for instance with a token that must be fetched.
    Preparing {
        request: Pending<Result<Request, ProviderError>>,
        watch: Box<Watch>,
    },
    /// The request was sent, and the response is awaited.
    Sending {
        response: Pending<reqwest::Result<Response>>,
        watch: Box<Watch>,
    },
    /// The beginning of the body is checked, or the whole body is read; the result is a stream of events or
    /// a single event.
    Judging(Pending<Result<Judged, Stopped>>),
    /// Events are read.
    Reading(Box<F>),
    /// The answer is complete, and the body is read to its end; the timer starts when a wait begins.
    Lingering(Box<F>, Option<Pin<Box<Sleep>>>),
    /// An error that is returned after the events before it were taken.
    Failed(ProviderError),
    Ended,
}

enum Judged {
    Events {
        body: Body,
        /// An excerpt of a body that does not begin like an event stream, for the error if no event comes; `None`
        /// for any other body.
        odd: Option<String>,
    },
    /// A body that was not streamed (`text`), and its excerpt for the error if it is no answer (`shown`).
    Whole { text: String, shown: String },
}

enum Stopped {
    Interrupted(Interrupt),
    Failed(ProviderError),
}

/// The stream of model events of one exchange.
pub(crate) struct Exchange<D: Decoder> {
    transport: Arc<Transport>,
    decoder: D,
    phase: Phase<D::Frames>,
    out: VecDeque<ModelEvent>,
    /// True if `Start` was emitted.
    begun: bool,
    /// An excerpt of a body that does not begin like an event stream, for the error if no event comes. `None` for
    /// any other body, and after the first event.
    odd: Option<String>,
    /// The HTTP status; `None` until the response comes.
    status: Option<u16>,
}

impl<D: Decoder> Exchange<D> {
    /// Begins an exchange; nothing is sent before the first poll.
    pub(crate) fn new(
        transport: Arc<Transport>,
        request: Request,
        cancel: CancellationToken,
        decoder: D,
    ) -> Self {
        let watch = Box::new(Watch::new(cancel, transport.options.timeouts));
        let phase = match transport.send(request) {
            Ok(response) => Phase::Sending { response, watch },
            Err(e) => Phase::Failed(e),
        };
        Self::at(phase, transport, decoder)
    }

    /// Begins an exchange whose request must be prepared first, for instance signed with a token that is
    /// fetched. The preparation is part of the exchange: it can be cancelled and counts towards the
    /// timeouts.
    pub(crate) fn prepared(
        transport: Arc<Transport>,
        request: impl Future<Output = Result<Request, ProviderError>> + Send + 'static,
        cancel: CancellationToken,
        decoder: D,
    ) -> Self {
        let watch = Box::new(Watch::new(cancel, transport.options.timeouts));
        let phase = Phase::Preparing { request: Box::pin(request), watch };
        Self::at(phase, transport, decoder)
    }

    /// Creates an exchange that failed before anything was sent.
    pub(crate) fn failed(transport: Arc<Transport>, error: ProviderError, decoder: D) -> Self {
        Self::at(Phase::Failed(error), transport, decoder)
    }

    fn at(phase: Phase<D::Frames>, transport: Arc<Transport>, decoder: D) -> Self {
        Self { transport, decoder, phase, out: VecDeque::new(), begun: false, odd: None, status: None }
    }

    /// Takes one step; returns `Pending` if there is nothing to do yet.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.phase {
            Phase::Preparing { request, watch } => match ready!(watch.poll_for(request, cx)) {
                Ok(Ok(request)) => self.send(request),
                Ok(Err(e)) => self.fail(e),
                Err(interrupt) => self.stop(Stopped::Interrupted(interrupt)),
            },
            Phase::Sending { response, watch } => match ready!(watch.poll_for(response, cx)) {
                Ok(Ok(response)) => self.judge(response),
                Ok(Err(e)) => self.fail(self.transport.failure(e)),
                Err(interrupt) => self.stop(Stopped::Interrupted(interrupt)),
            },
            Phase::Judging(judged) => match ready!(judged.as_mut().poll(cx)) {
                Ok(Judged::Events { body, odd }) => self.begin(body, odd),
                Ok(Judged::Whole { text, shown }) => self.whole(text, shown),
                Err(stopped) => self.stop(stopped),
            },
            Phase::Reading(events) => match ready!(Pin::new(&mut **events).poll_next(cx)) {
                Some(Ok(event)) => self.event(event),
                Some(Err(e)) => self.broken(e),
                None => self.end(),
            },
            Phase::Lingering(events, limit) => {
                loop {
                    // Anything that comes now is after the end, and ignored.
                    let more = Pin::new(&mut **events).poll_next(cx);
                    if matches!(more, Poll::Ready(None | Some(Err(_)))) {
                        break;
                    }
                    let limit = limit.get_or_insert_with(|| Box::pin(sleep(LINGER)));
                    if limit.as_mut().poll(cx).is_ready() {
                        break;
                    }
                    ready!(more);
                }
                self.end();
            }
            Phase::Failed(_) | Phase::Ended => {}
        }
        Poll::Ready(())
    }

    fn send(&mut self, request: Request) {
        let Phase::Preparing { watch, .. } = mem::replace(&mut self.phase, Phase::Ended) else { return };
        match self.transport.send(request) {
            Ok(response) => self.phase = Phase::Sending { response, watch },
            Err(e) => self.fail(e),
        }
    }

    /// Chooses by status and content type the way to read the body.
    fn judge(&mut self, mut response: Response) {
        let Phase::Sending { watch, .. } = mem::replace(&mut self.phase, Phase::Ended) else { return };
        let status = response.status();
        self.status = Some(status.as_u16());
        let now = self.decoder.answer().now();
        if let Some(reason) = compressed(&response) {
            return self.fail(failure_of(status, response.headers(), now).classify(&reason));
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let calls_itself_events = status == StatusCode::OK
            && content_type.is_some_and(|kind| kind.starts_with(D::Frames::CONTENT_TYPE));
        if calls_itself_events {
            // Emitted before the first event, which may take long.
            self.send_start();
        }
        let transport = self.transport.clone();
        // Most responses succeed, so this is only worked out for an error.
        let headers = mem::take(response.headers_mut());
        let failure = move || failure_of(status, &headers, now);
        let mut body = Body::new(response, *watch);
        if D::Frames::HAS_COMMENTS {
            body.ignore_comments();
        }
        self.phase = Phase::Judging(Box::pin(async move {
            if status.is_success() {
                judge_success(body, calls_itself_events, D::Frames::BEGINS, failure, &transport).await
            } else {
                judge_failure(body, failure(), &transport).await
            }
        }));
    }

    fn send_start(&mut self) {
        if !mem::replace(&mut self.begun, true) {
            self.out.push_back(ModelEvent::Start);
        }
    }

    fn begin(&mut self, body: Body, odd: Option<String>) {
        self.send_start();
        self.odd = odd;
        self.phase = Phase::Reading(Box::new(D::Frames::new(body)));
    }

    /// Treats an answer that was not streamed as a stream of one event.
    fn whole(&mut self, text: String, shown: String) {
        self.send_start();
        self.phase = Phase::Ended;
        let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        let read = self.decoder.event(D::Frames::whole(text), &mut self.out);
        let read = read.and_then(|_| self.check_limits());
        match read.and_then(|()| self.decoder.end(BodyEnd::Complete, &mut self.out)) {
            Ok(()) => {}
            // Nothing broke off: the body is complete, but no answer.
            Err(ProviderError::Network(_)) if is_json => self.fail(ProviderError::Protocol(shown.into())),
            Err(ProviderError::Protocol(what)) => {
                self.fail(ProviderError::Protocol(format!("{what} ({shown})").into()))
            }
            Err(e) => self.fail(e),
        }
    }

    fn event(&mut self, event: <D::Frames as Framing>::Event) {
        self.odd = None;
        let read = self.decoder.event(event, &mut self.out);
        match read.and_then(|progress| self.check_limits().map(|()| progress)) {
            Ok(Progress::More) => {}
            Ok(Progress::Last) => {
                if let Phase::Reading(events) = mem::replace(&mut self.phase, Phase::Ended) {
                    self.phase = Phase::Lingering(events, None);
                }
            }
            Err(e) => self.fail(e),
        }
    }

    fn check_limits(&mut self) -> Result<(), ProviderError> {
        match self.transport.options.limits.exceeded(self.decoder.answer().size()) {
            Some(reason) => {
                // Events beyond the limit are not emitted either.
                self.out.clear();
                Err(ProviderError::Other(reason.into()))
            }
            None => Ok(()),
        }
    }

    /// Handles a body that broke off or cannot be read.
    fn broken(&mut self, error: FrameError) {
        let error = match error {
            FrameError::Body(BodyError::Interrupted(Interrupt::Cancelled)) => {
                return self.stop(Stopped::Interrupted(Interrupt::Cancelled));
            }
            FrameError::Body(e) => body_error(e, &self.transport),
            FrameError::BrokeOff(what) | FrameError::Malformed(what) if let Some(shown) = &self.odd => {
                ProviderError::Protocol(format!("{what} ({shown})").into())
            }
            FrameError::BrokeOff(what) => ProviderError::Network(what.into()),
            FrameError::Malformed(what) => ProviderError::Protocol(what.into()),
        };
        // A complete answer stays complete, even if the connection failed afterwards.
        if self.decoder.end(BodyEnd::Broken, &mut self.out).is_ok() {
            self.phase = Phase::Ended;
        } else {
            self.fail(error);
        }
    }

    fn end(&mut self) {
        self.phase = Phase::Ended;
        match (self.decoder.end(BodyEnd::Complete, &mut self.out), self.odd.take()) {
            (Ok(()), _) => {}
            // Nothing broke off: the body was no stream of events.
            (Err(ProviderError::Network(_)), Some(shown)) => self.fail(ProviderError::Protocol(shown.into())),
            (Err(e), _) => self.fail(e),
        }
    }

    fn stop(&mut self, stopped: Stopped) {
        match stopped {
            Stopped::Interrupted(Interrupt::Cancelled) => {
                // Events that were not taken yet are part of the message, so nothing is lost.
                self.out.clear();
                self.out.push_back(ModelEvent::Done(Box::new(self.decoder.abort())));
                self.phase = Phase::Ended;
            }
            Stopped::Interrupted(limit) => self.fail(timeout(limit)),
            Stopped::Failed(e) => self.fail(e),
        }
    }

    /// Returns the event without secrets: they are removed from the service's explanation of a stopped
    /// answer.
    fn without_secrets(&self, mut event: ModelEvent) -> ModelEvent {
        if let ModelEvent::Done(message) = &mut event
            && let Some(because) = &mut message.error_message
        {
            *because = self.transport.redactor.clean_cut(mem::take(because), classify::CUT);
        }
        event
    }

    fn fail(&mut self, error: ProviderError) {
        let AssistantMessage { provider, model, .. } = self.decoder.answer().message();
        let error = match error {
            ProviderError::Protocol(what) => {
                ProviderError::Protocol(with_service(provider, self.status, what))
            }
            other => catalogue::with_nearest(other, provider, model),
        };
        let error = match self.status {
            Some(status) => error.or_status(status),
            None => error,
        };
        self.phase = Phase::Failed(classify::redacted(error, &self.transport.redactor));
    }
}

impl<D: Decoder> Stream for Exchange<D> {
    type Item = Result<ModelEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.out.pop_front() {
                return Poll::Ready(Some(Ok(self.without_secrets(event))));
            }
            match &self.phase {
                Phase::Ended => return Poll::Ready(None),
                Phase::Failed(_) => {
                    let Phase::Failed(e) = mem::replace(&mut self.phase, Phase::Ended) else { continue };
                    return Poll::Ready(Some(Err(e)));
                }
                _ => ready!(self.step(cx)),
            }
        }
    }
}

/// Adds the provider and the status to the error text for an invalid response.
fn with_service(provider: &str, status: Option<u16>, mut what: ErrorText) -> ErrorText {
    let is_told = what.text.contains("status ");
    what.text = match status.filter(|_| !is_told) {
        Some(status) => format!("{provider}, status {status}: {}", what.text),
        None => format!("{provider}, {}", what.text),
    };
    what
}

/// Returns status and headers of a response, for the case that it is not an answer.
pub(crate) fn failure_of(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Failure {
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    Failure {
        status: status.as_u16(),
        content_type: header("content-type").to_owned(),
        retry_after: retry_after(headers, now),
        location: status.is_redirection().then(|| header("location").to_owned()),
    }
}

/// Returns the error text for a compressed body: compression is not requested, so a proxy added it.
/// Decompression would need more crates than this rare case is worth.
pub(crate) fn compressed(response: &Response) -> Option<String> {
    let encoding =
        response.headers().get(CONTENT_ENCODING)?.to_str().unwrap_or("in a way that is not text").trim();
    let is_plain = encoding.is_empty() || encoding.eq_ignore_ascii_case("identity");
    (!is_plain).then(|| {
        format!(
            "the answer is compressed ({encoding}), which was not asked for and is not read; let the service, or the proxy \
             on the way, send it as it is"
        )
    })
}

async fn judge_failure(body: Body, failure: Failure, transport: &Transport) -> Result<Judged, Stopped> {
    // A body that broke off still has its status.
    let (text, end) = body.text().await;
    match end {
        Err(BodyError::Interrupted(Interrupt::Cancelled)) => Err(Stopped::Interrupted(Interrupt::Cancelled)),
        _ => Err(Stopped::Failed(failure.classify(&transport.redactor.clean(text)))),
    }
}

/// The first bytes of bodies that are not event streams, whatever their content type: JSON, or a web page.
const OTHERS_BEGIN: [&[u8]; 3] = [b"{", b"[", b"<"];

/// Judges a successful response: it may be an event stream, with or without its content type, a whole answer
/// from a server that does not stream, an error with the wrong status, or a page of a gateway. Some gateways
/// send the last two with the content type of the requested stream.
async fn judge_success(
    mut body: Body,
    calls_itself_events: bool,
    events_begin: &[&[u8]],
    failure: impl FnOnce() -> Failure,
    transport: &Transport,
) -> Result<Judged, Stopped> {
    let beginning = body.beginning().await.map_err(|e| stopped(e, transport))?;
    let begins_with = |starts: &[&[u8]]| starts.iter().any(|start| beginning.starts_with(start));
    if begins_with(events_begin) {
        return Ok(Judged::Events { body, odd: None });
    }
    if calls_itself_events && !begins_with(&OTHERS_BEGIN) {
        let text = String::from_utf8_lossy(&beginning);
        // The connection may have broken off there.
        let may_be_events =
            beginning.is_empty() || events_begin.iter().any(|start| start.starts_with(&beginning));
        let is_text = !text.chars().any(|c| c.is_control() && !c.is_whitespace());
        let odd = (is_text && !may_be_events).then(|| failure().excerpt(&text));
        return Ok(Judged::Events { body, odd });
    }
    let (text, end) = body.text().await;
    end.map_err(|e| stopped(e, transport))?;
    if beginning.starts_with(b"{") && !classify::is_error(&text) {
        let shown = failure().excerpt(&text);
        return Ok(Judged::Whole { text, shown });
    }
    Err(Stopped::Failed(failure().classify(&transport.redactor.clean(text))))
}

fn stopped(error: BodyError, transport: &Transport) -> Stopped {
    match error {
        BodyError::Interrupted(interrupt) => Stopped::Interrupted(interrupt),
        other => Stopped::Failed(body_error(other, transport)),
    }
}

pub(crate) fn body_error(error: BodyError, transport: &Transport) -> ProviderError {
    match error {
        BodyError::Interrupted(limit) => timeout(limit),
        BodyError::Transport(e) => transport.failure(e),
        BodyError::TooLong => {
            let (all, whole) = (MOST_BYTES >> 20, MOST_WHOLE_BYTES >> 20);
            ProviderError::Protocol(format!(
                "the answer is too long: the limit is {all} MiB in all, and {whole} MiB for one event or an answer that is not streamed"
            ).into())
        }
        BodyError::NotText => ProviderError::Protocol(NOT_UTF8.to_owned().into()),
    }
}

fn timeout(limit: Interrupt) -> ProviderError {
    match limit {
        Interrupt::Idle(d) => {
            ProviderError::Timeout(format!("no data came for {} s", d.as_secs_f64()).into())
        }
        Interrupt::Total(d) => {
            ProviderError::Timeout(format!("no complete answer in {} s", d.as_secs_f64()).into())
        }
        Interrupt::Cancelled => ProviderError::Cancelled,
    }
}
