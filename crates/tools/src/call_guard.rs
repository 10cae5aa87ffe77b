//! The interface of guards that a program adds to those of the engine.

use archon_types::{Context, Json, Subject, ToolResult, ToolSpec};

/// A check that the application adds: it sees each tool call before the call runs, and each result before the
/// model reads the result.
///
/// A guard cannot wait for a person; for that, use an [`Approver`](archon_types::Approver). [`FnGuard`] makes
/// a guard from a closure.
///
/// ```
/// use archon_tools::{CallGuard, GuardedCall};
///
/// /// Refuses calls with very long arguments.
/// struct ShortArguments;
///
/// impl CallGuard for ShortArguments {
///     fn before(&self, call: &GuardedCall<'_>) -> Result<(), String> {
///         match call.arguments.to_string().len() {
///             0..=10_000 => Ok(()),
///             _ => Err("The arguments are too long.".to_owned()),
///         }
///     }
/// }
/// ```
pub trait CallGuard: Send + Sync {
    /// Checks a call before a person is asked to approve it. The call's arguments are valid, and no
    /// permission rule denies the call.
    ///
    /// # Errors
    /// The reason of the refusal, which the model reads.
    fn before(&self, call: &GuardedCall<'_>) -> Result<(), String> {
        let _ = call;
        Ok(())
    }

    /// Inspects a tool's result and may change it. The run's secrets are redacted after that.
    fn after(&self, tool: &ToolSpec, run: &Context, result: &mut ToolResult) {
        let _ = (tool, run, result);
    }
}

/// A call that a guard checks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GuardedCall<'c> {
    /// The tool that is called.
    pub tool: &'c ToolSpec,
    /// The arguments with which the tool will run.
    pub arguments: &'c Json,
    /// The target of the call, such as paths or a command. It is `Unknown` if neither a permission rule nor
    /// an approval needed it.
    pub subject: &'c Subject,
    /// The run that makes the call: its ids, session and clock.
    pub run: &'c Context,
}

/// A [`CallGuard`] that is made from a closure and checks calls before they run.
///
/// ```
/// use archon_tools::FnGuard;
///
/// let office_hours = FnGuard::new(|call| match call.tool.name.as_str() {
///     "send_email" => Err("No mail is sent today.".to_owned()),
///     _ => Ok(()),
/// });
/// ```
pub struct FnGuard<F>(F);

impl<F> FnGuard<F>
where
    F: Fn(&GuardedCall<'_>) -> Result<(), String> + Send + Sync,
{
    /// Creates a guard that refuses the calls for which `before` returns an error.
    pub fn new(before: F) -> Self {
        Self(before)
    }
}

impl<F> CallGuard for FnGuard<F>
where
    F: Fn(&GuardedCall<'_>) -> Result<(), String> + Send + Sync,
{
    fn before(&self, call: &GuardedCall<'_>) -> Result<(), String> {
        (self.0)(call)
    }
}

archon_types::debug_fields!(FnGuard<F>);
