//! The lines that a person types: messages, commands, lines of the shell, and texts to remember. They have the same
//! effects as on the screen.

use archon::types::{
    AnswerRuns as _, CancellationToken, RecordBody, RunHead, RunId, RunStatus, SessionId, SessionMode,
    StartRuns as _, Started,
};
use archon_terminal::{Cells, Draft, DraftKind};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::PlainTalk;
use crate::{
    app::App,
    chat::{
        attachments::PersonMessage,
        commands::{self, Situation, Step},
        conversation::{Which, agent_in_use, fork, start, with_model, works_elsewhere},
        events::Request,
        history_of_session::{self, History, newest},
        shell_line, surroundings, way_back,
    },
    failure::Failure,
    interrupt,
    output::Look,
};

impl PlainTalk {
    /// Executes a line that the person typed; returns false if the line ends the conversation. A failure is printed.
    pub(super) async fn act(&mut self, line: &str) -> bool {
        let draft = Draft::typed(line);
        let step = match draft.kind {
            DraftKind::Message => Step::Message(draft.text),
            _ => self.run_command(&draft).await,
        };
        // Files are named in the line itself.
        let message = |text, skill| PersonMessage { text, own_words: line.to_owned(), skill };
        let done = match step {
            Step::Done => Ok(()),
            Step::Message(text) => self.send(&message(text, None)).await.map(|_| ()),
            Step::Skill(call) => self.send(&message(line.to_owned(), Some(call))).await.map(|_| ()),
            Step::Line(line) => self.run_line(&line).await,
            Step::Theme(_) => {
                self.app.note("plain lines have no theme: the screen of later conversations has it");
                Ok(())
            }
            Step::Full => Err(needs_screen()),
            Step::Refuse(why) => {
                self.app.output.note(Look::Warning, why);
                Ok(())
            }
            Step::Leave => return false,
        };
        if let Err(failure) = done {
            self.app.output.failure(&failure);
        }
        true
    }

    /// Runs a command until its work is done, and handles its requests to the conversation. Returns the next step.
    async fn run_command(&mut self, draft: &Draft) -> Step {
        let (sender, mut requests) = unbounded_channel();
        let step = self.begin_command(draft, &sender).await;
        drop(sender);
        // The work of the command has a sender until it is done.
        while let Some(request) = requests.recv().await {
            if let Err(failure) = self.handle(request).await {
                self.app.output.failure(&failure);
            }
        }
        step
    }

    async fn begin_command(&self, draft: &Draft, requests: &UnboundedSender<Request>) -> Step {
        let history = match &self.session {
            // The command itself names the log that cannot be read.
            Some(session) => {
                history_of_session::read_all(&self.agents.runs, session).await.unwrap_or_default()
            }
            None => History::default(),
        };
        let mut cells = Cells::default();
        history.records.iter().for_each(|(run, record)| cells.apply(run, record));
        let situation = Situation {
            app: &self.app,
            meter: cells.meter(),
            model: &self.agents.model,
            session: self.session.as_ref(),
            memory: self.memory.as_ref(),
            is_sandboxed: surroundings::is_sandboxed(),
            theme: self.app.config.settings.chat.unwrap_or_default().theme.unwrap_or_default().into(),
            #[cfg(all(unix, feature = "undo"))]
            is_at_rest: !history
                .newest
                .is_some_and(|newest| matches!(newest.status, RunStatus::Running | RunStatus::Suspended)),
            requests,
        };
        commands::apply(draft, &situation)
    }

    /// Handles a request of a command to the conversation.
    async fn handle(&mut self, request: Request) -> Result<(), Failure> {
        match request {
            Request::Mode(Some(mode)) => self.set_mode(mode).await,
            Request::Compact(wishes) => self.compact(&wishes).await,
            Request::Back(number) => self.look_back(number).await,
            Request::Fork => {
                let newest = self.newest_here().await?.map(|head| head.run_id);
                fork(&self.app, &self.agents.runs, newest.as_ref()).await.map(|_| ())
            }
            Request::Open(session) => self.go_over(session).await,
            Request::Model(name) => self.use_app(with_model(&self.app, name)).await,
            Request::Reload => self.use_app(self.app.clone()).await,
            _ => Err(needs_screen()),
        }
    }

    async fn set_mode(&mut self, mode: SessionMode) -> Result<(), Failure> {
        match (&self.session, self.newest().await?) {
            (Some(session), Some(_)) => self.agents.runs.set_mode(session, None, mode).await?,
            // A session without a run has no mode yet.
            _ => self.mode = Some(mode),
        }
        self.app.note(format!("the mode is {mode}"));
        Ok(())
    }

