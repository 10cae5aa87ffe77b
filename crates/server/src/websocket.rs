//! The notifications of a tenant over a websocket. The socket only sends: an answer to a question is a request of its own.

use std::{sync::Arc, time::Duration};

use archon_http_access::HeldConnection;
use axum::{
    Error,
    body::Bytes,
    extract::{
        FromRequestParts,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
    },
};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::{
    live::{CONFIRM, Item},
    problem::{Problem, Rule},
    reply::Reply,
    request::Call,
    state::State,
};

/// The largest message of a client in bytes. A client has nothing to send but answers to pings.
const LARGEST: usize = 1_024;

/// The longest time until a client has closed a socket that the server closes.
const FAREWELL: Duration = Duration::from_secs(2);

/// Opens a websocket for these notifications.
pub(crate) async fn open(mut call: Call, items: mpsc::Receiver<Item>, permit: OwnedSemaphorePermit) -> Reply {
    let upgrade = WebSocketUpgrade::from_request_parts(&mut call.parts, &()).await.map_err(|rejection| {
        Problem::new(Rule::Header, format!("upgrade: no websocket can be opened: {rejection}"))
            .advise("connect with a client for websockets, over HTTP/1.1")
    })?;
    let held = call.parts.extensions.get::<HeldConnection>().cloned();
    let upgrade = upgrade.max_message_size(LARGEST).max_frame_size(LARGEST);
    Ok(upgrade.on_upgrade(move |socket| async move {
        Line { socket, items, state: call.state, pings: 0 }.serve().await;
        drop((held, permit));
    }))
}

/// A socket of a client.
struct Line {
    socket: WebSocket,
    items: mpsc::Receiver<Item>,
    state: Arc<State>,
    /// The number of pings so far.
    pings: u64,
}

/// The reason why a socket ends.
enum End {
    /// The client is gone, or does not answer.
    Gone,
    /// The client closes the socket.
    Left,
    /// The server closes the socket, with a code of RFC 6455 and a reason.
    Close(u16, &'static str),
}

impl Line {
    /// Sends notifications until the socket ends.
    async fn serve(mut self) {
        let state = self.state.clone();
        let ended = tokio::select! {
            biased;
            () = state.options.end.cancelled() => End::Close(close_code::AWAY, "the server ends; connect again"),
            ended = self.work() => ended,
        };
        match ended {
            End::Gone => {}
            End::Left => self.close(None).await,
            End::Close(code, reason) => self.close(Some(CloseFrame { code, reason: reason.into() })).await,
        }
    }

    async fn work(&mut self) -> End {
        loop {
            let pause = self.state.clock.sleep_until(self.state.now() + self.state.options.heartbeat);
            let step = tokio::select! {
                message = self.socket.recv() => read(message).map(drop),
                item = self.items.recv() => match item {
                    Some(item) => self.deliver(item).await,
                    None => Err(End::Close(close_code::AGAIN, "too many notifications wait; connect again")),
                },
                () = pause => self.exchange(None).await,
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    async fn deliver(&mut self, item: Item) -> Result<(), End> {
        self.exchange(Some(&item.text)).await?;
        item.confirm();
        Ok(())
    }

    /// Sends a text, if there is one, and a ping, and waits for the answer to the ping. Clients answer pings by themselves, in
    /// the order of messages, so the client then has the text.
    async fn exchange(&mut self, text: Option<&str>) -> Result<(), End> {
        self.pings += 1;
        let mark = Bytes::copy_from_slice(&self.pings.to_be_bytes());
        let late = self.state.clock.sleep_until(self.state.now() + CONFIRM);
        let socket = &mut self.socket;
        let exchange = async {
            if let Some(text) = text {
                socket.send(Message::Text(text.into())).await.map_err(|_| End::Gone)?;
            }
            socket.send(Message::Ping(mark.clone())).await.map_err(|_| End::Gone)?;
            while read(socket.recv().await)?.as_ref() != Some(&mark) {}
            Ok(())
        };
        tokio::select! {
            exchanged = exchange => exchanged,
            () = late => Err(End::Gone),
        }
    }

    /// Sends a frame that closes the socket, if there is one, and waits a moment until the client has closed it.
    async fn close(&mut self, frame: Option<CloseFrame>) {
        let late = self.state.clock.sleep_until(self.state.now() + FAREWELL);
        let socket = &mut self.socket;
        let farewell = async {
            if let Some(frame) = frame
                && socket.send(Message::Close(Some(frame))).await.is_err()
            {
                return;
            }
            while let Some(Ok(_)) = socket.recv().await {}
        };
        tokio::select! {
            () = farewell => {}
            () = late => {}
        }
    }
}

/// Returns the mark of an answer to a ping; `None` for another message that is allowed.
fn read(message: Option<Result<Message, Error>>) -> Result<Option<Bytes>, End> {
    match message {
        Some(Ok(Message::Pong(mark))) => Ok(Some(mark)),
        Some(Ok(Message::Ping(_))) => Ok(None),
        Some(Ok(Message::Text(_) | Message::Binary(_))) => {
            let reason = "this socket takes no messages; answer with POST /v1/approvals/{request}/answer";
            Err(End::Close(close_code::POLICY, reason))
        }
        Some(Ok(Message::Close(_))) => Err(End::Left),
        Some(Err(_)) | None => Err(End::Gone),
    }
}
