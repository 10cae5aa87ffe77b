//! `archon init`: asks for a provider and its key, checks them, stores the key, and writes the default
//! model.
//!
//! Everything is checked before anything is stored. If the settings cannot be written in the end, the key is
//! removed again.

use std::path::PathBuf;

use archon::{
    providers::{LocalServer, ModelRef, PROFILES, PROTOCOLS, Profile, ServerAnswer, ask_local_servers},
    types::Secret,
};
use serde_json::json;

use crate::{
    app::App,
    ask::Prompt,
    choose,
    config::{Edit, Name, Owner},
    credentials::{self, Service},
    exit::Exit,
    failure::Failure,
    local, memory,
    name_advice::name_advice,
    output::Look,
    secret_input,
    text::{visible, visible_path},
    trial,
};

#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// The provider's name, as in PROVIDER:MODEL: openai, anthropic, ollama, …
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The default model: the provider's name for it, or PROVIDER:MODEL [default: one that suits most tasks]
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// Read the key from standard input
    #[arg(long)]
    key_stdin: bool,
    /// Store the key and the model without a test question to the model
    #[arg(long)]
    no_check: bool,
}

/// A provider that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    /// The provider's name, as before the colon in `PROVIDER:MODEL`.
    name: &'static str,
    /// The service whose key the provider needs; `None` if it needs no key.
    service: Option<Service>,
}

/// The provider name for models that run in this process.
const LOCAL: &str = "local";
/// The name that the stored key gets among the service's keys; see `archon credentials`.
const ACCOUNT: &str = "primary";

impl InitArgs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        credentials::check_built()?;
        let settings = app.sources.user.clone().ok_or_else(|| {
            Failure::usage("there is no home directory for settings", "set HOME, or XDG_CONFIG_HOME")
        })?;
        let mut edit = Edit::of(&settings, Owner::User)?;
        let choice = self.choice(app)?;
        let model = self.model_of(app, choice).await?;
        edit.set(&Name::of_key("model"), &model)?;
        let key = self.key_of(app, choice).await?;
        if !self.no_check {
            trial::ask(app, choice.service.zip(key.as_ref()), &model).await?;
        }
        let replaced = match choice.service.zip(key.as_ref()) {
            Some((service, key)) => Some(store(app, service, key, &edit).await?),
            None => edit.write().map(|()| None)?,
        };
        self.report(app, choice, &model, replaced, settings);
        if self.provider.is_none() && self.model.is_none() {
            offer_table(app).await;
        }
        app.note("next: archon run \"What is 15% of 200?\"");
        Ok(Exit::Finished)
    }

    fn report(&self, app: &App, choice: Choice, model: &str, replaced: Option<bool>, settings: PathBuf) {
        let file = visible_path(&settings);
        if app.json {
            let key = replaced.map(|replaced| if replaced { "replaced" } else { "kept" });
            let item = json!({
                "provider": choice.name, "model": model, "key": key, "checked": !self.no_check, "file": file,
            });
            return app.item(&item, String::new);
        }
        if let Some(replaced) = replaced {
            let done = if replaced { "replaced" } else { "stored" };
            app.output.note(Look::Plain, format!("the key of {} ({ACCOUNT}) is {done}", choice.name));
        }
        app.output.note(Look::Plain, format!("{file}: model = {}", visible(model)));
    }

    /// Returns the provider of the flags, or the one that a person chooses.
    fn choice(&self, app: &App) -> Result<Choice, Failure> {
        // A whole name of a model begins with its provider.
        let of_model = || self.model.as_deref().filter(|model| model.parse::<ModelRef>().is_ok());
        let of_model = || of_model()?.split([':', '@']).next();
        match self.provider.as_deref().or_else(of_model) {
            Some(name) => Choice::named(name),
            None if app.can_ask() => Choice::chosen_on_terminal(app),
            None => Err(Failure::usage(
                "there is no terminal on which to ask for the provider",
                format!("name it: archon init --provider NAME; the providers are: {}", names().join(", ")),
            )),
        }
    }

    /// Returns the default model, with its provider.
    async fn model_of(&self, app: &App, choice: Choice) -> Result<String, Failure> {
        let given = match &self.model {
            Some(model) => Some(model.clone()),
            None => choice.default_model(app).await?,
        };
        let of_shell = || {
            let question = format!("model of {}: ", choice.name);
            Prompt::line_of(app, &question).map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
        };
        let given = given.or_else(|| app.can_ask().then(of_shell).flatten());
        let model = given.ok_or_else(|| {
            let name = choice.name;
            Failure::usage(
                format!("{name} has no default model"),
                format!("name one: --model M; `archon models list --provider {name}` shows some"),
            )
        })?;
        let begins = |name: &str| model.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '@']));
        let whole = if begins(choice.name) { model } else { format!("{}:{model}", choice.name) };
        match choice.name == LOCAL || whole.parse::<ModelRef>().is_ok() {
            true => Ok(whole),
            false => Err(Failure::usage(
                format!("{whole:?} is not the name of a model"),
                "write the provider's name for it: --model M, or the whole name: --model PROVIDER:MODEL",
            )),
        }
    }

    /// Returns the key that is piped in or typed. Without `--key-stdin`: `None` if the provider needs no key, or
    /// if the environment has it.
    async fn key_of(&self, app: &App, choice: Choice) -> Result<Option<Secret>, Failure> {
        let Some(service) = choice.service else {
            return match self.key_stdin {
                true => Err(Failure::usage(format!("{} needs no key", choice.name), "leave out --key-stdin")),
                false => Ok(None),
            };
        };
        let is_set = |name: &&&str| app.sources.env.get(**name).is_some_and(|value| !value.trim().is_empty());
        let set = service.variables.iter().find(is_set);
        let advice = "pipe the key in as text: archon init --provider NAME --key-stdin < FILE";
        match (set, self.key_stdin) {
            (Some(variable), false) => {
                app.output.note(Look::Plain, format!("{variable} is set, and is used: no key is stored"));
                Ok(None)
            }
            (None, false) if !app.output.asks => {
                Err(Failure::usage("there is no terminal on which to type the key", advice))
            }
            _ => {
                let key = secret_input::read(app, &format!("key of {}: ", service.name), advice).await?;
                if let Some(variable) = set {
                    app.output.note(Look::Plain, format!("{variable} is set, and takes precedence"));
                }
                Ok(Some(key))
            }
        }
    }
}

