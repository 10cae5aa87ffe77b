//! The questions and the events of tasks: a server of the command, its outbox, its page of answers and its sources.

use std::time::Duration;

use archon_testkit::{MockResponse, MockServer, RecordedRequest};
use data_encoding::BASE64;
use futures_util::StreamExt as _;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    serve::client::{Response, Served, Socket, settle},
    setup::{Place, answer, asks_for},
};

/// A server that takes the notifications of a channel.
pub(crate) async fn receiver() -> MockServer {
    MockServer::answering(|_| MockResponse::json(200, &json!({}))).await
}

/// Waits for a notification of this subject.
pub(crate) async fn notified(receiver: &MockServer, about: &str) -> RecordedRequest {
    let kind = format!("archon.{about}");
    until(async || receiver.requests().into_iter().find(|request| request.body["type"] == kind.as_str()))
        .await
}

/// Looks until there is a value.
pub(crate) async fn until<T>(look: impl AsyncFn() -> Option<T>) -> T {
    for _ in 0..1_200 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it did not happen within a minute");
}

/// A model that asks to write a file, and then answers.
pub(crate) async fn writer() -> MockServer {
    let call = asks_for("write_file", r#"{"path": "a.txt", "content": "x"}"#);
    MockServer::start([call, answer("It is written.")]).await
}

fn settings(hook: &MockServer) -> String {
    format!("tools = ['write_file']\n[channels.anna]\nkind = 'webhook'\nurl = '{}/hook'\n", hook.url())
}

/// Starts a run of a task that asks, and returns the server and the notification of the question.
async fn ask(place: &Place, hook: &MockServer) -> (Served, RecordedRequest) {
    place.archon("triggers add desk --notify anna", &["--cron", "0 8 1 1 *", "Write it."]).await;
    let served = Served::start(place, &[]).await;
    place.archon("triggers run desk", &[]).await;
    let sent = notified(hook, "question").await;
    assert!(!place.path("a.txt").exists());
    (served, sent)
}

fn token_of(sent: &RecordedRequest) -> String {
    let link = sent.body["data"]["link"].as_str().unwrap();
    assert!(link.starts_with("http://127.0.0.1:"), "{link}");
    link.split_once("/answer#").unwrap().1.to_owned()
}

async fn approve_by_link(served: &Served, token: &str) -> Response {
    let body = json!({ "token": token, "answer": { "answer": "approve" } });
    served.send("POST", "/answer", "X-Nothing: 1", Some(&body)).await
}

fn is_written(place: &Place) -> bool {
    std::fs::read_to_string(place.path("a.txt")).is_ok_and(|text| text == "x")
}

// spec: AP-10, TR-09, TR-10, A-40
#[tokio::test]
async fn question_of_a_task_is_answered_by_its_link_once_after_a_kill_of_the_server() {
    let (model, hook, place) = (writer().await, receiver().await, Place::new());
    settle(&place, &model, &settings(&hook));
    let (first, sent) = ask(&place, &hook).await;
    let (token, run) = (token_of(&sent), sent.body["data"]["run"].as_str().unwrap().to_owned());
    assert_eq!(first.end(Signal::KILL).await, None);

    let next = Served::start(&place, &[]).await;
    let shown = next.send("POST", "/answer/question", "X-Nothing: 1", Some(&json!({ "token": token }))).await;
    assert_eq!((shown.status, &shown.body["tool"]), (200, &json!("write_file")), "{shown:?}");
    let forged = approve_by_link(&next, &format!("{token}A")).await;
    assert_eq!((forged.status, is_written(&place)), (403, false), "{forged:?}");
    assert_eq!(approve_by_link(&next, &token).await.status, 200);
    next.until(&run, "finished").await;
    assert!(is_written(&place));
    let again = approve_by_link(&next, &token).await;
    assert_eq!(again.status, 409, "{again:?}");
    assert!(again.body["detail"].as_str().unwrap().contains("was answered before"), "{again:?}");
    let question = sent.body["data"]["question"]["id"].as_str().unwrap();
    assert_eq!(place.archon("approvals approve", &[question]).await.code, Some(2));

    assert_eq!(notified(&hook, "result").await.body["data"]["text"], "It is written.");
    let ids: std::collections::BTreeSet<_> =
        hook.requests().iter().map(|one| one.header("webhook-id").map(str::to_owned)).collect();
    assert_eq!(ids.len(), 2, "the question and the result: {:?}", hook.requests());
    assert_eq!(next.end(Signal::TERM).await, Some(0));
    model.assert_paired();
}

// spec: TR-09, AP-10
#[tokio::test]
async fn question_of_a_task_reaches_a_websocket_of_its_tenant_which_ends_with_the_server() {
    let (model, place) = (writer().await, Place::new());
    let tokens = "[serve.tokens.anna]\nrole = 'operator'\ntenant = 'anna'\nvariable = 'ANNA_TOKEN'\n\
                  [serve.tokens.ops]\nrole = 'operator'\n";
    let channel = "tools = ['write_file']\n[channels.page]\nkind = 'websocket'\n";
    settle(&place, &model, &format!("{channel}{tokens}"));
    place.archon("triggers add desk --notify page", &["--cron", "0 8 1 1 *", "Write it."]).await;
    let mut command = place.command("serve --json --listen 127.0.0.1:0", &[]);
    command.env("ANNA_TOKEN", "token-of-the-tenant-anna");
    let served = Served::of(command, 2).await;
    let anna = served.bearer("token-of-the-tenant-anna");
    let refused = served.send("GET", "/v1/notifications", &anna, None).await;
    assert_eq!((refused.status, refused.rule()), (404, "no-notifications"));

    let mut socket = served.listen().await;
    place.archon("triggers run desk", &[]).await;
    let asked = next_text(&mut socket).await;
    assert_eq!(
        (&asked["type"], &asked["channel"], &asked["task"]),
        (&json!("question"), &json!("page"), &json!("desk"))
    );
    assert_eq!((asked.get("link"), is_written(&place)), (None, false));
    let question = asked["question"]["request_id"].as_str().unwrap();
    assert_eq!(served.answer(question, "approve").await.status, 200);
    let result = next_text(&mut socket).await;
    assert_eq!((&result["type"], &result["text"]), (&json!("result"), &json!("It is written.")));
    assert!(is_written(&place));
    let (ended, last) = tokio::join!(served.end(Signal::TERM), next(&mut socket));
    assert_eq!(ended, Some(0));
    assert!(matches!(&last, Message::Close(Some(frame)) if u16::from(frame.code) == 1001), "{last:?}");
}

/// Returns the next message that is not a ping.
async fn next(socket: &mut Socket) -> Message {
    loop {
        let message = socket.next().await.unwrap().unwrap();
        if !message.is_ping() {
            return message;
        }
    }
}

async fn next_text(socket: &mut Socket) -> Value {
    serde_json::from_str(next(socket).await.to_text().unwrap()).unwrap()
}

// spec: AP-06, AP-10
#[tokio::test]
async fn question_of_a_task_is_answered_by_command_and_its_link_is_refused_then() {
    let (model, hook, place) = (writer().await, receiver().await, Place::new());
    settle(&place, &model, &settings(&hook));
    let (served, sent) = ask(&place, &hook).await;
    let listed = place.archon("approvals list --json", &[]).await.json();
    assert_eq!((&listed[0]["source"], &listed[0]["task"]), (&json!("trigger"), &json!("desk")), "{listed:?}");
    let question = sent.body["data"]["question"]["id"].as_str().unwrap();
    let approved = place.archon("approvals approve", &[question]).await;
    assert_eq!(approved.code, Some(0), "{approved:?}");
    notified(&hook, "result").await;
    assert!(is_written(&place));
    assert_eq!(approve_by_link(&served, &token_of(&sent)).await.status, 409);
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}

// spec: TR-09
#[tokio::test]
async fn channel_that_fails_is_in_the_history_of_its_task_and_the_next_person_gets_the_question() {
    let (model, hook, place) = (writer().await, receiver().await, Place::new());
    let broken = MockServer::answering(|_| MockResponse::json(404, &json!({}))).await;
    let rules = "[channels.ben.rules]\nescalate_after = '0s'\nescalate_to = 'anna'\n";
    let ben = format!("[channels.ben]\nkind = 'webhook'\nurl = '{}/gone'\n", broken.url());
    let eve = format!("[channels.eve]\nkind = 'webhook'\nurl = '{}/eve'\n", hook.url());
    settle(&place, &model, &format!("{}{ben}{eve}{}", settings(&hook), rules.replace("ben", "eve")));
    place.archon("triggers add desk --notify ben --notify eve", &["--cron", "0 8 1 1 *", "Write it."]).await;
    let served = Served::start(&place, &[]).await;
    place.archon("triggers run desk", &[]).await;
    until(async || hook.requests().into_iter().find(|request| request.path == "/hook")).await;
    let problem = until(async || {
        let history = place.archon("triggers history desk --json", &[]).await.json();
        history.into_iter().find_map(|item| item["problem"].as_str().map(str::to_owned))
    })
    .await;
    assert!(problem.contains("the channel ben failed: the service answered with status 404"), "{problem}");
    assert!(problem.contains("check [channels.ben]"), "{problem}");
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}

fn signed(body: &str, key: &[u8], seconds: u64) -> String {
    let signature = hmac_sha256::HMAC::mac(format!("msg_1.{seconds}.{body}"), key);
    let signature = BASE64.encode(&signature);
    format!("webhook-id: msg_1\r\nwebhook-timestamp: {seconds}\r\nwebhook-signature: v1,{signature}")
}

// spec: TR-04, TR-06
#[tokio::test]
async fn signed_web_hook_starts_a_run_once_and_a_forged_one_none() {
    let (model, place) = (MockServer::start([answer("Checked.")]).await, Place::new());
    settle(&place, &model, "[events.shop]\nkind = 'webhook'\nvariable = 'SHOP_SECRET'\n");
    place.archon("triggers add orders", &["--on", "shop.order.*", "Check it."]).await;
    let key = b"0123456789abcdef";
    let mut command = place.command("serve --json --listen 127.0.0.1:0", &[]);
    command.env("SHOP_SECRET", format!("whsec_{}", BASE64.encode(key)));
    let served = Served::of(command, 1).await;
    let body = json!({ "type": "order.created", "data": { "sum": 7 } });
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let send = async |key: &[u8]| {
        let headers = signed(&body.to_string(), key, now);
        served.send("POST", "/webhooks/shop", &headers, Some(&body)).await.status
    };
    assert_eq!(send(b"another key of 16").await, 401);
    assert_eq!(send(key).await, 202);
    assert_eq!(send(key).await, 409);
    let finished = until(async || {
        let history = place.archon("triggers history orders --json", &[]).await.json();
        history.first().filter(|run| run["status"] == "finished").cloned()
    })
    .await;
    let task = finished["task"].as_str().unwrap();
    assert!(task.starts_with("[Event Trigger] shop.order.*: Check it."), "{task}");
    assert!(model.requests()[0].text.contains("order.created"));
    assert_eq!((served.end(Signal::TERM).await, model.requests().len()), (Some(0), 1));
}

// spec: TR-04
#[tokio::test]
async fn file_in_a_watched_folder_starts_a_run() {
    let (model, place) = (MockServer::start([answer("Entered.")]).await, Place::new());
    settle(&place, &model, "[events.scans]\nkind = 'folder'\npath = 'scans'\nmatching = '*.pdf'\n");
    std::fs::create_dir(place.path(".config/archon/scans")).unwrap();
    place.archon("triggers add enter", &["--on", "scans.file.created", "Enter it."]).await;
    let served = Served::start(&place, &[]).await;
    // The source takes what comes after its first look.
    for number in 0.. {
        std::fs::write(place.path(&format!(".config/archon/scans/{number}.pdf")), "scan").unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        if !model.requests().is_empty() {
            break;
        }
    }
    assert!(model.requests()[0].text.contains("scans/"), "{:?}", model.requests()[0].text);
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}

#[tokio::test]
async fn serve_with_a_wrong_channel_source_or_address_is_refused_with_the_file_and_the_key() {
    let hook = "kind = 'webhook'\nurl = 'http://127.0.0.1:9/hook'\n";
    let rules = |rules: &str| format!("[channels.ops]\n{hook}[channels.ops.rules]\n{rules}\n");
    for (settings, what, remedy) in [
        (
            "[channels.ops]\nkind = 'slack'\nvariable = 'OPS_SLACK'".to_owned(),
            "[channels.ops] needs the variable OPS_SLACK",
            "export OPS_SLACK=",
        ),
        (
            "[channels.ops]\nkind = 'webhook'\nurl = 'http://example.com'".to_owned(),
            "[channels.ops]: the channel ops cannot be used",
            "correct the settings",
        ),
        (
            format!("[channels.console]\n{hook}"),
            "[channels.console]: the output of the server",
            "another name",
        ),
        (rules("quiet = '22:00'"), "[channels.ops.rules]: `quiet` is \"22:00\"", "22:00-07:00"),
        (
            rules("quiet = '22:00-07:00'\nzone = 'Mars/Olympus'"),
            "[channels.ops.rules]: there is no time zone",
            "correct the rules",
        ),
        (rules("digest = ['8']"), "[channels.ops.rules]: \"8\" is no time of the day", "correct the rules"),
        (rules("escalate_after = '5m'"), "has only one of `escalate_after`", "set both"),
        (rules("escalate_after = '5m'\nescalate_to = 'ben'"), "`escalate_to` is \"ben\"", "name a channel"),
        (
            "[events.shop]\nkind = 'webhook'\nvariable = 'SHOP'".to_owned(),
            "[events.shop] needs the variable SHOP",
            "archon credentials add SHOP",
        ),
        (
            "[events.'a.b']\nkind = 'folder'\npath = '.'".to_owned(),
            "[events.a.b]: the name of a source",
            "letters, digits",
        ),
        (
            "[events.scans]\nkind = 'folder'\npath = 'nowhere'".to_owned(),
            "which is no folder",
            "create the folder",
        ),
        (
            "[serve]\nurl = 'agents.example'".to_owned(),
            "[serve] `url` is \"agents.example\"",
            "https://agents.example",
        ),
        ("[serve]\nurl = 'http://agents.example'".to_owned(), "which is not encrypted", "write https://"),
    ] {
        let (model, place) = (MockServer::start([]).await, Place::new());
        settle(&place, &model, &settings);
        let refused = place.archon("serve --listen 127.0.0.1:0", &[]).await;
        refused.check_refused(2, what, remedy);
        let names_file = what.starts_with("[serve]")
            || what.starts_with("which")
            || refused.err.contains("archon.toml: [");
        assert!(names_file, "{refused:?}");
    }
}

/// A server of Telegram for the bot 7: it takes messages, and has one reply, `no`, to the first question.
async fn telegram() -> MockServer {
    let asked: std::sync::Mutex<Option<String>> = std::sync::Mutex::default();
    MockServer::answering(move |request| {
        let mut asked = asked.lock().unwrap();
        if request.path == "/bot7:secret/sendMessage" {
            let text = request.body["text"].as_str().unwrap();
            if text.contains("asks you") {
                asked.get_or_insert_with(|| text.to_owned());
            }
            return MockResponse::json(200, &json!({ "ok": true, "result": {} }));
        }
        assert_eq!(request.path, "/bot7:secret/getUpdates");
        let reply = |id: i64, chat: i64, bot: i64, text: &str| {
            json!({ "update_id": id, "message": {
                "message_id": id, "chat": { "id": chat }, "from": { "id": 1, "is_bot": false }, "text": text,
                "reply_to_message": { "message_id": 1, "from": { "id": bot, "is_bot": true }, "text": asked.as_deref() },
            } })
        };
        let updates = match (asked.is_some(), request.body["offset"].as_i64()) {
            // Of another chat, and to a message of another bot.
            (true, Some(0)) => json!([reply(5, 666, 7, "yes"), reply(6, 42, 8, "yes"), reply(7, 42, 7, "maybe")]),
            (true, Some(8)) => json!([reply(8, 42, 7, "Yes."), reply(9, 42, 7, "no")]),
            _ => json!([]),
        };
        MockResponse::json(200, &json!({ "ok": true, "result": updates }))
    })
    .await
}

// spec: AP-10, TR-09, TR-10
#[tokio::test]
async fn reply_in_a_chat_of_telegram_answers_a_question_once() {
    let (model, telegram, place) = (writer().await, telegram().await, Place::new());
    let channel = format!(
        "tools = ['write_file']\n[channels.anna]\nkind = 'telegram'\nchat = '42'\nvariable = 'BOT'\nserver = '{}'\n\
         replies = true\n",
        telegram.url()
    );
    settle(&place, &model, &channel);
    place.archon("triggers add desk --notify anna", &["--cron", "0 8 1 1 *", "Write it."]).await;
    let mut command = place.command("serve --json --listen 127.0.0.1:0", &[]);
    command.env("BOT", "7:secret");
    let served = Served::of(command, 1).await;
    place.archon("triggers run desk", &[]).await;
    let sent = until(async || {
        let messages =
            telegram.requests().into_iter().filter(|request| request.path.ends_with("sendMessage"));
        let texts: Vec<_> = messages.map(|sent| sent.body["text"].as_str().unwrap().to_owned()).collect();
        // The question, three notes about replies, and the result.
        Some(texts).filter(|texts| texts.len() == 5)
    })
    .await;
    let has = |part: &str| sent.iter().any(|text| text.contains(part));
    assert!(has("is not clear") && has("The answer was taken") && has("was answered before"), "{sent:?}");
    assert!(has("desk done\n> It is written."), "{sent:?}");
    assert!(is_written(&place));
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}

// spec: TR-11
#[tokio::test]
async fn server_starts_no_run_and_sends_nothing_until_another_one_of_its_data_folder_has_ended() {
    let (model, place) = (MockServer::start([answer("Done.")]).await, Place::new());
    settle(&place, &model, "");
    std::fs::create_dir_all(place.data()).unwrap();
    // As the other server holds it, from before this one starts.
    let lock_of = |file: &str| std::fs::File::create(place.data().join(file)).unwrap();
    let other = lock_of("outbox.lock");
    other.try_lock().unwrap();
    let mut command = place.command("serve --listen 127.0.0.1:0", &[]);
    let mut served = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(served.stderr.take().unwrap()).lines();
    let waits = async {
        while !lines.next_line().await.unwrap().unwrap().contains("this one takes over when it ends") {}
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.expect("it says that it waits");
    place.archon("triggers add note", &["--cron", "0 8 1 1 *", "Note it."]).await;
    let asked = place.archon("triggers run note", &[]).await;
    assert!(asked.err.contains("starts the runs of tasks, and does not run now"), "{asked:?}");
    lock_of("tasks.lock").try_lock().unwrap();
    assert_eq!(model.requests().len(), 0);
    drop(other);
    until(async || (!model.requests().is_empty()).then_some(())).await;
    served.kill().await.unwrap();
}
