//! Formats results at three levels of detail, summarizes them, and stores large ones in files.

use std::{io, path::Path};

use archon_types::{DataFile, Json, OutputLevel, ToolResult, ToolResultStatus, metadata};

use crate::arguments::clip;

/// Size in bytes above which data are stored in a file at every level of detail, if there is a folder for
/// files.
pub(crate) const LARGE: usize = 1_048_576;
/// Size in bytes above which data are stored in a file at the level of detail `Full`; smaller data are shown
/// whole.
const READ_WHOLE: usize = 65_536;
/// Used share of the context window, from 0 to 1, above which results become `Brief`.
const NEARLY_FULL: f64 = 0.8;

/// Returns the level of detail of a result: `wanted` by the caller, else the tool's, else `Brief` if
/// `context_usage` is above 0.8, else `default`. `None` means that the result stays as the tool wrote it.
pub fn effective_level(
    wanted: Option<OutputLevel>,
    tool: Option<OutputLevel>,
    context_usage: Option<f64>,
    default: Option<OutputLevel>,
) -> Option<OutputLevel> {
    let crowded = context_usage.is_some_and(|usage| usage > NEARLY_FULL).then_some(OutputLevel::Brief);
    wanted.or(tool).or(crowded).or(default)
}

/// A tool's result as data: JSON, or else the text.
pub(crate) struct Data<'t> {
    text: &'t str,
    value: Json,
}

impl<'t> Data<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let structured = text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok()).flatten();
        Self { text, value: structured.unwrap_or_else(|| Json::from(text)) }
    }

    /// Returns whether the data are only text, and not JSON.
    pub(crate) fn is_text(&self) -> bool {
        self.value.is_string()
    }

    pub(crate) fn wants_file(&self, level: Option<OutputLevel>) -> bool {
        self.text.len() > LARGE || level == Some(OutputLevel::Full) && self.text.len() > READ_WHOLE
    }

    /// Formats the data at a level of detail.
    pub(crate) fn at(&self, level: OutputLevel) -> String {
        match level {
            OutputLevel::Brief => self.brief(),
            OutputLevel::Standard => self.standard(),
            OutputLevel::Full => match &self.value {
                Json::String(text) => text.clone(),
                value => pretty(value),
            },
        }
    }

    fn brief(&self) -> String {
        match &self.value {
            Json::Array(items) => format!("Found {} items", items.len()),
            Json::Object(fields) => match fields.get("success") {
                Some(success) => {
                    let status = if is_true(success) { "Success" } else { "Failed" };
                    let message =
                        fields.get("message").map_or_else(|| "Operation completed".to_owned(), plain);
                    format!("{status}: {message}")
                }
                None => format!("Result has {} fields", fields.len()),
            },
            other => first(&plain(other), 100).to_owned(),
        }
    }

    fn standard(&self) -> String {
        match &self.value {
            Json::Array(items) => {
                let shown: Vec<_> = items.iter().take(3).map(|item| format!("  - {}", plain(item))).collect();
                let mut text = format!("Found {} items:\n{}", items.len(), shown.join("\n"));
                if items.len() > 3 {
                    text.push_str(&format!("\n  ... and {} more", items.len() - 3));
                }
                text
            }
            value @ Json::Object(_) => first(&pretty(value), 500).to_owned(),
            other => first(&plain(other), 500).to_owned(),
        }
    }

    /// Describes the data in one line.
    #[cfg(any(feature = "files", test))]
    pub(crate) fn summary(&self) -> String {
        match &self.value {
            Json::Array(items) => {
                let keys = match items.first() {
                    Some(Json::Object(fields)) => {
                        format!("[{}]", fields.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
                    }
                    _ => "N/A".to_owned(),
                };
                format!("List with {} items. First item keys: {}", items.len(), clip(&keys, 500))
            }
            Json::Object(fields) => {
                let keys = fields.keys().take(10).map(String::as_str).collect::<Vec<_>>().join(", ");
                format!("Dictionary with {} keys. Top keys: {}", fields.len(), clip(&keys, 500))
            }
            other => first(&plain(other), 200).to_owned(),
        }
    }

    /// Writes the data to `{directory}/tool_data/{call}_{hash}.json`.
    #[cfg(feature = "files")]
    pub(crate) fn store(&self, directory: &Path, call: &str) -> io::Result<DataFile> {
        let hash: String = hmac_sha256::Hash::hash(self.text.as_bytes())
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let folder = directory.join("tool_data");
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}_{hash}.json", file_name(call)));
        std::fs::write(&path, self.text)?;
        Ok(DataFile {
            path: path.display().to_string(),
            size_bytes: self.text.len() as u64,
            hash,
            summary: self.summary(),
        })
    }

    #[cfg(not(feature = "files"))]
    pub(crate) fn store(&self, _: &Path, _: &str) -> io::Result<DataFile> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the feature `files` is off"))
    }
}

