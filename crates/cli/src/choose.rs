//! Chooses the model: from the settings, otherwise by a search, in this order.
//!
//! | setting | choice |
//! |---|---|
//! | `base_url` | that service, with the model of the settings, otherwise with the first model that it lists
//! |
//! | `model` as `PROVIDER:MODEL`, or a GGUF file | that one |
//! | `model` as a bare name | a running server that has the model, otherwise a service whose key is set |
//! | none | a service whose key is set and that has a [default](DEFAULT_MODELS), otherwise a running server,
//! otherwise a local model file; no file while a key is set |

mod keys;

use std::{sync::Arc, time::Duration};

use archon::{
    providers::{
        CatalogueProvider, ConnectOptions, LocalServer, ModelRef, OpenAiCompatible, OpenAiOptions, PROFILES,
        PROTOCOLS, Profile, ServerAnswer, SetupError, ask_local_servers, is_local_address,
    },
    types::{FallbackModel, Provider, Secret},
};

use crate::{
    app::App,
    cassette::refuse_replayed,
    chosen::{Chosen, Connected},
    config::Origin,
    exit::Exit,
    failure::Failure,
    local,
    text::visible,
};

pub(crate) use keys::key_variables;
use keys::{further_keys, how_to_give, is_foreign, keys, named_keys, own_keys};

/// The maximum time for a local server to list its models: enough for an idle server, and too short for
/// people to notice. A busy server gets [more time](LATE_TIMEOUT) later.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(400);
/// The maximum time for a local server that was too slow to list its models at a second attempt. The second
/// attempt follows if no other server has a fitting model.
pub(crate) const LATE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum time for a service in the settings to list its models, since the service may be far away.
const FAR_TIMEOUT: Duration = Duration::from_secs(10);

/// Services that can be used without a model name, each with its default model.
const DEFAULT_MODELS: &[(&str, &str)] = &[
    ("openai", "gpt-5-mini"),
    ("anthropic", "claude-haiku-4-5"),
    ("gemini", "gemini-2.5-flash"),
    ("mistral", "mistral-small-latest"),
    ("deepseek", "deepseek-chat"),
    ("xai", "grok-4.3"),
    ("groq", "openai/gpt-oss-120b"),
    ("cerebras", "gpt-oss-120b"),
    ("together", "openai/gpt-oss-120b"),
    ("fireworks", "accounts/fireworks/models/gpt-oss-120b"),
    ("moonshot", "kimi-k2.5"),
    ("zai", "glm-4.6"),
];

#[cfg(feature = "setup")]
pub(crate) fn default_model(service: &str) -> Option<&'static str> {
    DEFAULT_MODELS.iter().find(|(name, _)| *name == service).map(|(_, model)| *model)
}

/// Returns the rank of a service among those with a default model; other services come after them.
#[cfg(feature = "setup")]
pub(crate) fn default_rank(service: &str) -> usize {
    DEFAULT_MODELS.iter().position(|(name, _)| *name == service).unwrap_or(DEFAULT_MODELS.len())
}

/// Variables that are often set for other purposes.
const NOT_ONLY_FOR_MODELS: &[&str] = &["AWS_ACCESS_KEY_ID", "HF_TOKEN"];

/// Chooses the model. `recorded` is the model in the log of a run that is resumed; only flags override it.
pub(crate) async fn model(app: &App, recorded: Option<&str>) -> Result<Chosen, Failure> {
    let settings = &app.config.settings;
    let holds = |key| recorded.is_none() || app.config.is_flag(key);
    let url = settings.base_url.as_deref().filter(|_| holds("base_url"));
    let set = settings.model.as_deref().filter(|_| holds("model"));
    if let Some(replayed) = app.cassette.instead(set.or(recorded)) {
        return replayed;
    }
    let origin = |key| app.config.origin(key);
    let chosen = match (url, set, recorded) {
        (Some(url), model, _) => at_address(app, url, model.or(recorded), origin("base_url")).await,
        (None, Some(model), _) => named(app, model, origin("model")).await,
        (None, None, Some(model)) => {
            refuse_replayed(model)?;
            named(app, model, origin_of_recorded(app, model)).await
        }
        (None, None, None) => find_model(app).await,
    };
    app.cassette.around(chosen?)
}

