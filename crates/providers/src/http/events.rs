//! One streamed exchange: prepare, send, judge the response, cut it into events, hand them to a protocol's
//! decoder.
//!
//! A state machine without tasks and channels: what it owns is dropped with it, so dropping the
//! stream closes the connection, and nothing is boxed for each event.

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
    answer_limits::Said,
    catalogue,
    classify::{self, Failure},
};

/// How long the end of the body is waited for once the protocol said that it is done. Reading to the
/// end lets the connection be used again; a server that keeps it open is not waited for.
const LINGER: Duration = Duration::from_millis(200);

pub(super) const NOT_UTF8: &str = "an event is not UTF-8";

/// How a body is cut into events, as a stream of them.
pub(crate) trait Framing:
    Stream<Item = Result<<Self as Framing>::Event, FrameError>> + Send + Unpin + 'static
{
    /// One event.
    type Event;

    /// What the header of such a body begins with.
    const CONTENT_TYPE: &'static str;

    /// How such a body begins that does not call itself so, where it can be told.
    const BEGINS: &'static [&'static [u8]];

    /// Whether lines that begin with a colon say nothing: services send them to keep a connection alive.
    const HAS_COMMENTS: bool;

    /// The events of this body.
    fn new(body: Body) -> Self;

    /// A JSON body that came instead, as the only event there is.
    fn whole(text: String) -> Self::Event;
}

/// Why no more events come.
#[derive(Debug)]
pub(crate) enum FrameError {
    /// No more bytes came.
    Body(BodyError),
    /// The bytes end where they should not.
    BrokeOff(String),
    /// The bytes are something else.
    Malformed(String),
}

/// Turns the events of one response into model events.
pub(crate) trait Decoder: Send + Unpin + 'static {
    /// How the protocol frames its events.
    type Frames: Framing;

    /// Takes one event and adds what it means to `out`.
    fn event(
        &mut self,
        event: <Self::Frames as Framing>::Event,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<Progress, ProviderError>;

    /// No more events come: adds the last model events, or says what is missing. Behind a body that broke off an answer
    /// is complete only if the service said why it ends, and nothing of it came after that.
    fn end(&mut self, body: BodyEnd, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError>;

    /// The caller cancelled: what was said so far.
    fn abort(&mut self) -> AssistantMessage;

    /// The answer so far: who was asked stands in it.
    fn answer(&self) -> &AssistantMessage;

    /// How much of the answer came, also of what is held back or left out.
    fn said(&self) -> Said;

    /// The time, for dates in headers.
    fn now(&self) -> Timestamp;
}

/// The end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// As HTTP says, or the protocol said that nothing follows.
    Complete,
    /// Nobody knows what is missing.
    Broken,
}

/// Whether more can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    /// The protocol says that nothing follows.
    Last,
}

enum Phase<F> {
    /// What the request needs is fetched, for instance a token.
    Preparing {
        request: Pending<Result<Request, ProviderError>>,
        watch: Box<Watch>,
    },
    /// The request is on its way.
    Sending {
        response: Pending<reqwest::Result<Response>>,
        watch: Box<Watch>,
    },
    /// The body is looked at, or read whole; ends with a stream or with the only event there is.
    Judging(Pending<Result<Judged, Stopped>>),
    /// Events come.
    Reading(Box<F>),
    /// All was said; the body is read to its end, for as long as the timer lets it once there was something to wait for.
    Lingering(Box<F>, Option<Pin<Box<Sleep>>>),
    /// An error waits until the events before it were taken.
    Failed(ProviderError),
    Ended,
}

enum Judged {
    Events {
        body: Body,
        /// How it is shown if no event comes, where it does not begin like a stream of them.
        odd: Option<String>,
    },
    /// An answer that was not streamed, with how it is shown if it turns out to be none.
    Whole { text: String, shown: String },
}

enum Stopped {
    Interrupted(Interrupt),
    Failed(ProviderError),
}

