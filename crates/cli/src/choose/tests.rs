//! Tests of the choice of models, and above all: which key is sent where. They need no network.

use std::collections::BTreeMap;

use super::*;
use crate::{
    config::{Config, Settings, Sources},
    exit::Exit,
};

const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "sk-openai");
const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-ant");
const NVIDIA: (&str, &str) = ("NVIDIA_API_KEY", "nv");
const ANY: (&str, &str) = ("OPENAI_COMPATIBLE_API_KEY", "sk-any");
const OWN: (&str, &str) = ("MY_KEY", "sk-own");
const FAR: &str = "https://example.com/v1";
const OPENAI_URL: &str = "https://api.openai.com/v1/";

fn app(settings: Settings, origin: Origin, env: &[(&str, &str)]) -> App {
    let env: BTreeMap<_, _> = env.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let config = Config::of(settings, &origin);
    App { config, sources: Sources { env, ..Sources::default() }, ..App::of(Settings::default()) }
}

fn flag() -> Origin {
    Origin::Flag(String::new())
}

fn settings(model: &str, url: &str) -> Settings {
    let set = |s: &str| Some(s.to_owned()).filter(|s| !s.is_empty());
    Settings { model: set(model), base_url: set(url), ..Settings::default() }
}

async fn choose(app: &App, recorded: Option<&str>) -> Result<(String, String), (Exit, String)> {
    match model(app, recorded).await {
        Ok(chosen) => Ok((chosen.provider.id().to_owned(), chosen.model)),
        Err(failure) => Err((failure.exit(), failure.what().to_owned())),
    }
}

fn is(id: &str, model: &str) -> Result<(String, String), (Exit, String)> {
    Ok((id.to_owned(), model.to_owned()))
}

#[tokio::test]
async fn choose_takes_the_model_of_flags_and_settings() {
    for (model, url, env, expected) in [
        ("openai:gpt-x", "", &[OPENAI][..], is("openai", "gpt-x")),
        ("ollama:qwen3:8b", "", &[], is("ollama", "qwen3:8b")),
        ("m", FAR, &[], is("openai-compatible@https://example.com/v1", "m")),
        ("qwen3:8b", FAR, &[], is("openai-compatible@https://example.com/v1", "qwen3:8b")),
        ("vllm:m", FAR, &[], is("vllm@https://example.com/v1", "m")),
        ("m", OPENAI_URL, &[OPENAI], is("openai", "m")),
        ("", "", &[OPENAI], is("openai", "gpt-5-mini")),
        ("", "", &[ANTHROPIC], is("anthropic", "claude-haiku-4-5")),
        ("", "", &[ANTHROPIC, OPENAI], is("openai", "gpt-5-mini")),
        ("", "", &[NVIDIA], Err((Exit::Usage, "NVIDIA_API_KEY is set, but no model was named".into()))),
        ("openai:gpt-x", "", &[], Err((Exit::Usage, "openai needs a key".into()))),
        ("m", "nonsense", &[], Err((Exit::Usage, String::new()))),
    ] {
        let app = app(settings(model, url), flag(), env);
        let seen = choose(&app, None).await.map_err(|(exit, what)| match &expected {
            Err((_, text)) if text.is_empty() => (exit, String::new()),
            _ => (exit, what),
        });
        assert_eq!(seen, expected, "{model} {url}");
    }
}

#[tokio::test]
async fn choose_on_resume_takes_the_logged_model_unless_a_flag_overrides() {
    let elsewhere = settings("ollama:other", "https://other.example/v1");
    for (origin, recorded, expected) in [
        (
            Origin::Env(String::new()),
            "openai-compatible@https://example.com/v1:m:tag",
            ("openai-compatible@https://example.com/v1", "m:tag"),
        ),
        (Origin::User("/c".into()), "vllm@http://127.0.0.1:8000/v1:m", ("vllm", "m")),
        (Origin::User("/c".into()), "vllm@http://gpu:8000/v1:m", ("vllm@http://gpu:8000/v1", "m")),
        (Origin::Env(String::new()), "ollama:qwen3:8b", ("ollama", "qwen3:8b")),
        (flag(), "ollama:qwen3:8b", ("ollama@https://other.example/v1", "other")),
    ] {
        let app = app(elsewhere.clone(), origin, &[]);
        assert_eq!(choose(&app, Some(recorded)).await, is(expected.0, expected.1), "{recorded}");
    }
}

