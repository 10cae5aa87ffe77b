//! The tool `search`: finds lines that match a pattern. It searches in this process and never through a
//! shell, because a model's pattern is untrusted.

use std::{io::Read, path::Path};

use archon_types::{Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{FilePattern, add_note};
use crate::{Workspace, arguments::clip, workspace::Places};

const DEFAULT_LIMIT: usize = 100;
const HIGHEST_LIMIT: usize = 1_000;

/// Maximum size of a file that is searched, in bytes; larger files are skipped and counted.
const MAX_FILE: u64 = 10_000_000;

/// Maximum number of characters of a line that are shown.
const LINE_SHOWN: usize = 200;

/// Searches the text files of a [`Workspace`], without hidden and ignored ones, and without files that a
/// permission rule on `search` or `read_file` denies or asks about.
#[derive(Clone, Debug)]
pub struct Search {
    spec: ToolSpec,
    workspace: Workspace,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Search pattern (regex)
    pattern: String,
    /// File or directory to search; the root of the workspace if left out
    path: Option<String>,
    /// Only files with this name pattern, for example *.rs
    glob: Option<String>,
    /// Upper and lower case differ
    case_sensitive: Option<bool>,
    /// Maximum number of lines
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

impl Search {
    /// Creates the tool for the files of a workspace.
    pub fn new(workspace: Workspace) -> Self {
        let about = "Searches the text of all files and returns the lines that match, each with its file. Use it to \
                     find where something is.";
        let example = serde_json::json!({ "pattern": "TODO" });
        let spec = super::spec::<Arguments>(["search", "Search"], about, super::reads_files(), example);
        Self { spec, workspace }
    }

    fn search(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { pattern, path, glob, case_sensitive, limit } =
            crate::macro_support::arguments(arguments)?;
        if pattern.is_empty() {
            return Err(ToolError::InvalidArgs(
                "The pattern is empty. Example: search(pattern=\"TODO\")".to_owned(),
            ));
        }
        let place = self.workspace.resolve_for(path.as_deref().unwrap_or_default(), context)?;
        let files = glob.filter(|glob| !glob.is_empty()).map(|glob| FilePattern::new(&glob)).transpose()?;
        let needle = Needle::new(&pattern, case_sensitive.unwrap_or(false))?;
        let mut hits = Hits { limit: limit.unwrap_or(DEFAULT_LIMIT).min(HIGHEST_LIMIT), ..Hits::default() };
        let places = Places::new(&self.workspace, &place, &self.spec, Some("read_file"), context);
        for entry in places.walk(&place) {
            if context.cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            let relative = match entry.path.strip_prefix(&place) {
                Ok(inside) if !inside.as_os_str().is_empty() => inside,
                _ => Path::new(entry.path.file_name().unwrap_or_default()),
            };
            let wanted = files.as_ref().is_none_or(|files| files.matches(relative));
            if wanted && entry.is_file {
                self.search_file(&entry.path, &needle, &mut hits);
            }
            if hits.is_full() {
                break;
            }
        }
        Ok(places.with_notes(hits.into_result(&pattern, &needle)))
    }

    /// Searches one file. A file that cannot be read, is too large or is not text is skipped.
    fn search_file(&self, path: &Path, needle: &Needle, hits: &mut Hits) {
        let Ok(file) = self.workspace.open_resolved(path) else { return };
        let mut bytes = Vec::new();
        if file.take(MAX_FILE + 1).read_to_end(&mut bytes).is_err() {
            return;
        }
        if bytes.len() as u64 > MAX_FILE {
            hits.too_large += 1;
            return;
        }
        hits.files += 1;
        if bytes.iter().take(8_192).any(|byte| *byte == 0) || !needle.may_be_in(&bytes) {
            return;
        }
        let name = self.workspace.display(path);
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if let Some(found) = needle.regex.find(line) {
                hits.lines.push(format!("{name}:{}: {}", index + 1, excerpt(line, found.start())));
                if hits.is_full() {
                    return;
                }
            }
        }
    }
}

impl Tool for Search {
    tool_methods!(search in workspace);
}

/// A compiled search pattern.
struct Needle {
    regex: Regex,
    /// True if the pattern was not a valid regular expression and is searched literally.
    literal: bool,
    /// True if each match in a line is also a match in the whole text of the file. Then the whole text is tested
    /// first, and its lines only if it has a match.
    holds_in_whole: bool,
}

impl Needle {
    fn new(pattern: &str, case_sensitive: bool) -> Result<Self, ToolError> {
        let build = |pattern: &str| {
            RegexBuilder::new(pattern).case_insensitive(!case_sensitive).multi_line(true).crlf(true).build()
        };
        let holds_in_whole = !["\\A", "\\z"].iter().any(|anchor| pattern.contains(anchor));
        let why = match build(pattern) {
            Ok(regex) => return Ok(Self { regex, literal: false, holds_in_whole }),
            Err(why) => why,
        };
        // `foo(` is not valid, but its meaning is clear.
        let literal = matches!(why, regex::Error::Syntax(_)).then(|| build(&regex::escape(pattern)));
        match literal {
            Some(Ok(regex)) => Ok(Self { regex, literal: true, holds_in_whole: true }),
            _ => Err(ToolError::InvalidArgs(format!(
                "The pattern cannot be used: {}. Use a shorter or simpler one.",
                clip(&why.to_string(), 300)
            ))),
        }
    }

    fn may_be_in(&self, text: &[u8]) -> bool {
        !self.holds_in_whole || self.regex.is_match(text)
    }
}

#[derive(Default)]
struct Hits {
    lines: Vec<String>,
    limit: usize,
    files: usize,
    too_large: usize,
}

impl Hits {
    /// Returns whether the search found more lines than the limit allows. One line beyond the limit is kept
    /// to show that.
    fn is_full(&self) -> bool {
        self.lines.len() > self.limit
    }

    fn into_result(mut self, pattern: &str, needle: &Needle) -> ToolResult {
        let truncated = self.is_full();
        self.lines.truncate(self.limit);
        let mut result = match self.lines.len() {
            0 => ToolResult::success(format!(
                "No matches for '{}' in {} files.",
                clip(pattern, 100),
                self.files
            )),
            _ => ToolResult::success(self.lines.join("\n")),
        };
        if truncated {
            let more = format!("More than {} lines match", self.limit);
            add_note(&mut result, format!("{more}. Narrow the pattern, the path or the glob."));
        }
        if needle.literal {
            let note = "The pattern is not a regular expression and was searched for as plain text.";
            add_note(&mut result, note);
        }
        if self.too_large > 0 {
            let files = self.too_large;
            add_note(&mut result, format!("{files} files of more than {MAX_FILE} bytes were left out."));
        }
        result
            .with_metadata("matches", self.lines.len())
            .with_metadata("files_searched", self.files)
            .with_metadata("truncated", truncated)
    }
}

/// Returns a found line or, if the line is long, a part of it around the match, which begins at byte `found`.
fn excerpt(line: &[u8], found: usize) -> String {
    // A match far inside of a minified file would otherwise be cut off.
    let start = if found > LINE_SHOWN / 2 && line.len() > LINE_SHOWN { found - LINE_SHOWN / 4 } else { 0 };
    let text = String::from_utf8_lossy(&line[start..line.len().min(start + 4 * LINE_SHOWN)]);
    let mark = if start > 0 { "…" } else { "" };
    format!("{mark}{}", clip(text.trim(), LINE_SHOWN))
}
