//! `cargo xtask catalogue FILE`: makes the providers' catalogue of models from a downloaded list. It uses no
//! network: the catalogue changes when a person fetches a newer list and reviews the difference.
//!
//! The list is `model_prices_and_context_window.json` of LiteLLM (MIT), which is also in its PyPI package:
//!
//! ```sh
//! pip download --no-deps litellm && unzip litellm-*.whl 'litellm/model_prices*'
//! cargo xtask catalogue litellm/model_prices_and_context_window_backup.json --version 1.109.1 --date 2026-11-22
//! ```

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::repository;

const CATALOGUE: &str = "crates/providers/models.jsonl";

/// The providers to take: their name in the list, the prefix of their models' names, and our name.
const PROVIDERS: &[(&str, &str, &str)] = &[
    ("openai", "", "openai"),
    ("azure", "azure/", "azure"),
    ("anthropic", "", "anthropic"),
    ("gemini", "gemini/", "gemini"),
    ("vertex_ai-language-models", "", "vertex"),
    ("bedrock_converse", "", "bedrock"),
    ("bedrock", "", "bedrock"),
    ("xai", "xai/", "xai"),
    ("groq", "groq/", "groq"),
    ("cerebras", "cerebras/", "cerebras"),
    ("mistral", "mistral/", "mistral"),
    ("deepseek", "deepseek/", "deepseek"),
    ("together_ai", "together_ai/", "together"),
    ("fireworks_ai", "fireworks_ai/", "fireworks"),
    ("moonshot", "moonshot/", "moonshot"),
    ("zai", "zai/", "zai"),
];

/// Providers whose model names may contain a slash; for others it marks a variant of the list's own.
const WITH_SLASH: &[&str] = &["groq", "together", "fireworks"];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let version = args.option("--version")?.context("`--version` of the list is missing")?;
    let date = args.option("--date")?.context("`--date` of the list is missing, as 2026-11-22")?;
    let file = args.name()?;
    args.finish()?;
    let list = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let list: Map<String, Value> =
        serde_json::from_str(&list).with_context(|| format!("{file} is not a JSON object"))?;
    let models = models(&list);
    ensure!(
        models.len() > 100,
        "{file} has {} models of known providers, and more than 100 are needed: give LiteLLM's \
         model_prices_and_context_window.json",
        models.len()
    );
    let header = json!({
        "source": format!("LiteLLM {version}, model_prices_and_context_window.json"),
        "date": date,
        "prices": "US dollars for a million tokens",
    });
    let lines: Vec<String> =
        std::iter::once(header).chain(models.into_values()).map(|v| v.to_string()).collect();
    println!("{CATALOGUE}: {} models", lines.len() - 1);
    let path = repository::root().join(CATALOGUE);
    fs::write(&path, lines.join("\n") + "\n").with_context(|| format!("cannot write {CATALOGUE}"))
}

fn models(list: &Map<String, Value>) -> BTreeMap<String, Value> {
    let mut models = BTreeMap::new();
    for (name, model) in list {
        let text = |field: &str| model.get(field).and_then(Value::as_str).unwrap_or_default();
        let Some((_, start, provider)) = PROVIDERS.iter().find(|p| p.0 == text("litellm_provider")) else {
            continue;
        };
        let Some(name) = name.strip_prefix(start) else { continue };
        let answers = matches!(text("mode"), "chat" | "responses");
        let is_priced = model.get("input_cost_per_token").and_then(Value::as_f64) > Some(0.0);
        let is_variant = name.contains('/') && !WITH_SLASH.contains(provider);
        if answers && is_priced && !is_variant && !name.starts_with("ft:") {
            let name = format!("{provider}:{name}");
            let line = line(&name, model);
            models.insert(name, line);
        }
    }
    models
}

fn line(name: &str, model: &Value) -> Value {
    let mut line = Map::new();
    line.insert("model".to_owned(), name.into());
    for (ours, theirs) in [("context_window", "max_input_tokens"), ("max_output", "max_output_tokens")] {
        if let Some(tokens) = model.get(theirs).and_then(Value::as_f64).filter(|tokens| *tokens > 0.0) {
            line.insert(ours.to_owned(), (tokens as u64).into());
        }
    }
    for (ours, theirs) in PRICES {
        if let Some(price) = price(model, theirs) {
            line.insert(ours.to_owned(), price);
        }
    }
    if let Some(long) = long(model) {
        line.insert("long".to_owned(), long);
    }
    let abilities =
        [("thinking", "supports_reasoning"), ("vision", "supports_vision"), ("pdf", "supports_pdf_input")];
    for (ours, theirs) in abilities {
        if model.get(theirs).and_then(Value::as_bool) == Some(true) {
            line.insert(ours.to_owned(), true.into());
        }
    }
    Value::Object(line)
}

/// Our names of the prices, and the list's names.
const PRICES: [(&str, &str); 4] = [
    ("input", "input_cost_per_token"),
    ("output", "output_cost_per_token"),
    ("cache_read", "cache_read_input_token_cost"),
    ("cache_write", "cache_creation_input_token_cost"),
];

/// The lengths in thousands of tokens above which some models cost more.
const LONG: [u64; 5] = [100, 128, 200, 256, 272];

/// Returns the prices of long prompts, if there are any.
fn long(model: &Value) -> Option<Value> {
    LONG.into_iter().find_map(|thousands| {
        let mut long = Map::new();
        long.insert("above".to_owned(), (thousands * 1000).into());
        for (ours, theirs) in PRICES {
            if let Some(price) = price(model, &format!("{theirs}_above_{thousands}k_tokens")) {
                long.insert(ours.to_owned(), price);
            }
        }
        (long.contains_key("input") && long.contains_key("output")).then_some(Value::Object(long))
    })
}

fn price(model: &Value, field: &str) -> Option<Value> {
    model.get(field).and_then(Value::as_f64).filter(|price| *price > 0.0).map(dollars)
}

/// Converts the price of one token to that of a million, rounded to millionths of a dollar, our finest unit.
fn dollars(of_one: f64) -> Value {
    let micros = (of_one * 1e12).round();
    (micros / 1e6).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_answer_are_taken_and_named_as_we_do() {
        let list = json!({
            "gpt-x": {
                "litellm_provider": "openai", "mode": "chat", "max_input_tokens": 1000, "max_output_tokens": 10,
                "input_cost_per_token": 2.5e-07, "output_cost_per_token": 2e-06, "supports_vision": true, "supports_pdf_input": true,
                "input_cost_per_token_above_200k_tokens": 5e-07, "output_cost_per_token_above_200k_tokens": 4e-06,
                "input_cost_per_token_above_272k_tokens_batches": 1e-07,
            },
            "free": { "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 0.0 },
            "embed": { "litellm_provider": "openai", "mode": "embedding" },
            "groq/openai/oss": { "litellm_provider": "groq", "mode": "chat", "supports_reasoning": true, "input_cost_per_token": 1e-06 },
            "gemini/pro/variant": { "litellm_provider": "gemini", "mode": "chat", "input_cost_per_token": 1e-06 },
            "other/x": { "litellm_provider": "other", "mode": "chat" },
        });
        let lines: Vec<String> = models(list.as_object().unwrap()).values().map(Value::to_string).collect();
        assert_eq!(
            lines,
            [
                r#"{"model":"groq:openai/oss","input":1.0,"thinking":true}"#,
                r#"{"model":"openai:gpt-x","context_window":1000,"max_output":10,"input":0.25,"output":2.0,"long":{"above":200000,"input":0.5,"output":4.0},"vision":true,"pdf":true}"#,
            ]
        );
    }
}
