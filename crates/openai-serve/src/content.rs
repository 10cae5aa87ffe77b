//! The content of a client's message: texts, and images and PDF files as data.

use archon_types::{Content, Json, Media, MediaKind};

use crate::{
    body::{Fields, missing, wrong_type},
    error::ApiError,
    fields::unsupported,
};

/// Reads the content of a message: a text, or a list of parts. `param` names the content; only a person sends images
/// and PDF files.
pub(crate) fn read_content(content: &Json, param: &str, is_person: bool) -> Result<Vec<Content>, ApiError> {
    match content {
        Json::Null => Ok(Vec::new()),
        Json::String(text) => Ok(vec![Content::text(text.as_str())]),
        Json::Array(parts) => {
            let parts = parts.iter().enumerate();
            parts.map(|(index, part)| read_part(part, &format!("{param}[{index}]"), is_person)).collect()
        }
        _ => Err(wrong_type(param, "a string or a list of parts")),
    }
}

fn read_part(part: &Json, param: &str, is_person: bool) -> Result<Content, ApiError> {
    let Json::Object(part) = part else { return Err(wrong_type(param, "an object")) };
    let kind = part.get("type").and_then(Json::as_str).unwrap_or_default();
    match kind {
        "text" | "input_text" | "output_text" => {
            refuse_others(part, &["type", "text"], param)?;
            part_text(part, "text", param)
        }
        "refusal" if !is_person => {
            refuse_others(part, &["type", "refusal"], param)?;
            part_text(part, "refusal", param)
        }
        "image_url" if is_person => {
            refuse_others(part, &["type", "image_url"], param)?;
            let param = format!("{param}.image_url");
            match part.get("image_url") {
                Some(Json::Object(image)) => {
                    refuse_others(image, &["url", "detail"], &param)?;
                    read_image(image, "url", &param)
                }
                _ => Err(wrong_type(&param, "an object with the field `url`")),
            }
        }
        "input_image" if is_person => {
            refuse_others(part, &["type", "image_url", "detail"], param)?;
            read_image(part, "image_url", param)
        }
        "file" if is_person => {
            refuse_others(part, &["type", "file"], param)?;
            let param = format!("{param}.file");
            match part.get("file") {
                Some(Json::Object(file)) => {
                    refuse_others(file, &["filename", "file_data"], &param)?;
                    read_file(file, &param)
                }
                _ => Err(wrong_type(&param, "an object with the field `file_data`")),
            }
        }
        "input_file" if is_person => {
            refuse_others(part, &["type", "filename", "file_data", "detail"], param)?;
            check_detail(part, param)?;
            read_file(part, param)
        }
        _ => {
            let param = format!("{param}.type");
            let message = format!(
                "Unsupported value: '{param}' is {kind:?}; send text, and images and PDF files of a person."
            );
            Err(ApiError::field("unsupported_value", param, message))
        }
    }
}

fn part_text(part: &Fields, name: &str, param: &str) -> Result<Content, ApiError> {
    let text = part.get(name).and_then(Json::as_str).ok_or_else(|| missing(&format!("{param}.{name}")))?;
    Ok(Content::text(text))
}

/// Reads an image from the data URL in the field `name`. Other addresses are refused and never fetched, because they
/// would let a client reach whatever this process can reach.
fn read_image(image: &Fields, name: &str, param: &str) -> Result<Content, ApiError> {
    check_detail(image, param)?;
    let param = format!("{param}.{name}");
    let url = image.get(name).and_then(Json::as_str).ok_or_else(|| missing(&param))?;
    let Some((mime_type, data)) = read_data_url(url).filter(|(mime_type, _)| mime_type.starts_with("image/"))
    else {
        let message = format!(
            "Unsupported value: '{param}' is not a data URL with base64; send the image itself, as in \
             'data:image/png;base64,…'. No address is fetched."
        );
        return Err(ApiError::field("unsupported_value", param, message));
    };
    read_media(mime_type, data, None, MediaKind::Image, &param)
}

/// Reads a PDF file from the field `file_data`: a data URL, or the data in base64.
fn read_file(file: &Fields, param: &str) -> Result<Content, ApiError> {
    let name = crate::body::text(file, "filename")?;
    let param = format!("{param}.file_data");
    let text = file.get("file_data").and_then(Json::as_str).ok_or_else(|| missing(&param))?;
    let (_, data) = read_data_url(text).unwrap_or(("", text));
    read_media("application/pdf", data, name, MediaKind::Pdf, &param)
}

/// Returns media with this data in base64. The data must be of this kind.
fn read_media(
    mime_type: &str,
    data: &str,
    name: Option<&str>,
    kind: MediaKind,
    param: &str,
) -> Result<Content, ApiError> {
    let problem = match Media::from_base64(data, mime_type, name) {
        Ok(media) if media.kind() == kind => return Ok(media.into()),
        Ok(media) => format!("the data is {}", media.mime_type()),
        Err(e) => e.to_string(),
    };
    let message =
        format!("Unsupported value: '{param}' is not one of the {kind} that can be read: {problem}.");
    Err(ApiError::field("unsupported_value", param, message))
}

