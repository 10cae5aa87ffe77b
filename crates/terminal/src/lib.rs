//! The screen of a conversation, as a fold over its records. No I/O: the program that owns a terminal passes keys,
//! sizes and times in, and bytes come out through `impl Write`.
//!
//! Use this crate to build a chat of your own on a terminal. A program that only prints an answer needs none of it.
//!
//! | term | types | meaning |
//! |---|---|---|
//! | row | [`Row`], [`Span`] | one line of styled text |
//! | page | [`Page`], [`Theme`] | the width and the styles that rows are made for |
//! | screen | [`Screen`], [`Frame`], [`Inline`] | writes frames: committed rows once, the live area again and again |
//! | support | [`Support`] | what the terminal can do |
//! | input | [`Input`], [`Key`], [`Keymap`] | a key or a paste, and what keys are bound to |
//! | composer | [`Composer`], [`Draft`], [`Action`] | edits the draft of the next message; a finished draft comes out |
//! | question | [`Question`], [`QuestionKey`] | a question of a run, and the keys that answer it |
//! | interrupts | [`Interrupts`] | what Ctrl+C means |
//! | work | [`Work`] | what the conversation does now |
//!
//! *Invariant*: a committed row is written once, and text of models and tools never reaches the output unescaped.
//!
//! # Example
//!
//! ```
//! use archon_terminal::Row;
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod ansi;
mod cells;
mod composer;
mod inline;
mod interrupts;
mod key;
mod keymap;
mod printed;
mod question;
mod row;
mod screen;
mod status;
mod support;
mod theme;
mod work;
mod wrap;

pub use ansi::END_PASTE;
pub use cells::{
    AnswerCell, AskedCell, CallCell, CallState, Cell, CellId, CellKind, Cells, EndCell, MessageCell, Meter, Note,
};
pub use inline::Inline;
pub use printed::Printed;
pub use row::{Place, Row, Size, Span, Wrap};
pub use screen::{Frame, Screen};
pub use status::Status;
pub use support::Support;
pub use theme::{Color, Look, Page, Style, Theme};

// Keys.
pub use composer::{Action, Composer, Draft, DraftKind};
pub use interrupts::{Interrupt, Interrupts};
pub use key::{Input, Key, KeyCode};
pub use keymap::{Binding, Keymap, Motion};
pub use question::{Question, QuestionKey, Scope};
pub use work::Work;
