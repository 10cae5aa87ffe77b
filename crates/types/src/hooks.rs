//! Hooks: a program's own code at fixed places of a run.
//!
//! The order is always the same: `before_loop` → start → (`before_turn` → turn → `after_turn`)* → end →
//! `after_loop`, and within a turn for each call that runs: `before_tool` → start → (`before_update` →
//! update → `after_update`)* → end → `after_tool`. A verdict that changes what happens is a record of
//! the run, so a replay needs no hooks.

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Message, Outcome, ToolCall, ToolResult, Transcript, Usage};

/// Watches a run and may stop parts of it. Every method has a default that lets everything pass.
pub trait Hooks: Send + Sync {
    /// Before the run begins, with the conversation that it goes on from and its place in the chain of
    /// runs, from 0. `false` ends it before it began.
    fn before_loop<'a>(&'a self, messages: &'a Transcript, index: u32) -> BoxFuture<'a, bool> {
        let _ = (messages, index);
        yes()
    }

    /// After the run's last record.
    fn after_loop<'a>(&'a self, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        let _ = outcome;
        done()
    }

    /// Before the model is asked for turn `turn`, from 0. `false` ends the run without that turn.
    fn before_turn<'a>(&'a self, messages: &'a Transcript, turn: u32) -> BoxFuture<'a, bool> {
        let _ = (messages, turn);
        yes()
    }

    /// After a turn, with the tokens that the run used so far.
    fn after_turn<'a>(&'a self, messages: &'a Transcript, usage: Usage) -> BoxFuture<'a, ()> {
        let _ = (messages, usage);
        done()
    }

    /// A model call failed, or the run did.
    fn on_error<'a>(&'a self, error: &'a str) -> BoxFuture<'a, ()> {
        let _ = error;
        done()
    }

    /// Before a call that may run starts. `false` skips it: the model reads an error result.
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, bool> {
        let _ = call;
        yes()
    }

    /// After a call that ran.
    fn after_tool<'a>(&'a self, call: &'a ToolCall, result: &'a ToolResult) -> BoxFuture<'a, ()> {
        let _ = (call, result);
        done()
    }

    /// Before watchers see what a running tool has so far. `false` keeps it from them, and from nobody
    /// else. Called on the tool's own task: return at once.
    fn before_update(&self, call: &ToolCall, partial: &ToolResult) -> bool {
        let _ = (call, partial);
        true
    }

    /// After watchers saw it.
    fn after_update(&self, call: &ToolCall, partial: &ToolResult) {
        let _ = (call, partial);
    }
}

/// Looks at what a person says before the model does. Filters run in order, before the first request.
pub trait InputFilter: Send + Sync {
    /// The verdict on one message.
    fn check<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, InputVerdict>;
}

/// What a filter says of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputVerdict {
    /// Nothing to say.
    Pass,
    /// The model should know this: it is added to the end of the message.
    Warn(String),
    /// The model never sees it, and the run ends.
    Reject(String),
}

/// Where a hook stopped a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookPoint {
    /// [`Hooks::before_loop`].
    BeforeLoop,
    /// [`Hooks::before_turn`].
    BeforeTurn,
}

fn yes<'a>() -> BoxFuture<'a, bool> {
    Box::pin(std::future::ready(true))
}

fn done<'a>() -> BoxFuture<'a, ()> {
    Box::pin(std::future::ready(()))
}
