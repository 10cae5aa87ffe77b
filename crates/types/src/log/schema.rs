//! JSON Schema of the event stream, for programs that read it in other languages.

use schemars::generate::SchemaSettings;

use crate::Json;

use super::{event::Event, run_started::LOG_FORMAT};

/// Returns the JSON Schema (draft 2020-12) of one line of the event stream: a serialized [`Event`].
///
/// `$id` names the log format of the schema. New fields and new kinds of record may be added within a format,
/// so readers must ignore unknown ones; the meaning of existing fields never changes.
pub fn event_log_schema() -> Json {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Event>();
    schema.insert("$id".to_owned(), format!("archon:events:v{LOG_FORMAT}").into());
    schema.insert("title".to_owned(), format!("Archon event, log format {LOG_FORMAT}").into());
    schema.into()
}
