//! Runs: the list, one run, its records, a start, a deletion.

use std::{borrow::Cow, sync::Arc};

use archon_types::{
    AgentId, AgentMessage, Content, JournalError, Message, MessagePlace, Record, RunError, RunFilter,
    RunHead, RunId, RunKind, RunPlace, RunService, RunStatus, Salvaged, SessionId, SessionMode, StartRun,
    Started, StartedRun, TRIGGER_KEYS, TenantId, Timestamp, UserMessage, WhenBusy,
};
use axum::http::{HeaderValue, StatusCode, header::LOCATION};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    access::Token,
    problem::{Problem, Rule},
    reply::{Reply, empty, json},
    request::Call,
    role::Right,
};

/// The default and the maximum number of runs on a page.
const PAGE: (usize, usize) = (50, 500);
/// The default and the maximum number of records on a page.
const RECORDS: (usize, usize) = (1_000, 100_000);
/// The maximum length of an idempotency key in bytes.
const LONGEST_KEY: usize = 255;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    session: Option<SessionId>,
    tenant: Option<TenantId>,
    /// Names of statuses, separated by commas.
    status: Option<String>,
    #[serde(default)]
    top_level: bool,
    limit: Option<usize>,
    after: Option<String>,
}

pub(crate) async fn list(call: Call) -> Reply {
    let query: ListQuery = call.query()?;
    let mut filter = RunFilter::all();
    let limit = query.limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
    filter.limit = Some(limit);
    filter.session = query.session;
    filter.tenant = query.tenant;
    filter.top_level = query.top_level;
    filter.status = statuses(query.status.as_deref())?;
    filter.after = query.after.as_deref().map(place).transpose()?;
    let runs = call.runs().list(&filter).await?;
    let next = runs.last().filter(|_| runs.len() == limit).map(|head| cursor(&head.place()));
    let runs: Vec<_> = runs.into_iter().map(|head| head_for(&call.token, head)).collect();
    json(StatusCode::OK, &json!({ "runs": runs, "next": next }))
}

pub(crate) async fn get(mut call: Call) -> Reply {
    let run = call.run().await?;
    let head: RunHead = call.runs().get(&run).await?;
    json(StatusCode::OK, &head_for(&call.token, head))
}

/// Returns a head without the texts that come from the log, if the token may not read logs.
fn head_for(token: &Token, mut head: RunHead) -> RunHead {
    if !token.role.has(Right::ReadLogs) {
        (head.task, head.problem) = (String::new(), None);
    }
    head
}

pub(crate) async fn delete(mut call: Call) -> Reply {
    let run = call.run().await?;
    call.runs().delete(&run).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordsQuery {
    after: Option<u64>,
    before: Option<u64>,
    /// The number of records to return from the end of the log. Cannot be combined with `after` or `before`.
    last: Option<usize>,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct RecordsBody<'a> {
    /// Media have no data here: `GET /v1/runs/{run}/media/{sha256}` returns the data.
    records: Vec<Cow<'a, Record>>,
    /// The value of `after` for the next page; null on the last page, and on pages that are read backwards.
    next: Option<u64>,
    /// The value of `before` for the previous page; null on the first page, and on pages that are read
    /// forwards.
    previous: Option<u64>,
    damage: Option<String>,
}

pub(crate) async fn records(mut call: Call) -> Reply {
    let run = call.run().await?;
    let RecordsQuery { after, before, last, limit } = call.query()?;
    let limit = last.or(limit).unwrap_or(RECORDS.0).clamp(1, RECORDS.1);
    if [after.is_some(), before.is_some(), last.is_some()].into_iter().filter(|is_set| *is_set).count() > 1 {
        return Err(Problem::new(Rule::Query, "set one of `after`, `before` and `last`"));
    }
    if before.is_some() || last.is_some() {
        let salvaged = call.runs().records_before(&run, before, limit).await?;
        let records = &salvaged.records;
        let previous = records.first().map(|record| record.seq).filter(|seq| *seq > 0);
        let damage = salvaged.damage.as_ref().map(JournalError::to_string);
        let records = without_media_data(records);
        return json(StatusCode::OK, &RecordsBody { records, next: None, previous, damage });
    }
    let salvaged = page_after(&**call.runs(), &run, after, limit).await?;
    let is_whole = salvaged.records.len() <= limit;
    let records = &salvaged.records[..salvaged.records.len().min(limit)];
    let next = records.last().filter(|_| !is_whole).map(|record| record.seq);
    let damage = salvaged.damage.as_ref().filter(|_| is_whole).map(JournalError::to_string);
    let records = without_media_data(records);
    json(StatusCode::OK, &RecordsBody { records, next, previous: None, damage })
}

fn without_media_data(records: &[Arc<Record>]) -> Vec<Cow<'_, Record>> {
    records.iter().map(|record| record.without_media_data()).collect()
}

/// Returns the records after the record `after`. If there are more than `limit`, returns `limit + 1` records
/// and reads no others.
async fn page_after(
    runs: &dyn RunService,
    run: &RunId,
    after: Option<u64>,
    limit: usize,
) -> Result<Salvaged, RunError> {
    let (wanted, most) = (after.map_or(0, |seq| seq.saturating_add(1)), limit + 1);
    let page = runs.records_before(run, Some(wanted.saturating_add(most as u64)), most).await?;
    let is_full = page.records.len() == most;
    let is_next =
        |(place, record): (usize, &Arc<Record>)| record.seq.checked_sub(wanted) == Some(place as u64);
    // A page does not show damage before it, nor an end that is missing; the whole log does.
    match is_full && page.records.iter().enumerate().all(is_next) {
        true => Ok(page),
        false => runs.records(run, after).await,
    }
}

