//! The tools `bash` and `bash_readonly`: run a command line in a sandbox that protects everything outside of
//! the workspace.

use std::{path::PathBuf, process::Command, time::Duration};

use archon_types::{
    Context, Effect, Json, Preview, Subject, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult,
    ToolResultStatus, ToolSpec,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Workspace,
    arguments::beginning,
    sandbox::{self, Background, Cage, End, Ended, Finished, Network, SandboxOptions},
};

/// The engine's time limit of a call is this much longer than the tool's own limit, so that the tool can
/// still return the output of a command that reached the limit.
const SLACK: Duration = Duration::from_secs(5);

/// Options of [`Bash`] and of the tools for commands in the background.
///
/// ```
/// use std::time::Duration;
///
/// use archon_tools::builtin::BashOptions;
///
/// let mut options = BashOptions::default();
/// options.timeout = Duration::from_secs(30);
/// options.deny.push("git push".to_owned());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BashOptions {
    /// The grants and limits of the sandbox in which commands run.
    pub sandbox: SandboxOptions,
    /// Time limit of a command whose call sets none. Default 120 s.
    pub timeout: Duration,
    /// The maximum time limit that a call can set. Default 600 s.
    pub max_timeout: Duration,
    /// Texts that a command line may not contain; by default such as `rm -rf /` and `mkfs`. This only
    /// prevents accidents, as a command can be written in many ways; the real protection is the sandbox.
    pub deny: Vec<String>,
    /// The shell program. Default `bash`.
    pub shell: PathBuf,
}

impl Default for BashOptions {
    fn default() -> Self {
        Self {
            sandbox: SandboxOptions::default(),
            timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            deny: [
                "rm -rf /",
                "rm -rf ~",
                "mkfs",
                "dd if=",
                "> /dev/sd",
                ":(){ :|:& };:",
                "shutdown",
                "reboot",
            ]
            .map(str::to_owned)
            .into(),
            shell: PathBuf::from("bash"),
        }
    }
}

/// Runs a command line in the first folder of a [`Workspace`]. It needs the permission `shell_exec`.
///
/// The command may change the workspace, or only read it with [`read_only`](Self::read_only);
/// [`sandbox`](crate::sandbox) describes the limits. The command's standard input is empty. A command that
/// fails gives an ordinary result with its exit code. Processes that the command left running are ended
/// when the call ends.
///
/// ```no_run
/// use archon_tools::{Workspace, builtin::{Bash, BashOptions}};
///
/// let workspace = Workspace::new("projects/shop")?;
/// let tool = Bash::new(workspace.clone(), BashOptions::default());
/// let only_reads = Bash::read_only(workspace, BashOptions::default());
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bash {
    spec: ToolSpec,
    workspace: Workspace,
    options: BashOptions,
    cage: Cage,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Shell command
    command: String,
    /// Time limit in seconds
    #[schemars(range(min = 1))]
    timeout_seconds: Option<u64>,
}

impl Bash {
    /// Creates `bash`: commands may change the workspace.
    pub fn new(workspace: Workspace, options: BashOptions) -> Self {
        let about = "Runs a shell command in the workspace and returns its output and exit code. Use it to build, test \
                     and run programs.";
        let annotations = ToolAnnotations::destructive();
        Self::with(workspace, options, sandbox::Access::Write, ["bash", "Shell"], about, annotations)
    }

    /// Creates `bash_readonly`: commands can only read.
    pub fn read_only(workspace: Workspace, options: BashOptions) -> Self {
        let about = "Runs a shell command that only reads, and returns its output and exit code. Use it to look at \
                     things with the usual programs; it cannot change any file.";
        let names = ["bash_readonly", "Shell (read-only)"];
        Self::with(workspace, options, sandbox::Access::Read, names, about, ToolAnnotations::read_only())
    }

    fn with(
        workspace: Workspace,
        options: BashOptions,
        access: sandbox::Access,
        names: [&str; 2],
        about: &str,
        mut annotations: ToolAnnotations,
    ) -> Self {
        annotations.permissions = vec!["shell_exec".to_owned()];
        let cage = Cage::new(&workspace, access, options.sandbox.clone());
        if annotations.effect == Effect::ReadOnly && !cage.is_closed() {
            // Without a sandbox nothing prevents changes.
            annotations.effect = Effect::SideEffect;
            annotations.concurrency_safe = false;
        }
        let annotations = annotations.with_timeout(options.max_timeout.max(options.timeout) + SLACK);
        let example = serde_json::json!({ "command": "ls -la" });
        let spec = super::spec::<Arguments>(names, about, annotations, example);
        Self { spec, workspace, options, cage }
    }

