//! Problems of settings files.

/// A problem of a settings file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(crate) struct Problem {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The problem, one line.
    pub(crate) problem: String,
    /// The remedy, one line.
    pub(crate) advice: String,
}