/// Refuses a level of detail other than the usual.
fn check_detail(part: &Fields, param: &str) -> Result<(), ApiError> {
    match part.get("detail") {
        None | Some(Json::Null) => Ok(()),
        Some(Json::String(detail)) if detail == "auto" => Ok(()),
        Some(_) => Err(unsupported(&format!("{param}.detail"))),
    }
}

/// Returns the media type and the base64 data of a data URL; `None` for another text.
fn read_data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// Returns an error for a field that is not in `known`, unless its value is null or an empty list, which ask for
/// nothing.
pub(crate) fn refuse_others(fields: &Fields, known: &[&str], param: &str) -> Result<(), ApiError> {
    let asks = |value: &Json| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
    let other = fields.iter().find(|(name, value)| !known.contains(&name.as_str()) && asks(value));
    other.map_or(Ok(()), |(name, _)| Err(unsupported(&format!("{param}.{name}"))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(content: &Json, is_person: bool) -> (&'static str, String) {
        let error = read_content(content, "c", is_person).unwrap_err();
        (error.code, error.param.unwrap())
    }

    #[test]
    fn read_content_reads_texts_and_images_of_both_endpoints() {
        let image = || Content::from(Media::new(b"\x89PNG\r\n\x1a\n", None).unwrap());
        let url = "data:image/png;base64,iVBORw0KGgo=";
        let of_chat =
            json!([{ "type": "text", "text": "a" }, { "type": "image_url", "image_url": { "url": url } }]);
        assert_eq!(read_content(&of_chat, "c", true).unwrap(), [Content::text("a"), image()]);
        let of_responses = json!([
            { "type": "input_text", "text": "a" },
            { "type": "input_image", "image_url": url, "detail": "auto", "file_id": null },
        ]);
        assert_eq!(read_content(&of_responses, "c", true).unwrap(), [Content::text("a"), image()]);
        let of_agent = json!([{ "type": "output_text", "text": "b", "annotations": [] }]);
        assert_eq!(read_content(&of_agent, "c", false).unwrap(), [Content::text("b")]);
        assert_eq!(read_content(&Json::Null, "c", false).unwrap(), []);
    }

    // spec: EX-16
    #[test]
    fn read_content_reads_pdf_files_of_both_endpoints() {
        let pdf = |name| [Content::from(Media::new(b"%PDF-1.7\n", name).unwrap())];
        let url = "data:application/pdf;base64,JVBERi0xLjcK";
        let of_chat = json!([{ "type": "file", "file": { "filename": "a.pdf", "file_data": url } }]);
        assert_eq!(read_content(&of_chat, "c", true).unwrap(), pdf(Some("a.pdf")));
        let bare = "JVBERi0xLjcK";
        let of_responses =
            json!([{ "type": "input_file", "filename": null, "file_data": bare, "detail": "auto" }]);
        assert_eq!(read_content(&of_responses, "c", true).unwrap(), pdf(None));
    }

    #[test]
    fn read_content_refuses_files_that_are_no_pdf_or_only_named() {
        let file = |file: Json| refusal(&json!([{ "type": "file", "file": file }]), true);
        let data = ("unsupported_value", "c[0].file.file_data".to_owned());
        for text in ["aGVsbG8=", "no base64", "data:image/png;base64,iVBORw0KGgo=", ""] {
            assert_eq!(file(json!({ "file_data": text })), data, "{text}");
        }
        assert_eq!(
            file(json!({ "file_id": "file-1" })),
            ("unsupported_parameter", "c[0].file.file_id".to_owned())
        );
        let address = json!([{ "type": "input_file", "file_url": "https://pages.example/a.pdf" }]);
        assert_eq!(refusal(&address, true), ("unsupported_parameter", "c[0].file_url".to_owned()));
        let of_agent = json!([{ "type": "input_file", "file_data": "JVBERi0xLjcK" }]);
        assert_eq!(refusal(&of_agent, false), ("unsupported_value", "c[0].type".to_owned()));
        let page =
            json!([{ "type": "image_url", "image_url": { "url": "data:image/png;base64,JVBERi0xLjcK" } }]);
        assert_eq!(refusal(&page, true), ("unsupported_value", "c[0].image_url.url".to_owned()));
    }

    #[test]
    fn read_content_names_the_part_that_it_refuses() {
        let audio = json!([{ "type": "text", "text": "a" }, { "type": "input_audio", "input_audio": {} }]);
        assert_eq!(refusal(&audio, true), ("unsupported_value", "c[1].type".to_owned()));
        let image = |url: &str, detail: &str| json!([{ "type": "image_url", "image_url": { "url": url, "detail": detail } }]);
        let address = image("https://pages.example/a.png", "auto");
        assert_eq!(refusal(&address, true), ("unsupported_value", "c[0].image_url.url".to_owned()));
        let detail = image("data:image/png;base64,AAAA", "high");
        assert_eq!(refusal(&detail, true), ("unsupported_parameter", "c[0].image_url.detail".to_owned()));
        assert_eq!(
            refusal(&image("data:image/png;base64,AAAA", "auto"), false),
            ("unsupported_value", "c[0].type".to_owned())
        );
        let file = json!([{ "type": "input_image", "file_id": "file-1" }]);
        assert_eq!(refusal(&file, true), ("unsupported_parameter", "c[0].file_id".to_owned()));
        assert_eq!(refusal(&json!(7), true), ("invalid_type", "c".to_owned()));
    }
}
