//! Guard: the media in a call and in its result have types and sizes that the tool declares.

use archon_types::{Content, Json, Media, ToolResult};

use crate::guard::{Ended, Guard, Inspection, Verdict};

pub(crate) struct MediaTypes;

impl Guard for MediaTypes {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let Some(tool) = &inspection.tool else { return Verdict::Pass };
        let annotations = &tool.spec.annotations;
        if annotations.input_mime_types.is_empty() {
            return Verdict::Pass;
        }
        let most = annotations.max_input_size.unwrap_or(Media::MAX_BYTES as u64);
        for reference in references(&tool.spec.parameters, inspection.arguments()) {
            let media = match inspection.run.find_media(reference) {
                Ok(media) => media,
                Err(problem) => {
                    return Verdict::refuse("unknown_media", format!("{problem} The tool was not run."));
                }
            };
            if !annotations.takes_media(media.mime_type()) {
                return Verdict::refuse(
                    "media_type",
                    format!(
                        "The tool '{}' takes {}, and {reference} is {}. The tool was not run.",
                        inspection.call.name,
                        annotations.input_mime_types.join(", "),
                        media.mime_type()
                    ),
                );
            }
            if media.size() > most {
                return Verdict::refuse(
                    "media_size",
                    format!(
                        "The tool '{}' takes media of at most {most} bytes, and {reference} has {}. The tool was not \
                         run.",
                        inspection.call.name,
                        media.size()
                    ),
                );
            }
        }
        Verdict::Pass
    }

    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        let annotations = &ended.tool.spec.annotations;
        let mut rest = Media::MAX_BYTES;
        for block in &mut result.content {
            // An image becomes a medium, so that the log has only its hash.
            if let Content::Image { data, mime_type } = block
                && let Ok(media) = Media::from_base64(data, mime_type, None)
            {
                *block = media.into();
            }
            let Some(media) = block.as_media() else { continue };
            // Four digits of base64 stand for three bytes.
            let size = media.base64.map_or(0, |data| data.len() / 4 * 3);
            let problem = match rest.checked_sub(size) {
                _ if !annotations.may_return(media.mime_type) => {
                    "the tool does not declare this type, left out"
                }
                None => "the result has too many bytes, left out",
                Some(less) => {
                    rest = less;
                    continue;
                }
            };
            let note = media.note(problem);
            *block = Content::text(note);
        }
    }
}

/// Returns the arguments that name media: strings, and strings in lists, whose schema has the format `media`.
fn references<'a>(schema: &'a Json, arguments: &'a Json) -> Vec<&'a str> {
    let is_media = |schema: &Json| schema.get("format").and_then(Json::as_str) == Some("media");
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else { return Vec::new() };
    let named = properties.iter().filter_map(|(name, schema)| Some((schema, arguments.get(name)?)));
    let values = named.flat_map(|(schema, value)| match (value, schema.get("items")) {
        (Json::Array(items), Some(of_item)) if is_media(of_item) => items.iter().collect(),
        (value, _) if is_media(schema) => vec![value],
        _ => Vec::new(),
    });
    values.filter_map(Json::as_str).collect()
}
