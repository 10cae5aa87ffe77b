//! Mutated documents: whatever a document has, nothing panics, and each tool that is made can be used.

use archon_openapi::{OpenApiConfig, OpenApiTools, OperationFilter};
use archon_testkit::{Chance, cases, first_seed};
use archon_types::{Json, Tool};
use serde_json::json;

use crate::support::{PETSTORE, SWAGGER, run};

fn index(chance: &mut Chance, below: usize) -> usize {
    usize::try_from(chance.below(below as u64)).unwrap()
}

/// Replaces, removes or adds one part of a document, at a random place.
fn mutate(value: &mut Json, chance: &mut Chance) {
    let has_parts = match value {
        Json::Object(fields) => !fields.is_empty(),
        Json::Array(items) => !items.is_empty(),
        _ => false,
    };
    if has_parts && !chance.percent(12) {
        return match value {
            Json::Object(fields) => {
                let place = index(chance, fields.len());
                let (key, part) = fields.iter_mut().nth(place).unwrap();
                if chance.percent(5) {
                    let key = key.clone();
                    fields.remove(&key);
                } else {
                    mutate(part, chance);
                }
            }
            Json::Array(items) => {
                let place = index(chance, items.len());
                mutate(&mut items[place], chance);
            }
            _ => unreachable!("it has parts"),
        };
    }
    let references =
        ["#", "#/", "#/paths", "#/components/schemas/Category", "#/paths/~1pets/get", "x", "#x", "#/%ff"];
    let parts = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("\u{0}{}/..%\u{202e}"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "$ref": references[index(chance, references.len())] }),
        json!({ "type": "object", "required": ["a"], "nullable": true, "properties": { "a": false } }),
        json!({ "in": "path", "name": "petId", "style": "matrix", "explode": true }),
        json!({ "additionalProperties": { "$ref": references[index(chance, references.len())] } }),
    ];
    *value = parts[index(chance, parts.len())].clone();
}

fn config(chance: &mut Chance) -> OpenApiConfig {
    let mut config = OpenApiConfig::default();
    (config.hoist_body, config.name_by_path) = (chance.percent(50), chance.percent(50));
    match chance.percent(50) {
        true => config.with_base_url("http://127.0.0.1:1"),
        false => config,
    }
}

/// Checks the tools, and makes requests with arguments of every type.
fn check(made: &OpenApiTools, seed: u64) {
    for tool in &made.tools {
        let spec = tool.spec();
        assert!(
            jsonschema::draft202012::meta::is_valid(&spec.parameters),
            "seed {seed}: {}",
            spec.parameters
        );
        let keys = spec.parameters["properties"].as_object().unwrap().keys();
        for value in [json!("x"), json!([1]), json!({ "a": [null] })] {
            let arguments: Json = keys.clone().map(|key| (key.clone(), value.clone())).collect();
            let _ = tool.subject(&arguments);
            let _ = tool.preview(&arguments, &run());
        }
    }
}

#[test]
fn mutated_documents_never_panic_and_give_valid_schemas() {
    let yaml = OpenApiTools::from_str(PETSTORE, OpenApiConfig::default(), OperationFilter::All).unwrap();
    assert_eq!(yaml.tools.len(), 5);
    let documents = [PETSTORE, PETSTORE, SWAGGER].map(|text| serde_saphyr::from_str::<Json>(text).unwrap());
    let (mut whole, mut made) = (0, 0);
    for seed in first_seed()..first_seed() + cases(400, 8_000) {
        let mut chance = Chance(seed);
        let mut mutant = documents[index(&mut chance, documents.len())].clone();
        for _ in 0..=chance.below(4) {
            mutate(&mut mutant, &mut chance);
        }
        if let Ok(tools) = OpenApiTools::from_value(mutant, config(&mut chance), OperationFilter::All) {
            check(&tools, seed);
            (whole, made) = (whole + 1, made + tools.tools.len());
        }
    }
    assert!(whole > 100 && made > whole, "{whole} documents with {made} tools: the mutations break too much");
}

#[test]
fn mutated_texts_never_panic() {
    for seed in first_seed()..first_seed() + cases(100, 2_000) {
        let mut chance = Chance(seed);
        let mut text: Vec<char> = PETSTORE.chars().collect();
        for _ in 0..=chance.below(5) {
            let place = index(&mut chance, text.len());
            match chance.below(3) {
                0 => {
                    text[place] = ['{', '[', ':', '\n', '&', '*', '!', '-', ' ', '"'][index(&mut chance, 10)]
                }
                1 => drop(text.remove(place)),
                _ => text.truncate(text.len() - index(&mut chance, 40)),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(tools) = OpenApiTools::from_str(&text, config(&mut chance), OperationFilter::All) {
            check(&tools, seed);
        }
    }
}
