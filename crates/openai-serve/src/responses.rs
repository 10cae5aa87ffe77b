//! The routes of responses: create, read, cancel. A response is a run, and a conversation is a session.

use std::sync::Arc;

use archon_types::{Event, Json, RunFilter, RunId, RunStarted, RunStatus, SessionId, TenantId};
use axum::{
    extract::{Request, State},
    http::{StatusCode, Uri},
    response::Response,
};

use crate::{
    body::{Fields, flag, idempotency_key, read_fields, required_text, text, wrong_type},
    conversation::Conversation,
    ending::Ending,
    error::ApiError,
    fields::{RESPONSES, check_fields, unsupported, wants_usage},
    headers::json_response,
    path_id::PathId,
    response_object::{ResponseHead, response_id, run_of_id},
    response_stream::ResponseWriter,
    shared::Shared,
    start::{Begun, Order, previous_run, start},
    stream::respond,
    transcript::{Phase, Transcript},
};

/// The reason for the cancel, for the log of the run.
const CANCELLED: &str = "a client cancelled the response";

pub(crate) async fn create(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    respond_to(&shared, request).await.unwrap_or_else(ApiError::into_response)
}

pub(crate) async fn get(State(shared): State<Arc<Shared>>, PathId(id): PathId, uri: Uri) -> Response {
    show(&shared, &id, uri.query()).await.unwrap_or_else(ApiError::into_response)
}

pub(crate) async fn cancel(State(shared): State<Arc<Shared>>, PathId(id): PathId) -> Response {
    stop(&shared, &id).await.unwrap_or_else(ApiError::into_response)
}

async fn respond_to(shared: &Arc<Shared>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let key = idempotency_key(&parts.headers)?;
    let fields = read_fields(shared, body).await?;
    check_fields(&fields, RESPONSES)?;
    let model = shared.model(required_text(&fields, "model")?)?;
    let (is_stream, is_background) = (flag(&fields, "stream")?, flag(&fields, "background")?);
    // Usage is always part of the last event.
    wants_usage(&fields)?;
    let conversation = Conversation::of_input(&fields, shared.clock.now())?;
    let conversation = conversation.for_kind(model.kind, "input")?;
    let repeated = key.as_ref().map(|_| &conversation);
    let (session, tenant) = session(shared, &fields, repeated).await?.unzip();
    let order = Order { model, conversation, session, tenant: tenant.flatten(), key, is_background };
    let Begun { mut followed, session, created, previous } = start(shared, order).await?;
    let head = ResponseHead {
        run: followed.run.clone(),
        session,
        model: model.agent.to_string(),
        created,
        previous,
    };
    if is_stream {
        return Ok(respond(followed, ResponseWriter::new(head)));
    }
    if is_background {
        return Ok(json_response(&head.json(&[], None), Some(&head.run)));
    }
    let ending = followed.wait().await?;
    Ok(json_response(&head.json(followed.transcript.parts(), Some(&ending)), Some(&head.run)))
}

/// Returns the session that a request continues, and its tenant if it is known. `repeated` is the conversation of a
/// request with an idempotency key, which may have started its run already.
async fn session(
    shared: &Shared,
    fields: &Fields,
    repeated: Option<&Conversation>,
) -> Result<Option<(SessionId, Option<TenantId>)>, ApiError> {
    let conversation = match fields.get("conversation") {
        None | Some(Json::Null) => None,
        Some(Json::String(id)) => Some(id.as_str()),
        Some(Json::Object(conversation)) => Some(required_text(conversation, "id")?),
        Some(_) => return Err(wrong_type("conversation", "the id of a conversation")),
    };
    match (text(fields, "previous_response_id")?, conversation) {
        (Some(_), Some(_)) => {
            let message = "Set 'previous_response_id' or 'conversation', and not both.";
            Err(ApiError::field("mutually_exclusive_parameters", "previous_response_id", message))
        }
        (Some(previous), None) => session_after(shared, previous, repeated).await.map(Some),
        (None, Some("")) => Err(wrong_type("conversation", "the id of a conversation")),
        (None, Some(id)) => {
            let session = SessionId::new(id);
            check_offered(shared, &session).await?;
            Ok(Some((session, None)))
        }
        (None, None) => Ok(None),
    }
}

/// Refuses a session whose newest run is of an agent that is not offered.
async fn check_offered(shared: &Shared, session: &SessionId) -> Result<(), ApiError> {
    let newest = RunFilter::of_session(session.clone()).top_level().limit(1);
    let Some(newest) = shared.runs.list(&newest).await?.into_iter().next() else { return Ok(()) };
    let records = shared.runs.records(&newest.run_id, None).await?.records;
    if RunStarted::of(&records).is_none_or(|started| shared.model_of(&started.agent).is_some()) {
        return Ok(());
    }
    let message =
        format!("The conversation '{session}' belongs to an agent that is not offered; use another id.");
    Err(ApiError::field("conversation_not_found", "conversation", message))
}

