//! Runs over HTTP: the routes and their events, and requests that are refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "server/attacks.rs"]
mod attacks;
#[path = "server/audit.rs"]
mod audit;
#[path = "server/bad_input.rs"]
mod bad_input;
#[path = "server/dashboard.rs"]
mod dashboard;
#[path = "server/document.rs"]
mod document;
#[path = "server/events.rs"]
mod events;
#[path = "server/faulty.rs"]
mod faulty;
#[path = "server/folds.rs"]
mod folds;
#[path = "server/forks.rs"]
mod forks;
#[path = "server/guarded.rs"]
mod guarded;
#[path = "server/long_logs.rs"]
mod long_logs;
#[path = "server/loopback.rs"]
mod loopback;
#[path = "server/media.rs"]
mod media;
#[cfg(feature = "server-websocket")]
#[path = "server/notifications.rs"]
mod notifications;
#[path = "server/page.rs"]
mod page;
#[path = "server/roles.rs"]
mod roles;
#[path = "server/routes.rs"]
mod routes;
#[path = "server/sign_in.rs"]
mod sign_in;
#[path = "server/storage.rs"]
mod storage;
#[path = "server/tasks.rs"]
mod tasks;
#[cfg(all(feature = "server-tls", feature = "tls"))]
#[path = "server/tls.rs"]
mod tls;
#[path = "server/watchers.rs"]
mod watchers;
#[path = "server/world.rs"]
mod world;