/// Asks a person whether to fetch the table of words with which memories are also found in other words. Nothing is fetched
/// without a terminal. A failure is a warning, since the model and its key are stored.
async fn offer_table(app: &App) {
    let Some(table) = memory::missing_table(app).filter(|_| app.can_ask()) else { return };
    let later = format!("to fetch it later: archon model pull {table}");
    let question = "Fetch a table of words (19 MB), so that memories are also found in other words? [Y/n] ";
    let Some(line) = Prompt::line_of(app, question) else { return };
    if !matches!(line.trim().to_lowercase().as_str(), "" | "y" | "yes") {
        return app.hint(later);
    }
    match local::fetch(app, Some(table)).await {
        Ok(Some(path)) => app.note(format!("the table is in {}", visible_path(&path))),
        Ok(None) => app.hint(later),
        Err(e) => app.output.warn(format!("the table was not fetched: {}; {later}", e.line())),
    }
}

/// Stores the key and writes the settings, or does neither. Returns true if a key was replaced.
async fn store(app: &App, service: Service, key: &Secret, edit: &Edit) -> Result<bool, Failure> {
    let store = credentials::open(&app.data_dir, &app.sources)?;
    let place = credentials::place(service, ACCOUNT, credentials::owner());
    let before = store.get(&place).await?;
    let replaced = store.put(&place, Some(credentials::sealed(key))).await?;
    let Err(e) = edit.write() else { return Ok(replaced) };
    match before {
        Some(before) => drop(store.put(&place, Some(before)).await?),
        None => drop(store.delete(&place).await?),
    }
    Err(e)
}

impl Choice {
    fn named(name: &str) -> Result<Self, Failure> {
        if let Some(choice) = choices().into_iter().find(|choice| choice.name == name) {
            return Ok(choice);
        }
        let advice = name_advice(name, "providers", names().into_iter());
        Err(Failure::usage(format!("no provider is called {name:?}"), advice))
    }

