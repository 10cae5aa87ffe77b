//! The program as a person and a script meet it: a real process, a real server on this machine, exit
//! codes, and what stands on which stream.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test may panic and says what it skips"
)]

mod absent;
#[cfg(feature = "skills")]
mod agents;
mod approvals;
#[cfg(all(
    unix,
    feature = "credentials",
    feature = "openapi",
    feature = "serve",
    feature = "setup",
    feature = "skills",
    feature = "triggers"
))]
mod assistant;
mod attach;
#[cfg(any(feature = "mcp-sign-in", all(feature = "openapi", feature = "setup", feature = "credentials")))]
mod browser;
mod cancel;
mod cassettes;
#[cfg(all(target_os = "linux", feature = "chat"))]
mod chat;
#[cfg(target_os = "linux")]
mod coding;
#[cfg(feature = "credentials")]
mod credentials;
#[cfg(target_os = "linux")]
mod damages;
mod doctor;
#[cfg(unix)]
mod doubt;
mod exits;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(unix)]
mod forget;
#[cfg(target_os = "linux")]
mod frozen;
#[cfg(target_os = "linux")]
mod history;
#[cfg(all(unix, feature = "hooks"))]
mod hooks;
mod hostile;
#[cfg(all(feature = "setup", feature = "credentials"))]
mod init;
mod limits;
#[cfg(feature = "local")]
mod local;
mod logs;
#[cfg(all(unix, feature = "serve", feature = "mail"))]
mod mail_servers;
#[cfg(all(target_os = "linux", feature = "mcp"))]
mod mcp;
#[cfg(all(unix, feature = "mcp-serve"))]
mod mcp_serve;
mod memories;
mod new;
#[cfg(all(feature = "openapi", feature = "setup"))]
mod openapi;
#[cfg(all(feature = "openapi", feature = "setup", feature = "credentials"))]
mod openapi_login;
mod plans;
mod prices;
mod project_instructions;
#[cfg(all(unix, feature = "serve", feature = "triggers"))]
mod questions;
#[cfg(all(unix, feature = "serve", feature = "mail"))]
mod questions_by_mail;
mod resumes;
mod runs;
mod screen;
#[cfg(all(unix, feature = "serve"))]
mod serve;
mod services;
mod settings;
mod setup;
#[cfg(feature = "skills")]
mod skills;
mod structured_output;
#[cfg(all(unix, feature = "serve", feature = "triggers"))]
mod tasks;
mod teams;
mod terminal;
mod toolbox;
mod trust;
#[cfg(all(unix, feature = "undo"))]
mod undo;
#[cfg(all(target_os = "linux", feature = "mcp-sign-in"))]
#[path = "../../../mcp/tests/shared/web_servers.rs"]
mod web_servers;
