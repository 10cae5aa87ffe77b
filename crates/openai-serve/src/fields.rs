//! The fields of requests, in one table for each endpoint: fields that are read, that are accepted and not used, or
//! that are accepted with certain values.

use archon_types::Json;

use crate::{body::Fields, error::ApiError};

/// The treatment of a field. A field that is not in the table is refused. A field with the value null counts as
/// absent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Treatment {
    /// The field is read.
    Read,
    /// The field is accepted and not used, because it does not change an answer: it is for the records of the client,
    /// or about tools of the client, which are not supported.
    Unused,
    /// The field is accepted only with one of these values, written as JSON. They ask for nothing that differs from
    /// the usual.
    Only(&'static [&'static str]),
}

use Treatment::{Only, Read, Unused};

const NONE: Treatment = Only(&["[]"]);
const ZERO: Treatment = Only(&["0", "0.0"]);
const ONE: Treatment = Only(&["1", "1.0"]);
const NO_CHOICE: Treatment = Only(&["\"none\"", "\"auto\""]);
const USUAL_TIER: Treatment = Only(&["\"auto\"", "\"default\""]);

/// The fields of `POST /v1/chat/completions`.
pub(crate) const CHAT: &[(&str, Treatment)] = &[
    ("model", Read),
    ("messages", Read),
    ("stream", Read),
    ("stream_options", Read),
    ("metadata", Unused),
    ("parallel_tool_calls", Unused),
    ("prompt_cache_key", Unused),
    ("prompt_cache_retention", Unused),
    ("safety_identifier", Unused),
    ("user", Unused),
    ("frequency_penalty", ZERO),
    ("function_call", NO_CHOICE),
    ("functions", NONE),
    ("logit_bias", Only(&["{}"])),
    ("logprobs", Only(&["false"])),
    ("modalities", Only(&["[\"text\"]"])),
    ("n", ONE),
    ("presence_penalty", ZERO),
    ("response_format", Only(&["{\"type\":\"text\"}"])),
    ("service_tier", USUAL_TIER),
    ("stop", NONE),
    // No endpoint returns a completion later.
    ("store", Only(&["false"])),
    ("temperature", ONE),
    ("tool_choice", NO_CHOICE),
    ("tools", NONE),
    ("top_logprobs", ZERO),
    ("top_p", ONE),
    ("verbosity", Only(&["\"medium\""])),
];

/// The fields of `POST /v1/responses`.
pub(crate) const RESPONSES: &[(&str, Treatment)] = &[
    ("model", Read),
    ("input", Read),
    ("instructions", Read),
    ("previous_response_id", Read),
    ("conversation", Read),
    ("background", Read),
    ("stream", Read),
    ("stream_options", Read),
    ("parallel_tool_calls", Unused),
    ("prompt_cache_key", Unused),
    ("prompt_cache_retention", Unused),
    ("safety_identifier", Unused),
    ("user", Unused),
    ("include", NONE),
    // A response returns its metadata, and a run has no place for them.
    ("metadata", Only(&["{}"])),
    ("reasoning", Only(&["{}"])),
    ("service_tier", USUAL_TIER),
    // A run always has its log.
    ("store", Only(&["true"])),
    ("temperature", ONE),
    (
        "text",
        Only(&[
            "{\"format\":{\"type\":\"text\"}}",
            "{\"format\":{\"type\":\"text\"},\"verbosity\":\"medium\"}",
            "{\"verbosity\":\"medium\"}",
        ]),
    ),
    ("tool_choice", NO_CHOICE),
    ("tools", NONE),
    ("top_logprobs", ZERO),
    ("top_p", ONE),
    ("truncation", Only(&["\"disabled\"", "\"auto\""])),
];

/// Returns an error if a request has a field that is not supported.
pub(crate) fn check_fields(fields: &Fields, table: &[(&str, Treatment)]) -> Result<(), ApiError> {
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        match table.iter().find(|(known, _)| known == name) {
            Some((_, Only(values))) => check_value(name, value, values)?,
            Some(_) => {}
            None => return Err(unsupported(name)),
        }
    }
    Ok(())
}

/// Returns an error if the value of a field is not one of the accepted values.
fn check_value(name: &str, value: &Json, values: &[&str]) -> Result<(), ApiError> {
    let is_value = |text: &&str| serde_json::from_str::<Json>(text).is_ok_and(|known| known == *value);
    if values.iter().any(is_value) {
        return Ok(());
    }
    if values == ["[]"] {
        return Err(unsupported(name));
    }
    let message = format!(
        "Unsupported value: '{name}' does not support {value}; only {} is supported. The program that has \
         the agent decides about its settings; leave the field out.",
        values.join(" or ")
    );
    Err(ApiError::field("unsupported_value", name, message))
}

