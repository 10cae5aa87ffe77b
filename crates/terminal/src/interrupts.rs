//! The effects of Ctrl+C: it stops the run, clears the draft or ends the program.

use archon_types::Timestamp;

use crate::work::Work;

/// Two presses in less than this time, in milliseconds, follow each other quickly.
const QUICK_MS: u64 = 500;
/// This number of quick presses ends the program at once.
const FORCE: u32 = 3;

/// The effect of a press of Ctrl+C, which the program must bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterruptAction {
    /// The run is cancelled; the conversation goes on.
    CancelRun,
    /// The draft is cleared.
    ClearDraft,
    /// The program ends.
    Leave,
    /// The program ends without waiting for anything.
    LeaveAtOnce,
}

/// Counts the presses of Ctrl+C, and decides what each press does.
///
/// ```
/// use archon_terminal::{InterruptAction, Interrupts, Work};
/// use archon_types::Timestamp;
///
/// let mut interrupts = Interrupts::default();
/// let press = |ms| Timestamp::from_millis(ms);
/// assert_eq!(interrupts.press(press(0), Work::Tools, false), InterruptAction::CancelRun);
/// // The tool does not end, and the person loses patience.
/// assert_eq!(interrupts.press(press(200), Work::Tools, false), InterruptAction::CancelRun);
/// assert_eq!(interrupts.press(press(400), Work::Tools, false), InterruptAction::LeaveAtOnce);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupts {
    last: Option<(Timestamp, InterruptAction)>,
    count: u32,
}

impl Interrupts {
    /// Returns the effect of a press at this time. A run that works is cancelled; without a run, a draft is cleared;
    /// without both, the program ends. The third of three presses, each less than half a second after the press before,
    /// ends the program at once.
    ///
    /// A quick press after a cancel is a cancel again, also if the run has ended in between: the person
    /// pressed twice to stop the run, not to leave.
    pub fn press(&mut self, at: Timestamp, work: Work, has_draft: bool) -> InterruptAction {
        let quick = self.last.filter(|(last, _)| at.millis_since(*last) < QUICK_MS);
        self.count = if quick.is_some() { self.count + 1 } else { 1 };
        let meaning = match quick {
            _ if self.count >= FORCE => InterruptAction::LeaveAtOnce,
            Some((_, InterruptAction::CancelRun)) => InterruptAction::CancelRun,
            _ if work.is_busy() => InterruptAction::CancelRun,
            _ if has_draft => InterruptAction::ClearDraft,
            _ => InterruptAction::Leave,
        };
        self.last = Some((at, meaning));
        meaning
    }
}