    /// Shows all providers, and returns the one whose name or number a person types.
    fn chosen_on_terminal(app: &App) -> Result<Self, Failure> {
        let choices = choices();
        for (number, choice) in choices.iter().enumerate() {
            let key = if choice.service.is_some() { "" } else { "no key" };
            let about = choose::default_model(choice.name).unwrap_or(key);
            app.output.note(Look::Plain, format!("{:>4}  {:<18} {about}", number + 1, choice.name));
        }
        loop {
            let Some(line) = Prompt::line_of(app, "provider (its number or name): ") else {
                return Err(Failure::usage("no provider was chosen", "name it: archon init --provider NAME"));
            };
            let typed = line.trim();
            let numbered = typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
            match numbered.copied().map_or_else(|| Self::named(typed), Ok) {
                Ok(choice) => return Ok(choice),
                Err(e) => app.output.note(Look::Warning, e.line()),
            }
        }
    }

    /// Returns this provider's model for a person who names none: for a server on this machine, the first of
    /// its models that can answer.
    async fn default_model(self, app: &App) -> Result<Option<String>, Failure> {
        if self.name == LOCAL {
            let missing = || Failure::usage("no model is on this machine", "download one: archon model pull");
            return local::first(app).map(Some).ok_or_else(missing);
        }
        if let (None, Some(profile)) = (self.service, Profile::named(self.name)) {
            return first_of_server(app, profile).await.map(Some);
        }
        Ok(choose::default_model(self.name).map(str::to_owned))
    }
}

async fn first_of_server(app: &App, profile: &'static Profile) -> Result<String, Failure> {
    let known = choose::local_servers(app).into_iter().find(|server| server.profile == profile.name);
    let server = known.unwrap_or_else(|| LocalServer::new(profile.name, profile.base_url));
    let url = server.base_url.clone();
    let models = match ask_local_servers(vec![server], choose::LATE_TIMEOUT).await.pop() {
        Some((_, ServerAnswer::Models(models))) => models,
        _ => Vec::new(),
    };
    // A model that embeds texts cannot answer.
    let model = models.into_iter().find(|model| !model.to_lowercase().contains("embed"));
    let model = model.ok_or_else(|| {
        Failure::failed(
            format!("{} at {url} lists no models", profile.name),
            "start it and load a model, or name one that it will have: --model M --no-check",
        )
    })?;
    Ok(match url == profile.base_url {
        true => format!("{}:{model}", profile.name),
        false => format!("{}@{url}:{model}", profile.name),
    })
}

/// Returns all providers: first those with a default model, then the others that need a key, then those that
/// need no key.
fn choices() -> Vec<Choice> {
    let keyed = |name: &'static str, variables: &'static [&'static str]| {
        let shared = Service::named(name).ok().filter(|_| !variables.is_empty());
        shared.map(|service| Choice { name, service: Some(service) })
    };
    let profiles = PROFILES.iter().filter_map(|profile| keyed(profile.name, profile.key_variable.as_slice()));
    let is_whole = |name: &str| name != "openai-compatible";
    let protocols = PROTOCOLS.iter().filter(|protocol| protocol.is_built() && is_whole(protocol.name));
    let protocols = protocols.filter_map(|protocol| keyed(protocol.name, protocol.key_variables));
    let servers =
        PROFILES.iter().filter(|profile| profile.key_variable.is_none()).map(|profile| profile.name);
    let servers = servers.chain([LOCAL]).map(|name| Choice { name, service: None });
    let mut all: Vec<_> = profiles.chain(protocols).chain(servers).collect();
    all.sort_by_key(|choice| choose::default_rank(choice.name));
    all
}

fn names() -> Vec<&'static str> {
    choices().into_iter().map(|choice| choice.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_begin_with_those_that_have_a_default_model_and_end_without_keys() {
        let names = names();
        assert_eq!(names[..3], ["openai", "anthropic", "gemini"]);
        assert_eq!(names[names.len() - 2..], ["vllm", "local"]);
        for name in ["openrouter", "openai-responses", "ollama"] {
            assert_eq!(names.iter().filter(|other| **other == name).count(), 1, "{name}");
        }
        assert!(!names.contains(&"brave-search") && !names.contains(&"openai-compatible"));
    }

    #[test]
    fn choice_named_by_a_wrong_name_is_refused_with_the_nearest() {
        let refused = Choice::named("opnai").unwrap_err();
        assert!(
            refused.advice()[0].starts_with("did you mean openai? the providers are: openai, "),
            "{refused:?}"
        );
        assert_eq!(Choice::named("openai-responses").unwrap().service.unwrap().name, "openai");
    }
}
