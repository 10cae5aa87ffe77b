//! `archon sessions`: shows and exports conversations as trees of runs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use archon::{
    store::FileSystemSessionStore,
    types::{
        AgentMessage, Content, Journal, LoopId, Message, RunFilter, RunHead, RunStatus, SessionId, StartRuns,
    },
    views::{ConversationMetrics, GlobalStats, LoopRecord, Session, SessionStore},
};
use clap::Subcommand;
use serde_json::json;

use crate::{
    app::App,
    exit::Exit,
    failure::Failure,
    lists::sessions::{Item, items},
    text::{escaped, format_time, one_line},
};

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List all sessions, last written first
    List,
    /// Show the conversation of one session, run by run
    Show {
        /// The session's id
        session: String,
    },
    /// Print a session as one JSON document that other programs read
    Export {
        /// The session's id
        session: String,
        /// Write to this file, or into this directory, instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show the tool calls and the usage of a session, or the sums over all sessions
    Metrics {
        /// The session's id [default: all sessions, which reads the log of every run]
        session: Option<String>,
    },
}

impl SessionsCommand {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::List => list(app).await,
            Self::Show { session } => show(app, &SessionId::new(session)).await,
            Self::Export { session, out } => export(app, &SessionId::new(session), out.as_deref()).await,
            Self::Metrics { session: Some(session) } => report(app, SessionId::new(session)).await,
            Self::Metrics { session: None } => global_stats(app).await,
        }
    }
}

async fn list(app: &App) -> Result<Exit, Failure> {
    let items = items(app.runs()?.list(&RunFilter::all()).await?);
    app.list(&items, &format!("no sessions in {}", app.data_dir.display()), row);
    Ok(Exit::Finished)
}

fn row(item: &Item) -> String {
    let when = format_time(item.updated_at);
    let runs = if item.runs == 1 { "run " } else { "runs" };
    let task = one_line(&item.task, 80);
    format!("{}  {:>3} {runs}  {:<11}  {when:<16}  {task}", item.session_id, item.runs, item.status)
}

async fn show(app: &App, id: &SessionId) -> Result<Exit, Failure> {
    let session = read(app, id).await?;
    app.item(&session, || {
        let mut lines = Vec::new();
        for root in session.root_loops() {
            tree(&session, root, 0, &mut lines);
        }
        let total = session.total_usage().total();
        lines.push(format!("{} runs, {total} tokens", session.loops.len()));
        lines.join("\n")
    });
    Ok(Exit::Finished)
}

fn tree(session: &Session, one: &LoopRecord, depth: usize, lines: &mut Vec<String>) {
    // A run is in the log of its own session only, so the depth is bounded.
    let name = one.run_id.as_ref().map_or(one.loop_id.as_str(), |run| run.as_str());
    let status = format!("{:?}", one.status).to_lowercase();
    let tokens = one.usage.total();
    // Consecutive runs have the same indent; only branches from the same place are indented.
    let indent = " ".repeat(2 * depth);
    lines.push(format!("{indent}{name}  {status}  {tokens} tokens"));
    for message in one.messages.iter().filter_map(AgentMessage::as_llm) {
        lines
            .extend(show_message(message).iter().map(|line| format!("{indent}{line}").trim_end().to_owned()));
    }
    lines.push(String::new());
    let children: Vec<&LoopRecord> = session.children_of(&one.loop_id).collect();
    let deeper = usize::from(children.len() > 1);
    for child in children {
        if !is_above(session, &child.loop_id, &one.loop_id) {
            tree(session, child, depth + deeper, lines);
        }
    }
}

/// The maximum number of characters of a call and of its result that are shown.
const SHOWN: usize = 120;

/// Formats a message as lines: a prompt after `>`, a call after `->`, its result after `<-`, the model's text
/// unchanged.
fn show_message(message: &Message) -> Vec<String> {
    match message {
        Message::User(user) => {
            let own = user.content.len().saturating_sub(user.recalled as usize);
            Content::join_text(&user.content[..own]).lines().map(|line| format!("> {line}")).collect()
        }
        Message::Assistant(assistant) => {
            let part = |block: &Content| match block {
                Content::Text { text } => text.trim().lines().map(str::to_owned).collect(),
                Content::ToolCall(call) => {
                    vec![one_line(&format!("-> {} {}", call.name, call.arguments), SHOWN)]
                }
                _ => Vec::new(),
            };
            assistant.content.iter().flat_map(part).collect()
        }
        Message::ToolResult(_) => vec![one_line(&format!("<- {}", message.text()), SHOWN)],
    }
}

