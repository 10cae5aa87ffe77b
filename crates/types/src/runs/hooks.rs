//! Hooks: a program's own code at fixed points of a run.
//!
//! The order is always the same: `before_loop` → start → (`before_turn` → turn → `after_turn`)* → end →
//! `after_loop`. Within a turn, for each call that runs: `before_tool` → start → (`before_update` → update →
//! `after_update`)* → end → `after_tool`. Verdicts that change the run are in the log: a replay needs no
//! hooks.

use std::{future::ready, sync::Arc};

use futures_core::future::BoxFuture;

use crate::{
    log::Outcome,
    messages::{Message, ToolCall, ToolResult, Transcript, Usage},
};

/// Watches a run and may stop parts of it. By default every method changes nothing. Write the methods as
/// `async fn`; [`FnHooks`] wraps closures.
///
/// ```
/// use archon_types::{Hooks, ToolCall};
///
/// /// Skips all calls of tools that delete something.
/// struct NothingIsDeleted;
///
/// impl Hooks for NothingIsDeleted {
///     async fn before_tool(&self, call: &ToolCall) -> bool {
///         !call.name.starts_with("delete")
///     }
/// }
/// ```
pub trait Hooks: Send + Sync {
    /// Called before the run begins. `messages` is the conversation that the run continues, and `index` the
    /// number of the run in its conversation, from 0. `false` ends the run before its first turn.
    fn before_loop(&self, messages: &Transcript, index: u32) -> impl Future<Output = bool> + Send {
        let _ = (messages, index);
        ready(true)
    }

    /// Called after the last record of the run was logged.
    fn after_loop(&self, outcome: &Outcome) -> impl Future<Output = ()> + Send {
        let _ = outcome;
        ready(())
    }

    /// Called before turn `turn`, from 0. `false` ends the run before that turn.
    fn before_turn(&self, messages: &Transcript, turn: u32) -> impl Future<Output = bool> + Send {
        let _ = (messages, turn);
        ready(true)
    }

    /// Called after a turn. `usage` is the number of tokens that the run has used so far.
    fn after_turn(&self, messages: &Transcript, usage: Usage) -> impl Future<Output = ()> + Send {
        let _ = (messages, usage);
        ready(())
    }

    /// Called when a model call failed, and when the run failed. `error` is the text of the error.
    fn on_error(&self, error: &str) -> impl Future<Output = ()> + Send {
        let _ = error;
        ready(())
    }

    /// Called before an allowed call starts. `false` skips the call: the model reads an error result.
    fn before_tool(&self, call: &ToolCall) -> impl Future<Output = bool> + Send {
        let _ = call;
        ready(true)
    }

    /// Called after a tool call was executed, with its result.
    fn after_tool(&self, call: &ToolCall, result: &ToolResult) -> impl Future<Output = ()> + Send {
        let _ = (call, result);
        ready(())
    }

    /// Called before watchers get a partial result of a running tool. `false` hides the partial result from
    /// watchers only. The running tool waits for this method, so it must return at once.
    fn before_update(&self, call: &ToolCall, partial: &ToolResult) -> bool {
        let _ = (call, partial);
        true
    }

    /// Called after watchers got a partial result of a running tool. Must return at once, too.
    fn after_update(&self, call: &ToolCall, partial: &ToolResult) {
        let _ = (call, partial);
    }
}

