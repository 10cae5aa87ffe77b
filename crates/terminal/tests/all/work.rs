//! Tests of the states of a conversation.

use archon_terminal::Work;

// spec: CL-05
#[test]
fn with_draft_changes_only_a_conversation_without_a_run() {
    for (work, has_draft, expected) in [
        (Work::Idle, true, Work::Composing),
        (Work::Composing, false, Work::Idle),
        (Work::Idle, false, Work::Idle),
        (Work::Composing, true, Work::Composing),
        (Work::Model, true, Work::Model),
        (Work::Tools, true, Work::Tools),
        (Work::Asking, true, Work::Asking),
        (Work::Elsewhere, true, Work::Elsewhere),
    ] {
        assert_eq!(work.with_draft(has_draft), expected, "{work:?}");
    }
}

// spec: CL-05
#[test]
fn is_busy_for_each_state_in_which_a_run_can_be_stopped() {
    let all = [Work::Idle, Work::Composing, Work::Model, Work::Tools, Work::Asking, Work::Elsewhere];
    assert_eq!(all.map(Work::is_busy), [false, false, true, true, true, false]);
}
