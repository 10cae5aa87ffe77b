//! The choice of who answers the questions of runs.

use crate::app::App;

/// The answerer of the questions of this command's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// The person at the terminal.
    Here,
    /// A person, later: runs are suspended.
    Later,
    /// No person: the answer is no.
    Nobody,
}

impl Asking {
    /// Returns the answerer for this command: without a terminal it is [`Nobody`](Self::Nobody), unless runs
    /// shall be suspended.
    pub(crate) fn of(app: &App) -> Self {
        let terminal = app.output.spins && std::io::IsTerminal::is_terminal(&std::io::stdin());
        match (app.ask_later, terminal && !app.json) {
            (true, _) => Self::Later,
            (false, true) => Self::Here,
            (false, false) => Self::Nobody,
        }
    }
}
