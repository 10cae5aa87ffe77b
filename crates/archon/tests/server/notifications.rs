//! Notifications for the programs and pages that listen: over websockets, and as server-sent events.

use std::{sync::Arc, time::Duration};

use archon::{
    Runs,
    server::{
        AccessToken, AllowedHosts, LiveChannel, Role, Scope, ServeError, ServeOptions, Server, ServerOptions,
        TokenLimits, serve,
    },
    types::{AnswerRuns, Json, Notification, NotificationChannel, NotificationKind, StartRun, StartRuns},
};
use archon_testkit::{Ended, VirtualClock};
use futures_util::{SinkExt, StreamExt};
use reqwest::Client;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Error, Message, client::IntoClientRequest, protocol::CloseFrame},
};

use crate::world::World;

/// A server of a process, with a token for each of two tenants, one that may not read logs, and one without notifications.
struct Desk {
    channel: LiveChannel,
    runs: Runs,
    server: Server,
    clock: VirtualClock,
    port: u16,
    served: JoinHandle<Result<(), ServeError>>,
}

/// A client that reads everything, as libraries and browsers do.
struct Listener {
    messages: mpsc::UnboundedReceiver<Message>,
    to_send: mpsc::UnboundedSender<Message>,
    reading: JoinHandle<()>,
}

impl Desk {
    async fn start(world: &World) -> Self {
        let (runs, clock) = (world.runs(), VirtualClock::new());
        let channel = LiveChannel::new(Arc::new(clock.clone()));
        let bare = Scope::new(Arc::new(runs.clone()));
        let of = |tenant| bare.clone().with_notifications(&channel, tenant);
        let token = |name: &str, role, scope| {
            let token = AccessToken::new(name, format!("{name}-secret"), role, scope).unwrap();
            token.with_limits(TokenLimits::default().with_watchers(2))
        };
        let tokens = [
            token("ann", Role::Operator, of("local")),
            token("ben", Role::Operator, of("ben")),
            token("viewer", Role::Viewer, of("local")),
            token("bare", Role::Operator, bare.clone()),
        ];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hosts = AllowedHosts::of_address(address, []);
        let server = Server::new(hosts, tokens, Arc::new(clock.clone()), ServerOptions::default());
        let (router, end) = (server.router(), server.end().clone());
        let served =
            tokio::spawn(async move { serve(router, listener, &ServeOptions::default(), &end).await });
        Self { channel, runs, server, clock, port: address.port(), served }
    }

