//! The tool `read_file`: returns a text file or part of one, a picture or a PDF file.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

use archon_types::{
    CancellationToken, Json, Media, Tool, ToolContext, ToolError, ToolResult, ToolSpec, metadata, sniff,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::add_note;
use crate::Workspace;

/// Maximum size of a text that is returned at once, in bytes.
const MAX_TEXT: u64 = 1_000_000;

/// Number of bytes at the start of a file that show if the file is text, a picture or a PDF file.
const SNIFFED: usize = 8_192;

/// Reads a file of a [`Workspace`]: text up to 1 MB, a range of lines of any text, pictures (PNG,
/// JPEG, GIF, WebP) and PDF files up to 20 MiB. Other binary files are refused.
#[derive(Clone, Debug)]
pub struct ReadFile {
    spec: ToolSpec,
    workspace: Workspace,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// File path
    path: String,
    /// First line to read, counted from 1
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line to read
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

impl ReadFile {
    /// Creates the tool for the files of a workspace.
    pub fn new(workspace: Workspace) -> Self {
        // A local model reads only the first sentence. After a change, run `cargo xtask eval local --check`.
        let about = "Reads a file and returns its text, or its picture. Use it to see what a file contains, also a PDF.";
        let example = serde_json::json!({ "path": "notes.txt" });
        let spec = super::spec::<Arguments>(["read_file", "Read file"], about, super::reads_files(), example);
        Self { spec, workspace }
    }

    fn read(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { path, start_line, end_line } = crate::macro_support::arguments(arguments)?;
        let lines = line_range(start_line, end_line)?;
        let (real, file) = self.workspace.open(&path, context)?;
        // Note the version before reading, so that a file changed during the read counts as unread.
        let seen = self.workspace.version_of(&real, &file);
        let failed = |e: io::Error| unreadable(&path, &e);
        let size = file.metadata().map_err(failed)?.len();
        let reader = BufReader::with_capacity(64 * 1024, file);
        let mut file = Opened { reader, size, cancel: &context.cancel };
        let head = file.head().map_err(failed)?;
        let result = match sniff(head) {
            Some(_) => file.media(&path)?,
            None if head.contains(&0) => {
                return Err(ToolError::InvalidArgs(format!(
                    "'{path}' is a binary file of {size} bytes. Only text, pictures and PDF files can be read. Go on without it, or \
                     use another tool for it."
                )));
            }
            None => match lines {
                Some((first, last)) => file.lines(&path, first, last)?,
                None => file.text(&path)?,
            },
        };
        let result =
            result.with_metadata("path", self.workspace.display(&real)).with_metadata("size_bytes", size);
        let result = result.with_metadata(metadata::SEEN, seen);
        // Only now: a file that could not be read does not count as read.
        self.workspace.recall(&context.run.session, &result);
        Ok(result)
    }
}

impl Tool for ReadFile {
    tool_methods!(read in workspace);
}

fn line_range(start: Option<u64>, end: Option<u64>) -> Result<Option<(u64, u64)>, ToolError> {
    if start.is_none() && end.is_none() {
        return Ok(None);
    }
    let (first, last) = (start.unwrap_or(1).max(1), end.unwrap_or(u64::MAX));
    if last < first {
        return Err(ToolError::InvalidArgs(format!(
            "end_line ({last}) is before start_line ({first}). Lines are counted from 1."
        )));
    }
    Ok(Some((first, last)))
}

/// An open file with its size and the call's cancellation.
struct Opened<'a> {
    reader: BufReader<File>,
    size: u64,
    cancel: &'a CancellationToken,
}

impl Opened<'_> {
    /// Returns up to [`SNIFFED`] bytes from the start of the file without consuming them.
    fn head(&mut self) -> io::Result<&[u8]> {
        let head = self.reader.fill_buf()?;
        Ok(&head[..head.len().min(SNIFFED)])
    }

    fn media(&mut self, path: &str) -> Result<ToolResult, ToolError> {
        let Some(bytes) = self.whole(path, Media::MAX_BYTES as u64)? else {
            return Err(ToolError::Resource(format!(
                "'{path}' is a picture or a PDF file of {} bytes; at most {} can be read.",
                self.size,
                Media::MAX_BYTES
            )));
        };
        let media = Media::new(&bytes, Some(path));
        media.map(ToolResult::from).map_err(|e| ToolError::Failed(format!("'{path}' cannot be read: {e}")))
    }

    fn text(&mut self, path: &str) -> Result<ToolResult, ToolError> {
        match self.whole(path, MAX_TEXT)? {
            Some(bytes) if bytes.is_empty() => Ok(ToolResult::success("(The file is empty.)")),
            Some(bytes) => Ok(text_result(bytes)),
            None => Err(ToolError::Resource(format!(
                "'{path}' has {} bytes; at most {MAX_TEXT} are read at once. Read a part of it with start_line and \
                 end_line.",
                self.size
            ))),
        }
    }

    fn lines(&mut self, path: &str, first: u64, last: u64) -> Result<ToolResult, ToolError> {
        let failed = |e: io::Error| unreadable(path, &e);
        let skipped = self.take_lines(first - 1, None).map_err(failed)?.lines;
        let part =
            self.take_lines((last - first).saturating_add(1), Some(MAX_TEXT as usize)).map_err(failed)?;
        if part.lines == 0 {
            return Err(ToolError::InvalidArgs(format!(
                "'{path}' has {skipped} lines; line {first} is not among them. Ask for lines from 1 to {skipped}."
            )));
        }
        let end = first + part.lines - 1;
        let mut result = text_result(part.text);
        if part.cut {
            let next = end.max(first + 1);
            let note = format!("Cut after {MAX_TEXT} bytes, in line {end}. Go on with start_line={next}.");
            add_note(&mut result, note);
        }
        Ok(result.with_metadata("start_line", first).with_metadata("end_line", end))
    }

    /// Reads the whole file, or returns `None` if it has more than `max` bytes. The file may grow during
    /// the read.
    fn whole(&mut self, path: &str, max: u64) -> Result<Option<Vec<u8>>, ToolError> {
        if self.size > max {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.size).unwrap_or(0));
        self.reader.by_ref().take(max + 1).read_to_end(&mut bytes).map_err(|e| unreadable(path, &e))?;
        Ok((bytes.len() as u64 <= max).then_some(bytes))
    }

    /// Reads up to `count` lines and keeps up to `keep` bytes of them. If `keep` is `None`, the lines are
    /// skipped, however long they are.
    fn take_lines(&mut self, count: u64, keep: Option<usize>) -> io::Result<Lines> {
        let mut taken = Lines::default();
        let mut open_line = false;
        while taken.lines < count && !taken.cut {
            if self.cancel.is_cancelled() {
                return Err(io::Error::other("cancelled"));
            }
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let used = end.unwrap_or(buffer.len());
            if let Some(keep) = keep {
                let room = keep - taken.text.len();
                taken.cut = used > room;
                taken.text.extend_from_slice(&buffer[..used.min(room)]);
            }
            taken.lines += u64::from(end.is_some());
            open_line = end.is_none();
            self.reader.consume(used);
        }
        // Text after the last newline is a line too.
        taken.lines += u64::from(open_line && taken.lines < count);
        Ok(taken)
    }
}

fn unreadable(path: &str, why: &io::Error) -> ToolError {
    ToolError::Failed(format!("'{path}' cannot be read: {why}"))
}

#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    lines: u64,
    cut: bool,
}

fn text_result(bytes: Vec<u8>) -> ToolResult {
    match String::from_utf8(bytes) {
        Ok(text) => ToolResult::success(text.strip_prefix('\u{feff}').unwrap_or(&text)),
        Err(e) => {
            let mut result = ToolResult::success(String::from_utf8_lossy(e.as_bytes()).into_owned());
            let note = "The file is not valid UTF-8: bytes that cannot be read are shown as �.";
            add_note(&mut result, note);
            result.with_metadata("lossy", true)
        }
    }
}
