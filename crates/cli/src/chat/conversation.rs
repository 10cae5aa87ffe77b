//! The conversation as a client of the run service: sends messages, watches runs and answers questions, for a screen
//! that never waits.

mod changes;
mod found;
mod wishes;

use std::{sync::Arc, time::Duration};

use archon::{
    Approvals, Runs, SystemClock,
    store::JsonlJournal,
    types::{
        Answer, AnswerRuns, Clock, Collection, Content, Event, JournalError, Message, MoreLimits,
        PendingApproval, Record, RecordBody, RunError, RunFilter, RunHead, RunId, RunRefused, RunStatus,
        SessionId, SessionMode, StartRun, StartRuns, Started, StartedRun, Timestamp, UserMessage, Watch,
        WhenBusy, pending_approvals,
    },
};
use futures_util::StreamExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use self::found::{Beginning, Found};
use super::{
    agent,
    attachments::{self, PersonMessage},
    events::{Request, Update},
    history_of_session::newest,
    shell_line,
};
use crate::{app::App, assemble::AGENT, command_line::resume_line, failure::Failure, memory, person::Person};

/// The interval in which the session is looked at while a question waits that another process may answer.
const LOOK: Duration = Duration::from_secs(1);
/// The same at first while a message waits that begins the next run by itself, and the number of such looks.
const LOOK_FOR_NEXT: Duration = Duration::from_millis(50);
const QUICK_LOOKS: u32 = 200;

/// The session of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// A new session.
    New,
    /// The session of the run that was written last.
    Last,
    /// The session with this id, which may be new.
    Named(SessionId),
}

/// The start of a conversation: a new one, or the continuation of an earlier one.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) which: Which,
    /// The collection that memories are stored in and recalled from.
    pub(crate) memory: Option<Collection>,
}

/// The lines that the person runs.
#[derive(Default)]
struct Lines {
    /// The run of the last line.
    run: Option<RunId>,
    /// The messages that came while a line ran.
    late: Vec<PersonMessage>,
    /// True if the mode of the session is to be set again after the line.
    has_other_mode: bool,
}

/// A conversation whose agent is built.
pub(crate) struct Conversation {
    runs: Runs,
    journal: Arc<JsonlJournal>,
    app: App,
    /// The collection of its memories.
    memory: Option<Collection>,
    /// The provider of the lines that the person runs.
    person: Person,
    lines: Lines,
    session: Option<SessionId>,
    mode: SessionMode,
    /// The newest run, the sequence number of its last known record, and its events while it works.
    run: Option<RunId>,
    after: Option<u64>,
    events: Option<Watch>,
    /// True if this process works on the run, as long as there are events.
    is_here: bool,
    /// The first record of the run, and those of its questions: all of the log that an answer needs.
    questions: Vec<Arc<Record>>,
    /// True if the run has an open question.
    is_suspended: bool,
    /// The number of messages that no run has read yet.
    waiting: usize,
    /// The number of looks for the run that begins with these messages.
    looks: u32,
    updates: UnboundedSender<Update>,
}

impl Which {
    /// Returns the id of the session; `None` for a new one.
    ///
    /// # Errors
    /// No run has a session, or the log of the newest run is damaged.
    pub(crate) async fn find(&self, runs: &Runs) -> Result<Option<SessionId>, Failure> {
        match self {
            Self::New => Ok(None),
            Self::Named(session) => Ok(Some(session.clone())),
            Self::Last => {
                let head = runs.list(&RunFilter::all().top_level().limit(1)).await?.pop();
                let Some(head) = head else { return Err(RunError::NothingToContinue.into()) };
                if head.problem.is_some() {
                    runs.records(&head.run_id, None).await?.whole()?;
                }
                head.session.map(Some).ok_or_else(|| RunError::NothingToContinue.into())
            }
        }
    }
}

