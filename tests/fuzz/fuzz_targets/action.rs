//! Any text that a model may write in text mode is parsed without a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = archon_react_loop::parse_action(text);
});
