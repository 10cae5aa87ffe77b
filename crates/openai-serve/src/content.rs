//! The content of a client's message: texts, and images as data URLs.

use archon_types::{Content, Json};

use crate::{
    body::{Fields, missing, wrong_type},
    error::ApiError,
    fields::unsupported,
};

/// Reads the content of a message: a text, or a list of parts. `param` names the content; only a person sends images.
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
        _ => {
            let param = format!("{param}.type");
            let message =
                format!("Unsupported value: '{param}' is {kind:?}; send text, and images of a person.");
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
    if !matches!(image.get("detail").and_then(Json::as_str), None | Some("auto")) {
        return Err(unsupported(&format!("{param}.detail")));
    }
    let param = format!("{param}.{name}");
    let url = image.get(name).and_then(Json::as_str).ok_or_else(|| missing(&param))?;
    let Some((mime_type, data)) = read_data_url(url) else {
        let message = format!(
            "Unsupported value: '{param}' is not a data URL with base64; send the image itself, as in \
             'data:image/png;base64,…'. No address is fetched."
        );
        return Err(ApiError::field("unsupported_value", param, message));
    };
    Ok(Content::Image { data: data.to_owned(), mime_type: mime_type.to_owned() })
}

/// Returns the media type and the base64 data of an image's data URL; `None` for another URL.
fn read_data_url(url: &str) -> Option<(&str, &str)> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let is_image = mime_type.starts_with("image/") && !data.is_empty() && data.bytes().all(is_base64);
    is_image.then_some((mime_type, data))
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
        let image = || Content::Image { data: "AAAA".to_owned(), mime_type: "image/png".to_owned() };
        let url = "data:image/png;base64,AAAA";
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
