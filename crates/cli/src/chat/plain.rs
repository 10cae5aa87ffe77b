//! The conversation in plain lines, for screen readers, pipes and poor terminals: reads a line, shows its run as
//! `archon run` does, and reads the next one.
//!
//! A line that a person types at a terminal may be a command. From a pipe each line is a message, because the text of a
//! program must run nothing.

mod typed;

use std::io::{self, BufRead as _, IsTerminal as _};

use archon::types::{
    Collection, MoreLimits, RunHead, RunId, RunStatus, SessionId, SessionMode, StartRuns as _, Started,
    StartedRun, WhenBusy,
};

use super::{
    agent::Agents,
    attachments::PersonMessage,
    conversation::{Opening, Which, request_of, start},
    history_of_session::{self, History},
    way_back::{Earlier, STAYS},
};
use crate::{app::App, ask::Asking, drive::follow, exit::Exit, failure::Failure, output::Look};

/// The sign before the line of a person.
const SIGN: &str = "> ";

/// Runs the conversation until the input ends, and returns its session. At a terminal the exit code is 0. Otherwise it
/// is the exit code of the last message whose run did not finish, or 0 if all runs finished.
///
/// # Errors
/// The conversation cannot begin: there is no model, or a log cannot be read.
pub(crate) async fn converse(app: &App, opening: Opening) -> Result<(Exit, Option<SessionId>), Failure> {
    let (mut talk, newest) = PlainTalk::open(app.clone(), &opening.which, opening.memory).await?;
    let is_by_hand = io::stdin().is_terminal();
    let mut exit = failed_exit(app, talk.ask_again(newest).await).unwrap_or(Exit::Finished);
    while let Some(line) = line(app, is_by_hand).await {
        let line = line.trim_end();
        if line.is_empty() {
            talk.stay();
            continue;
        }
        if is_by_hand && !app.json {
            if !talk.act(line).await {
                break;
            }
            continue;
        }
        let message = PersonMessage { text: line.to_owned(), own_words: line.to_owned(), skill: None };
        exit = failed_exit(app, talk.send(&message).await).unwrap_or(exit);
    }
    Ok((if is_by_hand { Exit::Finished } else { exit }, talk.session))
}

/// A conversation whose agents are built.
struct PlainTalk {
    app: App,
    /// The collection that memories are stored in and recalled from.
    memory: Option<Collection>,
    agents: Agents,
    session: Option<SessionId>,
    /// The mode of the first run of a session; `None` for the usual one.
    mode: Option<SessionMode>,
    /// The earlier message that the next message replaces; `None` if the next message goes to the end of the
    /// conversation.
    earlier: Option<Earlier>,
}

impl PlainTalk {
    /// Opens a session, and returns its newest run, too.
    async fn open(
        app: App,
        which: &Which,
        memory: Option<Collection>,
    ) -> Result<(Self, Option<RunHead>), Failure> {
        let reading = app.runs()?;
        let session = which.find(&reading).await?;
        let history = match &session {
            Some(session) => history_of_session::read(&reading, session).await?,
            None => History::default(),
        };
        let agents = Agents::build(&app, memory.as_ref(), history.last_config().as_ref()).await?;
        app.hint(format!("archon {} · {}", env!("CARGO_PKG_VERSION"), agents.model));
        Ok((Self { app, memory, agents, session, mode: None, earlier: None }, history.newest))
    }

    /// Asks the question that the newest run waits for, if the run is suspended.
    async fn ask_again(&self, newest: Option<RunHead>) -> Result<Exit, Failure> {
        match newest.filter(|head| head.status == RunStatus::Suspended) {
            Some(head) if Asking::of(&self.app) == Asking::Here => self.resume(&head.run_id).await,
            _ => Ok(Exit::Finished),
        }
    }

    /// Sends a message and shows its run.
    async fn send(&mut self, message: &PersonMessage) -> Result<Exit, Failure> {
        let mut request =
            request_of(&self.app, &self.agents.skills, message).await?.when_busy(WhenBusy::Queue);
        request.settings.mode = self.mode;
        request.instead_of = self.earlier.as_ref().map(|earlier| earlier.place.clone());
        let started = start(&self.agents.runs, self.session.as_ref(), request).await?;
        (self.mode, self.earlier) = (None, None);
        self.show(started).await
    }

    /// Makes the next message continue at the end of the conversation, instead of replacing an earlier message.
    fn stay(&mut self) {
        if self.earlier.take().is_some() {
            self.app.note(STAYS);
        }
    }

    /// Shows a run that the person has started or joined, until it ends.
    async fn show(&mut self, started: StartedRun) -> Result<Exit, Failure> {
        self.session = Some(started.session);
        let runs = &self.agents.runs;
        let before = match started.how {
            Started::New => Vec::new(),
            _ => runs.records(&started.run, None).await?.records,
        };
        follow(&self.app, runs, &started.run, before).await
    }

    async fn resume(&self, run: &RunId) -> Result<Exit, Failure> {
        let runs = &self.agents.runs;
        let before = runs.records(run, None).await?.records;
        runs.resume(run, &MoreLimits::default()).await?;
        follow(&self.app, runs, run, before).await
    }
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
