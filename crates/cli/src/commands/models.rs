//! `archon models`: lists the models that can be used now, and shows the known facts about a model.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use serde_json::json;

use archon::{
    providers::{
        Catalogue, LocalServer, ModelInfo, ModelRef, PROFILES, PROTOCOLS, ServerAnswer, SetupError,
        ask_local_servers, catalogue_source,
    },
    types::{ModelPrice, format_money},
};

use super::ModelFlags;
use crate::{
    app::App,
    choose,
    config::{Settings, catalogue_reason},
    exit::Exit,
    failure::Failure,
    local,
    output::Look,
    own_file,
    text::one_line,
};

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the models of running servers, of the configured service, and on this disk
    List {
        #[command(flatten)]
        flags: ModelFlags,
        /// List the models of this provider in the catalogue instead, without a request to it
        #[arg(long, value_name = "PROVIDER")]
        provider: Option<String>,
    },
    /// Show the known facts about a model: its context window, its prices, its abilities
    Show {
        /// The model, as PROVIDER:MODEL
        model: String,
    },
    /// Store a catalogue of models over the built-in one; it replaces the one that was stored before
    Import {
        /// The catalogue: JSON lines as in crates/providers/models.jsonl
        file: PathBuf,
    },
}

/// A model that can be used.
#[derive(Debug, Serialize)]
struct Item {
    /// The name for `--model`.
    model: String,
    /// The provider of the model.
    from: String,
    #[serde(flatten)]
    known: Known,
}

/// The known properties of a model.
#[derive(Debug, Default, Serialize)]
struct Known {
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output: Option<u64>,
    /// The price in millionths of a US dollar per million tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<ModelPrice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vision: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    small: Option<bool>,
    /// The source of these properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

impl From<ModelInfo> for Known {
    fn from(info: ModelInfo) -> Self {
        Self {
            context_window: info.context_window,
            max_output: info.max_output,
            price: info.price,
            thinking: Some(info.thinking),
            vision: Some(info.vision),
            tools: info.tools,
            small: info.is_small,
            source: Some(info.source),
        }
    }
}

impl Known {
    fn of(catalogue: &Catalogue, provider: &str, model: &str) -> Self {
        catalogue.info(provider, model).map(Self::from).unwrap_or_default()
    }

