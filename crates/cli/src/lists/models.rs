//! The models that can be used now, and what is known of them.

use archon::{
    providers::{Catalogue, LocalServer, ModelInfo, ServerAnswer, ask_local_servers},
    types::{ModelPrice, format_money},
};
use serde::Serialize;

use crate::{app::App, choose, failure::Failure, local, output::Look, text::one_line};

/// A model that can be used.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    /// The name for `--model`.
    pub(crate) model: String,
    /// The provider of the model.
    pub(crate) from: String,
    #[serde(flatten)]
    pub(crate) known: Known,
}

/// The known properties of a model.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Known {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_output: Option<u64>,
    /// The price in millionths of a US dollar per million tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price: Option<ModelPrice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vision: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pdf: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) small: Option<bool>,
    /// The source of these properties, such as a catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
}

impl From<ModelInfo> for Known {
    fn from(info: ModelInfo) -> Self {
        Self {
            context_window: info.context_window,
            max_output: info.max_output,
            price: info.price,
            thinking: Some(info.thinking),
            vision: Some(info.vision),
            pdf: Some(info.pdf),
            tools: info.tools,
            small: info.is_small,
            source: Some(info.source),
        }
    }
}

impl Known {
    pub(crate) fn of(catalogue: &Catalogue, provider: &str, model: &str) -> Self {
        catalogue.info(provider, model).map(Self::from).unwrap_or_default()
    }

    /// Formats the properties as a line; empty if none are known.
    pub(crate) fn line(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.context_window.map(|tokens| format!("{} tokens", grouped(tokens))));
        parts.extend(
            self.price.map(|p| format!("${} in, ${} out", format_money(p.input), format_money(p.output))),
        );
        parts.extend(self.thinking.filter(|is| *is).map(|_| "thinks".to_owned()));
        parts.extend(self.vision.filter(|is| *is).map(|_| "sees".to_owned()));
        parts.join(", ")
    }
}

/// Prints the models of running servers, of the configured service, and on this disk.
///
/// # Errors
/// The catalogue cannot be read.
pub(crate) async fn list(app: &App) -> Result<(), Failure> {
    let mut items = Vec::new();
    let catalogue = app.catalogue()?;
    let configured = app.config.settings.base_url.as_deref();
    let mut servers = choose::local_servers(app);
    servers.extend(configured.map(|url| LocalServer::new("openai-compatible", url)));
    app.output.wait("looking for models");
    for (LocalServer { profile, base_url: url, .. }, answer) in
        ask_local_servers(servers, choose::TIMEOUT).await
    {
        let models = match answer {
            ServerAnswer::Models(models) => models,
            ServerAnswer::Late => {
                let note = format!("{profile} at {url} did not list its models in time");
                app.output.note(Look::Plain, note);
                continue;
            }
            _ => continue,
        };
        let named = |model: &String| match configured {
            Some(configured) if configured == url => format!("openai-compatible@{url}:{model}"),
            _ => format!("{profile}:{model}"),
        };
        items.extend(models.iter().map(|m| {
            let known = Known::of(&catalogue, profile, m);
            Item { model: named(m), from: url.clone(), known }
        }));
    }
    items.extend(choose::keyed(app).map(|(name, variable)| Item {
        model: format!("{name}:MODEL"),
        from: format!("{variable} is set; `archon models list --provider {name}`"),
        known: Known::default(),
    }));
    items.extend(local::files(app).into_iter().map(|(name, path)| Item {
        model: format!("local:{name}"),
        from: path.display().to_string(),
        known: Known::default(),
    }));
    app.output.stop_waiting();
    app.note_if(items.is_empty(), "no models were found: `archon doctor` says where it looked");
    for item in &items {
        let line = item.known.line();
        // A server may choose its models' names freely, so they are made single lines.
        let name = || one_line(&item.model, usize::MAX);
        app.item(item, || format!("{:<40}  {}  {line}", name(), item.from).trim_end().to_owned());
    }
    Ok(())
}

/// Formats a number with commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (272_000, "272,000"), (1_048_576, "1,048,576")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
