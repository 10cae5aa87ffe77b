//! Changes of a conversation by commands of a person: another session, another model, an earlier message, a fork; and
//! the shell lines that the person runs in the conversation.

use archon::{
    Runs,
    providers::ModelRef,
    types::{ForkOptions, ManageRuns, RunId, RunStarted, RunStatus, SessionId},
};

use super::{
    Conversation,
    opened_session::{Beginning, Found, Which},
    sending::{request_of, start},
};
use crate::{
    app::App,
    assemble::asks_no_model,
    chat::{
        attachments::PersonMessage,
        events::Update,
        shell_line,
        way_back::{self, Earlier},
    },
    failure::Failure,
};

impl Conversation {
    /// Runs a line of the shell as a run of the session.
    pub(super) async fn run_line(&mut self, line: &str) -> Result<(), Failure> {
        self.check_idle()?;
        self.check_no_question()?;
        if let Some(problem) = self.lines.problem.clone() {
            return Err(problem);
        }
        self.person.set_line(Some(line.to_owned()));
        let started = start(&self.runs, self.session.as_ref(), shell_line::request(line)).await;
        let started = started.inspect_err(|_| self.person.set_line(None))?;
        self.lines.run = Some(started.run.clone());
        Ok(self.follow(started).await?)
    }

    /// Returns true while a shell line of a person runs, in this process or in another.
    pub(super) fn is_line_at_work(&self) -> bool {
        let is_own = self.run.is_some() && self.run == self.lines.run;
        let is_line = || RunStarted::of(&self.questions).is_some_and(|run| asks_no_model(&run.config));
        self.events.is_some() && (is_own || is_line())
    }

    /// Finds an earlier message, so that the person can change it.
    pub(super) async fn look_back(&mut self, number: usize) -> Result<(), Failure> {
        self.check_idle()?;
        self.check_no_question()?;
        let message = way_back::find(&self.runs, self.session.as_ref(), number).await?;
        self.update(Update::Earlier(message));
        Ok(())
    }

    /// Sends a message in place of an earlier one. The conversation leaves behind the earlier message and all that
    /// followed it; they stay in the logs.
    pub(super) async fn send_from(
        &mut self,
        earlier: &Earlier,
        message: &PersonMessage,
    ) -> Result<(), Failure> {
        self.check_idle()?;
        self.check_no_question()?;
        let request = request_of(&self.app, &self.skills, message).await?;
        let request = request.instead_of(earlier.place.clone());
        let started = start(&self.runs, self.session.as_ref(), request).await?;
        Ok(self.follow(started).await?)
    }

    /// Continues in a fork of the newest run.
    pub(super) async fn fork(&mut self) -> Result<(), Failure> {
        self.check_idle()?;
        let fork = fork(&self.app, &self.runs, self.run.as_ref()).await?;
        (self.run, self.after, self.status) = (Some(fork), None, RunStatus::Created);
        self.questions.clear();
        Ok(())
    }

    /// Switches to another session, or to a new one. The background commands of the current session end.
    pub(super) async fn go_over(&mut self, session: Option<SessionId>) -> Result<(), Failure> {
        self.check_rest()?;
        if session.is_some() && session == self.session {
            return Err(Failure::usage("this conversation is open already", "/resume lists the others"));
        }
        let found = Found::read(&self.app, &session.map_or(Which::New, Which::Named)).await?;
        let newest = found.history.newest.clone();
        let (next, model) =
            Self::build(&self.app, self.memory.clone(), Beginning::of(&found), self.updates.clone()).await?;
        #[cfg(unix)]
        if let Some(session) = &self.session {
            self.app.commands.end_session(&crate::credentials::owner(), session);
        }
        self.update(Update::Anew);
        found.show(&self.updates);
        *self = next;
        Ok(self.begin(model, newest).await?)
    }

    /// Builds the agents again, for other settings or rules.
    pub(super) async fn use_app(&mut self, app: App) -> Result<(), Failure> {
        self.check_rest()?;
        if self.is_suspended() {
            return Err(agent_in_use());
        }
        let found = Found::read(&app, &self.session.clone().map_or(Which::New, Which::Named)).await?;
        let (next, model) =
            Self::build(&app, self.memory.clone(), Beginning::of(&found), self.updates.clone()).await?;
        (self.runs, self.app, self.person) = (next.runs, next.app, next.person);
        self.skills = next.skills;
        self.lines.problem = next.lines.problem;
        self.update(Update::Ready { model });
        Ok(())
    }

    /// Checks that no question of the run is open: while one is open, its call has no result.
    fn check_no_question(&self) -> Result<(), Failure> {
        match self.is_suspended() {
            true => Err(Failure::usage("a question waits for you", "answer it first, then try again")),
            false => Ok(()),
        }
    }

    /// Checks that no run of the session is at work, in whichever process.
    fn check_idle(&self) -> Result<(), Failure> {
        match self.events.is_some() && !self.is_here {
            true => Err(works_elsewhere()),
            false => self.check_rest(),
        }
    }

    /// Checks that no run works in this process, because the change would interrupt that run.
    fn check_rest(&self) -> Result<(), Failure> {
        match self.events.is_some() && self.is_here || self.waiting > 0 {
            true => {
                Err(Failure::usage("a run works", "wait for its end or stop it with Esc, then try again"))
            }
            false => Ok(()),
        }
    }
}

/// Forks the newest run, says so, and returns the fork.
///
/// # Errors
/// There is no run, it cannot be read, or the fork cannot be written.
pub(crate) async fn fork(app: &App, runs: &Runs, newest: Option<&RunId>) -> Result<RunId, Failure> {
    let Some(run) = newest else {
        return Err(Failure::usage("there is nothing to fork", "send a message first"));
    };
    let fork = runs.fork(run, ForkOptions::default()).await?.run;
    app.note(format!("the conversation goes on in the fork {fork}; {run} stays as it is"));
    Ok(fork)
}

/// Returns the context for another model.
pub(crate) fn with_model(app: &App, name: String) -> App {
    let mut app = app.clone();
    let settings = &mut app.config.settings;
    if name.parse::<ModelRef>().is_ok() {
        // The name has its provider, so the address of another one does not count.
        settings.base_url = None;
    }
    settings.model = Some(name);
    app
}

/// Returns the failure for a change of the conversation while another process works on it.
pub(crate) fn works_elsewhere() -> Failure {
    let what = "a run of another process works in this conversation";
    Failure::usage(what, "wait for its end, then try again")
}

/// Returns the failure for a change of the agent while a question is open.
pub(crate) fn agent_in_use() -> Failure {
    let what = "a run of this conversation waits for an answer, and its agent cannot be changed before";
    Failure::usage(what, "answer the question, then give the command again")
}
