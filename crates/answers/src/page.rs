//! The page to which links lead. Its files hold no data: the token stands in the fragment of the address, which a browser does
//! not send, and a script of the page posts it. So a GET answers nothing, also one of a program that opens links in mail.

use std::{pin::pin, sync::Arc};

use archon_http_access::AllowedHosts;
use archon_types::{Answer, Clock, Json, PendingApproval, one_line, shorten, visible};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::Response,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::json;

use crate::{answers::Answers, error::AnswerError};

/// The most bytes of a request.
const MOST_BYTES: usize = 64 * 1024;

/// The longest time in seconds until a request has arrived.
const MOST_SECONDS: u64 = 30;

/// The most characters of one argument that the page shows.
const MOST_CHARACTERS: usize = 4_000;

/// Files of this page only, no frames, no forms that a browser sends by itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// The page on which a person answers a question by a link. Cloning is cheap.
///
/// A link from web mail leads to the page, so the page itself may be opened from other sites. It shows and answers a question
/// only with a token, and only for requests of its own script.
///
/// ```
/// use archon_answers::{AnswerPage, Answers};
/// use archon_http_access::AllowedHosts;
/// use axum::Router;
///
/// /// Puts the page `/answer` beside the routes of a server.
/// fn with_page(server: Router, answers: Answers) -> Router {
///     server.merge(AnswerPage::new(answers, AllowedHosts::new(["archon.example.com"])).router())
/// }
/// ```
#[derive(Clone)]
pub struct AnswerPage {
    shared: Arc<Shared>,
}

struct Shared {
    answers: Answers,
    hosts: AllowedHosts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    token: String,
    answer: Option<Answer>,
}

impl AnswerPage {
    /// Creates the page. The host of each request must be one of `hosts`.
    pub fn new(answers: Answers, hosts: AllowedHosts) -> Self {
        Self { shared: Arc::new(Shared { answers, hosts }) }
    }

    /// Returns the router, with the page at `/answer`. It has no fallback, so you can merge it with other routers. It needs no
    /// access token: do not put it behind checks for one.
    ///
    /// | route | does |
    /// |---|---|
    /// | `GET /answer`, `GET /answer/{file}` | the page, without data |
    /// | `POST /answer/question` | with `{"token"}`: the question |
    /// | `POST /answer` | with `{"token", "answer"}`: answers it, as `POST /v1/approvals/{request}/answer` of the server |
    pub fn router(&self) -> Router {
        let page = get(async || file("text/html; charset=utf-8", include_str!("page/answer.html")));
        let script = get(async || file("text/javascript", include_str!("page/answer.js")));
        let style = get(async || file("text/css", include_str!("page/answer.css")));
        Router::new()
            .route("/answer", page.post(answer))
            .route("/answer/answer.js", script)
            .route("/answer/answer.css", style)
            .route("/answer/question", post(question))
            .with_state(self.shared.clone())
    }
}

impl std::fmt::Debug for AnswerPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerPage").field("hosts", &self.shared.hosts).finish_non_exhaustive()
    }
}

async fn question(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let asked = match read(&shared, request).await {
        Ok(asked) => asked,
        Err((status, detail)) => return problem(status, &detail),
    };
    match shared.answers.question(&asked.token).await {
        Ok(question) => reply(StatusCode::OK, &question_json(&question)),
        Err(error) => refusal(&error),
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let asked = match read(&shared, request).await {
        Ok(asked) => asked,
        Err((status, detail)) => return problem(status, &detail),
    };
    let Some(answer) = asked.answer else {
        return problem(StatusCode::UNPROCESSABLE_ENTITY, "the request has no answer");
    };
    match shared.answers.answer(&asked.token, answer).await {
        Ok(question) => reply(StatusCode::OK, &json!({ "question": question.request.request_id })),
        Err(error) => refusal(&error),
    }
}

/// The status and the detail of a request that is refused before its token is read.
type Refused = (StatusCode, String);

/// Checks that the script of this page sent the request, and reads it.
async fn read(shared: &Shared, request: Request) -> Result<Asked, Refused> {
    let (parts, body) = request.into_parts();
    check(shared, &parts.headers)?;
    let body = read_body(body, &*shared.answers.clock).await?;
    serde_json::from_slice(&body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("the request cannot be read: {error}")))
}

