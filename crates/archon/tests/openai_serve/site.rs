//! A server before the program, and its clients.

use std::sync::Arc;

use archon::{
    RunId,
    openai_serve::{
        ModelServerOptions,
        axum::{
            Router,
            body::{Body, to_bytes},
            http::{HeaderMap, Request, StatusCode},
            response::Response,
        },
    },
    types::{
        Answer as Decision, AnswerRuns, CancellationToken, Journal, Json, Record, RunFilter, RunStatus,
        StartRuns,
    },
};
use archon_testkit::Ended;
use serde_json::json;
use tower::ServiceExt;

use crate::desk::Desk;

pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const RESPONSES: &str = "/v1/responses";

/// A server, and the program behind it.
pub(crate) struct Site {
    pub(crate) desk: Desk,
    pub(crate) router: Router,
    pub(crate) end: CancellationToken,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Json,
}

/// A server-sent event: its type, and its data; `[DONE]` is a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) event: Option<String>,
    pub(crate) data: Json,
}

impl Site {
    pub(crate) fn new() -> Self {
        let (desk, end) = (Desk::new(), CancellationToken::new());
        let router = desk.server(ModelServerOptions::default().with_end(end.clone())).router();
        Self { desk, router, end }
    }

    pub(crate) fn request(method: &str, path: &str, body: &Json, key: Option<&str>) -> Request<Body> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        request.body(Body::from(if body.is_null() { String::new() } else { body.to_string() })).unwrap()
    }

    pub(crate) async fn open(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.open(request).await.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or(Json::Null);
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Self::request("GET", path, &Json::Null, None)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Json) -> Answer {
        self.send(Self::request("POST", path, body, None)).await
    }

    /// Sends a request that is answered.
    pub(crate) async fn ask(&self, path: &str, body: &Json) -> Answer {
        let answer = self.post(path, body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer
    }

    /// Sends a request with `stream`, and reads the whole stream.
    pub(crate) async fn stream(&self, path: &str, body: &Json) -> (HeaderMap, Vec<Sent>) {
        let mut body = body.clone();
        body["stream"] = json!(true);
        let response = self.open(Self::request("POST", path, &body, None)).await;
        assert_eq!(response.status(), StatusCode::OK);
        let (parts, body) = response.into_parts();
        assert_eq!(parts.headers["content-type"], "text/event-stream");
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        (parts.headers, text.split_inclusive("\n\n").map(Sent::read).collect())
    }

    /// Answers the only open question with a yes, and waits for the end of its run.
    pub(crate) async fn approve(&self) {
        let runs = &self.desk.runs;
        let open = runs.questions(None).await.unwrap().remove(0);
        assert!(runs.answer(&open.request.request_id, Decision::Approve).await.unwrap());
        runs.reply(&open.run).await.ended();
    }

    /// Returns the run that works now.
    pub(crate) async fn running(&self) -> RunId {
        let mut heads = self.desk.runs.list(&RunFilter::all().status([RunStatus::Running])).await.unwrap();
        assert_eq!(heads.len(), 1, "{heads:?}");
        heads.remove(0).run_id
    }

    pub(crate) async fn log(&self, run: &RunId) -> Vec<Arc<Record>> {
        self.desk.journal.read(run).await.unwrap()
    }
}

impl Answer {
    /// Returns the status, the code and the parameter of an error.
    pub(crate) fn refusal(&self) -> (u16, &str, Option<&str>) {
        let error = &self.body["error"];
        assert!(error["message"].is_string() && error["type"].is_string(), "{}", self.body);
        (self.status.as_u16(), error["code"].as_str().unwrap(), error["param"].as_str())
    }

    /// Returns the run that the response names.
    pub(crate) fn run(&self) -> RunId {
        named_run(&self.headers)
    }
}

/// Returns the run that the headers of a response name.
pub(crate) fn named_run(headers: &HeaderMap) -> RunId {
    RunId::new(headers["x-archon-run"].to_str().unwrap())
}

impl Sent {
    fn read(frame: &str) -> Self {
        let mut event = None;
        let mut data = Json::Null;
        for line in frame.strip_suffix("\n\n").unwrap().lines() {
            match line.split_once(": ").unwrap() {
                ("event", name) => event = Some(name.to_owned()),
                ("data", "[DONE]") => data = json!("[DONE]"),
                ("data", text) => data = serde_json::from_str(text).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        Self { event, data }
    }
}
