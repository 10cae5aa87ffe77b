//! Any text that a model may write in text mode is parsed without a panic; and of one that was cut off, no call is made that
//! is not whole: whatever follows it, it stays the same.
#![no_main]

use archon_react_loop::{Written, parse_answer};
use archon_types::StopReason;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = parse_answer(text, StopReason::Stop);
    let Ok(Written::Calls(calls)) = parse_answer(text, StopReason::Length) else { return };
    let more = format!("{text}\nObservation: x\n");
    if let Ok(Written::Calls(again)) = parse_answer(&more, StopReason::Length) {
        for (call, again) in calls.iter().zip(&again).filter(|(call, _)| call.refused.is_none()) {
            assert_eq!(call, again);
        }
    }
});