/// Returns the text that the model reads in place of data that were stored in a file.
pub(crate) fn stored(file: &DataFile) -> String {
    format!(
        "Data stored in file: {}\nThis file can be accessed in subsequent tool calls by referencing the file path.\n\nTo \
         access this data, use:\n- read_file with the file path\n- search with the file path\n\nData summary: {}",
        file.path, file.summary
    )
}

/// Makes the result of a refused or failed call, with a stable error type.
pub(crate) fn error_of_type(kind: &str, text: impl Into<String>) -> ToolResult {
    ToolResult::error(text).with_metadata(metadata::ERROR_TYPE, kind)
}

/// Makes the result of a cancelled call.
pub(crate) fn cancelled_result(text: &str) -> ToolResult {
    ToolResult::cancelled(text).with_metadata(metadata::ERROR_TYPE, "cancelled")
}

/// Returns the error type in the metadata of a result.
pub(crate) fn error_type(result: &ToolResult) -> Option<&str> {
    result.metadata.get(metadata::ERROR_TYPE).and_then(Json::as_str)
}

/// Returns the text of an error in the form `ErrorStyle::Standard`.
pub(crate) fn error_observation(result: &ToolResult, call: &str) -> String {
    let kind = error_type(result);
    let kind = kind.or((result.status == ToolResultStatus::Timeout).then_some("timeout"));
    let code = kind.map_or_else(|| "UNKNOWN".to_owned(), str::to_uppercase);
    let message = result.error_message.as_deref().filter(|message| !message.is_empty());
    format!(
        "Operation failed.\n\nError Type: {}\nError Code: {code}\nError Message: {}\n\nTool Call ID: {call}",
        kind.unwrap_or("Unknown"),
        clip(message.unwrap_or("An unknown error occurred"), 1_000),
    )
}

/// Makes a safe file name of a call's id.
#[cfg(feature = "files")]
fn file_name(call: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    call.chars().take(64).map(safe).collect()
}

