//! Guards of a program's own, beside those of the engine.

use std::fmt;

use archon_types::{Context, Json, Subject, ToolResult, ToolSpec};

/// A guard of a program's own: it sees each call before it runs, and each result before the model does.
///
/// It does not wait: what needs a person is for an [`Approver`](archon_types::Approver). [`FnGuard`] makes one of a
/// closure.
pub trait CallGuard: Send + Sync {
    /// Looks at a call that fits its tool and that no rule denies, before a person is asked about it.
    ///
    /// # Errors
    /// Why the call is refused: the model reads it.
    fn before(&self, call: &GuardedCall<'_>) -> Result<(), String> {
        let _ = call;
        Ok(())
    }

    /// Sees what a tool returned, and may change it. The secrets of the run are taken out afterwards.
    fn after(&self, tool: &ToolSpec, run: &Context, result: &mut ToolResult) {
        let _ = (tool, run, result);
    }
}

/// A call that a guard looks at.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GuardedCall<'c> {
    /// The tool.
    pub tool: &'c ToolSpec,
    /// The arguments that the tool would get.
    pub arguments: &'c Json,
    /// What the call works on; unknown unless rules had to know it.
    pub subject: &'c Subject,
    /// The run that calls.
    pub run: &'c Context,
}

impl<'c> GuardedCall<'c> {
    pub(crate) fn new(
        tool: &'c ToolSpec,
        arguments: &'c Json,
        subject: &'c Subject,
        run: &'c Context,
    ) -> Self {
        Self { tool, arguments, subject, run }
    }
}

/// A [`CallGuard`] of a closure that looks at calls before they run.
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
    /// A guard that lets calls pass, or refuses them, as `before` says.
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

impl<F> fmt::Debug for FnGuard<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnGuard").finish_non_exhaustive()
    }
}
