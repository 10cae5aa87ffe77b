//! Reads the results of Azure's content filter: categories with a severity.
//!
//! <https://learn.microsoft.com/en-us/azure/ai-foundry/openai/concepts/content-filter>

use archon_types::Json;

/// Returns the categories of a `content_filter_results` object that stopped an answer, as text; `None` if
/// there are none.
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

/// Returns the error text for an answer that the content filter stopped, with the categories if the service
/// names them.
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
    fn content_filter_objections_name_only_filtered_categories() {
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
