//! The notifications of a tenant, as they are sent: as server-sent events, or over a websocket.

use std::sync::Arc;

use axum::http::header::UPGRADE;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::{
    live::Item,
    reply::{HEARTBEAT, Reply, event_stream},
    request::Call,
    state::State,
};

pub(crate) async fn listen(call: Call) -> Reply {
    let (channel, tenant) = call.notifications()?.clone();
    let permit = call.token.open_stream()?;
    let asked = call.parts.headers.get(UPGRADE);
    if asked.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        return open_socket(call, channel.listen(&tenant), permit).await;
    }
    let feed = Feed { items: channel.listen(&tenant), state: call.state, sent: None, _permit: permit };
    Ok(event_stream(stream::unfold(feed, |mut feed| async move {
        let text = feed.next().await?;
        Some((text, feed))
    })))
}

#[cfg(feature = "websocket")]
use crate::websocket::open as open_socket;

#[cfg(not(feature = "websocket"))]
async fn open_socket(_: Call, _: mpsc::Receiver<Item>, _: OwnedSemaphorePermit) -> Reply {
    use crate::problem::{Problem, Rule};

    Err(Problem::new(Rule::Header, "upgrade: this server is built without websockets")
        .advise("leave out the header: then notifications come as server-sent events"))
}

/// The state of one stream of events.
struct Feed {
    state: Arc<State>,
    items: mpsc::Receiver<Item>,
    /// The notification that was returned last.
    sent: Option<Item>,
    _permit: OwnedSemaphorePermit,
}

impl Feed {
    /// Returns the next text of the stream: an event, or a comment after a pause. `None` at the end.
    async fn next(&mut self) -> Option<String> {
        // The connection asks for more, so it has taken the last one.
        if let Some(sent) = self.sent.take() {
            sent.confirm();
        }
        let pause = self.state.clock.sleep_until(self.state.now() + self.state.options.heartbeat);
        tokio::select! {
            biased;
            () = self.state.options.end.cancelled() => None,
            item = self.items.recv() => {
                let item = self.sent.insert(item?);
                Some(format!("event: notification\ndata: {}\n\n", item.text))
            }
            () = pause => Some(HEARTBEAT.to_owned()),
        }
    }
}
