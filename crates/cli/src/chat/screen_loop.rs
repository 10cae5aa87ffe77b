//! The loop of a conversation on a screen: applies keys and news, and draws frames.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use archon::{
    SystemClock,
    types::{Answer, ApprovalSettings, Clock, Decision, Event, RunId, RunStatus, SessionId, Timestamp},
};
use archon_terminal::{
    Action, Cells, Composer, Draft, DraftKind, Frame, Inline, Input, Interrupt, Keymap, Look, Note, Page,
    Printed, Question, QuestionKey, Row, Scope, Screen, Status, Support, Work,
};
use crossterm::event::EventStream;
use tokio::{
    sync::{
        mpsc::{UnboundedSender, unbounded_channel},
        oneshot,
    },
    time::Instant,
};

use super::{
    conversation::{self, Opening},
    events::{Request, Update},
    history_of_session::{History, message_of_person},
    questions::{self, ScreenApprover, Waiting},
    sources::{Happening, Signal, Signals, Sources},
    surroundings,
    tty::{self, Tty},
    view::View,
};
use crate::{
    app::{App, Consent},
    exit::Exit,
    failure::Failure,
    output::{self, Capture},
    own_file,
    permissions::stored_rules,
    toolset,
};

/// The least time between two frames, unless a key was pressed.
const FRAME: Duration = Duration::from_millis(33);
/// The time after a key in which the terminal's cursor stands at the draft's caret.
const TYPING: Duration = Duration::from_millis(1_500);
/// The maximum time that a run has to end when the program ends.
const PATIENCE: Duration = Duration::from_secs(2);
/// The number of cells of an earlier part of the conversation that are shown.
const SHOWN: usize = 200;
/// The time that a question waits for its answer.
const WAIT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Has the conversation until the person ends it, and returns its session.
///
/// # Errors
/// The terminal cannot be used, or the conversation cannot begin.
pub(crate) async fn converse(
    app: &App,
    opening: Opening,
    support: Support,
) -> Result<(Exit, Option<SessionId>), Failure> {
    let cannot = |e: io::Error| Failure::failed(format!("cannot use the terminal: {e}"), "use --plain");
    let tty = Tty::open().map_err(cannot)?;
    let (updates, news) = unbounded_channel();
    let (requests, asked) = unbounded_channel();
    let (waiting, questions) = unbounded_channel();
    let (notes, noted) = unbounded_channel();
    let mut talk = Talk::new(app, tty, support, requests).map_err(cannot)?;
    // The person can type before anything else is ready.
    talk.draw().map_err(cannot)?;
    let log = log_file(app);
    app.output.capture(Capture {
        notes: Box::new(move |look, text| drop(notes.send((look, text.to_owned())))),
        log,
    });
    let mut sources = Sources {
        updates: news,
        waiting: questions,
        notes: noted,
        keys: EventStream::new(),
        signals: Signals::new(),
    };
    let consent = Consent {
        approver: Arc::new(ScreenApprover::new(waiting)),
        settings: ApprovalSettings::default().with_timeout(WAIT),
    };
    let own = App { ask_later: true, consent: Some(consent), ..app.clone() };
    tokio::spawn(conversation::converse(own, opening, asked, updates));
    let ended = talk.run(&mut sources).await;
    talk.close(matches!(ended, Ok(Exit::HungUp)));
    app.output.release();
    Ok((ended?, talk.session))
}

/// Opens the file for the log, without which a conversation works as well.
fn log_file(app: &App) -> Option<std::fs::File> {
    let folder = app.data_dir.join("logs");
    own_file::create_folder(&folder).ok()?;
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(folder.join("chat.log")).ok()
}

/// What works now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtWork {
    /// No run.
    Nobody,
    /// A run of this process.
    Here,
    /// A run of another process.
    Elsewhere,
}

/// The question on the screen.
struct Shown {
    question: Question,
    /// The tool that waits for the answer; `None` for a question in the log of a run.
    tool: Option<oneshot::Sender<Decision>>,
}

/// The end of the conversation.
struct Ending {
    exit: Exit,
    /// The time at which it ends although a run is at work.
    at: Instant,
}