#[test]
fn an_address_that_may_hold_a_secret_is_no_name() {
    for (url, may) in [
        ("http://h/v1", true),
        ("http://h/v1?api-version=2024-10-21", true),
        ("http://h/v1?api-version=1&key=hunter2", false),
        ("http://me:hunter2@h/v1", false),
    ] {
        assert_eq!(may_be_logged(url), may, "{url}");
    }
}

#[test]
fn choose_sends_a_key_only_to_addresses_of_its_owner() {
    let project = Origin::Project("/p/archon.toml".into());
    let user = Origin::User("/c/archon.toml".into());
    let all = &[OPENAI, ANY, OWN];
    let openai = Profile::named("openai");
    let ollama = Profile::named("ollama");
    for (profile, url, origin, named, expected) in [
        (openai, None, flag(), false, Some(OPENAI.1)),
        (openai, Some(FAR), flag(), false, Some(ANY.1)),
        (None, Some(FAR), flag(), false, Some(ANY.1)),
        (None, Some(FAR), user.clone(), true, Some(OWN.1)),
        (None, Some(FAR), project.clone(), false, None),
        (openai, Some(FAR), project.clone(), false, None),
        (None, Some(FAR), project, true, None),
        (ollama, None, flag(), false, None),
        (openai, None, user, true, Some(OWN.1)),
    ] {
        let mut settings = settings("m", url.unwrap_or_default());
        settings.api_key_env = named.then(|| OWN.0.to_owned());
        let key = keys(&app(settings, origin.clone(), all), profile, url, Some(&origin)).unwrap();
        let key = key.first().map(|k| k.expose().as_str());
        assert_eq!(key, expected, "{:?} {url:?} {origin:?}", profile.map(|p| p.name));
    }
}

#[tokio::test]
async fn an_address_in_a_projects_model_gets_no_key_either() {
    let name = "openai-compatible@https://evil.example/v1:m";
    let app = app(settings(name, ""), Origin::Project("/p/archon.toml".into()), &[OPENAI, ANY]);
    let chosen = model(&app, None).await.unwrap();
    assert_eq!(chosen.provider.id(), "openai-compatible@https://evil.example/v1");
    let key = keys(&app, None, Some("https://evil.example/v1"), app.config.origin("model")).unwrap();
    assert!(key.is_empty());
}

#[test]
fn choose_sends_a_key_to_a_logged_address_that_the_own_settings_have() {
    let (user, project) = (Origin::User("/c".into()), Origin::Project("/p".into()));
    let other = "openai-compatible@https://other.example/v1:m";
    for (model, url, origin, recorded, expected) in [
        ("m", FAR, &user, "openai-compatible@https://example.com/v1:m", Some(ANY.1)),
        ("vllm@https://example.com/v1/:m", "", &user, "vllm@https://example.com/v1:m", Some(ANY.1)),
        ("m", FAR, &user, other, None),
        // Another protocol has another key.
        ("m", FAR, &user, "anthropic@https://example.com/v1:m", None),
        ("anthropic:m", FAR, &user, "openai-compatible@https://example.com/v1:m", None),
        ("anthropic:m", FAR, &user, "anthropic@https://example.com/v1:m", Some(ANY.1)),
        ("vllm@https://example.com/v1:m", "", &user, "anthropic@https://example.com/v1:m", None),
        ("m", FAR, &project, "openai-compatible@https://example.com/v1:m", None),
    ] {
        let app = app(settings(model, url), origin.clone(), &[OPENAI, ANY]);
        let address = recorded.parse::<ModelRef>().unwrap().base_url;
        let key = keys(&app, None, address.as_deref(), origin_of_recorded(&app, recorded)).unwrap();
        assert_eq!(key.first().map(|k| k.expose().as_str()), expected, "{model} {url} {recorded}");
    }
}

#[test]
fn choose_sends_no_key_to_a_logged_remote_address() {
    let app = app(Settings::default(), flag(), &[OPENAI, ANY]);
    for (url, expected) in [
        (FAR, None),
        ("http://localhost.evil.example/v1", None),
        ("http://127.0.0.1:1@evil.example/v1", None),
        ("http://127.0.0.1:11434/v1", Some(ANY.1)),
        ("http://localhost/v1", Some(ANY.1)),
    ] {
        let key = keys(&app, None, Some(url), None).unwrap();
        assert_eq!(key.first().map(|k| k.expose().as_str()), expected, "{url}");
    }
}

