//! A line of a log is a record that survives writing and reading, or an error.
#![no_main]

use archon_types::Record;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(record) = serde_json::from_str::<Record>(text) {
        let written = serde_json::to_string(&record).expect("a record can be written");
        let read: Record = serde_json::from_str(&written).expect("what was written can be read");
        assert_eq!(serde_json::to_string(&read).expect("again"), written);
    }
});