struct Talk {
    app: App,
    tty: Tty,
    screen: Inline<Box<dyn Write>>,
    support: Support,
    cells: Cells,
    printed: Printed,
    /// Rows of the program that are printed before the next rows of cells.
    rows: Vec<(Look, String)>,
    composer: Composer,
    question: Option<Shown>,
    waiting: VecDeque<Waiting>,
    /// The ids of the logged questions that were answered here.
    answered: Vec<String>,
    /// True from an answer until the run goes on. Until then its other questions are not shown, because it may ask
    /// them again.
    is_answering: bool,
    /// The messages that no run has read yet.
    unread: Vec<String>,
    requests: UnboundedSender<Request>,
    at_work: AtWork,
    run: Option<RunId>,
    session: Option<SessionId>,
    /// The model of the next message; empty until the agent is built.
    model: String,
    branch: Option<String>,
    is_sandboxed: bool,
    drawn_at: Instant,
    typed_at: Option<Instant>,
    is_dirty: bool,
    ending: Option<Ending>,
}

impl Talk {
    fn new(app: &App, tty: Tty, support: Support, requests: UnboundedSender<Request>) -> io::Result<Self> {
        let now = Instant::now();
        Ok(Self {
            app: app.clone(),
            tty,
            screen: Inline::new(tty::output()?, support),
            support,
            cells: Cells::default(),
            printed: Printed::default(),
            rows: Vec::new(),
            composer: Composer::new(Keymap::default()),
            question: None,
            waiting: VecDeque::new(),
            answered: Vec::new(),
            is_answering: false,
            unread: Vec::new(),
            requests,
            at_work: AtWork::Nobody,
            run: None,
            session: None,
            model: String::new(),
            branch: toolset::folder(app).and_then(|folder| surroundings::branch(&folder)),
            is_sandboxed: surroundings::is_sandboxed(),
            drawn_at: now,
            typed_at: None,
            is_dirty: false,
            ending: None,
        })
    }

    /// Handles what happens until the conversation ends.
    async fn run(&mut self, sources: &mut Sources) -> Result<Exit, Failure> {
        loop {
            let happening = sources.next(self.due()).await;
            let is_urgent = !matches!(happening, Happening::Update(_) | Happening::Note(..));
            match self.handle(happening) {
                Ok(()) => {}
                Err(Stop::Failed(failure)) => return Err(failure),
                // Nobody sees an error of the terminal's.
                Err(Stop::Lost) => {
                    let _ = self.requests.send(Request::Cancel);
                    return Ok(Exit::HungUp);
                }
            }
            self.choose_question();
            if let Some(exit) = self.end() {
                return Ok(exit);
            }
            let is_time = self.drawn_at.elapsed() >= FRAME;
            match is_urgent || is_time {
                true if self.draw().is_err() => {
                    let _ = self.requests.send(Request::Cancel);
                    return Ok(Exit::HungUp);
                }
                true => {}
                false => self.is_dirty = true,
            }
        }
    }

    /// Returns the time of the next thing that is due; `None` if nothing is.
    fn due(&self) -> Option<Instant> {
        let frame = self.is_dirty.then(|| self.drawn_at + FRAME);
        let cursor = self.typed_at.map(|typed| typed + TYPING);
        let end = self.ending.as_ref().map(|ending| ending.at);
        frame.into_iter().chain(cursor).chain(end).min()
    }

    fn handle(&mut self, happening: Happening) -> Result<(), Stop> {
        match happening {
            Happening::Input(input, at) => self.input(input, at)?,
            Happening::Resized => {}
            Happening::Update(update) => self.update(update)?,
            Happening::Waiting(waiting) => self.waiting.push_back(*waiting),
            Happening::Note(look, text) => self.note(look_of(look), &text),
            Happening::Signal(signal) => self.signal(signal)?,
            Happening::Due => {
                self.typed_at.take_if(|typed| typed.elapsed() >= TYPING);
            }
            Happening::Lost => return Err(Stop::Lost),
        }
        Ok(())
    }

