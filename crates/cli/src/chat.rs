//! The conversation on the terminal: a loop between a person's keys, a run service and a screen.

mod agent;
mod attachments;
mod commands;
mod conversation;
mod custom_commands;
mod display;
mod editor;
mod ending;
mod events;
mod files;
#[cfg(unix)]
mod guard;
mod history_file;
mod history_of_session;
mod key_reader;
mod keys;
mod line_journal;
mod outbox;
mod plain;
mod question_queue;
mod questions;
mod screen_loop;
mod shell_line;
mod sources;
mod surroundings;
mod transcript;
mod tty;
mod view;
mod way_back;

use archon_terminal::Support;

pub(crate) use self::conversation::{Opening, Which};
#[cfg(unix)]
pub(crate) use self::guard::{is_guard, run as guard};
use crate::{app::App, exit::Exit, failure::Failure};

/// Runs a conversation until the person ends it. With `is_plain`, or if the terminal is too simple for a screen, the
/// conversation uses plain lines.
pub(crate) async fn open(app: &App, opening: Opening, is_plain: bool) -> Result<Exit, Failure> {
    let support = Support::of(&|name| app.sources.env.get(name).cloned(), app.output.live);
    let has_screen = !is_plain && !app.json && app.output.asks && support.is_enough(tty::size());
    let (exit, session) = match has_screen {
        true => screen_loop::converse(app, opening, support).await?,
        false => plain::converse(app, opening).await?,
    };
    if let Some(session) = session {
        app.note(format!("the conversation is kept: {}", surroundings::continue_line(app, &session)));
    }
    Ok(exit)
}