/// Returns the error for a field that is not supported.
pub(crate) fn unsupported(param: &str) -> ApiError {
    let message = format!(
        "Unsupported parameter: '{param}'. An agent has the tools and the settings of its program; leave the \
         field out."
    );
    ApiError::field("unsupported_parameter", param, message)
}

/// Returns true if the request asks for the usage at the end of the stream. Returns an error for unknown options
/// of streams.
pub(crate) fn wants_usage(fields: &Fields) -> Result<bool, ApiError> {
    let options = match fields.get("stream_options") {
        None | Some(Json::Null) => return Ok(false),
        Some(Json::Object(options)) => options,
        Some(_) => return Err(crate::body::wrong_type("stream_options", "an object")),
    };
    // Padding against an eavesdropper who counts bytes is not sent.
    let known = ["include_usage", "include_obfuscation"];
    match options.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(unsupported(&format!("stream_options.{key}"))),
        None if crate::body::flag(options, "include_obfuscation")? => {
            Err(unsupported("stream_options.include_obfuscation"))
        }
        None => crate::body::flag(options, "include_usage"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(table: &[(&str, Treatment)], name: &str, value: Json) -> Option<&'static str> {
        let mut fields = Fields::new();
        fields.insert(name.to_owned(), value);
        check_fields(&fields, table).err().map(|error| {
            assert_eq!(error.param.as_deref(), Some(name));
            error.code
        })
    }

    #[test]
    fn check_fields_refuses_by_name_what_cannot_be_honoured() {
        let (parameter, value) = (Some("unsupported_parameter"), Some("unsupported_value"));
        let tool = json!([{ "type": "function", "function": { "name": "f" } }]);
        for (name, refused, expected) in [
            ("tools", tool.clone(), parameter),
            ("functions", tool.clone(), parameter),
            ("tool_choice", json!("required"), value),
            ("n", json!(2), value),
            ("logprobs", json!(true), value),
            ("audio", json!({ "voice": "alloy" }), parameter),
            ("modalities", json!(["text", "audio"]), value),
            ("response_format", json!({ "type": "json_object" }), value),
            ("seed", json!(7), parameter),
            ("stop", json!(["END"]), parameter),
            ("store", json!(true), value),
            ("temperature", json!(0), value),
            ("top_p", json!(0.5), value),
            ("max_tokens", json!(100), parameter),
            ("max_completion_tokens", json!(100), parameter),
            ("web_search_options", json!({}), parameter),
            ("no_such_field", json!(1), parameter),
        ] {
            assert_eq!(code(CHAT, name, refused), expected, "{name}");
        }
        for (name, refused, expected) in [
            ("tools", tool, parameter),
            ("include", json!(["reasoning.encrypted_content"]), parameter),
            ("max_output_tokens", json!(100), parameter),
            ("prompt", json!({ "id": "p" }), parameter),
            ("metadata", json!({ "ticket": "7" }), value),
            ("reasoning", json!({ "effort": "high" }), value),
            ("store", json!(false), value),
            ("text", json!({ "format": { "type": "json_object" } }), value),
            ("messages", json!([]), parameter),
        ] {
            assert_eq!(code(RESPONSES, name, refused), expected, "{name}");
        }
    }

    #[test]
    fn check_fields_accepts_values_that_ask_for_nothing_and_null_everywhere() {
        for (name, value) in [
            ("tools", json!([])),
            ("tool_choice", json!("auto")),
            ("n", json!(1)),
            ("temperature", json!(1.0)),
            ("response_format", json!({ "type": "text" })),
            ("service_tier", json!("auto")),
            ("user", json!("ann")),
            ("metadata", json!({ "ticket": "7" })),
            ("max_tokens", Json::Null),
            ("no_such_field", Json::Null),
        ] {
            assert_eq!(code(CHAT, name, value), None, "{name}");
        }
    }

    #[test]
    fn wants_usage_reads_the_options_of_a_stream() {
        let read = |options: Json| {
            let mut fields = Fields::new();
            fields.insert("stream_options".to_owned(), options);
            wants_usage(&fields).map_err(|error| error.param)
        };
        assert_eq!(read(json!({ "include_usage": true })), Ok(true));
        assert_eq!(read(json!({ "include_obfuscation": false })), Ok(false));
        let obfuscation = Some("stream_options.include_obfuscation".to_owned());
        assert_eq!(read(json!({ "include_obfuscation": true })), Err(obfuscation));
        assert_eq!(read(json!({ "other": 1 })), Err(Some("stream_options.other".to_owned())));
    }
}
