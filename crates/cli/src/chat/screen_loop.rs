//! The loop of a conversation on a screen: applies keys and news, and draws frames.

mod drafts;
mod full;

use std::{io, sync::Arc, time::Duration};

use archon::{
    SystemClock,
    types::{
        Answer, ApprovalSettings, Clock, Collection, Event, SessionId, SessionMode, Timestamp, WhenBusy,
    },
};
use archon_terminal::{
    Action, Composer, Draft, DraftKind, FullView, Input, Interrupt, Look, QuestionKey, Scope, Status,
    Support, Work,
};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::Instant,
};

use super::{
    commands,
    conversation::{self, Opening},
    display::Display,
    editor::Editing,
    ending::Ending,
    events::{Request, Update},
    files::{FileList, Files},
    history_file::HistoryFile,
    history_of_session::{History, message_of_person},
    key_reader::KeyReader,
    keys::EarlyInput,
    outbox::{AtWork, Outbox},
    question_queue::QuestionQueue,
    questions::{self, Part, ScreenApprover},
    sources::{Happening, Signal, Signals, Sources},
    surroundings,
    transcript::Transcript,
    tty::{self, Tty},
    view::View,
    way_back::Earlier,
};
use crate::{
    app::{App, Consent},
    exit::Exit,
    failure::Failure,
    output::{self, Capture},
    own_file,
    permissions::stored_rules,
    text::visible_path,
    toolset,
};

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
    let (requests, orders) = unbounded_channel();
    let (waiting, questions) = unbounded_channel();
    let (notes, texts) = unbounded_channel();
    let (lists, files) = unbounded_channel();
    let early = EarlyInput::new(tty.early_bytes());
    let display = Display::new(tty, support).map_err(cannot)?;
    let outbox = Outbox::new(requests);
    let consent = Consent {
        approver: Arc::new(ScreenApprover::new(waiting)),
        settings: ApprovalSettings::default().with_timeout(WAIT),
    };
    let own = App { ask_later: true, consent: Some(consent), ..app.clone() };
    let mut talk = Talk::new(&own, display, outbox, opening.memory.clone(), lists);
    // The person can type before anything else is ready.
    talk.draw().map_err(cannot)?;
    talk.open_history();
    let log = log_file(app);
    app.output.capture(Capture {
        notes: Box::new(move |look, text| drop(notes.send((look, text.to_owned())))),
        log,
    });
    let mut sources = Sources {
        updates: news,
        waiting: questions,
        notes: texts,
        files,
        keys: KeyReader::start(),
        early,
        signals: Signals::new(),
    };
    tokio::spawn(conversation::converse(own, opening, orders, updates));
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

/// The conversation as the person has it.
struct Talk {
    app: App,
    display: Display,
    transcript: Transcript,
    /// The full view; `None` while the conversation is on the screen.
    full: Option<FullView>,
    composer: Composer,
    /// The file of the drafts that were sent; `None` if it is not read yet or cannot be written.
    history: Option<HistoryFile>,
    files: Files,
    /// True if the person wants the draft in the editor.
    wants_editor: bool,
    questions: QuestionQueue,
    outbox: Outbox,
    session: Option<SessionId>,
    /// The model of the next message; empty until the agent is built.
    model: String,
    branch: Option<String>,
    is_sandboxed: bool,
    /// True if no run has had the model yet.
    is_model_new: bool,
    /// The collection that memories are stored in and recalled from.
    memory: Option<Collection>,
    mode: SessionMode,
    /// The message in whose place the next one is sent; `None` for the end of the conversation.
    earlier: Option<Earlier>,
    /// The time at which Esc was pressed without a draft and without a run.
    escaped_at: Option<Timestamp>,
    ending: Option<Ending>,
}

/// The reason for which the loop stops before the person ends the conversation.
enum Stop {
    /// The conversation cannot begin.
    Failed(Failure),
    /// The terminal has gone.
    Lost,
}

