//! Readings of files: which results are one, and whether a file was the same when it was read again.

use std::collections::BTreeMap;

use archon_types::{Content, ToolCall};
use serde::{Deserialize, Serialize};

/// The hash of what each file held when it was last read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileReads(BTreeMap<String, u64>);

impl FileReads {
    /// Notes a reading; true if the file is new or has changed since the last one.
    pub(crate) fn register(&mut self, path: &str, content: &[Content]) -> bool {
        let hash = hash(content);
        self.0.insert(path.to_owned(), hash) != Some(hash)
    }
}

/// The path that the call reads, if it reads a file.
pub(crate) fn path(call: &ToolCall) -> Option<&str> {
    if !READERS.contains(&call.name.as_str()) {
        return None;
    }
    ["path", "file_path"].into_iter().find_map(|key| call.arguments.get(key)?.as_str())
}

/// What the model reads in place of an older reading.
pub(crate) fn pointer(path: &str, same: bool) -> String {
    let how = if same { "was the same" } else { "had changed" };
    format!("[{path} was read again later and {how}: see the newest reading]")
}

/// The tools that read files, by the names they go by.
const READERS: [&str; 3] = ["read_file", "file_read", "read"];

/// FNV-1a, which is the same on every machine and in every version.
fn hash(content: &[Content]) -> u64 {
    let text = Content::join_text(content);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