    /// Opens a websocket with these headers.
    async fn connect(&self, headers: &[(&'static str, &str)]) -> Result<Listener, Error> {
        let mut request =
            format!("ws://127.0.0.1:{}/v1/notifications", self.port).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (mut socket, _) = connect_async(request).await?;
        let (read, messages) = mpsc::unbounded_channel();
        let (to_send, mut sending) = mpsc::unbounded_channel();
        let reading = tokio::spawn(async move {
            loop {
                tokio::select! {
                    Some(message) = sending.recv() => socket.send(message).await.unwrap(),
                    message = socket.next() => match message {
                        Some(Ok(Message::Ping(_))) => {}
                        Some(Ok(message)) => drop(read.send(message)),
                        _ => return,
                    },
                }
            }
        });
        Ok(Listener { messages, to_send, reading })
    }

    async fn listen(&self, name: &str) -> Listener {
        self.connect(&[("authorization", &format!("Bearer {name}-secret"))]).await.unwrap()
    }

    /// Opens a websocket that reads nothing and answers no ping.
    async fn deaf(&self, name: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let request = format!(
            "GET /v1/notifications HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {name}-secret\r\n\
             Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
            self.port
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
        stream
    }

    /// Sends a notification. No time of the server passes.
    async fn send(&self, notification: &Notification) -> Result<(), String> {
        soon(self.channel.send(notification)).await
    }
}

/// Waits for what has to come, so that a test fails if it does not.
async fn soon<T>(coming: impl Future<Output = T>) -> T {
    let in_time = tokio::time::timeout(Duration::from_secs(60), coming).await;
    in_time.unwrap_or_else(|_| panic!("nothing came within a minute"))
}

impl Listener {
    async fn next(&mut self) -> Json {
        let message = soon(self.messages.recv()).await.unwrap();
        serde_json::from_str(message.to_text().unwrap()).unwrap()
    }

    /// Returns the code with which the server closes the socket.
    async fn close_code(&mut self) -> u16 {
        match soon(self.messages.recv()).await {
            Some(Message::Close(Some(CloseFrame { code, .. }))) => code.into(),
            other => panic!("{other:?}"),
        }
    }
}

fn result(tenant: &str, text: &str) -> Notification {
    Notification::new(tenant, NotificationKind::Result, text).task("mail".into())
}

// spec: TR-09, AP-10
#[tokio::test]
async fn question_reaches_a_websocket_and_is_answered_at_the_server() {
    let world = World::new();
    let desk = Desk::start(&world).await;
    let run = desk.runs.start(StartRun::new("step Paris")).await.unwrap().run;
    drop(desk.runs.reply(&run).await);
    let question = desk.runs.questions(None).await.unwrap().remove(0);
    let about = NotificationKind::Question(Box::new(question.clone()));
    let link = Some("https://example.com/answer#token".to_owned());
    let notification = Notification::new("local", about, "May it step?").run(Some(run.clone())).link(link);
    let mut ann = desk.listen("ann").await;
    desk.send(&notification).await.unwrap();
    let seen = ann.next().await;
    assert_eq!(
        seen,
        json!({
            "id": notification.id(), "channel": "websocket", "type": "question", "tenant": "local", "task": null,
            "run": run, "text": "May it step?", "question": question,
        })
    );
    let id = seen["question"]["request_id"].as_str().unwrap();
    let answered = Client::new()
        .post(format!("http://127.0.0.1:{}/v1/approvals/{id}/answer", desk.port))
        .header("authorization", "Bearer ann-secret")
        .header("content-type", "application/json")
        .body(r#"{"answer":"approve"}"#);
    assert_eq!(answered.send().await.unwrap().status(), 200);
    assert_eq!((desk.runs.reply(&run).await.ended().is_finished(), world.steps()), (true, 1));
}

// spec: TR-09
#[tokio::test]
async fn notifications_come_as_events_to_a_client_that_asks_for_no_websocket() {
    let desk = Desk::start(&World::new()).await;
    let url = format!("http://127.0.0.1:{}/v1/notifications", desk.port);
    let asked = Client::new().get(url).header("authorization", "Bearer ann-secret");
    let response = asked.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.bytes_stream();
    desk.send(&result("local", "two\nmails")).await.unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"}\n\n") {
        bytes.extend(stream.next().await.unwrap().unwrap());
    }
    let text = String::from_utf8(bytes).unwrap();
    let data =
        text.strip_prefix("retry: 1000\n\nevent: notification\ndata: ").unwrap_or_else(|| panic!("{text}"));
    let seen: Json = serde_json::from_str(data).unwrap();
    assert_eq!((&seen["type"], &seen["text"]), (&json!("result"), &json!("two\nmails")));
}

// spec: TR-09, EX-11
#[tokio::test]
async fn websocket_is_refused_without_a_token_a_right_or_the_own_origin() {
    let desk = Desk::start(&World::new()).await;
    let own = format!("http://127.0.0.1:{}", desk.port);
    let ann = ("authorization", "Bearer ann-secret");
    for (headers, status, rule) in [
        (&[][..], 401, "token-missing"),
        (&[("authorization", "Bearer other")], 401, "token-unknown"),
        (&[("authorization", "Bearer viewer-secret")], 403, "role"),
        (&[("authorization", "Bearer bare-secret")], 404, "no-notifications"),
        (&[ann, ("origin", "https://evil.example")], 403, "origin-not-allowed"),
        (&[ann, ("origin", "null")], 403, "origin-not-allowed"),
        (&[ann, ("sec-fetch-site", "cross-site")], 403, "cross-site"),
        (&[ann, ("host", "evil.example")], 403, "host-not-allowed"),
        (&[ann, ("sec-websocket-version", "7")], 400, "header"),
    ] {
        match desk.connect(headers).await {
            Err(Error::Http(response)) => {
                let body: Json = serde_json::from_slice(response.body().as_deref().unwrap()).unwrap();
                let expected = (status, json!(format!("urn:archon:problem:{rule}")));
                assert_eq!((response.status().as_u16(), body["type"].clone()), expected, "{headers:?}");
            }
            Err(error) => panic!("{headers:?}: {error}"),
            Ok(_) => panic!("{headers:?}: it is open"),
        }
    }
    assert!(desk.connect(&[ann, ("origin", &own), ("sec-fetch-site", "same-origin")]).await.is_ok());
}

// spec: TR-09
#[tokio::test]
async fn notification_reaches_all_listeners_of_its_tenant_and_no_other() {
    let desk = Desk::start(&World::new()).await;
    let mut listeners = [desk.listen("ann").await, desk.listen("ann").await];
    let mut ben = desk.listen("ben").await;
    desk.send(&result("local", "first")).await.unwrap();
    desk.send(&result("ben", "second")).await.unwrap();
    for ann in &mut listeners {
        assert_eq!(ann.next().await["text"], "first");
    }
    assert_eq!(ben.next().await["text"], "second");
    let problem = desk.send(&result("carla", "third")).await.unwrap_err();
    assert!(problem.starts_with("nobody who listens"), "{problem}");
}

// spec: TR-09
#[tokio::test]
async fn listener_that_reads_nothing_is_cut_off_and_delays_no_other() {
    let desk = Desk::start(&World::new()).await;
    let mut deaf = desk.deaf("ann").await;
    let mut ann = desk.listen("ann").await;
    for number in 0..70 {
        let text = number.to_string();
        desk.send(&result("local", &text)).await.unwrap();
        assert_eq!(ann.next().await["text"], text);
    }
    ann.reading.abort();
    // No time has passed, and nobody is waited for.
    assert!(desk.send(&result("local", "in vain")).await.is_err());
    desk.clock.advance(Duration::from_secs(10));
    let mut bytes = Vec::new();
    soon(deaf.read_to_end(&mut bytes)).await.unwrap();
    let seen = String::from_utf8_lossy(&bytes).matches("\"result\"").count();
    assert_eq!(seen, 1, "a second notification is sent once the first is confirmed");
}

#[tokio::test]
async fn silent_connection_is_closed_if_its_client_answers_no_ping() {
    let desk = Desk::start(&World::new()).await;
    let mut deaf = desk.deaf("ann").await;
    soon(desk.clock.until_asleep(1)).await;
    desk.clock.advance(ServerOptions::default().heartbeat);
    let mut ping = [0; 10];
    soon(deaf.read_exact(&mut ping)).await.unwrap();
    assert_eq!(ping[..2], [0x89, 8]);
    desk.clock.advance(Duration::from_secs(10));
    assert_eq!(soon(deaf.read_to_end(&mut Vec::new())).await.unwrap(), 0);
}

#[tokio::test]
async fn socket_takes_no_messages_and_counts_for_the_limit_of_its_token() {
    let desk = Desk::start(&World::new()).await;
    let mut first = desk.listen("ann").await;
    let mut second = desk.listen("ann").await;
    let bearer = [("authorization", "Bearer ann-secret")];
    let Err(Error::Http(refused)) = desk.connect(&bearer).await else { panic!("a third socket is open") };
    assert_eq!(refused.status(), 429);
    first.to_send.send(Message::text("approve")).unwrap();
    assert_eq!(first.close_code().await, 1008);
    // A frame that is too large ends the connection before it has arrived.
    second.to_send.send(Message::text("x".repeat(2_000))).unwrap();
    assert_eq!(soon(second.messages.recv()).await, None);
    // Both have made room.
    soon(async {
        while desk.connect(&bearer).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn end_of_the_server_closes_the_sockets() {
    let desk = Desk::start(&World::new()).await;
    let (mut ann, mut deaf) = (desk.listen("ann").await, desk.deaf("ann").await);
    desk.server.end().cancel();
    assert_eq!(ann.close_code().await, 1001);
    let mut frame = [0; 4];
    soon(deaf.read_exact(&mut frame)).await.unwrap();
    assert_eq!((frame[0], u16::from_be_bytes([frame[2], frame[3]])), (0x88, 1001));
    assert!(
        !desk.served.is_finished(),
        "the end of the server waits for a client that has not closed its socket yet"
    );
    drop(deaf);
    desk.served.await.unwrap().unwrap();
}

// spec: TR-09, TR-11
#[cfg(feature = "notify")]
#[tokio::test]
async fn outbox_keeps_a_notification_until_somebody_listens() {
    use archon::{
        notify::{DeliveryRules, Outbox},
        store::InMemoryTaskStore,
        types::CancellationToken,
    };

    let desk = Desk::start(&World::new()).await;
    let (store, clock) = (Arc::new(InMemoryTaskStore::new()), Arc::new(desk.clock.clone()));
    let outbox = Outbox::new(store, Arc::new(desk.runs.clone()), clock)
        .with_channel(Arc::new(desk.channel.clone()), DeliveryRules::new());
    let serving = outbox.clone();
    tokio::spawn(async move { serving.serve(CancellationToken::new()).await });
    outbox.queued("websocket").unwrap().send(&result("local", "two mails")).await.unwrap();
    let problem = soon(async {
        loop {
            if let Some(problem) = outbox.list().await.unwrap().remove(0).problem {
                return problem;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(problem.starts_with("nobody who listens at GET /v1/notifications"), "{problem}");
    let mut ann = desk.listen("ann").await;
    desk.clock.advance(Duration::from_secs(30));
    assert_eq!(ann.next().await["text"], "two mails");
    soon(async {
        while outbox.list().await.unwrap()[0].sent_at.is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