    async fn compact(&mut self, wishes: &str) -> Result<(), Failure> {
        let (Some(session), Some(_)) = (self.session.clone(), self.newest().await?) else {
            return Err(Failure::usage("there is nothing to compact", "send a message first"));
        };
        let wishes = Some(wishes).filter(|wishes| !wishes.is_empty());
        let started = self.agents.runs.compact(&session, None, wishes).await?;
        match started.how {
            Started::New => self.show(started).await.map(|_| ()),
            _ => {
                self.app.note("the conversation is compacted before the next request");
                Ok(())
            }
        }
    }

    /// Shows an earlier message, which the next message replaces.
    async fn look_back(&mut self, number: usize) -> Result<(), Failure> {
        self.newest_here().await?;
        let earlier = way_back::find(&self.agents.runs, self.session.as_ref(), number).await?;
        self.app.note(&earlier.text);
        self.app.hint(earlier.note("an empty line"));
        self.earlier = Some(earlier);
        Ok(())
    }

    /// Switches to another session, or to a new one. The background commands of the current session end.
    async fn go_over(&mut self, session: Option<SessionId>) -> Result<(), Failure> {
        let which = session.map_or(Which::New, Which::Named);
        let (next, newest) = Self::open(self.app.clone(), &which, self.memory.clone()).await?;
        #[cfg(unix)]
        if let Some(session) = self.session.as_ref().filter(|session| next.session.as_ref() != Some(*session))
        {
            self.app.commands.end_session(&crate::credentials::owner(), session);
        }
        *self = next;
        self.ask_again(newest).await.map(|_| ())
    }

    /// Builds the agents again, for other settings or rules.
    async fn use_app(&mut self, app: App) -> Result<(), Failure> {
        if self.newest().await?.is_some_and(|head| head.status == RunStatus::Suspended) {
            return Err(agent_in_use());
        }
        let which = self.session.clone().map_or(Which::New, Which::Named);
        let (next, _) = Self::open(app, &which, self.memory.clone()).await?;
        *self = Self { mode: self.mode, earlier: self.earlier.take(), ..next };
        Ok(())
    }

    async fn newest(&self) -> Result<Option<RunHead>, Failure> {
        match &self.session {
            Some(session) => Ok(newest(&self.agents.runs, session).await?),
            None => Ok(None),
        }
    }

    /// Returns the newest run, unless another process works on it.
    async fn newest_here(&self) -> Result<Option<RunHead>, Failure> {
        match self.newest().await? {
            Some(head) if head.status == RunStatus::Running => Err(works_elsewhere()),
            newest => Ok(newest),
        }
    }

    /// Runs a line of the shell as a run of the session, and prints its output.
    async fn run_line(&mut self, line: &str) -> Result<(), Failure> {
        if let Some(problem) = &self.agents.line_problem {
            return Err(problem.clone());
        }
        let person = &self.agents.person;
        person.set_line(Some(line.to_owned()));
        let started = start(&self.agents.runs, self.session.as_ref(), shell_line::request(line)).await;
        let started = started.inspect_err(|_| person.set_line(None))?;
        self.session = Some(started.session);
        let ended = self.end_of(&started.run).await;
        for record in self.agents.runs.records(&started.run, None).await?.records {
            if let RecordBody::ToolCallFinished { result, .. } | RecordBody::ToolCallRefused { result, .. } =
                &record.body
            {
                self.app.output.line(result.text().trim_end());
            }
        }
        ended
    }

    /// Waits for the end of a run; Ctrl-C stops the run.
    async fn end_of(&self, run: &RunId) -> Result<(), Failure> {
        let (runs, stop) = (&self.agents.runs, CancellationToken::new());
        let listener = interrupt::listen(stop.clone(), self.app.output.clone());
        let ended = tokio::select! {
            reply = runs.reply(run) => reply.map(drop),
            () = stop.cancelled() => match runs.cancel(run, "interrupted at the terminal").await {
                Ok(()) => runs.reply(run).await.map(drop),
                refused => refused,
            },
        };
        listener.abort();
        Ok(ended?)
    }
}

/// Returns the failure for a command that needs a screen.
fn needs_screen() -> Failure {
    let advice = "use archon chat without --plain; with a space before it, the line is a message";
    Failure::usage("the command needs the screen of a conversation, not plain lines", advice)
}
