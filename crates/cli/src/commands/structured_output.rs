//! The flag for structured output, with a JSON Schema from a file.

use std::path::PathBuf;

use archon::{Archon, OutputSchema, types::Json};

use crate::failure::Failure;

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct OutputFlags {
    /// Answer with JSON that fits the schema in this file; an answer that does not fit is sent back to the
    /// model
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

impl OutputFlags {
    /// Returns the agent with structured output, if the flag is set.
    pub(crate) fn apply(&self, archon: Archon) -> Result<Archon, Failure> {
        Ok(match self.output_format()? {
            Some(schema) => archon.answering(schema),
            None => archon,
        })
    }

    fn output_format(&self) -> Result<Option<OutputSchema>, Failure> {
        let Some(path) = &self.schema else { return Ok(None) };
        let wrong = |what: String| {
            let advice = "a schema looks like {\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}}}";
            Failure::usage(what, advice)
        };
        let text = std::fs::read_to_string(path)
            .map_err(|e| wrong(format!("cannot read {}: {e}", path.display())))?;
        let schema: Json =
            serde_json::from_str(&text).map_err(|e| wrong(format!("{} is not JSON: {e}", path.display())))?;
        if !schema.is_object() {
            return Err(wrong(format!("{} is not a JSON object", path.display())));
        }
        Ok(Some(OutputSchema::new(name(path), schema)))
    }
}

/// Returns a name for the schema in requests: the file's name, with `_` for characters that services refuse.
fn name(path: &std::path::Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(64).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}