/// The body of a start: a text, or blocks of text, images and files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartBody {
    text: Option<String>,
    #[serde(default)]
    content: Vec<Content>,
    agent: Option<AgentId>,
    #[serde(default)]
    kind: RunKind,
    session: Option<SessionId>,
    #[serde(default)]
    when_busy: Busy,
    instead_of: Option<MessagePlace>,
    tenant: Option<TenantId>,
    mode: Option<SessionMode>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Busy {
    #[default]
    Refuse,
    Queue,
    Steer,
    Branch,
}

pub(crate) async fn start(mut call: Call) -> Reply {
    let key = key(&call)?;
    let body: StartBody = call.json().await?;
    let mut request = StartRun::with_messages(vec![message(body.text, body.content)?]);
    request.agent = body.agent;
    request.kind = body.kind;
    request.key = key;
    request.session = body.session;
    request.when_busy = match body.when_busy {
        Busy::Refuse => WhenBusy::Refuse,
        Busy::Queue => WhenBusy::Queue,
        Busy::Steer => WhenBusy::Steer,
        Busy::Branch => WhenBusy::Branch,
    };
    request.instead_of = body.instead_of;
    request.tenant = body.tenant;
    request.settings.mode = body.mode;
    let started = call.runs().start(request).await.map_err(|error| match error {
        RunError::NoAgent { .. } => Problem::unknown_agent(&error),
        error => error.into(),
    })?;
    let status = match started.how {
        Started::New => StatusCode::CREATED,
        Started::Before => StatusCode::OK,
        _ => StatusCode::ACCEPTED,
    };
    let mut response = json(status, &StartedBody::of(&started))?;
    if let Ok(place) = HeaderValue::try_from(format!("runs/{}", started.run)) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// A started run in JSON.
#[derive(Serialize)]
pub(crate) struct StartedBody<'a> {
    run: &'a RunId,
    session: &'a SessionId,
    how: &'static str,
}

impl<'a> StartedBody<'a> {
    pub(crate) fn of(started: &'a StartedRun) -> Self {
        let how = match started.how {
            Started::New => "new",
            Started::Resumed => "resumed",
            Started::Before => "before",
            _ => "queued",
        };
        Self { run: &started.run, session: &started.session, how }
    }
}

/// Returns the message of a person: a text, or blocks of text, images and files.
pub(crate) fn message(text: Option<String>, content: Vec<Content>) -> Result<AgentMessage, Problem> {
    let wrong = |detail: &str| Err(Problem::new(Rule::Body, detail));
    match (text, content) {
        (Some(_), content) if !content.is_empty() => wrong("set `text` or `content`, and not both"),
        (Some(text), _) => Ok(AgentMessage::from(text)),
        (None, content) if content.is_empty() => wrong("`text` is missing"),
        (None, content) => {
            let is_allowed = |block: &Content| {
                block.as_text().is_some() || block.as_media().is_some_and(|media| media.base64.is_some())
            };
            if !content.iter().all(is_allowed) {
                return wrong(
                    "`content` has a block that is neither text nor an image or a file with its data",
                );
            }
            Ok(Message::User(UserMessage::new(content, Timestamp::default())).into())
        }
    }
}

/// Returns the idempotency key without the quotes that it may have.
fn key(call: &Call) -> Result<Option<String>, Problem> {
    let Some(key) = call.header("idempotency-key")? else { return Ok(None) };
    let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    if key.is_empty() || key.len() > LONGEST_KEY {
        let detail = format!("Idempotency-Key: it must have 1 to {LONGEST_KEY} characters");
        return Err(Problem::new(Rule::Header, detail));
    }
    if key.starts_with(TRIGGER_KEYS) {
        let detail = format!(
            "Idempotency-Key: keys that begin with `{TRIGGER_KEYS}` are those of tasks; send another one"
        );
        return Err(Problem::new(Rule::Header, detail));
    }
    Ok(Some(key.to_owned()))
}

fn statuses(names: Option<&str>) -> Result<Vec<RunStatus>, Problem> {
    let names = names.into_iter().flat_map(|names| names.split(','));
    names
        .map(|name| {
            RunStatus::of_name(name)
                .ok_or_else(|| Problem::new(Rule::Query, format!("status: there is no status {name:?}")))
        })
        .collect()
}

/// Formats the position of a run in the list as text.
fn cursor(place: &RunPlace) -> String {
    format!("{}-{}", place.updated_at.as_millis(), place.run)
}

fn place(cursor: &str) -> Result<RunPlace, Problem> {
    let read = || {
        let (millis, run) = cursor.split_once('-')?;
        Some(RunPlace { updated_at: Timestamp::from_millis(millis.parse().ok()?), run: RunId::new(run) })
    };
    read().ok_or_else(|| Problem::new(Rule::Query, "after: it is not the `next` of a page"))
}

/// The query of a list that has only the parameter `tenant`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantQuery {
    pub(crate) tenant: Option<TenantId>,
}
