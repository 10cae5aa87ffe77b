//! Tracks which tool results are contents of files, and whether a file changed between two reads.

use std::collections::BTreeMap;

use archon_types::{Content, ToolCall};
use serde::{Deserialize, Serialize};

/// The hash of each file's content at the last read, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileReads(BTreeMap<String, u64>);

impl FileReads {
    /// Records a read. Returns true if the file is new or has changed since the last read.
    pub(crate) fn register(&mut self, path: &str, content: &[Content]) -> bool {
        let hash = hash(content);
        self.0.insert(path.to_owned(), hash) != Some(hash)
    }
}

/// Returns the path that the call reads; `None` if the call reads no file.
pub(crate) fn path(call: &ToolCall) -> Option<&str> {
    if !READERS.contains(&call.name.as_str()) {
        return None;
    }
    ["path", "file_path"].into_iter().find_map(|key| call.arguments.get(key)?.as_str())
}

/// Returns the text that replaces the result of an older read.
pub(crate) fn pointer(path: &str, same: bool) -> String {
    let how = if same { "was the same" } else { "had changed" };
    format!("[{path} was read again later and {how}: see the newest reading]")
}

/// Names of the tools that read files.
const READERS: [&str; 3] = ["read_file", "file_read", "read"];

/// Returns the FNV-1a hash of a content. The hash is stored, so it must be the same on every computer and in
/// every version.
fn hash(content: &[Content]) -> u64 {
    let text = Content::join_text(content);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
