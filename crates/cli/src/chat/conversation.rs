//! The conversation as a client of the run service: sends messages, watches runs and answers questions, for a screen
//! that never waits.

mod answers;
mod changes;
mod opened_session;
mod sending;
mod watching;
mod wishes;

use std::sync::Arc;

use archon::{
    Runs,
    store::JsonlJournal,
    types::{
        Collection, Record, RunError, RunHead, RunId, RunStatus, SessionId, SessionMode, Timestamp, Watch,
    },
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

pub(crate) use self::{
    changes::{agent_in_use, fork, with_model, works_elsewhere},
    opened_session::Which,
    sending::{request_of, start},
};

use self::opened_session::{Beginning, Found};
use super::{
    agent::Agents,
    events::{Request, Update},
};
use crate::{app::App, failure::Failure, person::Person, skills::Skills};

/// The start of a conversation: a new one, or the continuation of an earlier one.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) which: Which,
    /// The collection that memories are stored in and recalled from.
    pub(crate) memory: Option<Collection>,
}

/// The shell lines that the person runs.
struct Lines {
    /// The reason why this machine cannot run shell lines; `None` if it can.
    problem: Option<Failure>,
    /// The run of the last line.
    run: Option<RunId>,
}

/// A conversation whose agent is built.
pub(crate) struct Conversation {
    runs: Runs,
    journal: Arc<JsonlJournal>,
    app: App,
    /// The collection of the conversation's memories.
    memory: Option<Collection>,
    /// The provider behind the shell lines that the person runs.
    person: Person,
    skills: Skills,
    lines: Lines,
    session: Option<SessionId>,
    mode: SessionMode,
    /// The newest run, and its events while it works.
    run: Option<RunId>,
    events: Option<Watch>,
    /// False if another process works on the run. Has a meaning only while there are `events`.
    is_here: bool,
    /// The sequence number and the time of the last known record of the run, and the status of the run after it.
    after: Option<u64>,
    last_at: Option<Timestamp>,
    status: RunStatus,
    /// The first record of the run, and the records of its questions. An answer needs no other records.
    questions: Vec<Arc<Record>>,
    /// The number of messages that no run has read yet.
    waiting: usize,
    /// The number of times that this conversation looked for a run since the last news or request.
    looks: u32,
    updates: UnboundedSender<Update>,
}

/// Opens a conversation, and handles requests until the screen sends no more. Each result and each failure is sent as
/// an update.
pub(crate) async fn converse(
    app: App,
    opening: Opening,
    mut requests: UnboundedReceiver<Request>,
    updates: UnboundedSender<Update>,
) {
    let mut conversation = match Conversation::open(&app, opening, updates.clone()).await {
        Ok(conversation) => conversation,
        Err(failure) => return drop(updates.send(Update::Over(failure))),
    };
    loop {
        let pause = conversation.pause();
        tokio::select! {
            request = requests.recv() => match request {
                Some(request) => conversation.handle(request).await,
                None => return,
            },
            event = watching::next(&mut conversation.events) => conversation.pass(event),
            () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => conversation.look().await,
        }
    }
}

impl Conversation {
    async fn open(app: &App, opening: Opening, updates: UnboundedSender<Update>) -> Result<Self, Failure> {
        let found = Found::read(app, &opening.which).await?;
        let newest = found.history.newest.clone();
        let beginning = Beginning::of(&found);
        found.show(&updates);
        let (mut conversation, model) = Self::build(app, opening.memory, beginning, updates).await?;
        conversation.begin(model, newest).await?;
        Ok(conversation)
    }

    /// Builds the agents of a conversation. Nothing is shown yet.
    async fn build(
        app: &App,
        memory: Option<Collection>,
        beginning: Beginning,
        updates: UnboundedSender<Update>,
    ) -> Result<(Self, String), Failure> {
        let Agents { runs, person, line_problem, skills, model } =
            Agents::build(app, memory.as_ref(), beginning.last.as_ref()).await?;
        let conversation = Self {
            runs,
            journal: app.open_journal()?,
            app: app.clone(),
            memory,
            person,
            skills,
            lines: Lines { problem: line_problem, run: None },
            session: beginning.session,
            mode: SessionMode::default(),
            run: beginning.newest.as_ref().map(|head| head.run_id.clone()),
            events: None,
            is_here: false,
            after: beginning.after,
            last_at: beginning.newest.as_ref().map(|head| head.updated_at),
            status: beginning.newest.map_or(RunStatus::Created, |head| head.status),
            questions: beginning.questions,
            waiting: 0,
            looks: 0,
            updates,
        };
        Ok((conversation, model))
    }

    /// Lets the screen send messages, and watches a run that another process works on.
    async fn begin(&mut self, model: String, newest: Option<RunHead>) -> Result<(), RunError> {
        if let Some(session) = self.session.as_ref().filter(|_| self.run.is_some()) {
            self.mode = self.runs.mode(session, None).await?;
        }
        self.update(Update::Mode(self.mode));
        self.update(Update::Ready { model });
        match newest.filter(|head| head.status == RunStatus::Running) {
            Some(head) => self.watch(&head.run_id).await,
            None => Ok(()),
        }
    }

    fn update(&self, update: Update) {
        // A screen that is gone needs no news.
        let _ = self.updates.send(update);
    }

    async fn handle(&mut self, request: Request) {
        self.looks = 0;
        let result = match request {
            Request::Send(message, when_busy) => {
                let sent = self.send(&message, when_busy).await;
                return self.tell_unsent(sent, |failure| Update::NotSent(message.text, None, failure));
            }
            Request::SendFrom(earlier, message) => {
                let sent = self.send_from(&earlier, &message).await;
                return self
                    .tell_unsent(sent, |failure| Update::NotSent(message.text, Some(earlier), failure));
            }
            Request::Mode(mode) => self.change_mode(mode).await,
            Request::Compact(wishes) => self.compact(&wishes).await,
            Request::Line(line) => {
                let run = self.run_line(&line).await;
                return self.tell_unsent(run, |failure| Update::NotRun(line, failure));
            }
            Request::Answer(id, answer) => self.answer(&id, answer).await.map_err(Failure::from),
            Request::Cancel => self.cancel().await.map_err(Failure::from),
            Request::Refuse(id) => self.refuse(&id).await.map_err(Failure::from),
            Request::Back(number) => self.look_back(number).await,
            Request::Fork => self.fork().await,
            Request::Open(session) => self.go_over(session).await,
            Request::Model(name) => self.use_app(with_model(&self.app, name)).await,
            Request::Reload => self.use_app(self.app.clone()).await,
        };
        if let Err(failure) = result {
            self.update(Update::Failed(failure));
        }
    }

    fn tell_unsent<E: Into<Failure>>(&self, sent: Result<(), E>, update: impl FnOnce(Failure) -> Update) {
        if let Err(error) = sent {
            self.update(update(error.into()));
        }
    }
}
