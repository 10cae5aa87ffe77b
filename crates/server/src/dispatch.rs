//! The router: checks a request, calls the operation of its route, and adds security headers to the response.

use std::sync::Arc;

use archon_types::TaskCommand;
use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{
        Method, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE},
        request::Parts,
    },
    middleware::{Next, from_fn},
    response::Response,
    routing::{MethodFilter, on},
};
use http_body_util::BodyExt as _;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    access::Token,
    account, agents, approvals,
    audit::{self, MountedWrite},
    caller::Caller,
    check::{check_body_type, check_page, check_token, is_write},
    control, dashboard, drawings, events, media, memories, notifications,
    openapi::OPENAPI,
    problem::{Problem, Rule},
    reply::{Reply, json_text, protect},
    request::Call,
    role::Right,
    route::{Needs, Operation, ROUTES, Route},
    runs, sessions,
    state::State,
    tasks, usage,
};

pub(crate) fn router(state: &Arc<State>) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        let Ok(method) = MethodFilter::try_from(route.method.clone()) else { continue };
        let state = state.clone();
        let handler = move |request: Request| answer(state.clone(), route, request);
        router = router.route(route.path, on(method, handler));
    }
    if state.options.dashboard {
        router = dashboard::add_routes(router, state);
    }
    let (unknown, wrong) = (state.clone(), state.clone());
    router
        .method_not_allowed_fallback(move |request: Request| refuse(wrong.clone(), Rule::Method, request))
        .fallback(move |request: Request| refuse(unknown.clone(), Rule::Route, request))
}

/// Puts the checks of this server before another router.
pub(crate) fn guarded(state: &Arc<State>, router: Router, right: Right) -> Router {
    let state = state.clone();
    router.layer(from_fn(move |request: Request, next: Next| pass(state.clone(), right, request, next)))
}

async fn answer(state: Arc<State>, route: &'static Route, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let token = match check(&state, route.needs, &parts) {
        Err(problem) => return finish(Err(problem)),
        Ok(None) => return finish(account::sign_in(&state, &parts)),
        Ok(Some(token)) => token,
    };
    let is_write = is_write(&parts.method);
    let call = Call { state, token, parts, body };
    finish(if is_write { write(route, call).await } else { operate(route.operation, call).await })
}

/// Carries out a write and adds it to the log of requests. This is a task of its own, which goes on if the
/// client disconnects, because the write may have had an effect already.
async fn write(route: &'static Route, mut call: Call) -> Reply {
    let task = tokio::spawn(async move {
        let (state, token) = (call.state.clone(), call.token.clone());
        let path = call.parts.uri.path().to_owned();
        let target = audit::target(&mut call, route).await;
        let reply = operate(route.operation, call).await;
        log(&token.name, route.operation, &path, &reply);
        let request = audit::request_entry(&state, &token, route, path, target, &reply);
        audit::note(&state, request).await;
        if reply.is_ok() {
            state.note_change();
        }
        reply
    });
    task.await.unwrap_or_else(|error| {
        Err(Problem::new(Rule::Internal, format!("the work of the request was interrupted: {error}"))
            .advise("look at the state of the run before you send the request again"))
    })
}

/// Checks a request and passes it to another router. The request counts as an open stream until its response
/// has ended.
async fn pass(state: Arc<State>, right: Right, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let checked = check_guarded(&state, right, &parts);
    let admitted = checked.and_then(|token| token.open_stream().map(|permit| (token, permit)));
    let (token, permit) = match admitted {
        Ok(admitted) => admitted,
        Err(problem) => return finish(Err(problem)),
    };
    let write = is_write(&parts.method).then(|| MountedWrite::new(&state, &token, &parts));
    parts.extensions.insert(Caller::new(token));
    let response = next.run(Request::from_parts(parts, body)).await;
    if let Some(write) = write {
        let request = write.entry_with(&response);
        audit::note(&state, request).await;
        state.note_change();
    }
    finish(Ok(response.map(|body| hold(permit, body))))
}

/// Returns the body, which holds the permit until it is sent or dropped.
fn hold(permit: OwnedSemaphorePermit, body: Body) -> Body {
    Body::new(body.map_err(move |error| {
        let _held = &permit;
        error
    }))
}

