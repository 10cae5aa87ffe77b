//! What the tools promise, tested from outside: the macro, the registry, the engine, the built-ins.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod calculator;
mod consent;
mod engine;
mod execution;
mod files;
mod fixture;
mod pipeline;
mod registry;
#[cfg(all(unix, feature = "bash"))]
mod sandbox;
mod tool_macro;
mod workspace;