/// The object-safe form of [`Hooks`]. All hooks implement it automatically; do not implement it yourself.
#[allow(missing_docs, reason = "each is as the method of `Hooks` that it is named after")]
pub trait DynHooks: Send + Sync {
    fn boxed_before_loop<'a>(&'a self, messages: &'a Transcript, index: u32) -> BoxFuture<'a, bool>;
    fn boxed_after_loop<'a>(&'a self, outcome: &'a Outcome) -> BoxFuture<'a, ()>;
    fn boxed_before_turn<'a>(&'a self, messages: &'a Transcript, turn: u32) -> BoxFuture<'a, bool>;
    fn boxed_after_turn<'a>(&'a self, messages: &'a Transcript, usage: Usage) -> BoxFuture<'a, ()>;
    fn boxed_on_error<'a>(&'a self, error: &'a str) -> BoxFuture<'a, ()>;
    fn boxed_before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, bool>;
    fn boxed_after_tool<'a>(&'a self, call: &'a ToolCall, result: &'a ToolResult) -> BoxFuture<'a, ()>;
    fn boxed_before_update(&self, call: &ToolCall, partial: &ToolResult) -> bool;
    fn boxed_after_update(&self, call: &ToolCall, partial: &ToolResult);
}

impl<H: Hooks> DynHooks for H {
    fn boxed_before_loop<'a>(&'a self, messages: &'a Transcript, index: u32) -> BoxFuture<'a, bool> {
        Box::pin(self.before_loop(messages, index))
    }

    fn boxed_after_loop<'a>(&'a self, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(self.after_loop(outcome))
    }

    fn boxed_before_turn<'a>(&'a self, messages: &'a Transcript, turn: u32) -> BoxFuture<'a, bool> {
        Box::pin(self.before_turn(messages, turn))
    }

    fn boxed_after_turn<'a>(&'a self, messages: &'a Transcript, usage: Usage) -> BoxFuture<'a, ()> {
        Box::pin(self.after_turn(messages, usage))
    }

    fn boxed_on_error<'a>(&'a self, error: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.on_error(error))
    }

    fn boxed_before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, bool> {
        Box::pin(self.before_tool(call))
    }

    fn boxed_after_tool<'a>(&'a self, call: &'a ToolCall, result: &'a ToolResult) -> BoxFuture<'a, ()> {
        Box::pin(self.after_tool(call, result))
    }

    fn boxed_before_update(&self, call: &ToolCall, partial: &ToolResult) -> bool {
        self.before_update(call, partial)
    }

    fn boxed_after_update(&self, call: &ToolCall, partial: &ToolResult) {
        self.after_update(call, partial);
    }
}

impl<H: DynHooks + ?Sized> Hooks for Arc<H> {
    async fn before_loop(&self, messages: &Transcript, index: u32) -> bool {
        (**self).boxed_before_loop(messages, index).await
    }

    async fn after_loop(&self, outcome: &Outcome) {
        (**self).boxed_after_loop(outcome).await;
    }

    async fn before_turn(&self, messages: &Transcript, turn: u32) -> bool {
        (**self).boxed_before_turn(messages, turn).await
    }

    async fn after_turn(&self, messages: &Transcript, usage: Usage) {
        (**self).boxed_after_turn(messages, usage).await;
    }

    async fn on_error(&self, error: &str) {
        (**self).boxed_on_error(error).await;
    }

    async fn before_tool(&self, call: &ToolCall) -> bool {
        (**self).boxed_before_tool(call).await
    }

    async fn after_tool(&self, call: &ToolCall, result: &ToolResult) {
        (**self).boxed_after_tool(call, result).await;
    }

    fn before_update(&self, call: &ToolCall, partial: &ToolResult) -> bool {
        (**self).boxed_before_update(call, partial)
    }

    fn after_update(&self, call: &ToolCall, partial: &ToolResult) {
        (**self).boxed_after_update(call, partial);
    }
}

/// [`Hooks`] from closures. Each method sets the closure for the hook of the same name; a hook without a closure
/// changes nothing. For `before_loop`, `after_turn`, `before_update` and `after_update`, implement [`Hooks`].
///
/// ```
/// use archon_types::FnHooks;
///
/// let hooks = FnHooks::new()
///     .before_turn(|turn| async move { turn < 20 })
///     .before_tool(|call| async move { call.name != "delete" })
///     .after_tool(|call, result| async move { println!("{}: {}", call.name, result.text()) })
///     .on_error(|error| async move { eprintln!("{error}") })
///     .after_loop(|outcome| async move { println!("{}: {} turns", outcome.run, outcome.turns) });
/// ```
#[derive(Default)]
pub struct FnHooks {
    before_turn: Option<Hook<u32, bool>>,
    before_tool: Option<Hook<ToolCall, bool>>,
    after_tool: Option<Hook<(ToolCall, ToolResult), ()>>,
    on_error: Option<Hook<String, ()>>,
    after_loop: Option<Hook<Outcome, ()>>,
}