/// Returns the origin of the address in the log of a run, if the settings have the same address with the same protocol;
/// otherwise the address may come from a stranger. The protocol counts because it decides which key is sent.
fn origin_of_recorded<'a>(app: &'a App, recorded: &str) -> Option<&'a Origin> {
    let parse = |model: &str| model.parse::<ModelRef>().ok();
    let recorded = parse(recorded)?;
    let address = recorded.base_url.as_deref()?.trim_end_matches('/');
    let is_same = |url: &str, protocol: &str| {
        url.trim_end_matches('/') == address && protocol == recorded.protocol.name
    };
    let settings = &app.config.settings;
    let model = settings.model.as_deref().and_then(parse);
    if let Some(url) = &settings.base_url {
        let named = model.as_ref().filter(|model| model.base_url.is_none());
        if is_same(url, named.map_or(OPENAI_COMPATIBLE, |model| model.protocol.name)) {
            return app.config.origin("base_url");
        }
    }
    let model = model?;
    match is_same(model.base_url.as_deref()?, model.protocol.name) {
        true => app.config.origin("model"),
        false => None,
    }
}

/// Returns the error for a model whose provider is not in this build. It does not check if the model exists.
pub(crate) fn not_built(model: &str) -> Option<Failure> {
    if let Some(failure) = local::not_built(model) {
        return Some(failure);
    }
    let protocol = model.parse::<ModelRef>().ok()?.protocol;
    let missing = SetupError::MissingFeature { protocol: protocol.name, feature: protocol.feature };
    (!protocol.is_built()).then(|| cannot_connect(missing))
}

/// Chooses the model that a team file sets for a member.
pub(crate) async fn of_member(app: &App, model: &str, member: &str) -> Result<Chosen, Failure> {
    if let Some(replayed) = app.cassette.instead(Some(model)) {
        return replayed;
    }
    let chosen = named(app, model, None).await.and_then(|chosen| app.cassette.around(chosen));
    chosen.map_err(|e| e.at(member))
}

pub(crate) fn local_servers(app: &App) -> Vec<LocalServer> {
    app.config.settings.local_servers.clone().map_or_else(LocalServer::defaults, |servers| servers.0)
}

/// Returns the first local server that lists a model which `pick` accepts. If no server does, the servers
/// that did not answer in time are asked once more, with more time.
async fn running(app: &App, pick: impl Fn(Vec<String>) -> Option<String>) -> Option<(LocalServer, String)> {
    let mut asked = local_servers(app);
    for timeout in [TIMEOUT, LATE_TIMEOUT] {
        let mut late = Vec::new();
        for (server, answer) in ask_local_servers(asked, timeout).await {
            match answer {
                ServerAnswer::Models(models) => {
                    if let Some(model) = pick(models) {
                        return Some((server, model));
                    }
                }
                ServerAnswer::Late => late.push(server),
                _ => {}
            }
        }
        asked = late;
    }
    None
}

/// Returns the fallback models: those of the settings, or those in the log of a run that is resumed.
pub(crate) async fn fallbacks(app: &App, recorded: Option<&[FallbackModel]>) -> Result<Vec<Chosen>, Failure> {
    let set = app.config.settings.fallback.as_deref().unwrap_or_default();
    let names = match recorded {
        Some(models) => models.iter().map(|m| format!("{}:{}", m.provider, m.model)).collect(),
        None => set.to_vec(),
    };
    let mut chosen = Vec::new();
    for name in &names {
        let origin = app.config.origin("fallback").filter(|_| set.contains(name));
        chosen.push(match app.cassette.instead(Some(name)) {
            Some(replayed) => replayed?,
            None => app.cassette.around(fallback(app, name, origin).await?)?,
        });
    }
    Ok(chosen)
}

async fn fallback(app: &App, name: &str, origin: Option<&Origin>) -> Result<Chosen, Failure> {
    let why = format!("{} says {name}", who(origin));
    if local::is_meant(app, name) {
        return local::load(app, name, why).await;
    }
    let parts: ModelRef = name.parse().map_err(|e: SetupError| {
        Failure::usage(format!("fallback {name:?}: {e}"), "name the provider: --fallback PROVIDER:MODEL")
    })?;
    if !is_openai_compatible(&parts) {
        return Ok(Chosen::new(other(app, &parts, None, origin)?, parts.model, why));
    }
    let ModelRef { profile, base_url, model, .. } = parts;
    let url = elsewhere(profile, base_url.as_deref());
    // The key that the settings name is for the chosen model only.
    let connected = connect(app, profile, url, own_keys(app, profile, url, origin)?)?;
    Ok(Chosen::new(connected, model, why))
}

