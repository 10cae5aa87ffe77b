//! Collects `reasoning_details`: parts of thinking, some of them signed or encrypted, which OpenRouter
//! passes on from other services and requires back unchanged.
//!
//! <https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks>

use archon_types::Json;

use crate::{answer::Answer, signature::Signature};

/// The reasoning details of an answer while it is received.
#[derive(Default)]
pub(super) struct ReasoningDetails(Vec<Json>);

impl ReasoningDetails {
    /// Adds a detail; a detail that continues the last one is merged into it.
    pub(super) fn add(&mut self, detail: Json) {
        match (self.0.last_mut(), detail) {
            (Some(Json::Object(open)), Json::Object(more)) if goes_on(open, &more) => {
                for (key, value) in more {
                    match (open.get_mut(&key), value) {
                        (_, Json::Null) => {}
                        (Some(Json::String(text)), Json::String(more)) if is_text(&key) => {
                            text.push_str(&more);
                        }
                        (_, value) => {
                            open.insert(key, value);
                        }
                    }
                }
            }
            (_, detail) => self.0.push(detail),
        }
    }

    /// Stores the details as the signature of the first thinking block of the answer, or of a new first block
    /// if there is no thinking.
    pub(super) fn sign(self, answer: &mut Answer) {
        if !self.0.is_empty() {
            answer.sign_first(Signature::Details(&Json::Array(self.0).to_string()).to_string());
        }
    }
}

type Object = serde_json::Map<String, Json>;

/// Returns true if a detail continues the one before. Encrypted details come complete.
fn goes_on(open: &Object, more: &Object) -> bool {
    let same = |key: &str| open.get(key) == more.get(key);
    same("type") && same("index") && more.keys().any(|key| is_text(key) || key == "signature")
}

fn is_text(key: &str) -> bool {
    matches!(key, "text" | "summary")
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use archon_types::{Content, Request};
    use serde_json::json;

    use super::*;

    fn answer() -> Answer {
        let mut answer = Answer::new(&Request::new("m", Vec::new()), "p", None);
        answer.text("answer".to_owned(), &mut VecDeque::new());
        answer
    }

    // spec: P-13, P-18
    #[test]
    fn reasoning_details_are_joined_by_index() {
        let mut details = ReasoningDetails::default();
        for detail in [
            json!({"type": "reasoning.text", "text": "Let ", "index": 0, "format": "f", "signature": null}),
            json!({"type": "reasoning.text", "text": "me", "index": 0, "format": null}),
            json!({"type": "reasoning.text", "signature": "sig", "index": 0}),
            json!({"type": "reasoning.text", "text": "More", "index": 1}),
            json!({"type": "reasoning.encrypted", "data": "a", "index": 2, "id": "x"}),
            json!({"type": "reasoning.encrypted", "data": "b", "index": 2, "id": "y"}),
            json!("odd"),
        ] {
            details.add(detail);
        }
        let mut signed = answer();
        details.sign(&mut signed);
        let content = &signed.message().content;
        let Content::Thinking { thinking, signature: Some(signature) } = &content[0] else { panic!() };
        assert_eq!((thinking.as_str(), content.len()), ("", 2));
        let Signature::Details(details) = Signature::of(signature) else { panic!("{signature}") };
        assert_eq!(
            serde_json::from_str::<Json>(details).unwrap(),
            json!([
                {"type": "reasoning.text", "text": "Let me", "index": 0, "format": "f", "signature": "sig"},
                {"type": "reasoning.text", "text": "More", "index": 1},
                {"type": "reasoning.encrypted", "data": "a", "index": 2, "id": "x"},
                {"type": "reasoning.encrypted", "data": "b", "index": 2, "id": "y"},
                "odd",
            ])
        );
        let mut plain = answer();
        ReasoningDetails::default().sign(&mut plain);
        assert_eq!(plain.message().content.len(), 1);
    }
}
