//! The tools for commands in the background: `start_command`, `read_output`, `send_input`, `list_commands` and
//! `stop_command`.

use std::{sync::Arc, time::Duration};

use archon_types::{
    Context, Effect, Json, Preview, SessionId, Subject, Tool, ToolAnnotations, ToolContext, ToolError,
    ToolResult, ToolSpec, metadata,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    background_commands::{BackgroundCommand, BackgroundCommands, State},
    bash::{Bash, BashOptions, in_quotes, push_line},
    spec, text,
};
use crate::{
    Workspace,
    macro_support::arguments as parse,
    sandbox::{Background, Ending, MOST_UNREAD, Unread},
};

/// Time for which `start_command` waits for the first output.
const FIRST: Duration = Duration::from_secs(1);
/// Maximum wait of `read_output`.
const MOST_WAIT: Duration = Duration::from_secs(600);
/// The engine's time limit of `read_output` is this much longer than the tool's own.
const SLACK: Duration = Duration::from_secs(5);
/// Default of the maximum number of bytes that `read_output` returns.
const USUAL_READ: usize = 16 * 1024;

/// Returns the tools for commands that run on after their call: a development server, a watcher, a REPL.
///
/// The commands run in the same sandbox as those of [`Bash`], with these options, and their standard input can be
/// written. The time limits of the options and [`max_flood`](crate::sandbox::SandboxOptions::max_flood) do not apply to
/// them. Of the output that was not read yet, the newest MiB is kept. Changes of control files (files that can start a
/// program, such as `.git/config`) are only reported when the command ends. Therefore a command is refused on a system
/// where no mounts can protect these files, unless [`WithoutKernel`](crate::sandbox::Isolation::WithoutKernel) is set.
/// [`BackgroundCommands`] describes when commands end.
///
/// `start_command` and `send_input` need the permission `shell_exec` and ask a person in the same cases as `bash`;
/// [`BashOptions::deny`] applies to both. Permission rules about `bash` apply to `start_command`; rules that deny or
/// ask also apply to the text of `send_input`, with the unfinished line before it.
pub fn background_tools(
    workspace: &Workspace,
    options: BashOptions,
    commands: &BackgroundCommands,
) -> Vec<Arc<dyn Tool>> {
    let bash = Bash::new(workspace.clone(), options);
    let tool = |kind: Kind| -> Arc<dyn Tool> {
        Arc::new(BackgroundTool { spec: kind.spec(), kind, bash: bash.clone(), commands: commands.clone() })
    };
    [Kind::List, Kind::Read, Kind::Send, Kind::Start, Kind::Stop].map(tool).into()
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Start,
    Read,
    Send,
    List,
    Stop,
}

