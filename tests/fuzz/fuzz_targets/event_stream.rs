//! Any bytes are cut into the messages of an event stream, or refused, without a panic; bytes that were
//! cut whole are cut the same when something follows them.
#![no_main]

use archon_providers::count_event_stream_messages;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(count) = count_event_stream_messages(bytes) {
        let twice = [bytes, bytes].concat();
        assert_eq!(count_event_stream_messages(&twice), Some(2 * count));
    }
});