type Hook<I, O> = Box<dyn Fn(I) -> BoxFuture<'static, O> + Send + Sync>;

fn hook<I, O, F>(does: impl Fn(I) -> F + Send + Sync + 'static) -> Option<Hook<I, O>>
where
    F: Future<Output = O> + Send + 'static,
{
    Some(Box::new(move |input| Box::pin(does(input))))
}

impl FnHooks {
    /// Creates hooks without closures, which change nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the closure for [`Hooks::before_turn`]. The closure gets the number of the turn, from 0, and returns
    /// false to end the run.
    pub fn before_turn<F>(mut self, does: impl Fn(u32) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.before_turn = hook(does);
        self
    }

    /// Sets the closure for [`Hooks::before_tool`]. The closure returns false to skip the call.
    pub fn before_tool<F>(mut self, does: impl Fn(ToolCall) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.before_tool = hook(does);
        self
    }

    /// Sets the closure for [`Hooks::after_tool`], which gets the call and its result.
    pub fn after_tool<F>(mut self, does: impl Fn(ToolCall, ToolResult) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.after_tool = hook(move |(call, result)| does(call, result));
        self
    }

    /// Sets the closure for [`Hooks::on_error`], which gets the text of the error.
    pub fn on_error<F>(mut self, does: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_error = hook(does);
        self
    }

    /// Sets the closure for [`Hooks::after_loop`], which gets the outcome of the run.
    pub fn after_loop<F>(mut self, does: impl Fn(Outcome) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.after_loop = hook(does);
        self
    }
}

impl Hooks for FnHooks {
    async fn before_turn(&self, _: &Transcript, turn: u32) -> bool {
        match &self.before_turn {
            Some(does) => does(turn).await,
            None => true,
        }
    }

    async fn before_tool(&self, call: &ToolCall) -> bool {
        match &self.before_tool {
            Some(does) => does(call.clone()).await,
            None => true,
        }
    }

    async fn after_tool(&self, call: &ToolCall, result: &ToolResult) {
        if let Some(does) = &self.after_tool {
            does((call.clone(), result.clone())).await;
        }
    }

    async fn on_error(&self, error: &str) {
        if let Some(does) = &self.on_error {
            does(error.to_owned()).await;
        }
    }

    async fn after_loop(&self, outcome: &Outcome) {
        if let Some(does) = &self.after_loop {
            does(outcome.clone()).await;
        }
    }
}

/// Checks prompts before the model reads them. Filters run in order, before the first request.
///
/// ```
/// use archon_types::{BoxFuture, InputFilter, InputVerdict, Message};
///
/// /// Rejects messages that are not questions.
/// struct OnlyQuestions;
///
/// impl InputFilter for OnlyQuestions {
///     fn check<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, InputVerdict> {
///         let verdict = match message.text().ends_with('?') {
///             true => InputVerdict::Pass,
///             false => InputVerdict::Reject("Ask a question.".to_owned()),
///         };
///         Box::pin(std::future::ready(verdict))
///     }
/// }
/// ```
pub trait InputFilter: Send + Sync {
    /// Returns the verdict on one message of a prompt. The secrets of the run are removed from the message, as in the
    /// log.
    fn check<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, InputVerdict>;
}

/// The verdict of a filter on a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputVerdict {
    /// The message passes unchanged.
    Pass,
    /// The message passes, and this warning for the model is appended to it.
    Warn(String),
    /// The message is rejected for this reason: the model never sees it, and the run ends.
    Reject(String),
}
