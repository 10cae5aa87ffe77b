//! Starts the run of a request.

use std::sync::Arc;

use archon_types::{
    Origin, Record, RunError, RunId, RunStarted, SessionId, StartRun, Started, TenantId, Timestamp,
};
use axum::http::StatusCode;

use crate::{
    conversation::Conversation, error::ApiError, follow::Followed, guard::Guard, model::AgentModel,
    shared::Shared, transcript::Transcript,
};

/// A request for a run.
pub(crate) struct Order<'a> {
    pub(crate) model: &'a AgentModel,
    pub(crate) conversation: Conversation,
    /// The session to continue.
    pub(crate) session: Option<SessionId>,
    /// The tenant of this session if it is known; otherwise the run service uses its own tenant.
    pub(crate) tenant: Option<TenantId>,
    /// The idempotency key.
    pub(crate) key: Option<String>,
    /// True if the run continues when the client closes its connection.
    pub(crate) is_background: bool,
}

/// A run that was started by this request, or found by the idempotency key.
pub(crate) struct Begun {
    pub(crate) followed: Followed,
    pub(crate) session: SessionId,
    pub(crate) created: Timestamp,
    /// The earlier run that this run continues.
    pub(crate) previous: Option<RunId>,
}

/// Returns the earlier run that a run continues; `None` if it continues no run.
pub(crate) fn previous_run(records: &[Arc<Record>]) -> Option<RunId> {
    match &RunStarted::of(records)?.origin {
        Origin::Continues { run, .. } => Some(run.clone()),
        _ => None,
    }
}

/// Starts a run and watches it. If the client closes its connection, the run is cancelled, unless it is a background
/// run or has an idempotency key: with the key, the client may ask again.
pub(crate) async fn start(shared: &Arc<Shared>, order: Order<'_>) -> Result<Begun, ApiError> {
    let Order { model, conversation, session, tenant, key, is_background } = order;
    let mut request = StartRun::with_messages(conversation.prompts)
        .agent(model.agent.clone())
        .kind(model.kind)
        .restored(conversation.restored);
    let is_left_alone = is_background || key.is_some();
    (request.key, request.session, request.tenant) = (key, session, tenant);
    let (runs, end) = (shared.runs.clone(), shared.options.end.clone());
    // In a task of its own: a client that goes away during the start does not stop it half-way, and the guard, which
    // nothing takes then, cancels the run.
    let starting = tokio::spawn(async move {
        let started = runs.start(request).await?;
        let is_armed = started.how == Started::New && !is_left_alone;
        let guard = Guard::new(runs, started.run.clone(), end, is_armed);
        Ok::<_, RunError>((started, guard))
    });
    let (started, guard) = starting.await.map_err(|error| {
        let message = format!("The run was not started: {error}. Send the request again.");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    })??;
    let run = started.run;
    let head = shared.runs.get(&run).await?;
    let first = shared.runs.records_before(&run, Some(1), 1).await?.records;
    let events = shared.runs.watch(&run, None).await?;
    let transcript = Transcript::new(run.clone(), model.final_answer_only);
    let followed = Followed::new(shared.clone(), events, transcript, guard, run);
    let previous = previous_run(&first);
    Ok(Begun { followed, session: started.session, created: head.started_at, previous })
}
