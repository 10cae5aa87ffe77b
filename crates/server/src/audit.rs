//! The audit of a run: the trail from its log, and the requests to this server that concerned the run.

use std::{collections::HashSet, sync::Arc};

use archon_types::JournalError;
use archon_views::AuditTrail;
use axum::{
    http::{Method, StatusCode, header::LOCATION, request::Parts},
    response::Response,
};
use serde::Serialize;
use tokio::runtime::Handle;

use crate::{
    access::Token,
    problem::{Problem, Rule},
    reply::{Reply, json},
    request::Call,
    request_log::{LoggedRequest, RequestLog},
    route::Route,
    state::State,
};

/// The header by which a mounted router names the run of a response.
const RUN: &str = "x-archon-run";

#[derive(Serialize)]
struct AuditBody {
    #[serde(flatten)]
    trail: AuditTrail,
    /// The writes that holders of tokens sent for the run and its questions; null if the server keeps no log of
    /// requests.
    requests: Option<Vec<LoggedRequest>>,
    /// The damage of the run's log; the trail ends before the damage.
    damage: Option<String>,
}

pub(crate) async fn of_run(mut call: Call) -> Reply {
    let run = call.run().await?;
    let salvaged = call.runs().records(&run, None).await?;
    let trail = AuditTrail::of(&salvaged.records).ok_or_else(|| {
        Problem::new(Rule::Internal, format!("the log of {run} does not begin with the start of a run"))
            .advise("restore the log from a backup")
    })?;
    let requests = match &call.state.options.request_log {
        Some(log) => Some(requests(log.clone(), &trail).await?),
        None => None,
    };
    let damage = salvaged.damage.as_ref().map(JournalError::to_string);
    json(StatusCode::OK, &AuditBody { trail, requests, damage })
}

/// Returns the requests whose target is the run or one of its questions, oldest first.
async fn requests(log: Arc<RequestLog>, trail: &AuditTrail) -> Result<Vec<LoggedRequest>, Problem> {
    let mut targets: HashSet<String> = trail.questions().map(str::to_owned).collect();
    targets.insert(trail.run.to_string());
    log.of_targets(targets).await.map_err(|error| {
        Problem::new(Rule::Unavailable, format!("the log of requests cannot be read: {error}"))
            .advise("repair the file, or ask for the records of the run")
    })
}

/// Returns the entry of a write for the log of requests.
pub(crate) fn request_entry(
    state: &State,
    token: &Token,
    route: &Route,
    path: String,
    target: Option<String>,
    reply: &Reply,
) -> LoggedRequest {
    let (status, rule) = match reply {
        Ok(response) => (response.status(), None),
        Err(problem) => (problem.rule.status(), Some(problem.rule.code().to_owned())),
    };
    LoggedRequest {
        at: state.now(),
        token: token.name.clone(),
        role: token.role.as_str().to_owned(),
        method: route.method.to_string(),
        target: target.or_else(|| started_run(reply)),
        path,
        status: status.as_u16(),
        rule,
    }
}

/// The status in the log of requests for a write whose client went away before the response began.
const CLIENT_GONE: u16 = 499;

/// A write to a mounted router. If the client disconnects, the write is cancelled, unlike a write to a route of
/// [`ROUTES`](crate::ROUTES). The log of requests gets an entry even then, since a run that the write started
/// may go on.
pub(crate) struct MountedWrite {
    state: Arc<State>,
    token: Arc<Token>,
    method: Method,
    path: String,
    has_response: bool,
}

impl MountedWrite {
    pub(crate) fn new(state: &Arc<State>, token: &Arc<Token>, parts: &Parts) -> Self {
        let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
        Self { state: state.clone(), token: token.clone(), method, path, has_response: false }
    }

    /// Returns the entry of a write with a response for the log of requests. Only the response says which run
    /// the write concerned.
    pub(crate) fn entry_with(mut self, response: &Response) -> LoggedRequest {
        self.has_response = true;
        let target = response.headers().get(RUN).and_then(|run| run.to_str().ok());
        self.entry(target.map(str::to_owned), response.status().as_u16())
    }

    fn entry(&self, target: Option<String>, status: u16) -> LoggedRequest {
        let (by, path) = (self.token.name.as_str(), self.path.as_str());
        tracing::info!(target: "archon::server", by, path, status, "a write to a mounted router");
        LoggedRequest {
            at: self.state.now(),
            token: self.token.name.clone(),
            role: self.token.role.as_str().to_owned(),
            method: self.method.to_string(),
            path: self.path.clone(),
            target,
            status,
            rule: None,
        }
    }
}

impl Drop for MountedWrite {
    fn drop(&mut self) {
        if self.has_response {
            return;
        }
        // Without a runtime the process ends.
        let Ok(runtime) = Handle::try_current() else { return };
        let (state, request) = (self.state.clone(), self.entry(None, CLIENT_GONE));
        runtime.spawn(async move {
            note(&state, request).await;
            state.note_change();
        });
    }
}

/// Adds a write to the log of requests, if the server keeps one. If that fails, the error is only logged, since
/// the write was already carried out.
pub(crate) async fn note(state: &State, request: LoggedRequest) {
    let Some(log) = state.options.request_log.clone() else { return };
    if let Err(error) = log.add(request).await {
        tracing::error!(target: "archon::server", %error, "a write is not in the log of requests");
    }
}

/// Returns the id of the run or question in the path of a request, decoded as for the operation itself: `%5F`
/// becomes `_`.
pub(crate) async fn target(call: &mut Call, route: &Route) -> Option<String> {
    let name = route.path.split(['{', '}']).nth(1)?;
    call.parameter(name).await.ok()
}

/// Returns the id of the started run, from the header `Location` of the response.
fn started_run(reply: &Reply) -> Option<String> {
    let started = reply.as_ref().ok()?.headers().get(LOCATION)?.to_str().ok()?;
    started.strip_prefix("runs/").map(str::to_owned)
}