    /// Formats the properties as a line; empty if none are known.
    fn line(&self) -> String {
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

impl ModelsCommand {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        if let Self::List { flags, .. } = self {
            flags.apply(&mut settings);
        }
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::List { provider: Some(provider), .. } => known(app, &provider),
            Self::List { .. } => list(app).await,
            Self::Show { model } => show(app, &model),
            Self::Import { file } => import(app, &file),
        }
    }
}

async fn list(app: &App) -> Result<Exit, Failure> {
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
    Ok(Exit::Finished)
}

/// Lists the models of a provider in the catalogue.
fn known(app: &App, provider: &str) -> Result<Exit, Failure> {
    let start = format!("{provider}:");
    let items: Vec<Item> = app
        .catalogue()?
        .models()
        .into_iter()
        .filter(|info| info.name.starts_with(&start))
        .map(|info| Item { model: info.name.clone(), from: info.source.clone(), known: info.into() })
        .collect();
    if items.is_empty() {
        let names = PROFILES.iter().map(|p| p.name).chain(PROTOCOLS.iter().map(|p| p.name));
        return match names.into_iter().find(|name| *name == provider) {
            Some(_) => Err(Failure::failed(
                format!("the catalogue has no models of {provider}"),
                format!("you can still name one: --model {provider}:MODEL"),
            )),
            None => Err(wrong_name(&format!("{provider}:MODEL"))),
        };
    }
    for item in &items {
        app.item(item, || format!("{:<48}  {}", item.model, item.known.line()));
    }
    app.note(format!("prices are per million tokens, from {}", catalogue_source()));
    Ok(Exit::Finished)
}

fn show(app: &App, name: &str) -> Result<Exit, Failure> {
    let parts: ModelRef = name.parse().map_err(|_| wrong_name(name))?;
    let provider = parts.profile.map_or(parts.protocol.name, |profile| profile.name);
    let elsewhere = parts.base_url.is_some();
    let catalogue = app.catalogue()?;
    let id = parts.base_url.as_deref().map_or(provider.to_owned(), |url| format!("{provider}@{url}"));
    let Some(info) = catalogue.info(&id, &parts.model) else {
        let nearest = catalogue.nearest(provider, &parts.model);
        let advice = match nearest.is_empty() || elsewhere {
            true => "the model can still be used; --max-cost needs a model with a known price".to_owned(),
            false => format!("did you mean {}?", nearest.join(", ")),
        };
        return Err(Failure::failed(format!("the catalogue does not have the model {name}"), advice));
    };
    let from = match (parts.base_url, parts.profile) {
        (Some(url), _) => url,
        (None, Some(profile)) => profile.base_url.to_owned(),
        (None, None) => parts.protocol.name.to_owned(),
    };
    let item = Item { model: info.name.clone(), from, known: info.into() };
    app.item(&item, || page(&item));
    Ok(Exit::Finished)
}

fn page(item: &Item) -> String {
    let known = &item.known;
    let tokens =
        |tokens: Option<u64>| tokens.map_or("not known".to_owned(), |t| format!("{} tokens", grouped(t)));
    let price = |of: fn(&ModelPrice) -> u64| match &known.price {
        Some(price) => format!("${} per million tokens", format_money(of(price))),
        None => "not known".to_owned(),
    };
    let yes = |is: Option<bool>| if is == Some(true) { "yes" } else { "no" }.to_owned();
    let mut rows = vec![
        ("model", item.model.clone()),
        ("from", item.from.clone()),
        ("window", tokens(known.context_window)),
        ("answer", tokens(known.max_output)),
        ("input", price(|p| p.input)),
        ("output", price(|p| p.output)),
        ("cache read", price(|p| p.cache_read)),
        ("cache write", price(|p| p.cache_write)),
        ("long prompt", known.price.map_or("not known".to_owned(), long_prices)),
        ("thinks", yes(known.thinking)),
        ("sees", yes(known.vision)),
    ];
    rows.extend(known.tools.map(|tools| ("tools", yes(Some(tools)))));
    rows.extend(known.small.map(|small| ("small", yes(Some(small)))));
    rows.extend(known.source.clone().map(|source| ("source", source)));
    rows.iter().map(|(name, value)| format!("{name:<12}{value}")).collect::<Vec<_>>().join("\n")
}

/// Formats the prices of calls with a long prompt; `the same` if there are no such prices.
fn long_prices(price: ModelPrice) -> String {
    let Some(long) = price.long else { return "the same".to_owned() };
    let (input, output) = (format_money(long.input), format_money(long.output));
    format!("${input} in, ${output} out, above {} tokens", grouped(long.above))
}

/// Stores a catalogue in the data folder, after the whole file was checked.
fn import(app: &App, file: &Path) -> Result<Exit, Failure> {
    let wrong = |e: String| {
        Failure::usage(
            format!("cannot import {}: {e}", file.display()),
            "a catalogue has a line for each model, as crates/providers/models.jsonl of a newer release",
        )
    };
    let text = std::fs::read_to_string(file).map_err(|e| wrong(e.to_string()))?;
    let own = Catalogue::default().with_file(&text).map_err(|e| wrong(catalogue_reason(e)))?;
    let place = app.catalogue_file();
    own_file::replace(&place, &text)
        .map_err(|e| Failure::unwritable(&place, &e, "set another folder with --data-dir DIR"))?;
    let built_in = Catalogue::default();
    let is_new = |name: &&str| name.split_once(':').is_some_and(|(p, m)| built_in.info(p, m).is_none());
    let (models, new) = (own.own_names().count(), own.own_names().filter(is_new).count());
    let file = place.display().to_string();
    app.item(&json!({"models": models, "new": new, "file": file}), || {
        format!("{models} models, {new} of them not built in; stored in {file}")
    });
    Ok(Exit::Finished)
}

fn wrong_name(name: &str) -> Failure {
    let reason = match name.parse::<ModelRef>() {
        Err(SetupError::UnknownProfile { name, nearest }) => {
            return Failure::usage(
                format!("no provider is called {name:?}"),
                format!("did you mean {}?", nearest.join(", ")),
            );
        }
        Err(e) => e.to_string(),
        Ok(_) => format!("model {name:?}"),
    };
    Failure::usage(reason, "write PROVIDER:MODEL, as in openai:gpt-5-mini")
}

/// Formats a number with commas between thousands.
fn grouped(number: u64) -> String {
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
