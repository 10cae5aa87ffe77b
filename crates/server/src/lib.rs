//! Runs over HTTP: a router of JSON and server-sent events over a [`RunService`](archon_types::RunService).
//!
//! [`Server::router`] returns an axum `Router`. A program mounts it in its own router, or passes it to
//! [`serve`]. Requests use the same run service as every other part of the program, so all clients of a run see
//! the same log.
//!
//! Use this crate without the facade to offer the runs of your own [`RunService`](archon_types::RunService)
//! over HTTP.
//!
//! # Routes
//!
//! | route | does | right |
//! |---|---|---|
//! | `GET /v1/runs`, `GET /v1/runs/{run}` | lists runs, by session, tenant and status; one run | monitor |
//! | `GET /v1/runs/{run}/usage`, `GET /v1/usage` | tokens and money of a run; of many, with the performance of their tools | monitor |
//! | `GET /v1/agents` | the agents that can be started | monitor |
//! | `GET /v1/runs/{run}/records`, `GET /v1/runs/{run}/events` | the log, also from its end back; the log as it grows | read logs |
//! | `GET /v1/runs/{run}/timeline`, `GET /v1/runs/{run}/graph` | calls, waits and retries in lanes; the plan or team as a drawing | read logs |
//! | `GET /v1/runs/{run}/media/{sha256}` | an image or a file of a message or a result of the run | read logs |
//! | `GET /v1/runs/{run}/audit` | who did what in a run, and by which requests | read logs |
//! | `GET /v1/sessions`, `GET /v1/sessions/{session}/messages` | sessions, and their messages | read logs |
//! | `GET /v1/approvals`, `GET /v1/memories` | open questions to people, with the sources of arguments; memories | read logs |
//! | `GET /v1/notifications` | notifications of the token's tenant as they are sent, as events or over a websocket | read logs |
//! | `GET /v1/tasks` | tasks that start runs without a person, with their last runs | read logs |
//! | `POST /v1/runs` | starts a run, once for each `Idempotency-Key` | operate |
//! | `POST /v1/runs/{run}/steer`, `…/follow-up`, `…/cancel`, `…/resume`, `…/fork` | as the run service does | operate |
//! | `POST /v1/approvals/{request}/answer` | answers a question, and resumes its run | operate |
//! | `POST /v1/tasks` | creates a task from its definition | operate |
//! | `POST /v1/tasks/{task}/run`, `…/pause`, `…/resume` | starts a run of a task now, pauses it, resumes it | operate |
//! | `DELETE /v1/runs/{run}`, `DELETE /v1/tasks/{task}` | deletes a run, or a task | administer |
//! | `GET /v1/me`, `GET /v1/openapi.json` | name and rights of the token; the OpenAPI document | any token |
//! | `POST /v1/sign-out` | removes the cookie | any token |
//! | `POST /v1/links` | a one-time link for the token itself | any token, not a cookie |
//! | `GET /v1/sign-in?code=…` | a one-time link, which becomes a cookie | none |
//! | `GET /`, `GET /dashboard/{file}` | the dashboard, with `ServerOptions::with_dashboard`; its files hold no data | none |
//!
//! # Events
//!
//! `GET /v1/runs/{run}/events` sends every record of the run once, and ends when the run has ended:
//!
//! | event | `id:` | data |
//! |---|---|---|
//! | `record` | the sequence number of the record | the record |
//! | `delta` | | a piece of an answer that is not complete; it is not in the log |
//! | `end` | | `{"status": …}`: the run has ended |
//! | `failure` | | a problem document; the stream cannot go on |
//!
//! A browser that connects again sends the last id as `Last-Event-ID`, and gets each later record once;
//! `?after=SEQ` does the same. If the run has ended and the client has all records, the status is 204, so that
//! a browser does not connect again. The stream of a suspended run stays open, and sends the next events once
//! the run is resumed. `?children=true` adds the events of child runs, which have no id. After 15 seconds
//! without an event, the server sends a comment.
//!
//! # Notifications
//!
//! `GET /v1/notifications` sends the notifications of the token's tenant that a [`LiveChannel`] gets from then on, each as an
//! event `notification` with JSON as data. A request for a websocket gets them as texts, one for each notification; this
//! needs the feature `websocket`. The socket takes no messages: questions are answered at
//! `POST /v1/approvals/{request}/answer`. The server pings a client after each notification and after 15 seconds of silence, and
//! drops it if it does not answer within 10 seconds. Each stream and socket counts for [`TokenLimits::watchers`].
//!
//! A client that was not connected gets a notification when it is sent again. Read `GET /v1/approvals` after connecting: it has
//! the questions that are open.
//!
//! *Invariants*
//!
//! - No request reaches a run without a token, also on the loopback interface.
//! - A request with a foreign `Host` or `Origin`, or from a page of another site, is refused, at every address
//!   at which the server listens.
//! - A write has the content type `application/json`, which a page of another site cannot send without CORS.
//! - A write to a route of this table is carried out, and added to the log of requests, even if its client
//!   disconnects. A write to a mounted router is then cancelled, but it is added to the log of requests too.
//! - A slow watcher loses no record, and slows neither the run nor another watcher.
//! - Every refused request says which rule refused it.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use archon_server::{AccessToken, AllowedHosts, Role, Scope, ServeOptions, Server, ServerOptions, serve};
//! use archon_types::{Clock, RunService, Secret};
//!
//! # async fn run<L: archon_server::Listener>(
//! #     runs: Arc<dyn RunService>,
//! #     clock: Arc<dyn Clock>,
//! #     secret: Secret,
//! #     listener: L,
//! # ) -> Result<(), archon_server::ServeError> {
//! let hosts = AllowedHosts::new(["localhost:8080", "127.0.0.1:8080"]);
//! let token = AccessToken::new("ann", secret, Role::Operator, Scope::new(runs))?;
//! let server = Server::new(hosts, [token], clock, ServerOptions::default());
//! println!("http://localhost:8080{}", server.one_time_link("ann")?);
//! serve(server.router(), listener, &ServeOptions::default(), server.end()).await
//! # }
//! ```