fn check_guarded(state: &State, right: Right, parts: &Parts) -> Result<Arc<Token>, Problem> {
    check_page(state, parts)?;
    let token = check_token(state, parts, Needs::Right(right))?;
    // Clients send a write without a body, and then without its type. No page of another site can send a DELETE or an
    // `Authorization` unasked.
    let has_token = parts.headers.contains_key(AUTHORIZATION) && !parts.headers.contains_key(CONTENT_TYPE);
    if parts.method != Method::DELETE && !has_token {
        check_body_type(parts)?;
    }
    Ok(token)
}

/// Writes who changed what into the log of the server. The path has the id of the run.
fn log(token: &str, operation: Operation, path: &str, reply: &Reply) {
    match reply {
        Ok(response) => {
            let status = response.status().as_u16();
            tracing::info!(target: "archon::server", by = token, ?operation, path, status, "a write");
        }
        Err(problem) => {
            let rule = problem.rule;
            tracing::info!(target: "archon::server", by = token, ?operation, path, ?rule, "a refused write");
        }
    }
}

/// Checks a request, and returns its token; `None` for a route that needs none.
fn check(state: &State, needs: Needs, parts: &Parts) -> Result<Option<Arc<Token>>, Problem> {
    check_page(state, parts)?;
    match needs {
        Needs::Nothing => Ok(None),
        needs => {
            let token = check_token(state, parts, needs)?;
            check_body_type(parts)?;
            Ok(Some(token))
        }
    }
}

/// Refuses a request for a route or a method that does not exist. The token is checked first, so that nobody
/// without a token learns which routes exist.
async fn refuse(state: Arc<State>, rule: Rule, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let path = parts.uri.path();
    let problem = match check(&state, Needs::Token, &parts) {
        Err(problem) => problem,
        Ok(_) => Problem::new(rule, format!("there is no {} {path}", parts.method))
            .advise("GET /v1/openapi.json lists all routes"),
    };
    finish(Err(problem))
}

fn finish(reply: Reply) -> Response {
    let mut response = reply.unwrap_or_else(Problem::into_response);
    protect(response.headers_mut());
    response
}

async fn operate(operation: Operation, call: Call) -> Reply {
    match operation {
        Operation::ListRuns => runs::list(call).await,
        Operation::StartRun => runs::start(call).await,
        Operation::GetRun => runs::get(call).await,
        Operation::DeleteRun => runs::delete(call).await,
        Operation::Records => runs::records(call).await,
        Operation::Events => events::watch(call).await,
        Operation::RunUsage => usage::of_run(call).await,
        Operation::Audit => audit::of_run(call).await,
        Operation::Timeline => drawings::timeline(call).await,
        Operation::Graph => drawings::graph(call).await,
        Operation::Media => media::get(call).await,
        Operation::Steer => control::steer(call).await,
        Operation::FollowUp => control::follow_up(call).await,
        Operation::Cancel => control::cancel(call).await,
        Operation::Resume => control::resume(call).await,
        Operation::Fork => control::fork(call).await,
        Operation::Approvals => approvals::list(call).await,
        Operation::Answer => approvals::answer(call).await,
        Operation::Notifications => notifications::listen(call).await,
        Operation::Sessions => sessions::list(call).await,
        Operation::Messages => sessions::messages(call).await,
        Operation::Memories => memories::list(call).await,
        Operation::Usage => usage::of_runs(call).await,
        Operation::Agents => agents::list(&call.token),
        Operation::Tasks => tasks::list(call).await,
        Operation::CreateTask => tasks::create(call).await,
        Operation::RunTask => tasks::start(call).await,
        Operation::PauseTask => tasks::command(call, TaskCommand::Pause).await,
        Operation::ResumeTask => tasks::command(call, TaskCommand::Resume).await,
        Operation::DeleteTask => tasks::command(call, TaskCommand::Delete).await,
        Operation::Me => account::me(&call.token),
        Operation::Link => account::link(&call.state, &call.token),
        Operation::SignIn => account::sign_in(&call.state, &call.parts),
        Operation::SignOut => Ok(account::sign_out(&call.state, &call.parts)),
        Operation::OpenApi => Ok(json_text(StatusCode::OK, OPENAPI)),
    }
}