    /// Returns an error if a required sandbox is not available, or if the command contains one of the texts
    /// in [`BashOptions::deny`].
    pub(super) fn objection(&self, command: &str) -> Result<(), ToolError> {
        if let Some(refusal) = self.cage.refusal() {
            return Err(ToolError::PermissionDenied(refusal));
        }
        match self.options.deny.iter().find(|pattern| command.contains(pattern.as_str())) {
            Some(pattern) => Err(ToolError::PermissionDenied(format!(
                "Commands with '{pattern}' are not run here. Use another command, or ask the person to run it."
            ))),
            None => Ok(()),
        }
    }

    /// Returns an error if the command may not run in the background.
    pub(super) fn objection_in_background(&self, command: &str) -> Result<(), ToolError> {
        match self.cage.refusal_in_background() {
            Some(refusal) => Err(ToolError::PermissionDenied(refusal)),
            None => self.objection(command),
        }
    }

    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { command, timeout_seconds } = crate::macro_support::arguments(arguments)?;
        self.objection(&command)?;
        let own = |seconds| Duration::from_secs(seconds).min(self.options.max_timeout);
        let limit = timeout_seconds.map_or(self.options.timeout, own);
        let finished = sandbox::run(&self.shell(&command), &self.cage, context, limit).await?;
        Ok(self.result(finished, limit))
    }

    /// Starts a command that runs on after the call.
    pub(super) async fn start(&self, command: &str, context: &ToolContext) -> Result<Background, ToolError> {
        self.objection_in_background(command)?;
        Background::start(&self.shell(command), &self.cage, context).await
    }

    /// Returns the subject of a call with this command line.
    pub(super) fn command(&self, line: &str) -> Subject {
        Subject::Command { line: line.to_owned(), root: self.workspace.root().to_owned() }
    }

    /// Returns the sandbox's limit of the output that is kept, in bytes.
    pub(super) fn max_output(&self) -> usize {
        self.options.sandbox.max_output
    }

    /// Returns whether the kernel sandboxes commands.
    pub(super) fn is_closed(&self) -> bool {
        self.cage.is_closed()
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new(&self.options.shell);
        shell.arg("-c").arg(command).current_dir(self.workspace.root());
        shell
    }

    fn result(&self, finished: Finished, limit: Duration) -> ToolResult {
        let Finished { end, stdout, stderr } = finished;
        let mut text = stdout.text;
        if !stderr.text.is_empty() {
            push_line(&mut text, &format!("[stderr]\n{}", stderr.text));
        }
        let ending = match end.ended {
            Ended::TimedOut => Some(format!("stopped after {} seconds", limit.as_secs_f64())),
            _ => self.ending(&end.ended, &text),
        };
        match ending {
            Some(ending) => push_line(&mut text, &format!("[{ending}]")),
            None if text.is_empty() => text.push_str("(no output)"),
            None => {}
        }
        self.notes(&end).iter().for_each(|note| push_line(&mut text, &format!("[{note}]")));
        let mut result = match end.ended {
            Ended::TimedOut => {
                let detail = format!("The command was stopped after {} seconds", limit.as_secs_f64());
                ToolResult::failed(ToolResultStatus::Timeout, text, detail)
                    .with_metadata("error_type", "timeout")
            }
            _ => ToolResult::success(text),
        };
        if end.out_of_memory {
            result = result.with_metadata("out_of_memory", true);
        }
        if !end.notes.is_empty() {
            result = result.with_metadata("sandbox_notes", end.notes.len());
        }
        if let Some(code) = end.ended.code() {
            result = result.with_metadata("exit_code", code);
        }
        result
            .with_metadata("stdout_bytes", stdout.bytes)
            .with_metadata("stderr_bytes", stderr.bytes)
            .with_metadata("truncated", stdout.truncated || stderr.truncated)
            .with_metadata("sandboxed", self.cage.is_closed())
    }

    /// Returns how a command ended; `None` after exit code 0. `text` is its output.
    pub(super) fn ending(&self, ended: &Ended, text: &str) -> Option<String> {
        Some(match (ended, ended.code()) {
            (Ended::TimedOut | Ended::Stopped, _) => "stopped".to_owned(),
            (Ended::Flooded, _) => {
                format!("stopped: it wrote more than {} bytes", self.options.sandbox.max_flood)
            }
            (Ended::DiskFull(spared), _) => format!(
                "stopped: fewer than {spared} bytes are free on a disk that it writes to; remove what it wrote before \
                 it runs again"
            ),
            (_, Some(0)) => return None,
            (_, Some(code)) => format!("exit code {code}{}", self.hint(code, text)),
            (_, None) => "ended without an exit code".to_owned(),
        })
    }

    /// Returns what was found at the end of a command, as sentences for the model.
    pub(super) fn notes(&self, end: &End) -> Vec<String> {
        let most = self.options.sandbox.max_memory;
        let why = format!("a program was ended: the command used more than its {most} bytes of memory");
        end.out_of_memory.then_some(why).into_iter().chain(end.notes.iter().cloned()).collect()
    }

    /// Returns the likely cause of a command's failure, from its exit code or its output; signal numbers are
    /// those of Linux.
    fn hint(&self, code: i32, text: &str) -> &'static str {
        let network = self.options.sandbox.network == Network::Denied;
        match code {
            152 => ": it used up its processor time",
            153 => ": a file grew beyond the limit",
            137 => ": it was killed, perhaps for want of memory",
            127 => ": no such program",
            _ if ["Cannot allocate memory", "Out of memory", "MemoryError"]
                .iter()
                .any(|said| text.contains(said)) =>
            {
                ": it asked for more memory than it may have"
            }
            _ if text.contains("Operation not permitted") && network => {
                ": there is no network here, and files outside the workspace cannot be changed"
            }
            _ if text.contains("Permission denied") => ": files outside the workspace cannot be used",
            _ => "",
        }
    }
}