#[derive(Debug)]
struct BackgroundTool {
    spec: ToolSpec,
    kind: Kind,
    bash: Bash,
    commands: BackgroundCommands,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    /// Shell command
    command: String,
    /// A short name for the person, such as "dev server"
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    /// The id that start_command returned
    id: String,
    /// Time to wait for new output in milliseconds, if there is none yet. Default 0, at most 600000
    wait_ms: Option<u64>,
    /// Maximum number of bytes to return. Default 16384
    #[schemars(range(min = 4))]
    max: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    /// The id that start_command returned
    id: String,
    /// The text to send
    text: String,
    /// True to send a line end after the text. Default true, unless the text is empty
    enter: Option<bool>,
    /// True to close the input after the text
    end: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopArguments {
    /// The id that start_command returned
    id: String,
}

impl Kind {
    fn spec(self) -> ToolSpec {
        let mut changes = ToolAnnotations::destructive();
        changes.permissions = vec!["shell_exec".to_owned()];
        let reads = ToolAnnotations::read_only();
        match self {
            Self::Start => spec::<StartArguments>(
                ["start_command", "Start in the background"],
                "Starts a shell command that keeps running in the background: a development server, a file watcher, a \
                 REPL. Returns its id, and its output of the first second or until it ends. Read more with read_output, \
                 type into it with send_input, end it with stop_command. Use bash for commands that end by themselves. \
                 The command has no terminal, so start a REPL in its interactive mode, such as `python3 -iu`.",
                changes,
                json!({ "command": "npm run dev", "name": "dev server" }),
            ),
            Self::Read => spec::<ReadArguments>(
                ["read_output", "Read output"],
                "Returns the output of a background command since the last read, and whether it runs or its exit code. \
                 Set wait_ms to wait for output instead of reading again and again.",
                reads.with_timeout(MOST_WAIT + SLACK),
                json!({ "id": "cmd_1", "wait_ms": 10_000 }),
            ),
            Self::Send => spec::<SendArguments>(
                ["send_input", "Send input"],
                "Sends text to the input of a background command, as if it were typed, with a line end after it. Read \
                 the answer with read_output.",
                changes,
                json!({ "id": "cmd_1", "text": "print(1 + 1)" }),
            ),
            Self::List => spec::<ListArguments>(
                ["list_commands", "List background commands"],
                "Lists the background commands of this conversation, and whether each runs.",
                reads,
                json!({}),
            ),
            Self::Stop => {
                let mut stops = ToolAnnotations::default();
                stops.effect = Effect::Idempotent;
                let about = "Stops a background command with all processes that it started, and returns the rest of its \
                             output. Stop what is not needed any more.";
                spec::<StopArguments>(["stop_command", "Stop"], about, stops, json!({ "id": "cmd_1" }))
            }
        }
    }
}

impl BackgroundTool {
    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let clock = &*context.run.clock;
        match self.kind {
            Kind::Start => self.start(parse(arguments)?, context).await,
            Kind::Send => self.send(parse(arguments)?, context).await,
            Kind::List => {
                let ListArguments {} = parse(arguments)?;
                Ok(ToolResult::success(self.list(&context.run)))
            }
            Kind::Read => {
                let ReadArguments { id, wait_ms, max } = parse(arguments)?;
                let command = self.commands.find(&id, &context.run)?;
                if let State::Here(process) = &command.state {
                    let limit = Duration::from_millis(wait_ms.unwrap_or_default()).min(MOST_WAIT);
                    process.wait_for_output(limit, clock).await;
                }
                Ok(self.report(&command, max.unwrap_or(USUAL_READ)))
            }
            Kind::Stop => {
                let StopArguments { id } = parse(arguments)?;
                let command = self.commands.find(&id, &context.run)?;
                if let State::Here(process) = &command.state {
                    process.stop(clock).await;
                }
                Ok(self.report(&command, USUAL_READ))
            }
        }
    }

    async fn start(&self, arguments: StartArguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let StartArguments { command, name } = arguments;
        self.commands.admit(&context.run)?;
        let process = self.bash.start(&command, context).await?;
        // Until the command is added, a cancelled call ends it.
        process.wait_for_end(FIRST, &*context.run.clock).await;
        let command = self.commands.add(name, command, process, &context.run);
        Ok(self.report(&command, USUAL_READ))
    }

    async fn send(&self, arguments: SendArguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let SendArguments { id, mut text, enter, end } = arguments;
        let command = self.commands.find(&id, &context.run)?;
        let process = process_of(&command)?;
        let mut line = command.unfinished() + &text;
        self.bash.objection(&line)?;
        if let Some(Subject::Command { line: allowed, .. }) = context.subject.as_deref()
            && *allowed != line
        {
            return Err(ToolError::Failed(format!(
                "Other text was sent to {id} after this call was allowed, so nothing was sent. Send the text again."
            )));
        }
        if enter.unwrap_or(!text.is_empty()) {
            text.push('\n');
            line.push('\n');
        }
        command.note_input(&line);
        let is_last = end.unwrap_or_default();
        let sent = process.send(text.as_bytes(), is_last, &*context.run.clock).await;
        sent.map_err(|e| ToolError::Failed(format!("{id} did not get the text: {e}.")))?;
        let closed = if is_last { " Its input is closed now." } else { "" };
        let bytes = text.len();
        Ok(ToolResult::success(format!(
            "Sent {bytes} bytes to {id}.{closed} Read its answer with read_output."
        )))
    }

    fn list(&self, run: &Context) -> String {
        let lines: Vec<_> = self.commands.list(run).iter().map(|command| self.line_of(command)).collect();
        match lines.is_empty() {
            true => "No command was started in this conversation.".to_owned(),
            false => lines.join("\n"),
        }
    }

    fn line_of(&self, command: &BackgroundCommand) -> String {
        let state = match &command.state {
            State::Before(last) => last.ending.clone().unwrap_or_else(|| GONE.to_owned()),
            State::Here(process) => {
                let state = process.end().map_or("running".to_owned(), |end| self.ending(&end, ""));
                format!("{state}, {} bytes to read", process.waiting())
            }
        };
        let name = command.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        format!("{}{name}: {state}: {}", command.id(), in_quotes(&command.line))
    }

