//! A server's answer to a call as a tool result: text and media for the model, the rest described.

use archon_types::{Content, Json, Media, MediaKind, ToolError, ToolResult, ToolResultStatus, metadata};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::{
    McpError, McpProblem, Phase,
    text::{plain, without_tags},
};

/// Maximum size of a medium, in characters of base64.
const LARGEST: usize = 8 << 20;
/// Maximum number of characters of a name, an address or a media type in a description.
const SHORT: usize = 300;

/// Makes a tool result of a server's answer. The text of the result is untrusted, like that of a web page:
/// the guards separate chat tokens and remove secrets, and the source is recorded. Tag characters are removed
/// from the text; the structured data in the metadata, which no model reads, stay unchanged.
pub(crate) fn shaped(answer: CallToolResult, source: &str) -> ToolResult {
    let mut content: Vec<Content> = answer.content.into_iter().map(block).collect();
    let structured = answer.structured_content;
    if let (true, Some(value)) = (content.iter().all(|block| block.as_text().is_none()), &structured) {
        content.push(Content::text(without_tags(value.to_string())));
    }
    if content.is_empty() {
        content.push("(The tool returned nothing.)".into());
    }
    let mut result = match answer.is_error {
        Some(true) => {
            let detail = Content::join_text(&content).into_owned();
            let mut failed = ToolResult::failed(ToolResultStatus::Error, format!("Error: {detail}"), detail)
                .with_metadata(metadata::ERROR_TYPE, "execution_error");
            failed.content.extend(content.into_iter().filter(|block| block.as_text().is_none()));
            failed
        }
        _ => {
            let mut succeeded = ToolResult::default();
            succeeded.content = content;
            succeeded
        }
    };
    if let Some(value) = structured {
        result = result.with_metadata(STRUCTURED, value);
    }
    result.with_metadata(metadata::SOURCE_URL, source)
}

/// The key of structured results in [`ToolResult::metadata`].
const STRUCTURED: &str = "structured_content";

/// Returns the addresses of resources that an answer links to.
pub(crate) fn links(answer: &CallToolResult) -> impl Iterator<Item = String> {
    answer.content.iter().filter_map(|block| match block {
        ContentBlock::ResourceLink(link) => Some(link.uri.clone()),
        _ => None,
    })
}

pub(crate) fn block(block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::text(without_tags(text.text)),
        ContentBlock::Image(image) => media("a picture", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => media("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => Content::text(format!(
            "(a link to the resource '{}': {})",
            plain(&link.name, SHORT),
            plain(&link.uri, SHORT)
        )),
        _ => Content::text("(content of an unknown kind)"),
    }
}

/// Converts a resource to content for the model. Other data than text, pictures, PDF files and audio are only
/// described.
pub(crate) fn resource(resource: ResourceContents) -> Content {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            Content::text(format!("Content of {}:\n\n{}", plain(&uri, SHORT), without_tags(text)))
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.unwrap_or_else(|| "unknown kind".to_owned());
            media(&format!("data of {}", plain(&uri, SHORT)), &kind, &blob)
        }
        _ => Content::text("(a resource of an unknown kind)"),
    }
}

/// Returns a picture, a PDF file or audio as a medium; a description of other data, and of data that are too large
/// or of another type.
fn media(what: &str, kind: &str, base64: &str) -> Content {
    let is_wanted = MediaKind::of(kind) != MediaKind::Other || kind.starts_with("audio/");
    match Media::from_base64(base64, kind, None) {
        Ok(media) if is_wanted && base64.len() <= LARGEST => media.into(),
        _ => described(what, kind, base64),
    }
}

/// Describes data that the model is not given.
fn described(what: &str, kind: &str, base64: &str) -> Content {
    let bytes = base64.len() / 4 * 3;
    Content::text(format!("({what}, {}, about {bytes} bytes, not shown)", plain(kind, SHORT)))
}

