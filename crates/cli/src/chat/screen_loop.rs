//! The loop of a conversation on a screen: applies keys and news, and draws frames.

mod drafts;
mod full;
mod interrupts;
mod notices;
mod updates;

use std::{io, sync::Arc, time::Duration};

use archon::{
    SystemClock,
    types::{Answer, ApprovalSettings, Clock, Collection, SessionId, SessionMode, Timestamp, WhenBusy},
};
use archon_terminal::{
    Action, AnswerScope, Composer, FullView, Input, Look, Notifier, QuestionKey, Status, Support, Work,
};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::Instant,
};

use super::{
    commands,
    conversation::{self, Opening},
    display::Display,
    ending::Ending,
    events::Request,
    files::{FileList, Files},
    history_file::HistoryFile,
    key_reader::KeyReader,
    keys::EarlyInput,
    outbox::{AtWork, Outbox},
    question_queue::QuestionQueue,
    questions::{self, Part, ScreenApprover},
    sources::{Happening, Signals, Sources},
    surroundings,
    transcript::Transcript,
    tty::{self, Tty},
    view::View,
    way_back::Earlier,
};
use crate::{
    app::{App, Consent},
    config::EditingKeys,
    exit::Exit,
    failure::Failure,
    output::{self, Capture},
    own_file,
    permissions::stored_rules,
    toolset,
};

/// The time that a question waits for its answer.
const WAIT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Runs the conversation until the person ends it, and returns its session.
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
    let settings = app.config.settings.chat.unwrap_or_default();
    let display = Display::new(tty, support, settings).map_err(cannot)?;
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
        has_keys: true,
        early,
        signals: Signals::new(),
    };
    tokio::spawn(conversation::converse(own, opening, orders, updates));
    let ended = talk.run(&mut sources).await;
    talk.close(matches!(ended, Ok(Exit::HungUp)));
    app.output.release();
    Ok((ended?, talk.session))
}

/// Opens the file for the log; `None` if it cannot be opened, because a conversation also works without it.
fn log_file(app: &App) -> Option<std::fs::File> {
    let folder = app.data_dir.join("logs");
    own_file::create_folder(&folder).ok()?;
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(folder.join("chat.log")).ok()
}

/// A conversation on the screen.
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
    /// True if no run has used the model yet.
    is_model_new: bool,
    /// The collection that memories are stored in and recalled from.
    memory: Option<Collection>,
    mode: SessionMode,
    /// The earlier message that the next message replaces; `None` if the next message goes to the end of the
    /// conversation.
    earlier: Option<Earlier>,
    /// The time at which Esc was pressed without a draft and without a run.
    escaped_at: Option<Timestamp>,
    notifier: Notifier,
    ending: Option<Ending>,
    /// True if the terminal is lost: nothing is drawn any more.
    is_lost: bool,
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
        let settings = &app.config.settings;
        // They were checked when they were read.
        let keymap = settings.keys.as_ref().and_then(|keys| keys.keymap().ok());
        let mut composer = Composer::new(keymap.unwrap_or_default());
        if settings.chat.unwrap_or_default().editing == Some(EditingKeys::Vi) {
            composer = composer.with_vi_keys();
        }
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
            notifier: Notifier::new(SystemClock.now()),
            ending: None,
            is_lost: false,
        }
    }

    /// Handles what happens until the conversation ends.
    async fn run(&mut self, sources: &mut Sources) -> Result<Exit, Failure> {
        loop {
            let happening = sources.next(self.due()).await;
            let is_urgent = !matches!(happening, Happening::Update(_) | Happening::Note(..));
            let mut is_usable = match self.handle(happening) {
                Ok(()) => true,
                Err(Stop::Failed(failure)) => return Err(failure),
                Err(Stop::Lost) => false,
            };
            if std::mem::take(&mut self.wants_editor) {
                is_usable &= self.edit_draft(sources).await.is_ok();
            }
            self.choose_question();
            if let Some(exit) = self.ending.as_ref().and_then(|ending| ending.exit(self.is_at_work())) {
                return Ok(exit);
            }
            is_usable &= self.show(is_urgent).is_ok();
            if !is_usable {
                // Nobody sees an error of the terminal's.
                sources.lose_keys().await;
                self.lose();
            }
        }
    }

    /// Returns the time of the next thing that is due; `None` if nothing is.
    fn due(&self) -> Option<Instant> {
        let end = self.ending.as_ref().map(|ending| ending.at);
        if self.is_lost {
            return end;
        }
        let (now, is_at_work) = (SystemClock.now(), self.outbox.at_work() != AtWork::Nobody);
        let beat = self.transcript.cells().next_beat(now).filter(|_| is_at_work);
        let beat = beat.map(|at| Instant::now() + at.since(now));
        self.display.due().into_iter().chain(end).chain(self.notice_due()).chain(beat).min()
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
        self.notifier.note_key(at);
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

    fn decide(&mut self, answer: Answer, scope: AnswerScope) {
        if scope == AnswerScope::Always {
            questions::remember(&answer, stored_rules(&self.app).as_ref(), &self.app.output);
        }
        if let Some(request) = self.questions.answer(answer) {
            self.outbox.request(request);
        }
    }

    /// Takes the next question if none is open, and shows what it is about.
    fn choose_question(&mut self) {
        let is_at_rest = self.outbox.at_work() == AtWork::Nobody;
        let Some(request) = self.questions.choose(self.transcript.cells(), is_at_rest) else { return };
        if let Some(plan) = questions::plan(request) {
            return self.transcript.markdown(plan);
        }
        let sources = self.transcript.sources_of(request);
        for part in questions::body(request, &sources, tty::size().width()) {
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
        let page = self.display.page(size).at(SystemClock.now());
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
            vi: self.composer.vi_mode(),
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
        let (live, caret, shows_question) = view.rows(&page, size.live_rows());
        self.display.draw(&committed, &live, caret, size)?;
        match shows_question {
            true => self.questions.mark_drawn(SystemClock.now()),
            // For instance if a draft has the only row of a low window.
            false => self.questions.mark_hidden(),
        }
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
