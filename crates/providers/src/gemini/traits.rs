//! The abilities of Gemini's models, by their names.
//!
//! Source: <https://ai.google.dev/gemini-api/docs/thinking>.

use archon_types::{Json, ThinkingLevel};
use serde_json::Map;

/// The parameters that a model accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    /// Major and minor version; `None` for models that are not Gemini's.
    version: Option<(u32, u32)>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pro,
    Flash,
    FlashLite,
    /// A model for images or speech, without parameters of thinking.
    Media,
}

impl Traits {
    /// Returns the traits of the model of this name. A name without a version means the newest version.
    pub(super) fn of(model: &str) -> Self {
        let model = model.to_lowercase();
        let kind = if ["-image", "-tts", "native-audio"].iter().any(|word| model.contains(word)) {
            Kind::Media
        } else if model.contains("flash-lite") {
            Kind::FlashLite
        } else if model.contains("flash") {
            Kind::Flash
        } else {
            Kind::Pro
        };
        let Some(at) = model.find("gemini-") else { return Self { version: None, kind } };
        let number = model[at + "gemini-".len()..].split('-').next().unwrap_or_default();
        let mut parts = number.split('.').map_while(|part| part.parse().ok());
        let version = parts.next().map_or((3, 9), |major| (major, parts.next().unwrap_or(0)));
        Self { version: Some(version), kind }
    }

    /// Returns true from the third generation on: thinking then has levels, and calls must be signed.
    pub(super) fn is_third_generation(self) -> bool {
        self.version.is_some_and(|version| version >= (3, 0))
    }

    /// Returns the configuration for this level of thinking; `None` if the model accepts none.
    pub(super) fn thinking_config(self, level: ThinkingLevel) -> Option<Map<String, Json>> {
        let (key, value) = match self.version? {
            _ if self.kind == Kind::Media => return None,
            version if version >= (3, 0) => ("thinkingLevel", Json::from(self.level(version, level))),
            version if version >= (2, 5) => ("thinkingBudget", Json::from(self.budget(level))),
            _ => return None,
        };
        Some(Map::from_iter([(key.to_owned(), value)]))
    }

    fn level(self, version: (u32, u32), level: ThinkingLevel) -> &'static str {
        // Later models, and the large ones, always think a little.
        let knows_minimal = self.kind != Kind::Pro && version <= (3, 5);
        match level {
            ThinkingLevel::Off | ThinkingLevel::Minimal if knows_minimal => "MINIMAL",
            ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "LOW",
            ThinkingLevel::Medium if self.kind == Kind::Pro && version == (3, 0) => "HIGH",
            ThinkingLevel::Medium => "MEDIUM",
            ThinkingLevel::High => "HIGH",
        }
    }

    fn budget(self, level: ThinkingLevel) -> u32 {
        let least = match self.kind {
            Kind::Pro | Kind::Media => 128,
            Kind::Flash => 1,
            Kind::FlashLite => 512,
        };
        match level {
            // The large models always think.
            ThinkingLevel::Off if self.kind == Kind::Pro => least,
            ThinkingLevel::Off => 0,
            ThinkingLevel::Minimal => 128.max(least),
            ThinkingLevel::Low => 512.max(least),
            ThinkingLevel::Medium => 2_048,
            ThinkingLevel::High => 8_192,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    // spec: P-22
    #[test]
    fn thinking_is_asked_for_as_each_model_takes_it() {
        let mut table = String::new();
        for model in [
            "gemini-2.0-flash",
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "models/gemini-2.5-flash-lite",
            "gemini-3-pro-preview",
            "gemini-3.1-pro-preview",
            "gemini-3.5-flash",
            "gemini-flash-latest",
            "gemini-2.5-flash-image",
            "gemini-2.5-pro-preview-tts",
            "gemma-3-27b-it",
        ] {
            let traits = Traits::of(model);
            let levels = ["off", "minimal", "low", "medium", "high"];
            let levels = levels.map(|level| serde_json::from_value(level.into()).unwrap());
            let configs = levels.map(|level| {
                let config = traits.thinking_config(level).unwrap_or_default();
                config.values().map(Json::to_string).collect::<String>()
            });
            table += &format!("{model:30} {}\n", configs.join(" "));
        }
        expect![[r#"
            gemini-2.0-flash                   
            gemini-2.5-pro                 128 128 512 2048 8192
            gemini-2.5-flash               0 128 512 2048 8192
            models/gemini-2.5-flash-lite   0 512 512 2048 8192
            gemini-3-pro-preview           "LOW" "LOW" "LOW" "HIGH" "HIGH"
            gemini-3.1-pro-preview         "LOW" "LOW" "LOW" "MEDIUM" "HIGH"
            gemini-3.5-flash               "MINIMAL" "MINIMAL" "LOW" "MEDIUM" "HIGH"
            gemini-flash-latest            "LOW" "LOW" "LOW" "MEDIUM" "HIGH"
            gemini-2.5-flash-image             
            gemini-2.5-pro-preview-tts         
            gemma-3-27b-it                     
        "#]]
        .assert_eq(&table);
    }
}
