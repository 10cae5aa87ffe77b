//! The commands that run in the background, and the sessions to which they belong.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archon_types::{Context, Json, SessionId, TenantId, ToolError, ToolResult, metadata};
use serde::{Deserialize, Serialize};

use crate::sandbox::Background;

/// Maximum number of commands of a session that run at the same time.
const MOST: usize = 8;
/// Maximum number of commands of all sessions that run at the same time, and also of commands that are remembered. Of
/// more commands, the oldest ended one is forgotten first.
const MOST_OF_ALL: usize = 64;

/// The commands that the tools of [`background_tools`](fn@super::background_tools) started.
///
/// Make one value for each conversation, or one for all sessions of a service, and keep it as long as commands may run:
/// clones share the commands. A command belongs to the session of the run that started it; other sessions do not see
/// it. If a sub-agent started the command, it belongs to the session of the top-level run. A command outlives its run.
/// It ends with all its processes when one of these happens:
///
/// - the tool `stop_command` is called;
/// - [`end_session`](Self::end_session) is called;
/// - the last clone of this value is dropped, also those that the tools have;
/// - this process ends, in any way.
///
/// If the program is restarted and continues the session, the tools report the last known output of the
/// earlier commands.
///
/// ```
/// use archon_tools::{Workspace, builtin::{BackgroundCommands, BashOptions, background_tools}};
///
/// let commands = BackgroundCommands::default();
/// let tools = background_tools(&Workspace::new(".")?, BashOptions::default(), &commands);
/// let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
/// assert_eq!(names, ["list_commands", "read_output", "send_input", "start_command", "stop_command"]);
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct BackgroundCommands(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// In the order of their start.
    commands: Vec<Arc<BackgroundCommand>>,
    /// The number in the id of the newest command.
    newest: u64,
}

/// A command of a session.
#[derive(Debug)]
pub(super) struct BackgroundCommand {
    tenant: TenantId,
    session: SessionId,
    /// The same as `session` if a child run started the command; otherwise `None`.
    top_session: Option<SessionId>,
    number: u64,
    pub(super) name: Option<String>,
    pub(super) line: String,
    pub(super) state: State,
    /// The unfinished end of the input: the part of the sent text that a shell reads together with the next text.
    unfinished: Mutex<String>,
}

/// The state of a command: its process, or the last known state from an earlier process of the program.
#[derive(Debug)]
pub(super) enum State {
    /// This process of the program started the command, which may have ended.
    Here(Background),
    /// An earlier process of the program started the command.
    Before(LastKnown),
}

/// The known state of a command after a call, as in the metadata of the call's result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LastKnown {
    tenant: TenantId,
    /// The session of the command, if a child run started it.
    top_session: Option<SessionId>,
    command: String,
    name: Option<String>,
    line: String,
    pub(super) output: String,
    /// A text about the end of the command; `None` if the command was still running after the call.
    pub(super) ending: Option<String>,
}

impl BackgroundCommands {
    /// Ends all commands of a session with all their processes: they get SIGTERM, and SIGKILL a second later.
    pub fn end_session(&self, tenant: &TenantId, session: &SessionId) {
        self.table().commands.retain(|command| !command.is_of(tenant, session));
    }

    /// Returns the commands of the run's session, the oldest first.
    pub(super) fn list(&self, run: &Context) -> Vec<Arc<BackgroundCommand>> {
        let of_session = |command: &&Arc<BackgroundCommand>| command.is_of(&run.tenant, run.top_session());
        self.table().commands.iter().filter(of_session).cloned().collect()
    }

    /// Returns the command with this id.
    pub(super) fn find(&self, id: &str, run: &Context) -> Result<Arc<BackgroundCommand>, ToolError> {
        let commands = self.list(run);
        commands.iter().find(|command| command.id() == id).cloned().ok_or_else(|| {
            let ids: Vec<_> = commands.iter().map(|command| command.id()).collect();
            let there = if ids.is_empty() { "none was started".to_owned() } else { ids.join(", ") };
            ToolError::NotFound(format!(
                "There is no command '{id}' in this conversation. Commands: {there}."
            ))
        })
    }

    /// Returns the unfinished line of a command's input with `text` at its end. The id is enough to find the command,
    /// because running commands of all sessions have different ids.
    pub(super) fn whole_line(&self, id: &str, text: &str) -> String {
        let table = self.table();
        let command = table.commands.iter().find(|command| command.is_running() && command.id() == id);
        command.map_or_else(|| text.to_owned(), |command| command.unfinished() + text)
    }