/// Opens a conversation and has it until the screen sends no more requests. Every result and every failure is an
/// update.
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
            event = next(&mut conversation.events) => {
                if !matches!(event, Some(Ok(_))) {
                    conversation.restore_mode().await;
                }
                conversation.pass(event);
                conversation.send_late().await;
            }
            () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => conversation.look().await,
        }
    }
}

/// Returns the next event of a run; never ends without a run.
async fn next(events: &mut Option<Watch>) -> Option<Result<Event, RunError>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// Sends a message with the files that it names to a session: to its run at work, or as a new run. A run that was cut
/// off is stopped first, so that nothing of it happens again: the model reads how far it came, and goes on with the
/// message.
///
/// # Errors
/// The message is empty, the run takes no messages, or the journal failed.
pub(crate) async fn send(
    app: &App,
    runs: &Runs,
    session: Option<&SessionId>,
    message: &PersonMessage,
) -> Result<StartedRun, RunError> {
    start(runs, session, request_of(app, message).await.when_busy(WhenBusy::Queue)).await
}

/// Returns the request for a message with the files that it names.
async fn request_of(app: &App, message: &PersonMessage) -> StartRun {
    let text = Content::text(message.text.as_str());
    let content = [text].into_iter().chain(attachments::of(app, message).await).collect();
    let message = Message::User(UserMessage::new(content, Timestamp::default()));
    StartRun::with_messages(vec![message.into()]).agent(AGENT)
}

