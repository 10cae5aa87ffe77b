//! Guard: the media in a call and in its result have types and sizes that the tool declares.

use std::collections::HashSet;

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
            if let Content::Image { data, mime_type } = block {
                *block = match Media::from_base64(data, mime_type, None) {
                    Ok(media) => media.into(),
                    Err(error) => Content::text(format!("[an image of the tool, left out: {error}]")),
                };
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

/// Returns the arguments that name media: strings, at any depth, whose schema has the format `media`.
fn references<'a>(schema: &'a Json, arguments: &'a Json) -> Vec<&'a str> {
    let mut search = Search { root: schema, seen: HashSet::new(), found: Vec::new() };
    search.look(schema, arguments);
    search.found
}

/// A search for the arguments that name media.
struct Search<'a> {
    root: &'a Json,
    /// The pairs of a schema and a value that were compared, because a schema may contain itself.
    seen: HashSet<(*const Json, *const Json)>,
    found: Vec<&'a str>,
}

impl<'a> Search<'a> {
    fn look(&mut self, schema: &'a Json, value: &'a Json) {
        if !self.seen.insert((schema, value)) {
            return;
        }
        if schema.get("format").and_then(Json::as_str) == Some("media") {
            self.found.extend(value.as_str());
        }
        let (root, target) = (self.root, schema.get("$ref").and_then(Json::as_str));
        if let Some(schema) = target.and_then(|to| root.pointer(to.strip_prefix('#')?)) {
            self.look(schema, value);
        }
        for schema in
            ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten()
        {
            self.look(schema, value);
        }
        match value {
            Json::Object(members) => {
                for (name, value) in members {
                    let declared = schema.get("properties").and_then(|all| all.get(name));
                    if let Some(schema) = declared.or_else(|| schema.get("additionalProperties")) {
                        self.look(schema, value);
                    }
                }
            }
            Json::Array(items) => {
                for (at, value) in items.iter().enumerate() {
                    let declared = schema.get("prefixItems").and_then(|all| all.get(at));
                    if let Some(schema) = declared.or_else(|| schema.get("items")) {
                        self.look(schema, value);
                    }
                }
            }
            _ => {}
        }
    }
}
