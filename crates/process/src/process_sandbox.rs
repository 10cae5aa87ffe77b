//! Limits on the process of a server. Another crate implements the limits; this crate starts the process under them.

use std::{any::Any, ffi::OsString, fmt, io, process::Command};

/// Prepares sandboxes for the processes of servers, one for each start.
///
/// Implement this trait to limit a process of
/// [`ServerProcess::spawn_sandboxed`](crate::ServerProcess::spawn_sandboxed). The crate `archon-tools` has an
/// implementation for Linux, `sandbox::ServerSandbox`.
///
/// ```
/// use std::{io, process::Command};
///
/// use archon_process::{ProcessSandbox, SandboxedStart};
///
/// /// Hides the home folder from programs that look for it by its variable.
/// #[derive(Debug)]
/// struct NoHome;
///
/// impl ProcessSandbox for NoHome {
///     fn prepare(&self, _command: &Command, _group: u32) -> io::Result<SandboxedStart> {
///         Ok(SandboxedStart {
///             variables: vec![("HOME".into(), "/var/empty".into())],
///             restrict: Box::new(|_command| Ok(())),
///             resources: Box::new(()),
///         })
///     }
/// }
/// ```
pub trait ProcessSandbox: fmt::Debug + Send + Sync {
    /// Prepares the start of `command` in the process group `group`.
    ///
    /// # Errors
    /// The command cannot be sandboxed. It is not started then. The text of the error should say what is missing.
    fn prepare(&self, command: &Command, group: u32) -> io::Result<SandboxedStart>;
}

/// Takes rights away from the calling thread, or from the child process before it executes the command.
///
/// The caller calls this function on a thread that only starts this command and then ends, because a thread cannot
/// get rights back. All processes that the command starts inherit the restriction.
pub type Restrict = Box<dyn FnOnce(&mut Command) -> io::Result<()> + Send>;

/// One prepared start in a sandbox.
pub struct SandboxedStart {
    /// Environment variables that replace those of our environment. A variable of the command itself wins.
    pub variables: Vec<(OsString, OsString)>,
    /// Takes rights from the thread or the process that becomes the command; see [`Restrict`].
    pub restrict: Restrict,
    /// A value that must live as long as the process, such as the owner of its scratch folder. It is dropped
    /// after the process was killed.
    pub resources: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for SandboxedStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxedStart").field("variables", &self.variables).finish_non_exhaustive()
    }
}
