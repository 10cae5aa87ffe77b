//! The screen of a conversation, computed from its records: records become cells, cells become rows, and a
//! screen writes the rows to a terminal.
//!
//! Use this crate to build a chat of your own on a terminal. The crate reads no keys, no files and no clock: the
//! program that owns the terminal passes keys, sizes and times in, and gets bytes through `impl Write`. A program that
//! only prints an answer does not need this crate.
//!
//! | term | types | meaning |
//! |---|---|---|
//! | cell | [`Cell`], [`Cells`] | one thing on the screen: a message, an answer, a call, a question; folded from records, and filled by deltas while it is open |
//! | row | [`Row`], [`TextSpan`] | one line of styled text |
//! | answer | [`AnswerCell`] | Markdown with colored code; a row is committed as soon as no later text can change it |
//! | step list | [`PlanCell`], [`PlanStep`] | the steps of the newest call of `update_plan`; live while the run works |
//! | diff | [`diff_rows`] | the rows of a unified diff, with line numbers and marks at the words that differ |
//! | page | [`Page`], [`Theme`], [`ThemeName`], [`Background`] | the width and the styles that rows are made for |
//! | printed | [`Printed`] | the part of the cells that is committed to the scrollback |
//! | screen | [`Screen`], [`Frame`], [`Inline`] | writes frames: committed rows once, the live area again and again |
//! | full view | [`FullView`], [`FullAction`], [`Alternate`] | the whole conversation on the alternate screen, with scroll, search and copy |
//! | support | [`Support`] | what the terminal can do |
//! | status | [`Status`], [`Meter`] | the line below the draft: model, used share of the context window, cost |
//! | input | [`Input`], [`Key`], [`Keymap`] | a key or a pasted text, and the actions that keys are bound to |
//! | composer | [`Composer`], [`Draft`], [`Action`] | edits the draft of the next message; a finished draft comes out |
//! | attached file | [`AttachedFile`] | a file that a message carries |
//! | candidate | [`CompletionCandidate`] | a name that the composer offers for the draft, such as a command's name |
//! | question | [`Question`], [`QuestionKey`] | a question of a run, and the keys that answer it |
//! | interrupts | [`Interrupts`] | what Ctrl+C means |
//! | work | [`Work`] | what the conversation does now |
//! | notice | [`Notifier`], [`Notice`] | a bell, or a text on the desktop, for a person who looks elsewhere |
//!
//! *Invariant*: the same records give the same rows, both while the run works and when its log is read later; a
//! committed row is written once; text of models and tools never reaches the output unescaped.
//!
//! # Example
//!
//! One frame of a conversation:
//!
//! ```
//! use archon_terminal::{Cells, Frame, Inline, Look, Note, Page, Place, Printed, Row, Screen, Size, Support};
//!
//! # fn main() -> std::io::Result<()> {
//! let support = Support::of(&|name| std::env::var(name).ok(), true);
//! let mut screen = Inline::new(Vec::new(), support);
//! let (mut cells, mut printed) = (Cells::default(), Printed::default());
//! cells.note(Note::new(Look::Dim, "/help shows all commands"));
//!
//! let size = Size::new(80, 24);
//! let page = Page::new(size.width(), support.theme());
//! let committed = printed.take(&cells, &page);
//! let mut live = printed.open(&cells, &page, size.live_rows());
//! let caret = Some(Place { row: live.len(), column: 2 });
//! live.push(Row::of("› ", Look::Person, &page));
//! screen.frame(&Frame { committed: &committed, live: &live, caret, caret_is_real: false, size })?;
//! screen.leave()?;
//! assert!(String::from_utf8_lossy(screen.out()).contains("/help shows all commands"));
//! # Ok(())
//! # }
//! ```

mod alternate;
mod ansi;
mod attached;
mod cells;
mod code;
mod composer;
mod diff;
mod full;
mod inline;
mod interrupts;
mod key;
mod keymap;
mod markdown;
mod notifier;
mod printed;
mod question;
mod row;
mod screen;
mod status;
mod support;
mod theme;
mod work;
mod wrap;

pub use alternate::Alternate;
pub use ansi::{BELL, END_PASTE};
pub use attached::AttachedFile;
pub use cells::{
    AnswerCell, AskedCell, CallCell, CallProgress, Cell, CellId, CellKind, Cells, EndCell, MessageCell,
    Meter, Note, PlanCell, PlanStep,
};
pub use diff::diff_rows;
pub use full::{FullAction, FullView};
pub use inline::Inline;
pub use notifier::{Notice, Notifier, desktop_notice};
pub use printed::Printed;
pub use row::{Place, Row, Size, TextSpan, Wrap};
pub use screen::{Frame, Screen};
pub use status::Status;
pub use support::Support;
pub use theme::{Background, Color, Look, Page, Style, Theme, ThemeName};

// Keys.
pub use composer::{Action, CompletionCandidate, Composer, Draft, DraftKind, ViMode};
pub use interrupts::{InterruptAction, Interrupts};
pub use key::{Input, Key, KeyCode, UnknownKey};
pub use keymap::{Binding, BoundTwice, Keymap, Motion};
pub use question::{AnswerScope, Question, QuestionKey};
pub use work::Work;