/// The stream of one exchange.
pub(crate) struct Exchange<D: Decoder> {
    transport: Arc<Transport>,
    decoder: D,
    phase: Phase<D::Frames>,
    out: VecDeque<ModelEvent>,
    /// Whether it was said that the answer begins.
    begun: bool,
    /// What came instead of events, until one comes.
    odd: Option<String>,
    /// The HTTP status of the answer, once there is one.
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
        let watch = Box::new(Watch::new(cancel, transport.timeouts()));
        let phase = match transport.send(request) {
            Ok(response) => Phase::Sending { response, watch },
            Err(e) => Phase::Failed(e),
        };
        Self::at(phase, transport, decoder)
    }

    /// An exchange whose request has to be finished first, for instance signed with a token that is
    /// fetched. The wait counts as part of the answer: it can be cancelled and has its limits.
    pub(crate) fn prepared(
        transport: Arc<Transport>,
        request: impl Future<Output = Result<Request, ProviderError>> + Send + 'static,
        cancel: CancellationToken,
        decoder: D,
    ) -> Self {
        let watch = Box::new(Watch::new(cancel, transport.timeouts()));
        let phase = Phase::Preparing { request: Box::pin(request), watch };
        Self::at(phase, transport, decoder)
    }

    /// An exchange that failed before anything was sent.
    pub(crate) fn failed(transport: Arc<Transport>, error: ProviderError, decoder: D) -> Self {
        Self::at(Phase::Failed(error), transport, decoder)
    }

    fn at(phase: Phase<D::Frames>, transport: Arc<Transport>, decoder: D) -> Self {
        Self { transport, decoder, phase, out: VecDeque::new(), begun: false, odd: None, status: None }
    }

    /// Takes one step; `Pending` when there is nothing to do yet.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.phase {
            Phase::Preparing { request, watch } => {
                if watch.is_cancelled() {
                    self.stop(Stopped::Interrupted(Interrupt::Cancelled));
                    return Poll::Ready(());
                }
                match request.as_mut().poll(cx) {
                    Poll::Ready(Ok(request)) => self.send(request),
                    Poll::Ready(Err(e)) => self.fail(e),
                    Poll::Pending => {
                        let interrupt = ready!(watch.poll(cx));
                        self.stop(Stopped::Interrupted(interrupt));
                    }
                }
            }
            Phase::Sending { response, watch } => {
                if watch.is_cancelled() {
                    self.stop(Stopped::Interrupted(Interrupt::Cancelled));
                    return Poll::Ready(());
                }
                match response.as_mut().poll(cx) {
                    Poll::Ready(Ok(response)) => self.judge(response),
                    Poll::Ready(Err(e)) => self.fail(self.transport.failure(e)),
                    Poll::Pending => {
                        let interrupt = ready!(watch.poll(cx));
                        self.stop(Stopped::Interrupted(interrupt));
                    }
                }
            }
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
                    // Whatever comes now is past the end.
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

    /// Looks at status and content type and decides how the body is read.
    fn judge(&mut self, mut response: Response) {
        let Phase::Sending { watch, .. } = mem::replace(&mut self.phase, Phase::Ended) else { return };
        let status = response.status();
        self.status = Some(status.as_u16());
        let now = self.decoder.now();
        if let Some(reason) = compressed(&response) {
            return self.fail(failure_of(status, response.headers(), now).classify(&reason));
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let calls_itself_events = status == StatusCode::OK
            && content_type.is_some_and(|kind| kind.starts_with(D::Frames::CONTENT_TYPE));
        if calls_itself_events {
            // Before the first event, which may be long in coming.
            self.say_start();
        }
        let transport = self.transport.clone();
        // Most answers are none, and nobody asks.
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

    fn say_start(&mut self) {
        if !mem::replace(&mut self.begun, true) {
            self.out.push_back(ModelEvent::Start);
        }
    }

    fn begin(&mut self, body: Body, odd: Option<String>) {
        self.say_start();
        self.odd = odd;
        self.phase = Phase::Reading(Box::new(D::Frames::new(body)));
    }

    /// Treats an answer that was not streamed as a stream of one event.
    fn whole(&mut self, text: String, shown: String) {
        self.say_start();
        self.phase = Phase::Ended;
        let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        let read = self.decoder.event(D::Frames::whole(text), &mut self.out);
        match read
            .and_then(|_| self.check_limits())
            .and_then(|()| self.decoder.end(BodyEnd::Complete, &mut self.out))
        {
            Ok(()) => {}
            // Nothing broke off: it is complete, and something else.
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
        match self.transport.limits().exceeded(self.decoder.said()) {
            Some(reason) => {
                // What is too much is not handed on either.
                self.out.clear();
                Err(ProviderError::Other(reason.into()))
            }
            None => Ok(()),
        }
    }

    /// The body broke off or cannot be read.
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
        // An answer that is complete stays complete, whatever became of the connection.
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
            // Nothing broke off: it never was a stream of events.
            (Err(ProviderError::Network(_)), Some(shown)) => self.fail(ProviderError::Protocol(shown.into())),
            (Err(e), _) => self.fail(e),
        }
    }

    fn stop(&mut self, stopped: Stopped) {
        match stopped {
            Stopped::Interrupted(Interrupt::Cancelled) => {
                // What was not taken yet is part of the message, so nothing is lost.
                self.out.clear();
                self.out.push_back(ModelEvent::Done(Box::new(self.decoder.abort())));
                self.phase = Phase::Ended;
            }
            Stopped::Interrupted(limit) => self.fail(timeout(limit)),
            Stopped::Failed(e) => self.fail(e),
        }
    }

    /// The event; what the service said about an answer that it stopped is told without secrets, as errors are.
    fn without_secrets(&self, mut event: ModelEvent) -> ModelEvent {
        if let ModelEvent::Done(message) = &mut event
            && let Some(because) = &mut message.error_message
        {
            *because = self.transport.redactor.clean_cut(mem::take(because), classify::CUT);
        }
        event
    }

    fn fail(&mut self, error: ProviderError) {
        let AssistantMessage { provider, model, .. } = self.decoder.answer();
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

/// Which service said what no documentation names, and with which status.
fn with_service(provider: &str, status: Option<u16>, mut what: ErrorText) -> ErrorText {
    let is_told = what.text.contains("status ");
    what.text = match status.filter(|_| !is_told) {
        Some(status) => format!("{provider}, status {status}: {}", what.text),
        None => format!("{provider}, {}", what.text),
    };
    what
}

/// What a response says of itself beside its body, in case it is no answer.
pub(crate) fn failure_of(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Failure {
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    Failure {
        status: status.as_u16(),
        content_type: header("content-type").to_owned(),
        retry_after: retry_after(headers, now),
        location: status.is_redirection().then(|| header("location").to_owned()),
    }
}

/// The error for a compressed body. Nobody asked for one; a proxy on the way makes it. Reading it would
/// bring more crates than the case is worth.
pub(crate) fn compressed(response: &Response) -> Option<String> {
    let encoding =
        response.headers().get(CONTENT_ENCODING)?.to_str().unwrap_or("in a way that is no text").trim();
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

/// How a body begins that is no stream of events, whatever its content type: JSON, or a page.
const OTHERS_BEGIN: [&[u8]; 3] = [b"{", b"[", b"<"];

/// A success: an event stream, whether it calls itself so or not, a whole answer from a server that does
/// not stream, an error with the wrong status, or a page of a gateway. Some gateways send the last two with
/// the content type of the stream that was asked for.
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
        // Or the connection broke off there.
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
                "the answer has no end that can be believed: it may have {all} MiB, and {whole} MiB in one piece"
            ).into())
        }
        BodyError::NotText => ProviderError::Protocol(NOT_UTF8.to_owned().into()),
    }
}

fn timeout(limit: Interrupt) -> ProviderError {
    match limit {
        Interrupt::Idle(d) => {
            ProviderError::Timeout(format!("nothing came for {} s", d.as_secs_f64()).into())
        }
        Interrupt::Total(d) => {
            ProviderError::Timeout(format!("no complete answer in {} s", d.as_secs_f64()).into())
        }
        Interrupt::Cancelled => ProviderError::Cancelled,
    }
}