    /// Returns an error if no more commands of the run's session may run.
    pub(super) fn admit(&self, run: &Context) -> Result<(), ToolError> {
        let mut running = self.list(run);
        running.retain(|command| command.is_running());
        let all = self.table().commands.iter().filter(|command| command.is_running()).count();
        if running.len() < MOST && all < MOST_OF_ALL {
            return Ok(());
        }
        let running: Vec<_> = running.iter().map(|command| command.id()).collect();
        Err(ToolError::Resource(format!(
            "No more commands may run in the background: at most {MOST} of a conversation and {MOST_OF_ALL} in all. The \
             command was not started. Stop one of yours with stop_command first: {}.",
            running.join(", ")
        )))
    }

    /// Adds a command that was started for the run's session.
    pub(super) fn add(
        &self,
        name: Option<String>,
        line: String,
        process: Background,
        run: &Context,
    ) -> Arc<BackgroundCommand> {
        let mut table = self.table();
        table.newest += 1;
        let command = Arc::new(BackgroundCommand {
            tenant: run.tenant.clone(),
            session: run.top_session().clone(),
            top_session: run.top_session.clone(),
            number: table.newest,
            name,
            line,
            state: State::Here(process),
            unfinished: Mutex::default(),
        });
        table.push(command.clone());
        command
    }

    /// Restores the last known state of a command from the result of a call in an earlier run of the session. A
    /// command that this process started is left as it is.
    pub(super) fn recall(&self, session: &SessionId, result: &ToolResult) {
        let seen = result.metadata.get(metadata::SEEN).and_then(|seen| LastKnown::deserialize(seen).ok());
        let Some(last) = seen else { return };
        let Some(number) = last.command.strip_prefix("cmd_").and_then(|id| id.parse().ok()) else { return };
        let session = last.top_session.as_ref().unwrap_or(session);
        let mut table = self.table();
        let is_it = |other: &BackgroundCommand| other.number == number && other.is_of(&last.tenant, session);
        if table.commands.iter().any(|other| is_it(other) && matches!(other.state, State::Here(_))) {
            return;
        }
        table.commands.retain(|other| !is_it(other));
        table.newest = table.newest.max(number);
        table.push(Arc::new(BackgroundCommand {
            tenant: last.tenant.clone(),
            session: session.clone(),
            top_session: last.top_session.clone(),
            number,
            name: last.name.clone(),
            line: last.line.clone(),
            state: State::Before(last),
            unfinished: Mutex::default(),
        }));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn push(&mut self, command: Arc<BackgroundCommand>) {
        self.commands.push(command);
        while self.commands.len() > MOST_OF_ALL
            && let Some(ended) = self.commands.iter().position(|command| !command.is_running())
        {
            self.commands.remove(ended);
        }
    }
}

impl BackgroundCommand {
    /// Returns the id by which the model names the command, such as `cmd_1`.
    pub(super) fn id(&self) -> String {
        format!("cmd_{}", self.number)
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(&self.state, State::Here(process) if process.is_running())
    }

    /// Returns the unfinished end of the input.
    pub(super) fn unfinished(&self) -> String {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the unfinished end of the input. `text` is the sent text with the earlier unfinished end before it.
    pub(super) fn note_input(&self, text: &str) {
        let unfinished = unfinished(text).to_owned();
        *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = unfinished;
    }

    /// Returns the metadata that record, in a call's result, the state of the command after the call.
    pub(super) fn last_known(&self, output: String, ending: Option<String>) -> Json {
        let (tenant, top_session) = (self.tenant.clone(), self.top_session.clone());
        let (name, line) = (self.name.clone(), self.line.clone());
        let last = LastKnown { tenant, top_session, command: self.id(), name, line, output, ending };
        serde_json::to_value(last).unwrap_or_default()
    }

    fn is_of(&self, tenant: &TenantId, session: &SessionId) -> bool {
        self.tenant == *tenant && self.session == *session
    }
}

/// Returns the end of a text that a shell reads together with the next text: the last line if it has no line end, and
/// the lines directly before it that end with a backslash.
fn unfinished(text: &str) -> &str {
    let end = text.rmatch_indices('\n').find(|(at, _)| !text[..*at].ends_with('\\'));
    end.map_or(text, |(at, _)| &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_is_all_since_the_last_end_of_a_line() {
        for (text, expected) in [
            ("git pu", "git pu"),
            ("ls\ngit pu", "git pu"),
            ("ls\ngit pu\\\n", "git pu\\\n"),
            ("git pu\\\nsh\n", ""),
            ("", ""),
        ] {
            assert_eq!(unfinished(text), expected, "{text:?}");
        }
    }
}
