//! The tool `edit_file`: replaces a text in a file, once or (if the call asks for it) everywhere.

use archon_types::{
    Context, Correction, Json, Preview, Tool, ToolContext, ToolError, ToolResult, ToolSpec, metadata,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{DiffOptions, Workspace, diff, workspace::Target};

/// Maximum size of a file that can be edited, in bytes.
const MAX_FILE: u64 = 10_000_000;

/// Edits a text file of a [`Workspace`]. It needs the permission `fs_write`. The session must have read the
/// file, and the file must not have changed since.
#[derive(Clone, Debug)]
pub struct EditFile {
    spec: ToolSpec,
    workspace: Workspace,
    diff: DiffOptions,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// File path
    path: String,
    /// Text to replace, exactly as it stands in the file; it must stand there once
    old_text: String,
    /// Text to put in its place
    new_text: String,
    /// Replace it wherever it stands
    replace_all: Option<bool>,
}

/// An edit that was checked but not written.
struct Edit {
    target: Target,
    before: String,
    after: String,
    count: usize,
}

impl EditFile {
    /// Creates the tool for the files of a workspace.
    pub fn new(workspace: Workspace) -> Self {
        let about = "Replaces a text in a file. The text must stand there exactly once; take enough lines around it. \
                     Read the file first.";
        let example = serde_json::json!({
            "path": "config.toml",
            "old_text": "port = 80\n",
            "new_text": "port = 8080\n",
        });
        let names = ["edit_file", "Edit file"];
        let spec = super::spec::<Arguments>(names, about, super::changes_files(), example);
        Self { spec, workspace, diff: DiffOptions::default() }
    }

    /// Sets the options of the diffs in previews and results.
    ///
    /// ```
    /// use archon_tools::{DiffOptions, Workspace, builtin::EditFile};
    ///
    /// fn edit_file(workspace: Workspace) -> EditFile {
    ///     let mut diff = DiffOptions::default();
    ///     diff.context_lines = 1;
    ///     EditFile::new(workspace).with_diff(diff)
    /// }
    /// ```
    pub fn with_diff(mut self, diff: DiffOptions) -> Self {
        self.diff = diff;
        self
    }

    /// Computes the edit without writing the file; `find` resolves the path in the arguments.
    fn plan(
        &self,
        arguments: Json,
        run: &Context,
        find: impl Fn(&str) -> Result<Target, ToolError>,
    ) -> Result<Edit, ToolError> {
        let Arguments { path, old_text, new_text, replace_all } = crate::macro_support::arguments(arguments)?;
        if old_text.is_empty() {
            return Err(ToolError::InvalidArgs(
                "old_text is empty. Say which text is to be replaced; to write a whole file use write_file."
                    .to_owned(),
            ));
        }
        if old_text == new_text {
            return Err(ToolError::InvalidArgs(
                "old_text and new_text are the same: nothing to do.".to_owned(),
            ));
        }
        let target = find(&path)?;
        let Some(existing) = &target.existing else {
            // This fails with similar names if the path is inside of the workspace.
            self.workspace.resolve(&path)?;
            return Err(ToolError::NotFound(format!("'{}' not found.", target.name)));
        };
        self.workspace.check_seen(&run.session, &target)?;
        let before = existing.text(&target.name, MAX_FILE)?;
        let count = before.matches(&old_text).count();
        let after = match (count, replace_all.unwrap_or(false)) {
            (0, _) => return Err(ToolError::InvalidArgs(absent(&target.name, &before, &old_text))),
            (1, _) | (_, true) => before.replace(&old_text, &new_text),
            (count, false) => {
                return Err(ToolError::InvalidArgs(format!(
                    "old_text stands {count} times in '{}' (lines {}); it must stand there exactly once. Take more of \
                     the text around it, or set replace_all to replace all of them.",
                    target.name,
                    lines_of(&before, &old_text)
                )));
            }
        };
        Ok(Edit { target, before, after, count })
    }

    fn edit(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Edit { target, before, after, count } =
            self.plan(arguments, &context.run, |path| self.workspace.target_for(path, context))?;
        let seen = self.workspace.replace(&context.run.session, &target, after.as_bytes())?;
        let change = diff::change(&target.name, Some(&before), &after, self.diff);
        let times = if count == 1 { String::new() } else { format!(" in {count} places") };
        let mut result = ToolResult::success(format!("Edited '{}'{times}.", target.name));
        if let Some(diff) = change.diff {
            result = result.with_metadata("diff", diff);
        }
        let result = result.with_metadata("path", target.name).with_metadata("replaced", count);
        Ok(result.with_metadata(metadata::SEEN, seen))
    }
}

impl Tool for EditFile {
    tool_methods!(edit in workspace);

    fn preview(&self, arguments: &Json, run: &Context) -> Result<Option<Preview>, ToolError> {
        let Edit { target, before, after, .. } =
            self.plan(arguments.clone(), run, |path| self.workspace.target(path))?;
        let mut preview = target.preview("Edit", &self.workspace);
        preview.changes.push(diff::change(&target.name, Some(&before), &after, self.diff));
        Ok(Some(preview))
    }

    /// Offers the correction `replace_all` if the text to replace occurs several times and the model did not
    /// set `replace_all`.
    fn correction(&self, arguments: &Json, run: &Context) -> Option<Correction> {
        let mut all = arguments.clone();
        let before = all.as_object_mut()?.insert("replace_all".to_owned(), true.into());
        if before.is_some_and(|said| !said.is_null()) {
            return None;
        }
        let edit = self
            .plan(all.clone(), run, |path| self.workspace.target(path))
            .ok()
            .filter(|edit| edit.count > 1)?;
        let what = format!("old_text stands {} times, and replace_all was set", edit.count);
        Some(Correction::new("replace_all", all, what))
    }
}

/// Returns the error text for a text `wanted` that does not occur in the file. If a part of the file differs
/// from `wanted` only in white space, the error names its first line.
fn absent(name: &str, text: &str, wanted: &str) -> String {
    let advice = match first_likely_line(text, wanted) {
        Some(line) => {
            format!(
                "Line {line} differs from it only in white space: copy it from there, spaces and tabs included."
            )
        }
        None => "Read the file again and copy the text exactly, without line numbers.".to_owned(),
    };
    format!("old_text stands 0 times in '{name}'; it must stand there exactly once. {advice}")
}

/// Returns the line of `text`, counted from 1, at which `wanted` begins if white space is ignored.
fn first_likely_line(text: &str, wanted: &str) -> Option<usize> {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<_> = wanted.lines().map(squeezed).skip_while(String::is_empty).collect();
    let first = wanted.first()?;
    let lines: Vec<_> = text.lines().map(squeezed).collect();
    let candidates = lines.iter().enumerate().filter(|(_, line)| *line == first).take(50);
    candidates
        .map(|(at, _)| at)
        .find(|&at| lines[at..].len() >= wanted.len() && lines[at..at + wanted.len()] == wanted[..])
        .map(|at| at + 1)
}

/// Returns the numbers of the first five lines of `text` where `wanted` occurs.
fn lines_of(text: &str, wanted: &str) -> String {
    let lines: Vec<_> = text
        .match_indices(wanted)
        .take(5)
        .map(|(at, _)| (text[..at].matches('\n').count() + 1).to_string())
        .collect();
    lines.join(", ")
}