fn pretty(value: &Json) -> String {
    format!("{value:#}")
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_true(value: &Json) -> bool {
    match value {
        Json::Bool(is) => *is,
        Json::Null => false,
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(fields) => !fields.is_empty(),
    }
}

/// Returns the first `count` characters of a text.
fn first(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(value: Json, expected: Expect) {
        let text = plain(&value);
        let data = Data::of(&text);
        let [brief, standard, full] =
            [OutputLevel::Brief, OutputLevel::Standard, OutputLevel::Full].map(|level| data.at(level));
        expected.assert_eq(&format!("{brief}\n--\n{standard}\n--\n{full}\n--\n{}", data.summary()));
    }

    // spec: TE-12, TE-13, TE-14, TE-16
    #[test]
    fn a_list() {
        check(
            json!([{ "name": "a", "n": 1 }, "b", 3, null, 5]),
            expect![[r#"
                Found 5 items
                --
                Found 5 items:
                  - {"name":"a","n":1}
                  - b
                  - 3
                  ... and 2 more
                --
                [
                  {
                    "name": "a",
                    "n": 1
                  },
                  "b",
                  3,
                  null,
                  5
                ]
                --
                List with 5 items. First item keys: [name, n]"#]],
        );
        check(
            json!([]),
            expect![[r#"
            Found 0 items
            --
            Found 0 items:

            --
            []
            --
            List with 0 items. First item keys: N/A"#]],
        );
    }

    // spec: TE-12, TE-13, TE-14, TE-16
    #[test]
    fn brief_output_of_an_object_with_and_without_a_status() {
        check(
            json!({ "a": 1, "b": [2] }),
            expect![[r#"
            Result has 2 fields
            --
            {
              "a": 1,
              "b": [
                2
              ]
            }
            --
            {
              "a": 1,
              "b": [
                2
              ]
            }
            --
            Dictionary with 2 keys. Top keys: a, b"#]],
        );
        let brief = |value: Json| Data::of(&value.to_string()).at(OutputLevel::Brief);
        assert_eq!(brief(json!({ "success": true, "message": "saved" })), "Success: saved");
        assert_eq!(brief(json!({ "success": true })), "Success: Operation completed");
        assert_eq!(brief(json!({ "success": false, "message": "full" })), "Failed: full");
    }

    // spec: TE-12, TE-13, TE-16
    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "ä".repeat(600);
        let data = Data::of(&text);
        let count = |level| data.at(level).chars().count();
        assert_eq!(
            (count(OutputLevel::Brief), count(OutputLevel::Standard), count(OutputLevel::Full)),
            (100, 500, 600)
        );
        assert_eq!(data.summary().chars().count(), 200);
        let object = json!({ "text": "ä".repeat(600) }).to_string();
        assert_eq!(Data::of(&object).at(OutputLevel::Standard).chars().count(), 500);
    }

    // spec: TE-17
    #[test]
    fn the_caller_goes_before_the_tool_and_a_full_window_before_the_default() {
        use OutputLevel::{Brief, Full, Standard};
        let level = effective_level;
        assert_eq!(level(Some(Full), Some(Standard), Some(0.9), Some(Standard)), Some(Full));
        assert_eq!(level(None, Some(Standard), Some(0.9), Some(Full)), Some(Standard));
        assert_eq!(level(None, None, Some(0.81), Some(Full)), Some(Brief));
        assert_eq!(level(None, None, Some(0.8), Some(Standard)), Some(Standard));
        assert_eq!(level(None, None, None, None), None);
    }

    // spec: TE-18
    #[test]
    fn the_long_form_of_a_failure() {
        let failed = ToolResult::error("disk full").with_metadata("error_type", "resource_error");
        expect![[r#"
            Operation failed.

            Error Type: resource_error
            Error Code: RESOURCE_ERROR
            Error Message: disk full

            Tool Call ID: c1"#]]
        .assert_eq(&error_observation(&failed, "c1"));
        let mut unknown = ToolResult::error("");
        unknown.error_message = None;
        expect![[r#"
            Operation failed.

            Error Type: Unknown
            Error Code: UNKNOWN
            Error Message: An unknown error occurred

            Tool Call ID: c2"#]]
        .assert_eq(&error_observation(&unknown, "c2"));
    }

    // spec: TE-15
    #[cfg(feature = "files")]
    #[test]
    fn result_file_is_complete_and_has_a_safe_name() {
        let folder = tempfile::TempDir::new().unwrap();
        let text = json!([1, 2, 3]).to_string();
        let file = Data::of(&text).store(folder.path(), "../../etc/call 1").unwrap();
        assert_eq!(file.hash, "a615eeaee21de517", "the first half of the hash that sha256sum gives");
        let name = format!("tool_data/______etc_call_1_{}.json", file.hash);
        assert_eq!(Path::new(&file.path), folder.path().join(name));
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), text);
        assert_eq!((file.size_bytes, file.summary.as_str()), (7, "List with 3 items. First item keys: N/A"));
    }

    // spec: TE-15
    #[test]
    fn wants_file_only_for_large_results() {
        let wants = |bytes: usize, level| Data::of(&"x".repeat(bytes)).wants_file(level);
        assert!(!wants(LARGE, Some(OutputLevel::Standard)) && wants(LARGE + 1, Some(OutputLevel::Brief)));
        assert!(!wants(LARGE, None) && wants(LARGE + 1, None));
        assert!(
            !wants(READ_WHOLE, Some(OutputLevel::Full)) && wants(READ_WHOLE + 1, Some(OutputLevel::Full))
        );
    }

    proptest! {
        // spec: TE-12, TE-13
        #[test]
        fn output_of_any_text_at_any_level_does_not_panic(text in "\\PC{0,700}") {
            let data = Data::of(&text);
            for level in [OutputLevel::Brief, OutputLevel::Standard, OutputLevel::Full] {
                data.at(level);
            }
            data.summary();
        }
    }
}
