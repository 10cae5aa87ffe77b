//! The table of routes: what each does, and what it requires.

use axum::http::Method;

use crate::role::Right;

/// A route of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The method: GET, POST or DELETE.
    pub method: Method,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// The requirement on a request.
    pub needs: Needs,
    pub(crate) operation: Operation,
}

/// The requirement of a route on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Needs {
    /// Only an allowed host and origin; no token.
    Nothing,
    /// Any token.
    Token,
    /// Any token, in the header `Authorization`: a cookie is refused.
    Bearer,
    /// A token whose role has the right.
    Right(Right),
}

/// The effect of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    ListRuns,
    StartRun,
    GetRun,
    DeleteRun,
    Records,
    Events,
    RunUsage,
    Audit,
    Timeline,
    Graph,
    Media,
    Steer,
    FollowUp,
    Cancel,
    Resume,
    Fork,
    Approvals,
    Answer,
    Notifications,
    Sessions,
    Messages,
    Memories,
    Usage,
    Agents,
    Tasks,
    CreateTask,
    RunTask,
    PauseTask,
    ResumeTask,
    DeleteTask,
    Me,
    Link,
    SignIn,
    SignOut,
    OpenApi,
}

const MONITOR: Needs = Needs::Right(Right::Monitor);
const READ_LOGS: Needs = Needs::Right(Right::ReadLogs);
const OPERATE: Needs = Needs::Right(Right::Operate);
const ADMINISTER: Needs = Needs::Right(Right::Administer);

/// All routes, except for the files of the dashboard. The OpenAPI document describes the same routes.
pub static ROUTES: [Route; 35] = [
    get("/v1/runs", MONITOR, Operation::ListRuns),
    post("/v1/runs", OPERATE, Operation::StartRun),
    get("/v1/runs/{run}", MONITOR, Operation::GetRun),
    route(Method::DELETE, "/v1/runs/{run}", ADMINISTER, Operation::DeleteRun),
    get("/v1/runs/{run}/records", READ_LOGS, Operation::Records),
    get("/v1/runs/{run}/events", READ_LOGS, Operation::Events),
    get("/v1/runs/{run}/usage", MONITOR, Operation::RunUsage),
    get("/v1/runs/{run}/audit", READ_LOGS, Operation::Audit),
    get("/v1/runs/{run}/timeline", READ_LOGS, Operation::Timeline),
    get("/v1/runs/{run}/graph", READ_LOGS, Operation::Graph),
    get("/v1/runs/{run}/media/{sha256}", READ_LOGS, Operation::Media),
    post("/v1/runs/{run}/steer", OPERATE, Operation::Steer),
    post("/v1/runs/{run}/follow-up", OPERATE, Operation::FollowUp),
    post("/v1/runs/{run}/cancel", OPERATE, Operation::Cancel),
    post("/v1/runs/{run}/resume", OPERATE, Operation::Resume),
    post("/v1/runs/{run}/fork", OPERATE, Operation::Fork),
    get("/v1/approvals", READ_LOGS, Operation::Approvals),
    post("/v1/approvals/{request}/answer", OPERATE, Operation::Answer),
    get("/v1/notifications", READ_LOGS, Operation::Notifications),
    get("/v1/sessions", READ_LOGS, Operation::Sessions),
    get("/v1/sessions/{session}/messages", READ_LOGS, Operation::Messages),
    get("/v1/memories", READ_LOGS, Operation::Memories),
    get("/v1/usage", MONITOR, Operation::Usage),
    get("/v1/agents", MONITOR, Operation::Agents),
    get("/v1/tasks", READ_LOGS, Operation::Tasks),
    post("/v1/tasks", OPERATE, Operation::CreateTask),
    post("/v1/tasks/{task}/run", OPERATE, Operation::RunTask),
    post("/v1/tasks/{task}/pause", OPERATE, Operation::PauseTask),
    post("/v1/tasks/{task}/resume", OPERATE, Operation::ResumeTask),
    route(Method::DELETE, "/v1/tasks/{task}", ADMINISTER, Operation::DeleteTask),
    get("/v1/me", Needs::Token, Operation::Me),
    post("/v1/links", Needs::Bearer, Operation::Link),
    get(SIGN_IN, Needs::Nothing, Operation::SignIn),
    post("/v1/sign-out", Needs::Token, Operation::SignOut),
    get("/v1/openapi.json", Needs::Token, Operation::OpenApi),
];

/// The path of one-time links.
pub(crate) const SIGN_IN: &str = "/v1/sign-in";

const fn get(path: &'static str, needs: Needs, operation: Operation) -> Route {
    route(Method::GET, path, needs, operation)
}

const fn post(path: &'static str, needs: Needs, operation: Operation) -> Route {
    route(Method::POST, path, needs, operation)
}

const fn route(method: Method, path: &'static str, needs: Needs, operation: Operation) -> Route {
    Route { method, path, needs, operation }
}