/// Converts a failure to a tool result. `may_change` is true if the call may have changed something.
pub(crate) fn failure(error: &McpError, may_change: bool, source: &str) -> ToolResult {
    let is_cut_off = error.phase == Phase::Call
        && matches!(error.problem, McpProblem::Timeout(_) | McpProblem::ConnectionClosed(_));
    let (status, code) = match &error.problem {
        McpProblem::Timeout(limit) if is_cut_off => {
            (ToolResultStatus::Timeout, ToolError::Timeout(*limit).code())
        }
        McpProblem::HeldBack(_) | McpProblem::UnreadablePins(_) => {
            (ToolResultStatus::Error, "permission_denied")
        }
        McpProblem::NoSuchTool(_) => (ToolResultStatus::Error, "not_found"),
        McpProblem::JsonRpc { code: -32602, .. } => (ToolResultStatus::Error, "invalid_parameters"),
        _ => (ToolResultStatus::Error, "execution_error"),
    };
    let mut text = format!("Error: {error}");
    if is_cut_off && may_change {
        text += "\nThe call may have taken effect. Check that before you call it again.";
    }
    ToolResult::failed(status, text.clone(), text)
        .with_metadata(metadata::ERROR_TYPE, Json::from(code))
        .with_metadata(metadata::SOURCE_URL, source)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn shaped_of(answer: Json) -> ToolResult {
        shaped(serde_json::from_value(answer).unwrap(), "mcp://files/read")
    }

    // spec: MC-04
    #[test]
    fn shaped_keeps_text_and_pictures_and_describes_the_rest() {
        let result = shaped_of(json!({ "content": [
            { "type": "text", "text": "hello" },
            { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
            { "type": "image", "data": "<svg/>", "mimeType": "image/png" },
            { "type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } },
            { "type": "resource_link", "uri": "file:///b", "name": "b" },
        ]}));
        let media = |data, kind| Content::from(Media::from_base64(data, kind, None).unwrap());
        assert_eq!(result.content[1], media("iVBORw0KGgo=", "image/png"));
        assert_eq!(result.content[3], media("AAAAAAAA", "audio/wav"));
        assert_eq!(
            result.text(),
            "hello\n(a picture, image/png, about 3 bytes, not shown)\nContent of file:///a:\n\ninside\n(a link to the resource 'b': file:///b)"
        );
        assert_eq!(result.metadata[metadata::SOURCE_URL], "mcp://files/read");
        assert!(!result.is_error());
    }

    // spec: MC-07
    #[test]
    fn shaped_of_an_error_is_an_error_and_of_data_without_text_the_data() {
        let failed =
            shaped_of(json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true }));
        assert_eq!(
            (failed.status, failed.text()),
            (ToolResultStatus::Error, "Error: no such file".to_owned())
        );
        let data = shaped_of(json!({ "content": [], "structuredContent": { "n": 1 } }));
        assert_eq!(
            (data.text(), &data.metadata["structured_content"]),
            ("{\"n\":1}".to_owned(), &json!({ "n": 1 }))
        );
        assert_eq!(shaped_of(json!({ "content": [] })).text(), "(The tool returned nothing.)");
    }

    #[test]
    fn shaped_removes_tag_characters() {
        let hidden = "a\u{e0041}\u{e0042}\u{202e}b\u{200d}";
        let result = shaped_of(json!({ "content": [
            { "type": "text", "text": hidden },
            { "type": "resource", "resource": { "uri": "file:///a", "text": hidden } },
        ]}));
        assert_eq!(result.text(), "ab\u{200d}\nContent of file:///a:\n\nab\u{200d}");
        let data = shaped_of(json!({ "content": [], "structuredContent": { "n": hidden } }));
        assert_eq!(data.text(), "{\"n\":\"ab\u{200d}\"}");
        let failed = shaped_of(json!({ "content": [{ "type": "text", "text": hidden }], "isError": true }));
        assert_eq!(failed.text(), "Error: ab\u{200d}");
    }

    #[test]
    fn failure_of_an_interrupted_call_notes_a_possible_effect() {
        let text = |phase, problem, may_change| {
            failure(&McpError::new("files", phase, problem), may_change, "mcp://files/write").text()
        };
        let late = || McpProblem::Timeout(Duration::from_secs(9));
        assert!(text(Phase::Call, late(), true).contains("may have taken effect"));
        assert!(!text(Phase::Call, late(), false).contains("may have taken effect"));
        assert!(!text(Phase::Initialize, late(), true).contains("may have taken effect"));
        let refused = McpProblem::JsonRpc { code: -32602, message: "no path".to_owned() };
        let result = failure(&McpError::new("files", Phase::Call, refused), true, "mcp://files/write");
        assert_eq!(result.metadata[metadata::ERROR_TYPE], "invalid_parameters");
    }
}