/// Returns true if the loop `one` is the loop `of` or one of its ancestors, or if the ancestors form a cycle.
/// A child that is above its parent is possible only in a log that was edited by hand.
fn is_above(session: &Session, one: &LoopId, of: &LoopId) -> bool {
    let mut next = session.get_loop(of);
    for _ in 0..=session.loops.len() {
        let Some(here) = next else { return false };
        if here.loop_id == *one {
            return true;
        }
        next = here.parent_loop_id.as_ref().and_then(|parent| session.get_loop(parent));
    }
    true
}

async fn export(app: &App, id: &SessionId, out: Option<&Path>) -> Result<Exit, Failure> {
    let session = read(app, id).await?;
    let text =
        if app.json { serde_json::to_string(&session) } else { serde_json::to_string_pretty(&session) };
    let text = text.map_err(|e| Failure::failed(format!("cannot write session {id}: {e}"), ADVICE))?;
    let Some(out) = out else {
        app.output.json(&text);
        return Ok(Exit::Finished);
    };
    let path = match out.is_dir() {
        true => {
            let store = FileSystemSessionStore::new(out);
            store.save(&session).await?;
            store.path(id)?
        }
        false => write(out, &escaped(&text))?,
    };
    app.item(&json!({"session_id": id, "path": path}), || format!("wrote {}", path.display()));
    Ok(Exit::Finished)
}

async fn report(app: &App, id: SessionId) -> Result<Exit, Failure> {
    let heads = app.runs()?.list(&RunFilter::of_session(id.clone())).await?;
    if heads.is_empty() {
        return Err(unknown(&id));
    }
    let metrics = metrics(app, id, &heads).await?;
    app.item(&metrics, || metrics.to_report().trim().to_owned());
    Ok(Exit::Finished)
}

async fn global_stats(app: &App) -> Result<Exit, Failure> {
    let mut sessions: BTreeMap<SessionId, Vec<RunHead>> = BTreeMap::new();
    for head in app.runs()?.list(&RunFilter::all()).await? {
        if let Some(session) = head.session.clone() {
            sessions.entry(session).or_default().push(head);
        }
    }
    let mut each = Vec::new();
    for (session, heads) in sessions {
        each.push(metrics(app, session, &heads).await?);
    }
    let all = GlobalStats::of(&each);
    app.item(&all, || {
        format!(
            "{} sessions, {} tool calls, {} tokens, {:.1} s, {:.1} tokens a call",
            all.total_conversations,
            all.total_tool_calls,
            all.total_tokens,
            all.total_duration_seconds,
            all.avg_tokens_per_call
        )
    });
    Ok(Exit::Finished)
}

/// Adds up the metrics, oldest run first; the heads are ordered newest first.
async fn metrics(app: &App, id: SessionId, heads: &[RunHead]) -> Result<ConversationMetrics, Failure> {
    let journal = app.journal();
    let mut metrics = ConversationMetrics::new(id);
    for head in heads.iter().rev().filter(|head| head.status != RunStatus::Unreadable) {
        metrics.add_run(&journal.read(&head.run_id).await?);
    }
    Ok(metrics)
}

/// Replaces a file atomically.
fn write(path: &Path, text: &str) -> Result<PathBuf, Failure> {
    let mut new = path.as_os_str().to_owned();
    new.push(".tmp");
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
    written.map(|()| path.to_owned()).map_err(|e| {
        let _ = std::fs::remove_file(&new);
        Failure::unwritable(path, &e, ADVICE)
    })
}

/// Reads a session from the journal instead of the run service: the session is folded from the logs of its
/// runs, and of runs of other sessions that called them or that they called.
async fn read(app: &App, id: &SessionId) -> Result<Session, Failure> {
    Session::read(&app.journal(), id).await?.ok_or_else(|| unknown(id))
}

fn unknown(id: &SessionId) -> Failure {
    Failure::usage(format!("no session {id}"), "`archon sessions list` shows the sessions")
}

const ADVICE: &str = "check that the directory exists, is writable and has free space";
