//! The tool `write_file`: creates a file, or replaces the content of one that the session has read.

use archon_types::{
    Context, Correction, Effect, Json, Preview, Tool, ToolContext, ToolError, ToolResult, ToolSpec, metadata,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{DiffOptions, Workspace, diff};

/// Writes a file of a [`Workspace`] atomically, and creates missing folders. It needs the permission
/// `fs_write`. An existing file must have been read in the same session, and must not have changed since.
#[derive(Clone, Debug)]
pub struct WriteFile {
    spec: ToolSpec,
    workspace: Workspace,
    diff: DiffOptions,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// File path
    path: String,
    /// The whole new content
    content: String,
}

impl WriteFile {
    /// Creates the tool for the files of a workspace.
    pub fn new(workspace: Workspace) -> Self {
        let mut annotations = super::changes_files();
        annotations.effect = Effect::Idempotent;
        let about = "Writes a file: creates it, or replaces its whole content. Read a file first if it exists; to \
                     change a part of it use edit_file.";
        let example = serde_json::json!({ "path": "notes.txt", "content": "hello\n" });
        let spec = super::spec::<Arguments>(["write_file", "Write file"], about, annotations, example);
        Self { spec, workspace, diff: DiffOptions::default() }
    }

    /// Sets the options of the diffs in previews and results.
    ///
    /// ```
    /// use archon_tools::{DiffOptions, Workspace, builtin::WriteFile};
    ///
    /// fn write_file(workspace: Workspace) -> WriteFile {
    ///     let mut diff = DiffOptions::default();
    ///     diff.context_lines = 1;
    ///     WriteFile::new(workspace).with_diff(diff)
    /// }
    /// ```
    pub fn with_diff(mut self, diff: DiffOptions) -> Self {
        self.diff = diff;
        self
    }

    fn write(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { path, content } = crate::macro_support::arguments(arguments)?;
        let session = &context.run.session;
        let target = self.workspace.target_for(&path, context)?;
        let name = &target.name;
        let created = target.existing.is_none();
        let done = |text: String| {
            ToolResult::success(text)
                .with_metadata("path", name.as_str())
                .with_metadata("size_bytes", content.len())
                .with_metadata("created", created)
        };
        if let Some(existing) = &target.existing
            && existing.bytes == content.len() as u64
            && existing.text(name, existing.bytes).is_ok_and(|text| text == content)
        {
            // The call was made before, for instance before a crash.
            return Ok(done(format!("'{name}' has exactly this content already.")));
        }
        self.workspace.check_seen(session, &target)?;
        let seen = self.workspace.replace(session, &target, content.as_bytes())?;
        let verb = if created { "Created" } else { "Replaced" };
        let text = format!("{verb} '{name}' ({} bytes, {} lines).", content.len(), content.lines().count());
        Ok(done(text).with_metadata(metadata::SEEN, seen))
    }
}

impl Tool for WriteFile {
    tool_methods!(write in workspace);

    fn preview(&self, arguments: &Json, run: &Context) -> Result<Option<Preview>, ToolError> {
        let Arguments { path, content } = crate::macro_support::arguments(arguments.clone())?;
        let target = self.workspace.target(&path)?;
        let before = match &target.existing {
            // A file that is not text or is too large is shown without a diff.
            Some(existing) => {
                let text = existing.text(&target.name, self.diff.max_file_size as u64).ok();
                if text.as_ref() != Some(&content) {
                    self.workspace.check_seen(&run.session, &target)?;
                }
                Some(text)
            }
            None => None,
        };
        let verb = if before.is_some() { "Replace" } else { "Create" };
        let mut preview = target.preview(verb, &self.workspace);
        preview.changes.push(match before {
            Some(None) => archon_types::FileChange::new(&target.name),
            Some(Some(text)) => diff::change(&target.name, Some(&text), &content, self.diff),
            None => diff::change(&target.name, None, &content, self.diff),
        });
        Ok(Some(preview))
    }

    /// Offers to create an empty file if the call has only a path and the file does not exist.
    fn correction(&self, arguments: &Json, _: &Context) -> Option<Correction> {
        let mut said = arguments.as_object().filter(|said| said.len() == 1)?.clone();
        let target = self.workspace.target(said.get("path")?.as_str()?).ok()?;
        if target.existing.is_some() {
            return None;
        }
        said.insert("content".to_owned(), "".into());
        Some(Correction::new("empty_content", Json::Object(said), "content was left out, and is empty"))
    }
}
