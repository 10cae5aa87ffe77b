//! Tests of model strings, valid and invalid.

use super::*;

fn options() -> ConnectOptions {
    ConnectOptions::default()
}

fn nothing_set(_: &str) -> Option<String> {
    None
}

// spec: P-15
#[test]
fn model_strings_have_parts() {
    for (text, profile, url, model) in [
        ("openai:gpt-5-mini", "openai", None, "gpt-5-mini"),
        ("ollama:qwen3:4b", "ollama", None, "qwen3:4b"),
        ("openrouter:meta/llama-3:free", "openrouter", None, "meta/llama-3:free"),
        ("openai-compatible@http://host/v1:model", "", Some("http://host/v1"), "model"),
        ("openai-compatible@http://host:8000/v1:a:b", "", Some("http://host:8000/v1"), "a:b"),
        ("vllm@http://gpu:8000/v1:Qwen/Qwen3-8B", "vllm", Some("http://gpu:8000/v1"), "Qwen/Qwen3-8B"),
        ("vllm@http://gpu:8000:Qwen/Qwen3-8B", "vllm", Some("http://gpu:8000"), "Qwen/Qwen3-8B"),
        ("vllm@http://gpu:qwen", "vllm", Some("http://gpu"), "qwen"),
        ("vllm@http://gpu:7b", "vllm", Some("http://gpu"), "7b"),
        ("vllm@http://[::1]:8000/v1:qwen", "vllm", Some("http://[::1]:8000/v1"), "qwen"),
        ("vllm@http://[::1]:qwen", "vllm", Some("http://[::1]"), "qwen"),
        ("vllm@localhost:8000/v1:m", "vllm", Some("localhost:8000/v1"), "m"),
        ("vllm@http://gpu/v1:@cf/meta/llama@2", "vllm", Some("http://gpu/v1"), "@cf/meta/llama@2"),
    ] {
        let parts: ModelRef = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(parts.profile.map_or("", |p| p.name), profile, "{text}");
        assert_eq!(parts.base_url.as_deref(), url, "{text}");
        assert_eq!(parts.model, model, "{text}");
    }
}

// spec: P-02, P-15
#[test]
fn resolve_errors_name_the_problem_of_a_model_string() {
    for (text, error) in [
        ("gpt-5", "write PROVIDER:MODEL"),
        ("", "write PROVIDER:MODEL"),
        ("opnai:gpt-5", "no provider is called \"opnai\"; did you mean openai, "),
        ("openai:", "names no model"),
        ("vllm@http://gpu:8000/v1", "names no model"),
        ("vllm@http://gpu:8000", "names no model"),
        ("vllm@http://[::1", "names no model"),
        ("openai-compatible:m", "write the address as well"),
        (
            "openai-compatible@localhost:8000/v1:m",
            "has no scheme; write http://localhost:8000/v1 or https://",
        ),
        ("openai:gpt-5", "openai needs a key: set OPENAI_API_KEY"),
        (
            "vllm@http://me:hunter2@gpu/v1:qwen",
            "model \"vllm@gpu/v1:qwen\": contains a user name or a password",
        ),
        ("vllm@http://hunter2@gpu:8000/v1:qwen", "contains a user name or a password"),
    ] {
        let said = resolve(text, nothing_set, options()).unwrap_err().to_string();
        assert!(said.contains(error) && !said.contains("hunter2"), "{text}: {said}");
    }
}

// spec: P-15
#[cfg(feature = "tls")]
#[test]
fn keys_come_from_the_options_or_the_variable() {
    let asked = std::cell::RefCell::new(Vec::new());
    let variable = |name: &str| {
        asked.borrow_mut().push(name.to_owned());
        Some("sk-canary".to_owned())
    };
    let resolved = resolve("groq:llama", variable, options()).unwrap();
    assert_eq!((resolved.provider.id(), resolved.model.as_str()), ("groq", "llama"));
    assert_eq!(*asked.borrow(), ["GROQ_API_KEY"]);
    assert!(!format!("{resolved:?}").contains("canary"));

    resolve("groq:llama", nothing_set, options().with_api_key("k")).unwrap();
    resolve("ollama:qwen3", nothing_set, options()).unwrap();
    resolve("openai@http://gateway/v1:gpt-5", nothing_set, options()).unwrap();
    let empty = |_: &str| Some(" ".to_owned());
    assert!(matches!(resolve("xai:grok", empty, options()), Err(SetupError::MissingKey { .. })));
    let resolved = resolve("openai-compatible@http://h/v1:m", nothing_set, options()).unwrap();
    assert_eq!(resolved.provider.id(), "openai-compatible");
}

// spec: P-01, P-02, P-39
#[cfg(feature = "tls")]
#[test]
fn every_protocol_of_this_build_is_found_by_its_name() {
    let all_set = |name: &str| {
        Some(if name.ends_with("ENDPOINT") { "https://h".to_owned() } else { "sk-canary".to_owned() })
    };
    for protocol in PROTOCOLS {
        let name = match protocol.name {
            "openai-compatible" => "openai-compatible@https://h/v1:m".to_owned(),
            name => format!("{name}:m"),
        };
        match resolve(&name, all_set, options()) {
            Ok(resolved) => {
                assert!(protocol.is_built());
                assert_eq!(resolved.model, "m");
                let id = resolved.provider.id();
                assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{id}");
                // The provider's id in the log leads back to the same protocol.
                let again = format!("{id}@http://h/v1:m").parse::<ModelRef>().unwrap();
                assert_eq!(again.protocol, protocol);
            }
            Err(SetupError::MissingFeature { feature, .. }) => {
                assert!(!protocol.is_built());
                assert_eq!(feature, protocol.feature);
            }
            Err(e) => panic!("{name}: {e}"),
        }
        if protocol.is_built() && protocol.name != "openai-compatible" {
            let e = resolve(&name, nothing_set, options()).unwrap_err();
            let SetupError::MissingKey { variable, .. } = e else { panic!("{name}: {e}") };
            assert_eq!(Some(&variable), protocol.key_variables.first());
            match resolve(&name, nothing_set, options().with_api_key("k")) {
                Err(SetupError::MissingVariable { .. }) => {
                    assert!(matches!(protocol.name, "azure" | "vertex"), "{name}");
                }
                other => assert_eq!(other.unwrap().model, "m"),
            }
        }
    }
}

// spec: P-40
#[cfg(feature = "tls")]
#[test]
fn resolve_gives_the_price_of_a_catalogued_model() {
    let all_set = |_: &str| Some("k".to_owned());
    let resolved = resolve("openai:gpt-5-mini", all_set, options()).unwrap();
    let known = resolved.provider.capabilities(&resolved.model);
    assert!(known.context_window.is_some() && known.price.is_some());
    assert_eq!(resolved.provider.capabilities("made-up").price, None);
}

#[test]
fn page_of_providers_names_each_with_its_address_and_its_keys() {
    let page = include_str!("../../../docs/providers.md");
    for profile in PROFILES {
        let key = profile.key_variable.map_or(String::new(), |key| format!(" `{key}` |"));
        let line = format!("| `{}` | `{}` |{key}\n", profile.name, profile.base_url);
        assert!(page.contains(&line), "docs/providers.md lacks this line:\n{line}");
    }
    for protocol in PROTOCOLS {
        let names =
            [protocol.name].into_iter().chain(protocol.alias).chain(protocol.key_variables.iter().copied());
        for name in names {
            assert!(
                page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}@")),
                "docs/providers.md lacks {name}"
            );
        }
    }
}
