//! Guard: formats a result at the wanted level of detail, and stores large data in a file.

use archon_types::{Content, ToolResult, metadata};

use crate::{
    ErrorStyle,
    guard::{Ended, Guard},
    output::{self, effective_level},
};

pub(crate) struct Format;

impl Guard for Format {
    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        if result.is_error() {
            if ended.options.error_text == ErrorStyle::Standard {
                result.content =
                    vec![output::error_observation(result, ended.context.tool_call_id.as_str()).into()];
            }
            return;
        }
        if ended.tool.spec.annotations.instructs && result.metadata.contains_key(metadata::PINNED) {
            return; // A part of the instructions may mean the opposite of the whole.
        }
        let level = effective_level(
            ended.wanted.level,
            ended.tool.spec.annotations.output_level,
            ended.context_usage,
            ended.options.output_level,
        );
        let [Content::Text { text }] = result.content.as_slice() else { return };
        let directory = ended.wanted.storage_dir.as_deref().or(ended.options.storage_dir.as_deref());
        if level.is_none() && (directory.is_none() || text.len() <= output::LARGE) {
            return;
        }
        let data = output::Data::of(text);
        if let Some(directory) = directory.filter(|_| data.wants_file(level)) {
            match data.store(directory, ended.context.tool_call_id.as_str()) {
                Ok(file) => {
                    if let Some(place) = ended.to_sum_up.filter(|_| data.is_text()) {
                        // Set once at most: a result is stored in one file.
                        let _ = place.set(text.clone());
                    }
                    result.content = vec![output::stored(&file).into()];
                    result.data_file = Some(file);
                    result.output_level = level;
                    return;
                }
                Err(e) => {
                    // The result itself is still returned.
                    tracing::error!(target: "archon::tools", directory = %directory.display(), "a result cannot be stored: {e}");
                }
            }
        }
        if let Some(level) = level {
            result.content = vec![data.at(level).into()];
            result.output_level = Some(level);
        }
    }
}
