//! Tests of the meaning of Ctrl+C.

use archon_terminal::{InterruptAction, Interrupts, Work};

use crate::typing::at;

// spec: CL-06, A-53
#[test]
fn press_means_cancel_clear_or_leave_in_each_situation() {
    for (work, has_draft, expected) in [
        (Work::Model, false, InterruptAction::CancelRun),
        (Work::Tools, false, InterruptAction::CancelRun),
        (Work::Asking, false, InterruptAction::CancelRun),
        // The draft is kept while a run is stopped.
        (Work::Model, true, InterruptAction::CancelRun),
        (Work::Composing, true, InterruptAction::ClearDraft),
        (Work::Composing, false, InterruptAction::Leave),
        (Work::Idle, false, InterruptAction::Leave),
        (Work::Elsewhere, true, InterruptAction::ClearDraft),
        (Work::Elsewhere, false, InterruptAction::Leave),
    ] {
        assert_eq!(Interrupts::default().press(at(5), work, has_draft), expected, "{work:?} {has_draft}");
    }
}

// spec: CL-07
#[test]
fn third_quick_press_leaves_at_once_and_slow_ones_do_not() {
    for (presses, expected) in [
        (&[0, 100, 200][..], true),
        (&[0, 499, 998], true),
        (&[0, 500, 1000], false),
        (&[0, 100, 700], false),
        (&[0, 600, 1200, 1800], false),
        (&[0, 600, 700, 800], true),
        (&[0], false),
    ] {
        let mut interrupts = Interrupts::default();
        let last = presses.iter().map(|ms| interrupts.press(at(*ms), Work::Tools, false)).last();
        assert_eq!(last == Some(InterruptAction::LeaveAtOnce), expected, "{presses:?}");
    }
}

// spec: CL-06
#[test]
fn second_quick_press_after_a_cancel_does_not_leave() {
    let mut interrupts = Interrupts::default();
    assert_eq!(interrupts.press(at(0), Work::Model, true), InterruptAction::CancelRun);
    // The run has ended meanwhile. The draft stays too.
    assert_eq!(interrupts.press(at(300), Work::Composing, true), InterruptAction::CancelRun);
    assert_eq!(interrupts.press(at(900), Work::Composing, true), InterruptAction::ClearDraft);
    assert_eq!(interrupts.press(at(1_000), Work::Idle, false), InterruptAction::Leave);
}