/// Returns the services whose key is in the environment or stored, each with the variable of the key.
pub(crate) fn keyed(app: &App) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_profiles = PROFILES.iter().filter_map(|p| Some((p.name, p.key_variable?)));
    let own = |name: &&str| *name != OPENAI_COMPATIBLE;
    let built = PROTOCOLS.iter().filter(move |p| p.is_built() && own(&p.name));
    let of_protocols = built.filter_map(|p| {
        let set = p.key_variables.iter().find(|variable| app.env(variable).is_some())?;
        Some((p.name, *set))
    });
    of_profiles.chain(of_protocols).filter(|(_, variable)| app.env(variable).is_some())
}

fn keyed_profiles(app: &App) -> impl Iterator<Item = (&'static Profile, &'static str)> {
    keyed(app).filter_map(|(name, variable)| Some((Profile::named(name)?, variable)))
}

/// The protocol of all [`Profile`]s, the services that are known by name.
const OPENAI_COMPATIBLE: &str = "openai-compatible";

fn is_openai_compatible(parts: &ModelRef) -> bool {
    parts.protocol.name == OPENAI_COMPATIBLE
}

/// Connects to a provider whose protocol is not [`OPENAI_COMPATIBLE`], with the `named` keys or with the keys
/// in the provider's own variables. A [foreign](is_foreign) address gets no key and no other value of the
/// environment.
fn other(
    app: &App,
    parts: &ModelRef,
    named: Option<Vec<Secret>>,
    origin: Option<&Origin>,
) -> Result<Connected, Failure> {
    let url = parts.base_url.as_deref();
    let foreign = is_foreign(url, origin);
    let variable = |name: &str| app.env(name).filter(|_| !foreign).map(str::to_owned);
    let with = |key: Option<Secret>| {
        let mut options = ConnectOptions::default().with_http(app.http.clone());
        options.api_key = key;
        if let Some(url) = url.filter(|url| may_be_logged(url)) {
            options = options.with_id(format!("{}@{url}", parts.protocol.name));
        }
        with_catalogue(app, archon::providers::connect(parts, variable, options).map_err(cannot_connect)?)
    };
    let mut named = named.unwrap_or_default().into_iter();
    let first = named.next();
    let further = match (&first, foreign) {
        (None, false) => further_keys(app, parts.protocol.key_variables),
        _ => named.collect(),
    };
    let first = with(first)?;
    warn_of_plain(app, url.filter(|_| !foreign));
    Ok((first, further.into_iter().map(|key| with(Some(key))).collect::<Result<_, _>>()?))
}

fn cannot_connect(e: SetupError) -> Failure {
    let advice = match &e {
        SetupError::MissingKey { variable, .. } => how_to_give(variable),
        SetupError::MissingVariable { variable, .. } => format!("set it: export {variable}=…"),
        SetupError::MissingFeature { feature, .. } => {
            format!("build this program with the cargo feature `{feature}` of archon")
        }
        SetupError::BaseUrl { url, reason } => {
            let (reason, more) = reason.split_once("; ").unwrap_or((reason, ""));
            let like = "the address looks like http://127.0.0.1:8080/v1";
            let advice = if more.is_empty() { like.to_owned() } else { format!("{more}; {like}") };
            return Failure::usage(format!("base URL {url:?}: {reason}"), advice);
        }
        SetupError::Setting { what, reason } if what.to_lowercase().ends_with("proxy") => {
            let reason = reason.split("; ").next().unwrap_or_default();
            let advice = format!("set it: export {what}=http://HOST:PORT, or unset it");
            return Failure::usage(format!("{what}: {reason}"), advice);
        }
        _ => "`archon doctor` shows what can be used".to_owned(),
    };
    Failure::usage(e.to_string(), advice)
}

/// Returns the origin of a setting as text; a setting without an origin comes from the log of the run that is
/// resumed.
fn who(origin: Option<&Origin>) -> String {
    origin.map_or_else(|| "the run's log".to_owned(), Origin::to_string)
}

