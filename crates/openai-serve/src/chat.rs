//! `POST /v1/chat/completions`: each request is a run in a new session. The earlier messages of the request are the
//! restored conversation of the run.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};

use crate::{
    body::{flag, idempotency_key, read_fields, required_text},
    chat_stream::ChatWriter,
    completion::Completion,
    conversation::Conversation,
    error::ApiError,
    fields::{CHAT, check_fields, wants_usage},
    headers::json_response,
    shared::Shared,
    start::{Begun, Order, start},
    stream::{failure_of, respond},
};

pub(crate) async fn create(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    complete(&shared, request).await.unwrap_or_else(ApiError::into_response)
}

async fn complete(shared: &Arc<Shared>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let key = idempotency_key(&parts.headers)?;
    let fields = read_fields(shared, body).await?;
    check_fields(&fields, CHAT)?;
    let model = shared.model(required_text(&fields, "model")?)?;
    let (is_stream, with_usage) = (flag(&fields, "stream")?, wants_usage(&fields)?);
    let conversation = Conversation::of_messages(&fields, shared.clock.now())?;
    let conversation = conversation.for_kind(model.kind, "messages")?;
    let order = Order { model, conversation, session: None, tenant: None, key, is_background: false };
    let Begun { mut followed, created, .. } = start(shared, order).await?;
    let completion = Completion::new(&followed.run, created, model.agent.to_string());
    if is_stream {
        return Ok(respond(followed, ChatWriter::new(completion, with_usage)));
    }
    let ending = followed.wait().await?;
    if ending.has_failed() {
        return Err(failure_of(&ending));
    }
    Ok(json_response(&completion.whole(&followed.transcript.text(), &ending), Some(&followed.run)))
}