// spec: ER-09
#[tokio::test]
async fn choose_fallbacks_come_from_flags_settings_or_the_log() {
    let mut said = settings("openai:gpt-x", "");
    said.fallback = Some(vec!["ollama:small".into(), format!("openai-compatible@{FAR}:m")]);
    let app = app(said, flag(), &[]);
    let ids = |chosen: Vec<Chosen>| -> Vec<String> {
        chosen.iter().map(|c| format!("{}:{}", c.provider.id(), c.model)).collect()
    };
    let all = ids(fallbacks(&app, None).await.unwrap());
    assert_eq!(all, ["ollama:small", "openai-compatible@https://example.com/v1:m"]);
    let recorded = [FallbackModel::new("vllm@http://gpu:8000/v1", "big")];
    assert_eq!(ids(fallbacks(&app, Some(&recorded)).await.unwrap()), ["vllm@http://gpu:8000/v1:big"]);
    assert_eq!(ids(fallbacks(&app, Some(&[])).await.unwrap()), [""; 0]);
    let e = fallback(&app, "nonsense", None).await.unwrap_err();
    assert!(e.what().contains("nonsense") && e.advice()[0].contains("--fallback"), "{e:?}");
}

#[test]
fn a_key_that_is_named_and_not_there_is_an_error() {
    let settings = Settings { api_key_env: Some("MY_KEY".into()), ..settings("m", FAR) };
    let e = keys(&app(settings, flag(), &[]), None, Some(FAR), Some(&flag())).unwrap_err();
    assert_eq!(e.exit(), Exit::Usage);
    assert!(e.what().contains("MY_KEY") && e.advice()[0].contains("export MY_KEY="), "{e:?}");
}

// spec: ER-09
#[tokio::test]
async fn further_keys_stand_in_numbered_variables() {
    let env = |more: &[(&str, &str)]| {
        let all: Vec<_> = [OPENAI].iter().copied().chain(more.iter().copied()).collect();
        app(settings("openai:gpt-x", ""), flag(), &all)
    };
    let held = |more: &[(&str, &str)]| -> Vec<String> {
        let keys = keys(&env(more), Profile::named("openai"), None, Some(&flag())).unwrap();
        keys.iter().map(|k| k.expose().clone()).collect()
    };
    let second = ("OPENAI_API_KEY_2", "second");
    assert_eq!(held(&[]), [OPENAI.1]);
    assert_eq!(held(&[("OPENAI_API_KEY_3", "third"), second]), [OPENAI.1, "second", "third"]);
    assert_eq!(held(&[("OPENAI_API_KEY_3", "third")]), [OPENAI.1], "they are counted without gaps");
    assert_eq!(held(&[("OPENAI_API_KEY_2", "")]), [OPENAI.1]);
    assert_eq!(key_variables(&env(&[second]), OPENAI.0), ["OPENAI_API_KEY", "OPENAI_API_KEY_2"]);
    let chosen = model(&env(&[second]), None).await.unwrap();
    assert_eq!(chosen.keys.len(), 1);
}

#[test]
fn default_models_are_known_with_a_price() {
    for (service, model) in DEFAULT_MODELS {
        let known = archon::providers::model_info(service, model);
        assert!(known.is_some_and(|info| info.price.is_some()), "{service}:{model}");
    }
}

#[test]
fn choose_without_a_model_lists_three_choices() {
    let failure = nothing_found();
    assert_eq!(failure.exit(), Exit::Usage);
    assert_eq!(1 + failure.advice().len(), 3);
}

#[test]
fn not_built_is_the_error_of_a_provider_that_this_build_lacks() {
    for protocol in PROTOCOLS {
        let e = not_built(&format!("{}:m", protocol.name));
        assert_eq!(e.is_some(), !protocol.is_built(), "{}", protocol.name);
    }
    for name in ["local:gemma-3-270m", "m.gguf"] {
        assert_eq!(not_built(name).is_some(), !cfg!(feature = "local"), "{name}");
    }
    assert_eq!(not_built("a model of some server"), None);
}