/// Returns the session of a response, and its tenant. The response must be the last one of its session. If the run's
/// agent is not offered, the run counts as not found.
///
/// There is one exception: the last run may be the run that this request started when it was sent before. The log
/// does not contain the idempotency key, so that run is recognized by its prompts. The run service then compares the
/// rest of the request.
async fn session_after(
    shared: &Shared,
    previous: &str,
    repeated: Option<&Conversation>,
) -> Result<(SessionId, Option<TenantId>), ApiError> {
    let param = "previous_response_id";
    let unknown = |reason: String| ApiError::field("previous_response_not_found", param, reason);
    let run = find(previous).map_err(|error| unknown(error.message))?;
    let head = match shared.runs.get(&run).await {
        Err(error) if error.http_status() == 404 => return Err(unknown(error.to_string())),
        head => head?,
    };
    let Some(session) = head.session else { return Err(unknown(format!("run {run} cannot be read"))) };
    let records = shared.runs.records(&run, None).await?.records;
    if RunStarted::of(&records).and_then(|started| shared.model_of(&started.agent)).is_none() {
        return Err(unknown(not_found(previous).message));
    }
    let mut filter = RunFilter::of_session(session.clone()).top_level().limit(1);
    filter.tenant = head.tenant.clone();
    let newest = shared.runs.list(&filter).await?.into_iter().next();
    let Some(newest) = newest.filter(|newest| newest.run_id != run) else {
        return Ok((session, head.tenant));
    };
    if let Some(conversation) = repeated {
        let records = shared.runs.records(&newest.run_id, None).await?.records;
        if previous_run(&records).as_ref() == Some(&run) && conversation.began(&records) {
            return Ok((session, head.tenant));
        }
    }
    let message = format!(
        "Response '{previous}' is not the last of its conversation; continue '{}', or fork the run.",
        response_id(&newest.run_id)
    );
    Err(ApiError::field("previous_response_not_last", param, message))
}

/// Returns the id of a response's run.
fn find(id: &str) -> Result<RunId, ApiError> {
    run_of_id(id).ok_or_else(|| not_found(id))
}

fn not_found(id: &str) -> ApiError {
    let message = format!("Response with id '{id}' not found.");
    ApiError::new(StatusCode::NOT_FOUND, "response_not_found", message)
}

/// Returns a response. A request with a query is refused, because a response is always returned whole.
async fn show(shared: &Shared, id: &str, query: Option<&str>) -> Result<Response, ApiError> {
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        return Err(unsupported(query.split(['=', '&']).next().unwrap_or(query)));
    }
    read(shared, &find(id)?).await
}

/// Returns the response of a run. If the run's agent is not offered, the run counts as not found.
async fn read(shared: &Shared, run: &RunId) -> Result<Response, ApiError> {
    let id = response_id(run);
    let status = match shared.runs.get(run).await {
        Err(error) if error.http_status() == 404 => return Err(not_found(&id)),
        head => head?.status,
    };
    let records = shared.runs.records(run, None).await?.records;
    let Some(started) = RunStarted::of(&records) else { return Err(not_found(&id)) };
    let Some(model) = shared.model_of(&started.agent) else { return Err(not_found(&id)) };
    let mut transcript = Transcript::new(run.clone(), model.final_answer_only);
    for record in &records {
        transcript.apply(&Event::Record { run: run.clone(), record: record.clone() });
    }
    let ending = match status {
        RunStatus::Created | RunStatus::Running | RunStatus::Interrupted => None,
        _ => Some(Ending::of(&*shared.runs, run).await?),
    };
    if let Some(ending) = &ending {
        transcript.finish(&ending.outcome);
        if let Some(notice) = &ending.notice {
            transcript.say(notice, Phase::Commentary);
        }
    }
    let head = ResponseHead {
        run: run.clone(),
        session: started.session.clone(),
        model: model.agent.to_string(),
        created: records.first().map(|record| record.at).unwrap_or_default(),
        previous: previous_run(&records),
    };
    Ok(json_response(&head.json(transcript.parts(), ending.as_ref()), Some(run)))
}

/// Cancels the run of a response, and returns the response. A run that has already ended is not changed.
async fn stop(shared: &Shared, id: &str) -> Result<Response, ApiError> {
    let run = find(id)?;
    let head = match shared.runs.get(&run).await {
        Err(error) if error.http_status() == 404 => return Err(not_found(id)),
        head => head?,
    };
    if !head.status.has_ended() {
        // Only of agents that are offered.
        read(shared, &run).await?;
        shared.runs.cancel(&run, CANCELLED).await?;
        Ending::of(&*shared.runs, &run).await?;
    }
    read(shared, &run).await
}