impl Tool for Bash {
    tool_methods!(run);

    fn subject(&self, arguments: &Json) -> Subject {
        self.command(super::text(arguments, "command"))
    }

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let command = super::text(arguments, "command");
        self.objection(command)?;
        Ok(Some(Preview::new(format!("Run {}", in_quotes(command)))))
    }
}

/// Returns the beginning of a command in quotes, for a question to a person. The person finds the whole command in the
/// arguments of the call.
pub(super) fn in_quotes(command: &str) -> String {
    beginning(command, SHOWN, "`")
}

/// Appends a text on a line of its own.
pub(super) fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

/// Maximum number of characters of a command in a preview.
const SHOWN: usize = 500;

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    // spec: AP-05
    #[test]
    fn bash_preview_counts_the_omitted_part_of_a_command() {
        let workspace = Workspace::new(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut options = BashOptions::default();
        options.sandbox.isolation = sandbox::Isolation::WithoutKernel;
        let bash = Bash::new(workspace, options);
        let clock = std::sync::Arc::new(archon_testkit::VirtualClock::new());
        let run = Context::new(
            "r".into(),
            "s".into(),
            clock,
            std::sync::Arc::new(archon_testkit::SeededIds::new(1)),
        );
        let say =
            |command: &str| bash.preview(&json!({ "command": command }), &run).unwrap().unwrap().summary;
        assert_eq!(say("ls"), "Run `ls`");
        let harmless = "true;".repeat(100);
        assert_eq!(say(&harmless), format!("Run `{harmless}`"));
        assert_eq!(
            say(&format!("{harmless}rm é")),
            format!("Run `{harmless}` ... 4 more characters in the arguments")
        );
    }

    // spec: TE-39
    #[test]
    fn bash_is_refused_if_the_kernel_cannot_confine_commands() {
        let workspace = Workspace::new(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut bash = Bash::new(workspace, BashOptions::default());
        bash.cage.missing = Some("the kernel has no Landlock of version 3 (Linux 6.2)".to_owned());
        let refused = bash.objection("ls").unwrap_err();
        assert_eq!(refused.code(), "permission_denied");
        expect!["Commands cannot be restricted to the workspace on this system: the kernel has no Landlock of version 3 (Linux 6.2). The command was not run. Use the file tools instead; the person can allow commands without a sandbox."]
        .assert_eq(&refused.to_string());
        bash.cage.options.isolation = sandbox::Isolation::WithoutKernel;
        assert_eq!(bash.objection("ls"), Ok(()));
        assert_eq!(json!(bash.spec.annotations.permissions), json!(["shell_exec"]));
    }
}
