//! JSON Schema of the event stream, for programs that read it in other languages.

use schemars::{Schema, generate::SchemaSettings, transform::RecursiveTransform};

use crate::Json;

use super::{event::Event, run_started::LOG_FORMAT};

/// Returns the JSON Schema (draft 2020-12) of one line of the event stream: a serialized [`Event`].
///
/// `$id` names the log format of the schema. New fields and new kinds of record may be added within a format,
/// so readers must ignore unknown ones; the meaning of existing fields never changes.
pub fn event_log_schema() -> Json {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let generator = settings.with_transform(RecursiveTransform(remove_examples)).into_generator();
    let mut schema = generator.into_root_schema_for::<Event>();
    schema.insert("$id".to_owned(), format!("archon:events:v{LOG_FORMAT}").into());
    schema.insert("title".to_owned(), format!("Archon event, log format {LOG_FORMAT}").into());
    schema.into()
}

/// Removes the examples of doc comments from a description: they are Rust, and the schema is for other languages.
fn remove_examples(schema: &mut Schema) {
    if let Some(Json::String(text)) = schema.get_mut("description") {
        let prose = text.split("```").step_by(2).map(str::trim).filter(|part| !part.is_empty());
        *text = prose.collect::<Vec<_>>().join("\n\n");
    }
}
