//! What a content filter objected to, as Azure tells it: by category, with a severity.
//!
//! <https://learn.microsoft.com/en-us/azure/ai-foundry/openai/concepts/content-filter>

use archon_types::Json;

/// The categories in a `content_filter_results` object by which something was stopped, in words; none if
/// nothing was.
pub(crate) fn objections(results: &Json) -> Option<String> {
    let all =
        results.as_object()?.iter().filter(|(_, found)| found.get("filtered") == Some(&Json::Bool(true)));
    let words: Vec<String> = all
        .map(|(category, found)| match found.get("severity").and_then(Json::as_str) {
            Some(severity) => format!("{category} ({severity})"),
            None => category.clone(),
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Why an answer is not there, with the categories where the service names them.
#[cfg(any(feature = "openai-compatible", feature = "openai-responses"))]
pub(crate) fn stopped(results: Option<&Json>) -> String {
    let text = "the service's content filter stopped the answer";
    match results.and_then(objections) {
        Some(words) => format!("{text}: {words}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // spec: P-21
    #[test]
    fn only_what_was_objected_to_is_named() {
        let results = json!({
            "hate": {"filtered": false, "severity": "safe"},
            "violence": {"filtered": true, "severity": "high"},
            "jailbreak": {"filtered": true, "detected": true},
            "custom_blocklists": {"filtered": false, "details": []},
            "error": {"code": "content_filter_error"},
        });
        assert_eq!(objections(&results).as_deref(), Some("violence (high), jailbreak"));
        assert_eq!(objections(&json!({"hate": {"filtered": false}})), None);
        assert_eq!(objections(&json!(7)), None);
    }
}