fn check(shared: &Shared, headers: &HeaderMap) -> Result<(), Refused> {
    let one = |name| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().and_then(|value| value.to_str().ok());
        value.filter(|_| values.next().is_none())
    };
    let forbidden = |text: &str| Err((StatusCode::FORBIDDEN, text.to_owned()));
    let Some(host) = one(HOST).filter(|host| shared.hosts.admits(host)) else {
        return forbidden("the host of the request is not one of this page");
    };
    let is_own = |origin: &str| {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
    };
    let (mut origins, mut sites) = (headers.get_all(ORIGIN).iter(), headers.get_all("sec-fetch-site").iter());
    if !origins.all(|origin| origin.to_str().is_ok_and(is_own)) || !sites.all(|site| site == "same-origin") {
        return forbidden("a page of another site sent the request");
    }
    // No page of another site can send this type without being asked for leave.
    let kind = one(CONTENT_TYPE).map(|kind| kind.split(';').next().unwrap_or_default().trim());
    match kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        true => Ok(()),
        false => Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the request must be application/json".to_owned())),
    }
}

async fn read_body(body: Body, clock: &dyn Clock) -> Result<Vec<u8>, Refused> {
    let refused = |status, detail: &str| Err((status, detail.to_owned()));
    let deadline = clock.now() + std::time::Duration::from_secs(MOST_SECONDS);
    let mut read = pin!(to_bytes(body, MOST_BYTES));
    match clock.before(deadline, |task| read.as_mut().poll(task)).await {
        Some(Ok(bytes)) => Ok(bytes.into()),
        Some(Err(_)) => refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large or ended early"),
        None => refused(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time"),
    }
}

/// Returns what the page shows of a question. Characters that hide or reorder text are shown by their number.
fn question_json(question: &PendingApproval) -> Json {
    let request = &question.request;
    let text = |value: &Json| match value {
        Json::String(text) => visible(text),
        value => visible(&serde_json::to_string_pretty(value).unwrap_or_default()),
    };
    let short = |text: String| shorten(&text, MOST_CHARACTERS, " … (the rest is in the log of the run)");
    let details = request.details.get("arguments").unwrap_or(&request.details);
    let rows: Vec<_> = match details {
        Json::Object(map) => {
            map.iter().map(|(name, value)| json!([one_line(name, 200), short(text(value))])).collect()
        }
        Json::Null => Vec::new(),
        value => vec![json!(["", short(text(value))])],
    };
    json!({
        "question": request.request_id, "summary": visible(&request.action_summary),
        "agent": visible(&request.agent_name), "tool": request.details.get("tool"),
        "rows": rows, "options": request.options, "expires_at": request.expires_at.map(|at| at.to_string()),
    })
}

fn refusal(error: &AnswerError) -> Response {
    let status = match error {
        AnswerError::Token => StatusCode::FORBIDDEN,
        AnswerError::Expired { .. } => StatusCode::GONE,
        AnswerError::Answered { .. } | AnswerError::Changed { .. } => StatusCode::CONFLICT,
        AnswerError::Runs(error) => {
            StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    problem(status, &error.to_string())
}

fn problem(status: StatusCode, detail: &str) -> Response {
    let mut response = reply(status, &json!({ "status": status.as_u16(), "detail": detail }));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

fn reply(status: StatusCode, body: &Json) -> Response {
    let mut response = file("application/json", body.to_string());
    *response.status_mut() = status;
    response
}

/// Returns a response that no browser keeps, shows in a frame or gives to another site.
fn file(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}
