//! The conversation in plain lines, for screen readers, pipes and poor terminals: reads a line, shows its run as
//! `archon run` does, and reads the next one.

use std::io::{self, BufRead as _, IsTerminal as _};

use archon::{
    Runs,
    types::{MoreLimits, RunId, RunStatus, SessionId, StartRuns as _, Started},
};

use super::{
    agent,
    attachments::PersonMessage,
    conversation::{self, Opening},
    history_of_session::{self, History},
};
use crate::{app::App, ask::Asking, drive::follow, exit::Exit, failure::Failure, memory, output::Look};

/// The sign before the line of a person.
const SIGN: &str = "> ";

/// The answer to `/full`, which is no message.
const NO_FULL_VIEW: &str = "/full needs a terminal that can show another screen: use archon chat there, without --plain. With a \
                            space before it, the line is a message.";

/// Has the conversation until the input ends, and returns its session. At a terminal the exit code is 0; otherwise it
/// is that of the last message that did not finish.
///
/// # Errors
/// The conversation cannot begin: there is no model, or a log cannot be read.
pub(crate) async fn converse(app: &App, opening: Opening) -> Result<(Exit, Option<SessionId>), Failure> {
    let reading = app.runs()?;
    let mut session = opening.which.find(&reading).await?;
    let history = match &session {
        Some(session) => history_of_session::read(&reading, session).await?,
        None => History::default(),
    };
    let memory = match &opening.memory {
        Some(collection) => Some(memory::open(app, collection).await?),
        None => None,
    };
    let built = agent::build(app, memory, history.last_config().as_ref()).await?;
    let runs = app.open_runs()?.with_agent(built.archon.run_agent());
    let is_by_hand = io::stdin().is_terminal();
    app.hint(format!("archon {} · {}", env!("CARGO_PKG_VERSION"), built.model));
    let mut exit = Exit::Finished;
    if let Some(head) = history.newest.filter(|head| head.status == RunStatus::Suspended)
        && Asking::of(app) == Asking::Here
    {
        // Its question is asked again.
        exit = failed_exit(app, resume(app, &runs, &head.run_id).await).unwrap_or(exit);
    }
    while let Some(line) = line(app, is_by_hand).await {
        if line.trim().is_empty() {
            continue;
        }
        if line.trim_end() == "/full" {
            app.output.note(Look::Warning, NO_FULL_VIEW);
            continue;
        }
        exit = failed_exit(app, answer(app, &runs, &mut session, line.trim_end()).await).unwrap_or(exit);
    }
    Ok((if is_by_hand { Exit::Finished } else { exit }, session))
}

/// Sends a message and shows its run.
async fn answer(
    app: &App,
    runs: &Runs,
    session: &mut Option<SessionId>,
    text: &str,
) -> Result<Exit, Failure> {
    let message = PersonMessage { text: text.to_owned(), own_words: text.to_owned() };
    let started = conversation::send(app, runs, session.as_ref(), &message).await?;
    *session = Some(started.session);
    let before = match started.how {
        Started::New => Vec::new(),
        _ => runs.records(&started.run, None).await?.records,
    };
    follow(app, runs, &started.run, before).await
}

async fn resume(app: &App, runs: &Runs, run: &RunId) -> Result<Exit, Failure> {
    let before = runs.records(run, None).await?.records;
    runs.resume(run, &MoreLimits::default()).await?;
    follow(app, runs, run, before).await
}

/// Prints the failure of a message, after which the conversation goes on; returns the exit code unless the run
/// finished.
fn failed_exit(app: &App, result: Result<Exit, Failure>) -> Option<Exit> {
    let exit = result.unwrap_or_else(|failure| {
        app.output.failure(&failure);
        failure.exit()
    });
    (exit != Exit::Finished).then_some(exit)
}

/// Reads a line; `None` at the end of the input, and if Ctrl-C comes first.
async fn line(app: &App, is_by_hand: bool) -> Option<String> {
    if is_by_hand {
        app.output.note_piece(Look::Plain, SIGN);
    }
    let read = tokio::task::spawn_blocking(|| {
        let mut line = Vec::new();
        let read = io::stdin().lock().read_until(b'\n', &mut line).ok().filter(|read| *read > 0);
        // A line in another encoding is a line, too.
        read.map(|_| String::from_utf8_lossy(&line).into_owned())
    });
    tokio::select! {
        line = read => line.ok().flatten(),
        _ = tokio::signal::ctrl_c() => None,
    }
}