// | concept | file |
// |---|---|
// | `Server`, `ServerOptions` | `server.rs`, `options.rs` |
// | `AccessToken`, its `Scope` and its `TokenLimits`; the starts that count for them | `access.rs`, `counted.rs` |
// | `Role`, `Right` | `role.rs` |
// | `Caller`, the token of a request to a mounted router | `caller.rs` |
// | the table of routes, `Route`, `ROUTES`; the OpenAPI document, `OPENAPI` | `route.rs`, `openapi.rs` |
// | checks of every request: host, origin, token, role, limits | `check.rs`, `cookie.rs`, `sign_in.rs` |
// | problem documents of RFC 9457: the rule that refused a request | `problem.rs` |
// | runs, approvals, sessions, memories, use, agents, tasks | `runs.rs`, `control.rs`, `approvals.rs`, `sessions.rs`, `memories.rs`, `usage.rs`, `agents.rs`, `tasks.rs` |
// | the timeline and the graph of a run; the dashboard | `drawings.rs`; `dashboard.rs` |
// | images and files of a run | `media.rs` |
// | the events of a run | `events.rs` |
// | notifications: `LiveChannel`, events, websockets | `live.rs`, `notifications.rs`, `websocket.rs` |
// | the audit of a run; `RequestLog` | `audit.rs`, `request_log.rs` |
// | `serve`, `ServeError` | `serve.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod account;
mod agents;
mod approvals;
mod audit;
mod caller;
mod check;
mod control;
mod cookie;
mod counted;
mod dashboard;
mod dispatch;
mod drawings;
mod events;
mod frames;
mod live;
mod media;
mod memories;
mod notifications;
mod openapi;
mod options;
mod problem;
mod reply;
mod request;
mod request_log;
mod role;
mod route;
mod runs;
mod serve;
mod server;
mod sessions;
mod sign_in;
mod state;
mod tasks;
mod usage;
#[cfg(feature = "websocket")]
mod websocket;

pub use access::{AccessToken, Scope, TokenLimits};
pub use archon_http_access::{AllowedHosts, ConnectionOptions, Listener};
#[cfg(feature = "tls")]
pub use archon_http_access::{TlsError, TlsIdentity};
/// The web framework `axum`, in the version whose `Router` this crate uses.
pub use axum;
pub use caller::Caller;
pub use live::LiveChannel;
pub use openapi::OPENAPI;
pub use options::ServerOptions;
pub use request_log::RequestLog;
pub use role::{Right, Role};
pub use route::{Needs, ROUTES, Route};
pub use serve::{ServeError, ServeOptions, serve};
pub use server::Server;
