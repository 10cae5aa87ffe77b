//! `archon models`: lists the models that can be used now, and shows the known facts about a model.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use archon::{
    providers::{Catalogue, ModelRef, PROFILES, PROTOCOLS, SetupError, catalogue_source},
    types::{ModelPrice, format_money},
};

use super::ModelFlags;
use crate::{
    app::App,
    config::{Settings, catalogue_reason},
    exit::Exit,
    failure::Failure,
    lists::models::{Item, grouped, list},
    own_file,
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
            Self::List { .. } => {
                list(app).await?;
                Ok(Exit::Finished)
            }
            Self::Show { model } => show(app, &model),
            Self::Import { file } => import(app, &file),
        }
    }
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
        ("reads PDF", yes(known.pdf)),
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