impl Talk {
    fn new(
        app: &App,
        display: Display,
        outbox: Outbox,
        memory: Option<Collection>,
        lists: UnboundedSender<FileList>,
    ) -> Self {
        let folder = toolset::folder(app);
        // The settings were checked when they were read.
        let keymap = app.config.settings.keys.as_ref().and_then(|keys| keys.keymap().ok());
        let mut composer = Composer::new(keymap.unwrap_or_default());
        composer.set_commands(commands::candidates(app));
        Self {
            app: app.clone(),
            display,
            transcript: Transcript::default(),
            full: None,
            composer,
            history: None,
            files: Files::new(folder.clone(), lists),
            wants_editor: false,
            questions: QuestionQueue::default(),
            outbox,
            session: None,
            model: String::new(),
            branch: folder.and_then(|folder| surroundings::branch(&folder)),
            is_sandboxed: surroundings::is_sandboxed(),
            is_model_new: true,
            memory,
            mode: SessionMode::default(),
            earlier: None,
            escaped_at: None,
            ending: None,
        }
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
                    self.outbox.request(Request::Cancel);
                    return Ok(Exit::HungUp);
                }
            }
            if std::mem::take(&mut self.wants_editor) && self.edit_draft(sources).await.is_err() {
                self.outbox.request(Request::Cancel);
                return Ok(Exit::HungUp);
            }
            self.choose_question();
            if let Some(exit) = self.ending.as_ref().and_then(|ending| ending.exit(self.is_at_work())) {
                return Ok(exit);
            }
            if (is_urgent || self.display.is_due()) && self.draw().is_err() {
                self.outbox.request(Request::Cancel);
                return Ok(Exit::HungUp);
            }
        }
    }

    /// Returns the time of the next thing that is due; `None` if nothing is.
    fn due(&self) -> Option<Instant> {
        let end = self.ending.as_ref().map(|ending| ending.at);
        self.display.due().into_iter().chain(end).min()
    }

    fn handle(&mut self, happening: Happening) -> Result<(), Stop> {
        match happening {
            Happening::Input(input, at) => self.input(input, at)?,
            Happening::Resized => {}
            Happening::Update(Some(update)) => self.update(update)?,
            Happening::Update(None) => {
                let advice = "continue the conversation: archon chat --continue";
                let failure = Failure::failed("the conversation ended by a fault of this program", advice);
                return Err(Stop::Failed(failure));
            }
            Happening::Waiting(waiting) => self.questions.add(*waiting),
            Happening::Note(look, text) => self.transcript.note(look_of(look), &text),
            Happening::Files(files) => {
                self.files.note_list();
                self.composer.set_files(files);
            }
            Happening::Signal(signal) => self.signal(signal)?,
            Happening::Due => self.display.rest_cursor(),
            Happening::Lost => return Err(Stop::Lost),
        }
        Ok(())
    }

    fn input(&mut self, input: Input, at: Timestamp) -> Result<(), Stop> {
        if self.input_to_full(&input)? {
            return Ok(());
        }
        self.display.note_key();
        let has_draft = !self.composer.is_empty() || self.composer.is_searching();
        match self.questions.apply(&input, at, has_draft) {
            Some(QuestionKey::Decided(answer, scope)) => self.decide(answer, scope),
            None | Some(QuestionKey::NotForMe) => {
                let action = self.composer.apply(input, at, self.work());
                if self.composer.wants_files() {
                    self.files.list();
                }
                return self.act(action, at);
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn act(&mut self, action: Action, at: Timestamp) -> Result<(), Stop> {
        match action {
            Action::Repaint => self.display.redraw(),
            Action::Send(draft) => self.send(draft, WhenBusy::Queue),
            Action::SendNow(draft) => self.send(draft, WhenBusy::Steer),
            Action::NextMode => self.outbox.request(Request::Mode(None)),
            Action::Escape => self.escape(at),
            Action::Interrupt(meaning) => self.interrupt(meaning),
            Action::Suspend => self.display.suspend().map_err(|_| Stop::Lost)?,
            Action::OpenEditor => self.wants_editor = true,
            Action::Leave => self.leave(Exit::Finished),
            _ => {}
        }
        Ok(())
    }

    /// Reads the drafts of earlier conversations.
    fn open_history(&mut self) {
        let (file, drafts) = HistoryFile::open(&self.app.data_dir);
        drafts.into_iter().for_each(|draft| self.composer.remember(draft));
        self.history = Some(file);
    }

    /// Keeps a draft for later conversations. If that fails, a person needs to know it once.
    fn keep(&mut self, draft: &Draft) {
        if let Some(Err(e)) = self.history.as_mut().map(|file| file.append(draft)) {
            self.history = None;
            let folder = visible_path(&self.app.data_dir);
            let note = format!(
                "this draft and those that follow are not kept for later: cannot write history.jsonl in {folder}: {e}. Make the folder writable."
            );
            self.transcript.note(Look::Warning, &note);
        }
    }

    /// Opens the draft in the person's editor, and waits until that has ended.
    ///
    /// # Errors
    /// The terminal is lost.
    async fn edit_draft(&mut self, sources: &mut Sources) -> io::Result<()> {
        let before = self.composer.draft();
        self.display.give_back()?;
        let editing = async { Editing::open(&self.app, &before.text)?.text().await };
        let edited = sources.rest_until(editing).await;
        self.display.take_again()?;
        match edited {
            Ok(text) if text == before.text => {}
            // A pasted sign stays a part of a message.
            Ok(text)
                if before.kind == DraftKind::Message && text.chars().next() == before.text.chars().next() =>
            {
                let mut draft = Draft::message(text);
                if before.pasted.is_empty() {
                    draft.pasted.clear();
                }
                self.composer.replace(draft);
            }
            Ok(text) => self.composer.replace(Draft::typed(text)),
            Err(failure) => self.transcript.note_failure(&failure),
        }
        Ok(())
    }

    fn interrupt(&mut self, meaning: Interrupt) {
        match meaning {
            Interrupt::CancelRun => self.cancel(),
            Interrupt::ClearDraft => self.stay(),
            Interrupt::Leave => self.leave(Exit::Finished),
            Interrupt::LeaveAtOnce => self.leave_at_once(),
        }
    }

    /// Stops the run. A question that is open is refused, so that the model knows why it was stopped.
    fn cancel(&mut self) {
        let request = self.questions.refuse();
        self.outbox.request(request);
    }

    fn decide(&mut self, answer: Answer, scope: Scope) {
        if scope == Scope::Always {
            questions::remember(&answer, stored_rules(&self.app).as_ref(), &self.app.output);
        }
        if let Some(request) = self.questions.answer(answer) {
            self.outbox.request(request);
        }
    }

    /// Ends the conversation, as soon as a run that works here has stopped.
    fn leave(&mut self, exit: Exit) {
        let is_at_work = self.is_at_work();
        if is_at_work {
            self.cancel();
        }
        self.ending = Some(Ending::new(exit, is_at_work));
    }

    fn is_at_work(&self) -> bool {
        self.outbox.is_at_work(self.questions.current().is_some())
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

    fn signal(&mut self, signal: Signal) -> Result<(), Stop> {
        match signal {
            Signal::Interrupt => {
                let meaning = self.composer.interrupt(SystemClock.now(), self.work());
                self.interrupt(meaning);
            }
            Signal::Terminate => self.leave(Exit::Interrupted),
            Signal::HangUp => self.leave(Exit::HungUp),
            Signal::Continue => self.display.take_again().map_err(|_| Stop::Lost)?,
        }
        Ok(())
    }

    fn update(&mut self, update: Update) -> Result<(), Stop> {
        match update {
            Update::History(history) => self.add_history(*history),
            Update::Ready { model } => {
                self.transcript.row(surroundings::title(&self.app, &model));
                (self.model, self.is_model_new) = (model, true);
            }
            Update::Anew => self.begin_anew(),
            Update::Earlier(message) => self.take_earlier(message),
            Update::Session(session) => self.session = Some(session),
            Update::Mode(mode) => self.mode = mode,
            Update::Working { run, is_elsewhere } => {
                self.questions.go_on();
                self.is_model_new = false;
                self.outbox.begin(run, is_elsewhere);
            }
            Update::Event(event) => self.event(&event),
            Update::Rest(failure) => self.rest(failure),
            Update::NotSent(text, earlier, failure) => {
                self.outbox.forget(&text);
                if self.composer.is_empty() {
                    self.earlier = earlier;
                    self.composer.replace(Draft::message(text));
                }
                self.transcript.note_failure(&failure);
            }
            Update::NotRun(line, failure) => {
                self.outbox.forget(&line);
                if self.composer.is_empty() {
                    self.composer.replace(Draft::typed(format!("!{line}")));
                }
                self.transcript.note_failure(&failure);
            }
            Update::Failed(failure) => {
                self.questions.ask_again();
                self.transcript.note_failure(&failure);
            }
            Update::Over(failure) => return Err(Stop::Failed(failure)),
        }
        Ok(())
    }

    /// Forgets the conversation, for another one. What is printed stays.
    fn begin_anew(&mut self) {
        // What is not printed yet would be lost.
        let _ = self.leave_full();
        let _ = self.draw();
        self.transcript = Transcript::default();
        self.questions = QuestionQueue::default();
        self.outbox.clear();
        (self.session, self.earlier) = (None, None);
    }

    fn add_history(&mut self, history: History) {
        for text in history.records.iter().filter_map(|(_, record)| message_of_person(record)) {
            self.composer.remember(Draft::message(text));
        }
        self.transcript.add_history(&history, self.session.as_ref());
        if let Some(newest) = history.newest {
            self.outbox.set_run(newest.run_id);
        }
    }

    fn event(&mut self, event: &Event) {
        if let Event::Record { run, record } = event
            && Some(run) == self.outbox.run()
            && let Some(text) = message_of_person(record)
        {
            self.outbox.forget(&text);
        }
        self.transcript.apply(event);
    }

    fn rest(&mut self, failure: Option<Failure>) {
        self.outbox.rest();
        let Some(failure) = failure else { return };
        if let Some(run) = self.outbox.run() {
            self.transcript.stop(run);
        }
        self.transcript.note_failure(&failure);
    }

    /// Takes the next question if none is open, and shows what it is about.
    fn choose_question(&mut self) {
        let is_at_rest = self.outbox.at_work() == AtWork::Nobody;
        let Some(request) = self.questions.choose(self.transcript.cells(), is_at_rest) else { return };
        if let Some(plan) = questions::plan(request) {
            return self.transcript.markdown(plan);
        }
        for part in questions::body(request, tty::size().width()) {
            match part {
                Part::Line(look, line) => self.transcript.note(look_of(look), &line),
                Part::Difference(diff) => self.transcript.difference(&diff),
            }
        }
    }

    /// Returns what the conversation does now.
    fn work(&self) -> Work {
        let work = match self.questions.current() {
            Some(_) => Work::Asking,
            None => self.outbox.work(self.transcript.cells()),
        };
        work.with_draft(!self.composer.is_empty())
    }

    /// Draws a frame.
    fn draw(&mut self) -> io::Result<()> {
        if self.draw_full()? {
            return Ok(());
        }
        let size = tty::size();
        let page = self.display.page(size);
        let committed = self.transcript.commit(&page);
        let cells = self.transcript.cells();
        let mut without_model = None;
        if self.is_model_new {
            // The meter still has the model of the last run.
            without_model.insert(cells.meter().clone()).model.clear();
        }
        let status = Status {
            meter: without_model.as_ref().unwrap_or_else(|| cells.meter()),
            model: &self.model,
            mode: self.mode,
            work: self.work(),
            branch: self.branch.as_deref(),
            is_sandboxed: self.is_sandboxed,
            questions: cells.questions().count(),
        };
        let status = status.row(&page);
        let view = View {
            cells,
            printed: self.transcript.printed(),
            composer: &mut self.composer,
            question: self.questions.current(),
            unread: self.outbox.unread(),
            status,
        };
        let (live, caret) = view.rows(&page, size.live_rows());
        self.display.draw(&committed, &live, caret, size)?;
        self.questions.mark_drawn(SystemClock.now());
        Ok(())
    }

    /// Prints what is not printed yet, and gives the terminal back.
    fn close(&mut self, is_lost: bool) {
        if !is_lost {
            let _ = self.leave_full();
            let _ = self.draw();
        }
        self.display.close();
    }
}

fn look_of(look: output::Look) -> Look {
    match look {
        output::Look::Plain => Look::Plain,
        output::Look::Dim => Look::Dim,
        output::Look::Warning => Look::Warning,
        output::Look::Added => Look::Added,
        output::Look::Removed => Look::Removed,
    }
}