/// Starts a run in a session, or in a new one. A run that was cut off is stopped first.
async fn start(runs: &Runs, session: Option<&SessionId>, request: StartRun) -> Result<StartedRun, RunError> {
    let Some(session) = session else { return runs.start(request).await };
    let cut_off = newest(runs, session).await?.filter(|head| head.status == RunStatus::Interrupted);
    if let Some(RunHead { run_id: run, .. }) = cut_off {
        runs.cancel(&run, "its process was killed").await?;
        // Its outcome is in its log.
        let _ = runs.reply(&run).await;
    }
    runs.start(request.session(session.clone())).await
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
        let opened = match &memory {
            Some(collection) => Some(memory::open(app, collection).await?),
            None => None,
        };
        let built = agent::build(app, opened, beginning.last.as_ref()).await?;
        let mut runs = app.open_runs()?.with_agent(built.archon.run_agent());
        // Why there is none is said to a person who needs it.
        let person = Person::default();
        if let Ok(agent) = shell_line::agent(app, &person).await {
            runs = runs.with_agent(agent);
        }
        let conversation = Self {
            runs,
            journal: app.open_journal()?,
            app: app.clone(),
            memory,
            person,
            lines: Lines::default(),
            session: beginning.session,
            mode: SessionMode::default(),
            run: beginning.newest.as_ref().map(|head| head.run_id.clone()),
            after: beginning.after,
            events: None,
            is_here: false,
            questions: beginning.questions,
            is_suspended: beginning.newest.is_some_and(|head| head.status == RunStatus::Suspended),
            waiting: 0,
            looks: 0,
            updates,
        };
        Ok((conversation, built.model))
    }

    /// Lets the screen send messages, and watches a run that another process works on.
    async fn begin(&mut self, model: String, newest: Option<RunHead>) -> Result<(), RunError> {
        if let Some(session) = self.session.as_ref().filter(|_| self.run.is_some()) {
            self.mode = self.runs.mode(session, None).await?;
        }
        self.update(Update::Mode(self.mode));
        self.update(Update::Ready { model });
        match newest.filter(|head| head.status == RunStatus::Running) {
            Some(head) => self.watch(&head.run_id, true).await,
            None => Ok(()),
        }
    }

    fn update(&self, update: Update) {
        // A screen that is gone needs no news.
        let _ = self.updates.send(update);
    }

    async fn handle(&mut self, request: Request) {
        let result = match request {
            // A run of a line has no model that could read it.
            Request::Send(message, _) if self.is_line_at_work() => return self.lines.late.push(message),
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
            Request::Model(name) => self.use_model(name).await,
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

    async fn send(&mut self, message: &PersonMessage, when_busy: WhenBusy) -> Result<(), RunError> {
        let mut request = request_of(&self.app, message).await.when_busy(when_busy);
        // A session without a run has no mode yet.
        request.settings.mode =
            Some(self.mode).filter(|mode| self.run.is_none() && *mode != SessionMode::default());
        let started = start(&self.runs, self.session.as_ref(), request).await?;
        self.follow(started).await
    }

    /// Follows a run that a message of the person has started or joined.
    async fn follow(&mut self, started: StartedRun) -> Result<(), RunError> {
        if self.events.is_none() && self.run.as_ref() != Some(&started.run) {
            self.pass_rest().await?;
        }
        if self.session.is_none() {
            self.update(Update::Session(started.session.clone()));
            self.session = Some(started.session);
        }
        let is_watched = self.events.is_some() && self.run.as_ref() == Some(&started.run);
        match started.how {
            Started::Queued if is_watched || self.is_suspended => {
                self.waiting += 1;
                Ok(())
            }
            how => {
                // A message that steers a suspended run resumes it, and is read then.
                self.waiting += usize::from(how == Started::Resumed);
                self.watch(&started.run, how == Started::Queued).await
            }
        }
    }

    /// Passes the records of the last run that came since, such as its end if it was cut off and stopped.
    async fn pass_rest(&mut self) -> Result<(), RunError> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        for record in self.runs.records(&run, self.after).await?.records {
            self.update(Update::Event(Event::Record { run: run.clone(), record }));
        }
        Ok(())
    }

    /// Answers a question. Its run goes on, also if the answer came from another process before.
    async fn answer(&mut self, id: &str, answer: Answer) -> Result<(), RunError> {
        let is_taken = match self.pending(id).filter(|_| !matches!(answer, Answer::Edit { .. })) {
            Some(pending) => self.answer_pending(&pending, answer).await?,
            // The service checks changed arguments with their tool.
            None => self.runs.answer(id, answer).await?,
        };
        self.watch_again().await?;
        if !is_taken {
            let what = "the question was already answered, or has expired";
            self.update(Update::Failed(Failure::failed(
                what,
                "the run goes on with the earlier answer, or without one",
            )));
        }
        Ok(())
    }

    /// Answers a question of the run and resumes the run. This reads no other log, unlike the service, which looks for
    /// the question among those of all runs.
    async fn answer_pending(&mut self, pending: &PendingApproval, answer: Answer) -> Result<bool, RunError> {
        let is_taken = Approvals::new(self.journal.clone()).answer(pending, answer).await?;
        match self.runs.resume(&pending.run, &MoreLimits::default()).await {
            // Another process works on the run, or has ended it.
            Err(
                RunError::Journal(JournalError::Locked { .. }) | RunError::Refused(RunRefused::Ended { .. }),
            ) => Ok(is_taken),
            resumed => resumed.map(|_| is_taken),
        }
    }

    /// Returns the question of the run with this id.
    fn pending(&self, id: &str) -> Option<PendingApproval> {
        pending_approvals(&self.questions).into_iter().find(|pending| pending.request.request_id == id)
    }

    /// Refuses a question and stops its run, in one step, so that the model is not asked in between.
    async fn refuse(&mut self, id: &str) -> Result<(), RunError> {
        if let Some(pending) = self.pending(id) {
            let no = Answer::Cancel { reason: String::new() };
            pending.answer(no, SystemClock.now(), &*self.journal).await?;
        }
        self.cancel().await
    }

    async fn cancel(&mut self) -> Result<(), RunError> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        match self.runs.cancel(&run, "stopped at the terminal").await {
            // It has ended by itself.
            Err(RunError::Refused(_)) => {}
            cancelled => cancelled?,
        }
        if self.events.is_none() { self.watch_again().await } else { Ok(()) }
    }

    async fn watch_again(&mut self) -> Result<(), RunError> {
        match self.run.clone() {
            Some(run) => self.watch(&run, false).await,
            None => Ok(()),
        }
    }

    /// Watches a run from the first record that is not known yet.
    async fn watch(&mut self, run: &RunId, is_elsewhere: bool) -> Result<(), RunError> {
        if self.run.as_ref() != Some(run) {
            (self.run, self.after) = (Some(run.clone()), None);
            self.questions.clear();
        }
        self.events = Some(self.runs.watch(run, self.after).await?);
        (self.is_suspended, self.looks) = (false, 0);
        self.is_here = !is_elsewhere;
        self.update(Update::Working { run: run.clone(), is_elsewhere });
        Ok(())
    }

    /// Passes an event of the run to the screen.
    fn pass(&mut self, event: Option<Result<Event, RunError>>) {
        match event {
            Some(Ok(event)) => {
                self.note(&event);
                self.update(Update::Event(event));
            }
            Some(Err(error)) => {
                self.events = None;
                let failure = Failure::from(error);
                let failure = match &self.run {
                    Some(run) => failure.then(&resume_line(&self.app, run.as_str())),
                    None => failure,
                };
                self.update(Update::Rest(Some(failure)));
            }
            None => {
                self.events = None;
                self.update(Update::Rest(None));
            }
        }
    }

    fn note(&mut self, event: &Event) {
        use archon::types::PromptSource;
        let Event::Record { run, record } = event else { return };
        if self.run.as_ref() != Some(run) {
            return;
        }
        self.after = Some(record.seq);
        if is_of_question(record) {
            self.questions.push(record.clone());
        }
        match &record.body {
            RecordBody::MessageAdded { source: PromptSource::FollowUp | PromptSource::Steer, .. } => {
                self.waiting = self.waiting.saturating_sub(1);
            }
            RecordBody::ModeChanged { mode, .. } if self.lines.run.as_ref() != Some(run) => {
                self.mode = *mode;
                self.update(Update::Mode(*mode));
            }
            RecordBody::Suspended { .. } => self.is_suspended = true,
            RecordBody::RunFinished(_) => self.is_suspended = false,
            _ => {}
        }
    }

    /// Returns the time until the next look at the session; `None` if nothing can change by itself.
    fn pause(&self) -> Option<Duration> {
        match (&self.events, self.is_suspended, self.waiting) {
            (Some(_), ..) => None,
            (None, true, _) => Some(LOOK),
            (None, false, 1..) if self.looks < QUICK_LOOKS => Some(LOOK_FOR_NEXT),
            (None, false, 1..) => Some(LOOK),
            (None, false, _) => None,
        }
    }

    /// Looks for a run that goes on without this conversation: one whose question was answered elsewhere, or one that
    /// began with a message that waited.
    async fn look(&mut self) {
        let Some(session) = self.session.clone() else { return };
        self.looks += 1;
        let found = match newest(&self.runs, &session).await {
            Ok(found) => found,
            Err(error) => {
                self.waiting = 0;
                return self.update(Update::Failed(error.into()));
            }
        };
        let Some(head) = found.filter(|head| self.is_news(head)) else { return };
        // The next run was begun by this process.
        let is_elsewhere = self.is_suspended;
        if self.run.as_ref() != Some(&head.run_id) {
            self.waiting = 0;
        }
        if let Err(error) = self.watch(&head.run_id, is_elsewhere).await {
            self.update(Update::Failed(error.into()));
        }
    }

    fn is_news(&self, head: &RunHead) -> bool {
        let is_other = self.run.as_ref() != Some(&head.run_id);
        is_other || head.status != RunStatus::Suspended && self.is_suspended
    }
}

/// Returns true for the first record of a run, and for those of its questions.
fn is_of_question(record: &Record) -> bool {
    matches!(record.body, RecordBody::RunStarted(_) | RecordBody::ApprovalRequested { .. })
}