async fn at_address(
    app: &App,
    url: &str,
    model: Option<&str>,
    origin: Option<&Origin>,
) -> Result<Chosen, Failure> {
    let why = format!("{} says {url}", who(origin));
    let (profile, model) = match model.map(|m| (m, m.parse::<ModelRef>())) {
        Some((_, Ok(mut parts))) if parts.base_url.is_none() && !is_openai_compatible(&parts) => {
            parts.base_url = Some(url.to_owned());
            let named = named_keys(app, Some(url), origin)?;
            return Ok(Chosen::new(other(app, &parts, named, origin)?, parts.model, why));
        }
        Some((_, Ok(ModelRef { profile, base_url: None, model, .. }))) => (profile, model),
        Some((name, _)) => (known_address(url), name.to_owned()),
        None => (known_address(url), first_model(url).await?),
    };
    Ok(Chosen::new(service(app, profile, Some(url), origin)?, model, why))
}

async fn named(app: &App, name: &str, origin: Option<&Origin>) -> Result<Chosen, Failure> {
    let why = format!("{} says {name}", who(origin));
    if local::is_meant(app, name) {
        return local::load(app, name, why).await;
    }
    let wrong = match name.parse::<ModelRef>() {
        Ok(parts) if !is_openai_compatible(&parts) => {
            let named = named_keys(app, parts.base_url.as_deref(), origin)?;
            return Ok(Chosen::new(other(app, &parts, named, origin)?, parts.model, why));
        }
        Ok(ModelRef { profile, base_url, model, .. }) => {
            return Ok(Chosen::new(service(app, profile, base_url.as_deref(), origin)?, model, why));
        }
        // The name has a provider, but is not complete.
        Err(SetupError::Model { reason, .. }) if name.contains([':', '@']) => {
            return Err(Failure::usage(format!("the model {name:?} is not complete"), reason));
        }
        Err(wrong) => wrong,
    };
    if let Some((server, _)) = running(app, |models| models.into_iter().find(|m| m == name)).await {
        let why = format!("{why}, and {} has it", server.profile);
        return Ok(Chosen::new(local_service(app, &server)?, name, why));
    }
    // A name with a colon means a service; if no service has that name, it is an error.
    match keyed_profiles(app).next().filter(|_| !matches!(wrong, SetupError::UnknownProfile { .. })) {
        Some((profile, variable)) => {
            let why = format!("{why}, and {}", app.key_source(variable));
            Ok(Chosen::new(service(app, Some(profile), None, None)?, name, why))
        }
        None => {
            let (what, meant) = match wrong {
                SetupError::UnknownProfile { name, nearest } => (
                    format!("no provider is called {name:?}"),
                    format!("did you mean {}? ", nearest.join(", ")),
                ),
                _ => (format!("no provider was found for the model {name:?}"), String::new()),
            };
            let advice = "name the provider: --model PROVIDER:MODEL or --base-url U; `archon models list` shows the models";
            Err(Failure::usage(what, meant + advice))
        }
    }
}

async fn find_model(app: &App) -> Result<Chosen, Failure> {
    for (service, model) in DEFAULT_MODELS {
        if let Some((_, variable)) = keyed(app).find(|(name, _)| name == service) {
            let why = format!("{}, and no model was named", app.key_source(variable));
            return Ok(Chosen { why, ..named(app, &format!("{service}:{model}"), None).await? });
        }
    }
    // Embedding models are skipped, since they cannot answer.
    let answers = |models: Vec<String>| models.into_iter().find(|m| !m.to_lowercase().contains("embed"));
    if let Some((server, model)) = running(app, answers).await {
        let why = format!("{} runs on this machine, and no model was named", server.profile);
        return Ok(Chosen::new(local_service(app, &server)?, model, why));
    }
    // A person with a key did not mean a small local model.
    if let Some((service, variable)) = keyed(app).find(|(_, set)| !NOT_ONLY_FOR_MODELS.contains(set)) {
        return Err(Failure::usage(
            format!("{}, but no model was named", app.key_source(variable)),
            format!(
                "name one: --model {service}:MODEL; `archon models list --provider {service}` shows some"
            ),
        ));
    }
    match local::first(app) {
        Some(path) => {
            local::load(app, &path, "it is on this machine, and no model was named".to_owned()).await
        }
        None => Err(nothing_found()),
    }
}

