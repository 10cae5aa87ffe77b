//! The events that the screen of a conversation handles: keys, news of the conversation, notes of the program, signals, and the
//! time of the next frame.

use archon::types::Timestamp;
use archon_terminal::Input;
use crossterm::event::Event;
use tokio::{sync::mpsc::UnboundedReceiver, time::Instant};

use super::{
    events::Update,
    files::FileList,
    key_reader::KeyReader,
    keys::{self, EarlyInput},
    questions::Waiting,
};
use crate::output::Look;

/// An input, a signal or news that the conversation reacts to.
pub(crate) enum Happening {
    /// The person pressed a key or pasted, and the program read it at this time.
    Input(Input, Timestamp),
    /// The terminal may have another size.
    Resized,
    /// News of the conversation; `None` if it gives no more.
    Update(Option<Update>),
    /// A tool that works asks a question.
    Waiting(Box<Waiting>),
    /// A line that the program prints, in this style.
    Note(Look, String),
    /// The files of the workspace were listed.
    Files(FileList),
    /// A signal came.
    Signal(Signal),
    /// The time that was waited for has come.
    Due,
    /// The terminal gives no more keys.
    Lost,
}

/// The signals that a conversation handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "other systems have only interrupts"))]
pub(crate) enum Signal {
    /// An interrupt that did not come as a key.
    Interrupt,
    /// The request to end.
    Terminate,
    /// The terminal has gone.
    HangUp,
    /// The process goes on after it was stopped.
    Continue,
}

/// The sources of the events that the screen handles.
pub(crate) struct Sources {
    pub(crate) updates: UnboundedReceiver<Update>,
    pub(crate) waiting: UnboundedReceiver<Waiting>,
    pub(crate) notes: UnboundedReceiver<(Look, String)>,
    pub(crate) files: UnboundedReceiver<FileList>,
    pub(crate) keys: KeyReader,
    /// False if the terminal gives no more keys.
    pub(crate) has_keys: bool,
    pub(crate) early: EarlyInput,
    pub(crate) signals: Signals,
}

impl Sources {
    /// Waits for the next event, at most until `due`. Keys have priority, so that a fast answer does not delay them.
    pub(crate) async fn next(&mut self, due: Option<Instant>) -> Happening {
        let until = due.unwrap_or_else(Instant::now);
        loop {
            return tokio::select! {
                biased;
                event = self.keys.next(), if self.has_keys => match event {
                    Some((Event::Resize(..), _)) => Happening::Resized,
                    Some((event, at)) => match keys::input(self.early.correct(event)) {
                        Some(input) => Happening::Input(input, at),
                        None => continue,
                    },
                    None => Happening::Lost,
                },
                signal = self.signals.next() => Happening::Signal(signal),
                Some(waiting) = self.waiting.recv() => Happening::Waiting(Box::new(waiting)),
                Some((look, text)) = self.notes.recv() => Happening::Note(look, text),
                Some(files) = self.files.recv() => Happening::Files(files),
                () = tokio::time::sleep_until(until), if due.is_some() => Happening::Due,
                update = self.updates.recv() => Happening::Update(update),
            };
        }
    }

    /// Reads no more keys, because the terminal is lost: a reader would poll it again and again.
    pub(crate) async fn lose_keys(&mut self) {
        self.keys.stop().await;
        self.has_keys = false;
    }

    /// Waits for work during which another program has the terminal. No key is read meanwhile, and an interrupt is
    /// meant for that program.
    pub(crate) async fn rest_until<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.keys.stop().await;
        let done = work.await;
        self.keys = KeyReader::start();
        self.signals.forget_interrupts();
        done
    }
}

/// The signals. They are caught as soon as this value is created.
#[cfg(unix)]
pub(crate) struct Signals(Vec<(tokio::signal::unix::Signal, Signal)>);

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let continued = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        let kinds = [
            (SignalKind::interrupt(), Signal::Interrupt),
            (SignalKind::terminate(), Signal::Terminate),
            (SignalKind::hangup(), Signal::HangUp),
            (continued, Signal::Continue),
        ];
        Self(kinds.into_iter().filter_map(|(kind, meaning)| Some((signal(kind).ok()?, meaning))).collect())
    }

    /// Forgets the interrupts that came until now.
    fn forget_interrupts(&mut self) {
        use tokio::signal::unix::{SignalKind, signal};
        for (source, _) in self.0.iter_mut().filter(|(_, meaning)| *meaning == Signal::Interrupt) {
            if let Ok(new) = signal(SignalKind::interrupt()) {
                *source = new;
            }
        }
    }

    async fn next(&mut self) -> Signal {
        std::future::poll_fn(|task| {
            for (signal, meaning) in &mut self.0 {
                if let std::task::Poll::Ready(Some(())) = signal.poll_recv(task) {
                    return std::task::Poll::Ready(*meaning);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

/// The signals on systems other than Unix, where a closed terminal ends the process. Ctrl+C comes as a key; while
/// another program has the terminal, it comes as an interrupt, which is caught so that it does not end this process.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn new() -> Self {
        Self
    }

    fn forget_interrupts(&mut self) {}

    async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}
