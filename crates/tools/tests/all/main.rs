//! The promises of the tools, tested from outside: the macro, the registry, the engine, the built-ins.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[cfg(all(unix, feature = "bash"))]
mod background;
mod calculator;
mod callers;
mod cleanup;
#[cfg(all(unix, feature = "bash"))]
mod command_rules;
#[cfg(all(unix, feature = "bash"))]
mod common_lines;
#[cfg(feature = "composite")]
mod composite;
#[cfg(all(target_os = "linux", feature = "bash"))]
mod confine;
mod consent;
mod corrections;
mod engine;
mod error_texts;
mod execution;
mod file_rules;
mod files;
mod fixture;
#[cfg(all(unix, feature = "git"))]
mod git;
#[cfg(target_os = "linux")]
mod led_elsewhere;
mod modes;
mod patterns;
mod pipeline;
#[cfg(all(target_os = "linux", feature = "git"))]
mod processes;
mod registry;
#[cfg(all(unix, feature = "bash"))]
mod sandbox;
#[cfg(all(unix, feature = "bash"))]
mod sandbox_limits;
#[cfg(all(target_os = "linux", feature = "bash"))]
mod server_sandbox;
#[cfg(all(unix, feature = "bash"))]
mod shell_rules;
mod tool_macro;
mod tool_state;
mod update_plan;
#[cfg(all(unix, feature = "bash"))]
mod users;
#[cfg(feature = "web")]
mod web;
mod workspace;
mod wrapped;
mod writing;