fn nothing_found() -> Failure {
    let store = if cfg!(feature = "setup") { "archon init" } else { "archon credentials add SERVICE" };
    Failure::choices(
        Exit::Usage,
        format!(
            "no model is configured. With a service: set its key, as ANTHROPIC_API_KEY or OPENAI_API_KEY, store it with `{store}`, or use --model PROVIDER:MODEL"
        ),
        &[
            "With a server: start Ollama, LM Studio or a llama.cpp server, or use --base-url U --model M",
            local::CHOICE,
        ],
    )
}

/// Gives a provider the catalogue of this machine, which takes precedence over the built-in one.
fn with_catalogue(app: &App, provider: Arc<dyn Provider>) -> Result<Arc<dyn Provider>, Failure> {
    let catalogue = app.catalogue()?;
    Ok(match catalogue.is_empty() {
        true => provider,
        false => Arc::new(CatalogueProvider::new(provider, catalogue)),
    })
}

fn local_service(app: &App, server: &LocalServer) -> Result<Connected, Failure> {
    service(app, Profile::named(server.profile), Some(&server.base_url), None)
}

/// Connects to the profile's service at its own address, or to the service at `url`, which comes from
/// `origin`.
fn service(
    app: &App,
    profile: Option<&'static Profile>,
    url: Option<&str>,
    origin: Option<&Origin>,
) -> Result<Connected, Failure> {
    let url = elsewhere(profile, url);
    connect(app, profile, url, keys(app, profile, url, origin)?)
}

/// Returns `url`; `None` if it is the own address of the profile's service.
fn elsewhere<'a>(profile: Option<&Profile>, url: Option<&'a str>) -> Option<&'a str> {
    let own = profile.map_or("", |p| p.base_url);
    url.filter(|url| !same_address(url, own))
}

/// Returns true if an address has no part that may be secret: a password, or a key in its query.
fn may_be_logged(url: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    !url.contains('@') && query.split('&').all(|pair| pair.is_empty() || pair.starts_with("api-version="))
}

fn connect(
    app: &App,
    profile: Option<&'static Profile>,
    url: Option<&str>,
    keys: Vec<Secret>,
) -> Result<Connected, Failure> {
    let name = profile.map_or("openai-compatible", |p| p.name);
    let own = profile.map_or("", |p| p.base_url);
    let with = |key: Option<Secret>| -> Result<Arc<dyn Provider>, Failure> {
        let mut options = profile.map_or_else(OpenAiOptions::default, OpenAiOptions::of);
        if let Some(url) = url.filter(|url| may_be_logged(url)) {
            // Puts the address into the log, so that `archon resume` finds it again.
            options = options.with_id(format!("{name}@{url}"));
        }
        options.connect.api_key = key;
        options.connect.http = app.http.clone();
        with_catalogue(
            app,
            Arc::new(OpenAiCompatible::new(url.unwrap_or(own), options).map_err(cannot_connect)?),
        )
    };
    let has_key = !keys.is_empty();
    let mut keys = keys.into_iter();
    let first = with(keys.next())?;
    warn_of_plain(app, url.filter(|_| has_key));
    Ok((first, keys.map(|key| with(Some(key))).collect::<Result<_, _>>()?))
}

/// Warns if a key is sent unencrypted to another machine.
fn warn_of_plain(app: &App, url: Option<&str>) {
    if let Some(url) = url
        && url.to_lowercase().starts_with("http://")
        && !is_local_address(url)
    {
        let host = visible(url.split('/').nth(2).unwrap_or_default());
        app.output.warn(format!("the key is sent unencrypted to {host}: use an https:// address"));
    }
}

fn known_address(url: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|p| same_address(p.base_url, url))
}

fn same_address(a: &str, b: &str) -> bool {
    a.trim_end_matches('/').eq_ignore_ascii_case(b.trim_end_matches('/'))
}

async fn first_model(url: &str) -> Result<String, Failure> {
    let servers = vec![LocalServer::new("openai-compatible", url)];
    let (what, advice) = match ask_local_servers(servers, FAR_TIMEOUT).await.pop() {
        Some((_, ServerAnswer::Models(models))) => match models.into_iter().next() {
            Some(model) => return Ok(model),
            None => ("has no models", "load one there, or name it: --model M"),
        },
        Some((_, ServerAnswer::Late)) => {
            ("did not list its models in time", "try again, or name the model: --model M")
        }
        _ => ("did not list its models", "check that it runs, or name the model: --model M"),
    };
    Err(Failure::usage(format!("{url} {what}"), advice))
}

#[cfg(test)]
mod tests;