    /// Returns the output that was not read before, at most `max` bytes, and the state of the command.
    fn report(&self, command: &BackgroundCommand, max: usize) -> ToolResult {
        let id = command.id();
        let process = match &command.state {
            State::Here(process) => process,
            State::Before(last) => {
                let mut text = last.output.clone();
                let ending = last.ending.as_deref().unwrap_or(GONE);
                push_line(&mut text, &format!("[{id}: {ending}; this is its last known output]"));
                return ToolResult::success(text).with_metadata("running", false);
            }
        };
        // No character of UTF-8 is longer than 4 bytes.
        let max = max.min(self.bash.max_output()).max(4);
        let Unread { text: output, dropped, waiting, last, end } = process.take(max);
        let mut text = String::new();
        if dropped > 0 {
            text =
                format!("[{dropped} older bytes were dropped: at most {MOST_UNREAD} unread ones are kept]\n");
        }
        text.push_str(if output.is_empty() { "(no new output)" } else { &output });
        if waiting > 0 {
            push_line(&mut text, &format!("[{waiting} more bytes: read again]"));
        }
        let ending = end.as_ref().map(|end| self.ending(end, &last));
        push_line(&mut text, &format!("[{id}: {}]", ending.as_deref().unwrap_or("running")));
        let mut result = ToolResult::success(String::new())
            .with_metadata("running", end.is_none())
            .with_metadata("dropped_bytes", dropped)
            .with_metadata("sandboxed", self.bash.is_closed());
        if let Some(Ok(end)) = end.as_deref() {
            self.bash.notes(end).iter().for_each(|note| push_line(&mut text, &format!("[{note}]")));
            if let Some(code) = end.ended.code() {
                result = result.with_metadata("exit_code", code);
            }
        }
        if !output.is_empty() {
            result = result.with_metadata(metadata::IS_NEW, true);
        }
        if !output.is_empty() || end.is_some() || matches!(self.kind, Kind::Start) {
            result = result.with_metadata(metadata::SEEN, command.last_known(last, ending));
        }
        result.content = vec![text.into()];
        result
    }

    /// Describes how a command with this output ended.
    fn ending(&self, end: &Ending, output: &str) -> String {
        match end.as_ref() {
            Ok(end) => {
                let how = self.bash.ending(&end.ended, output);
                format!("ended, {}", how.as_deref().unwrap_or("exit code 0"))
            }
            Err(e) => format!("ended: {e}"),
        }
    }
}

/// The text about the end of a command that an earlier process of the program started and did not see end.
const GONE: &str = "ended with the process that ran it";

/// Returns the process of a running command.
fn process_of(command: &BackgroundCommand) -> Result<&Background, ToolError> {
    match &command.state {
        State::Here(process) if process.is_running() => Ok(process),
        _ => Err(ToolError::Failed(format!(
            "{} has ended, so nothing was sent. Start the command again with start_command.",
            command.id()
        ))),
    }
}

impl Tool for BackgroundTool {
    tool_methods!(run);

    fn subject(&self, arguments: &Json) -> Subject {
        let line = match self.kind {
            Kind::Start => text(arguments, "command").to_owned(),
            Kind::Send => self.commands.whole_line(text(arguments, "id"), text(arguments, "text")),
            _ => String::new(),
        };
        if line.is_empty() { Subject::Unknown } else { self.bash.command(&line) }
    }

    fn preview(&self, arguments: &Json, run: &Context) -> Result<Option<Preview>, ToolError> {
        let summary = match self.kind {
            Kind::Start => {
                let line = text(arguments, "command");
                self.bash.objection_in_background(line)?;
                self.commands.admit(run)?;
                format!("Run {} in the background", in_quotes(line))
            }
            Kind::Send => {
                let (id, input) = (text(arguments, "id"), text(arguments, "text"));
                let command = self.commands.find(id, run)?;
                process_of(&command)?;
                let unfinished = command.unfinished();
                self.bash.objection(&(unfinished.clone() + input))?;
                let behind = match unfinished.is_empty() {
                    true => String::new(),
                    false => format!(" behind {}", in_quotes(&unfinished)),
                };
                let (input, line) = (in_quotes(input), in_quotes(&command.line));
                format!("Type {input}{behind} into {id}, which is {line}")
            }
            _ => return Ok(None),
        };
        Ok(Some(Preview::new(summary)))
    }

    fn recall(&self, session: &SessionId, result: &ToolResult) {
        self.commands.recall(session, result);
    }
}