    fn input(&mut self, input: Input, at: Timestamp) -> Result<(), Stop> {
        self.typed_at = Some(Instant::now());
        let taken = self.question.as_mut().map(|shown| shown.question.apply(&input, at));
        match taken {
            Some(QuestionKey::Decided(answer, scope)) => self.decide(answer, scope),
            None | Some(QuestionKey::NotForMe) => {
                let action = self.composer.apply(input, at, self.work());
                return self.act(action);
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn act(&mut self, action: Action) -> Result<(), Stop> {
        match action {
            Action::Repaint => self.screen.redraw(),
            Action::Send(draft) => self.send(draft),
            Action::Interrupt(meaning) => self.interrupt(meaning),
            Action::Suspend => self.suspend().map_err(|_| Stop::Lost)?,
            Action::Leave => self.leave(Exit::Finished),
            _ => {}
        }
        Ok(())
    }

    /// Sends a message. Of commands there is only one that ends the conversation.
    fn send(&mut self, draft: Draft) {
        let unknown = match draft.kind {
            DraftKind::Command if matches!(draft.body(), "exit" | "quit") => {
                return self.leave(Exit::Finished);
            }
            DraftKind::Command => "there is no such command; /exit ends the conversation",
            DraftKind::Shell => "a line with ! is not run here; ask for the command in a message",
            DraftKind::Memory => "a line with # is not stored here; write it as a message",
            _ => {
                self.unread.push(draft.text.clone());
                let _ = self.requests.send(Request::Send(draft.text));
                return;
            }
        };
        self.note(Look::Warning, &format!("{unknown}. With a space before it, the line is a message."));
        self.composer.replace(draft);
    }

    fn interrupt(&mut self, meaning: Interrupt) {
        match meaning {
            Interrupt::CancelRun => self.cancel(),
            Interrupt::ClearDraft => {}
            Interrupt::Leave => self.leave(Exit::Finished),
            Interrupt::LeaveAtOnce => self.leave_at_once(),
        }
    }

    /// Stops the run. A question that is open is refused, so that the model knows why it was stopped.
    fn cancel(&mut self) {
        let request = match self.question.take() {
            Some(Shown { question, tool: None }) => Request::Refuse(self.note_answered(&question)),
            Some(Shown { tool: Some(tool), .. }) => {
                let _ = tool.send(Decision::Now(Answer::Cancel { reason: String::new() }));
                Request::Cancel
            }
            None => Request::Cancel,
        };
        let _ = self.requests.send(request);
    }

    fn decide(&mut self, answer: Answer, scope: Scope) {
        let Some(Shown { question, tool }) = self.question.take() else { return };
        if scope == Scope::Always {
            questions::remember(&answer, stored_rules(&self.app).as_ref(), &self.app.output);
        }
        match tool {
            Some(tool) => drop(tool.send(Decision::Now(answer))),
            None => {
                let id = self.note_answered(&question);
                let _ = self.requests.send(Request::Answer(id, answer));
            }
        }
    }

    /// Notes that a question was answered here, and returns its id.
    fn note_answered(&mut self, question: &Question) -> String {
        let id = question.request().request_id.clone();
        self.answered.push(id.clone());
        self.is_answering = true;
        id
    }

    /// Ends the conversation, as soon as a run that works here has stopped.
    fn leave(&mut self, exit: Exit) {
        let is_at_work = self.is_at_work();
        let at = Instant::now() + if is_at_work { PATIENCE } else { Duration::ZERO };
        if is_at_work {
            self.cancel();
        }
        self.ending = Some(Ending { exit, at });
    }

    /// Returns true if a run works here, or begins to work. A run with an open question rests, and its messages wait in
    /// the journal.
    fn is_at_work(&self) -> bool {
        let is_on_its_way = !self.unread.is_empty() && self.question.is_none();
        self.at_work == AtWork::Here || self.at_work == AtWork::Nobody && is_on_its_way
    }

    /// Returns the exit code if the conversation ends now.
    fn end(&self) -> Option<Exit> {
        let ending = self.ending.as_ref()?;
        (!self.is_at_work() || ending.at <= Instant::now()).then_some(ending.exit)
    }

    fn leave_at_once(&mut self) {
        self.close(false);
        self.app.output.release();
        self.app.output.note(output::Look::Plain, "Force exiting due to rapid interrupts!");
        if let Some(session) = &self.session {
            self.app.note(format!(
                "the conversation is kept: {}",
                surroundings::continue_line(&self.app, session)
            ));
        }
        std::process::exit(Exit::Failed as i32);
    }

    /// Gives the terminal back to the shell until the shell continues this process.
    fn suspend(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        {
            self.screen.leave()?;
            self.tty.give_back();
            tty::suspend();
            self.tty.take()?;
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Stop> {
        match signal {
            Signal::Interrupt => {
                let meaning = self.composer.interrupt(SystemClock.now(), self.work());
                self.interrupt(meaning);
            }
            Signal::Terminate => self.leave(Exit::Interrupted),
            Signal::HangUp => self.leave(Exit::HungUp),
            Signal::Continue => {
                // The shell may have set other modes.
                self.tty.give_back();
                self.tty.take().map_err(|_| Stop::Lost)?;
                self.screen.redraw();
            }
        }
        Ok(())
    }

    fn update(&mut self, update: Update) -> Result<(), Stop> {
        match update {
            Update::History(history) => self.show_history(*history),
            Update::Ready { model } => {
                self.rows.push((Look::Dim, surroundings::title(&self.app, &model)));
                self.model = model;
            }
            Update::Session(session) => self.session = Some(session),
            Update::Working { run, is_elsewhere } => {
                (self.run, self.is_answering) = (Some(run), false);
                self.at_work = if is_elsewhere { AtWork::Elsewhere } else { AtWork::Here };
            }
            Update::Event(event) => self.event(&event),
            Update::Rest(failure) => self.rest(failure),
            Update::NotSent(text, failure) => {
                self.forget_unread(&text);
                if self.composer.is_empty() {
                    self.composer.replace(Draft::message(text));
                }
                self.note_failure(&failure);
            }
            Update::Failed(failure) => {
                // The question is asked again.
                self.answered.clear();
                self.is_answering = false;
                self.note_failure(&failure);
            }
            Update::Over(failure) => return Err(Stop::Failed(failure)),
        }
        Ok(())
    }

    fn show_history(&mut self, history: History) {
        for (run, record) in &history.records {
            self.cells.apply(run, record);
            if let Some(text) = message_of_person(record) {
                self.composer.remember(Draft::message(text));
            }
        }
        let left_out = self.printed.leave_out(&self.cells, SHOWN);
        if let Some(session) = self.session.as_ref().filter(|_| left_out > 0 || history.earlier > 0) {
            let all = format!("archon sessions show {session}");
            self.rows.push((Look::Dim, format!("earlier parts are not shown: {all}")));
        }
        let Some(newest) = history.newest else { return };
        if newest.status == RunStatus::Interrupted {
            self.cells.stop(&newest.run_id);
            self.note(Look::Warning, "the last run was cut off; it goes on with your next message");
        }
        self.run = Some(newest.run_id);
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Record { run, record } => {
                if Some(run) == self.run.as_ref()
                    && let Some(text) = message_of_person(record)
                {
                    self.forget_unread(&text);
                }
                self.cells.apply(run, record);
            }
            Event::Delta(delta) => self.cells.stream(delta),
            _ => {}
        }
    }

    fn rest(&mut self, failure: Option<Failure>) {
        self.at_work = AtWork::Nobody;
        let Some(failure) = failure else { return };
        if let Some(run) = &self.run {
            self.cells.stop(run);
        }
        self.note_failure(&failure);
    }

    fn forget_unread(&mut self, text: &str) {
        if let Some(index) = self.unread.iter().position(|unread| unread.trim() == text.trim()) {
            self.unread.remove(index);
        }
    }

    fn note(&mut self, look: Look, text: &str) {
        self.cells.note(Note::new(look, text.trim_end()));
    }

    fn note_failure(&mut self, failure: &Failure) {
        self.note(Look::Error, &format!("error: {}", failure.what()));
        self.note(
            Look::Plain,
            &failure.advice().iter().map(|line| format!("  {line}\n")).collect::<String>(),
        );
    }

    /// Keeps the question on the screen while it is open, and otherwise takes the next one.
    fn choose_question(&mut self) {
        let is_open = match &self.question {
            Some(Shown { tool: Some(tool), .. }) => !tool.is_closed(),
            Some(Shown { question, tool: None }) => {
                let id = &question.request().request_id;
                self.at_work == AtWork::Nobody && self.cells.questions().any(|open| open.request_id == *id)
            }
            None => false,
        };
        if is_open {
            return;
        }
        self.question = self.next_question();
        if let Some(shown) = &self.question {
            let lines = questions::body(shown.question.request(), tty::size().width());
            lines.into_iter().for_each(|(look, line)| self.note(look_of(look), &line));
        }
    }

    fn next_question(&mut self) -> Option<Shown> {
        while let Some(Waiting { request, reply }) = self.waiting.pop_front() {
            if !reply.is_closed() {
                return Some(Shown { question: Question::new(request), tool: Some(reply) });
            }
        }
        let is_answered = |id: &String| self.answered.contains(id);
        let mut open = self.cells.questions().filter(|open| !is_answered(&open.request_id));
        let open = open.next().filter(|_| self.at_work == AtWork::Nobody && !self.is_answering)?;
        Some(Shown { question: Question::new(open.clone()), tool: None })
    }

    /// Returns what the conversation does now.
    fn work(&self) -> Work {
        let work = match self.at_work {
            _ if self.question.is_some() => Work::Asking,
            AtWork::Elsewhere => Work::Elsewhere,
            AtWork::Here => match self.cells.work() {
                Work::Idle => Work::Model,
                work => work,
            },
            // A message is on its way.
            AtWork::Nobody if !self.unread.is_empty() => Work::Model,
            AtWork::Nobody => Work::Idle,
        };
        work.with_draft(!self.composer.is_empty())
    }

    /// Draws a frame.
    fn draw(&mut self) -> io::Result<()> {
        let size = tty::size();
        let page = Page::new(size.width(), self.support.theme());
        let mut committed: Vec<Row> =
            self.rows.drain(..).map(|(look, text)| Row::of(text, look, &page).cut(page.width)).collect();
        committed.extend(self.printed.take(&self.cells, &page));
        let status = Status {
            meter: self.cells.meter(),
            model: &self.model,
            work: self.work(),
            branch: self.branch.as_deref(),
            is_sandboxed: self.is_sandboxed,
            questions: self.cells.questions().count(),
        };
        let status = status.row(&page);
        let view = View {
            cells: &self.cells,
            printed: &self.printed,
            composer: &mut self.composer,
            question: self.question.as_ref().map(|shown| &shown.question),
            unread: &self.unread,
            status,
        };
        let (live, caret) = view.rows(&page, size.live_rows());
        let frame = Frame {
            committed: &committed,
            live: &live,
            caret: Some(caret),
            caret_is_real: self.typed_at.is_some_and(|typed| typed.elapsed() < TYPING),
            size,
        };
        self.screen.frame(&frame)?;
        if let Some(shown) = &mut self.question {
            shown.question.shown(SystemClock.now());
        }
        (self.drawn_at, self.is_dirty) = (Instant::now(), false);
        Ok(())
    }

    /// Prints what is not printed yet, and gives the terminal back.
    fn close(&mut self, is_lost: bool) {
        if !is_lost {
            let _ = self.draw();
        }
        let _ = self.screen.leave();
        self.tty.give_back();
    }
}

/// The reason for which the loop stops before the person ends the conversation.
enum Stop {
    /// The conversation cannot begin.
    Failed(Failure),
    /// The terminal has gone.
    Lost,
}

fn look_of(look: output::Look) -> Look {
    match look {
        output::Look::Plain => Look::Plain,
        output::Look::Dim => Look::Dim,
        output::Look::Warning => Look::Warning,
    }
}
