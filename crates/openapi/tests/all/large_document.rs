//! Random valid calls of a large real document arrive at a server as it declares them. `cargo xtask openapi` fetches the
//! document, and runs this test with its path.

#![allow(clippy::print_stdout, reason = "for the reader of the check")]

use std::{collections::BTreeSet, env, fs};

use archon_openapi::{OpenApiConfig, OpenApiTools, OperationFilter};
use archon_testkit::{Chance, MockResponse, MockServer, RecordedRequest, first_seed};
use archon_types::{Json, Tool};
use serde_json::{Map, json};

use crate::{
    declared::{Declared, decoded, operations, target},
    random_calls::text,
    support::call,
};

/// The calls of the test, and the tries to make the arguments of one.
const CALLS: usize = 1_000;
const TRIES: u64 = 40;
/// The order of the methods of a path among the tools.
const METHODS: [&str; 5] = ["GET", "PUT", "POST", "DELETE", "PATCH"];

// spec: OA-05, OA-06
#[tokio::test]
#[ignore = "needs ARCHON_OPENAPI_DOCUMENT, the path of the document; `cargo xtask openapi` runs it"]
async fn random_calls_of_a_large_document_arrive_as_declared() {
    let root: Json =
        serde_json::from_str(&fs::read_to_string(env::var("ARCHON_OPENAPI_DOCUMENT").unwrap()).unwrap())
            .unwrap();
    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let config = OpenApiConfig::default().with_base_url(server.url());
    let made = OpenApiTools::from_value(root.clone(), config, OperationFilter::All).unwrap();
    let operations = operations(&root, Some(""));
    let places: Vec<&str> = operations.iter().map(|operation| operation.path.as_str()).collect();
    let places: Vec<_> = places.iter().map(|path| places.iter().position(|p| p == path)).collect();
    let mut order: Vec<_> = (0..operations.len()).collect();
    order.sort_by_key(|at| (places[*at], METHODS.iter().position(|m| *m == operations[*at].method)));
    assert_eq!(made.tools.len(), operations.len());
    let mut chance = Chance(first_seed() + 31);
    let (mut called, mut unmade) = (0, BTreeSet::new());
    let step = 1 + usize::try_from(chance.below(operations.len() as u64 - 1)).unwrap();
    for number in 0.. {
        let at = number * step % operations.len();
        let (operation, tool) = (&operations[order[at]], &made.tools[at]);
        let schema = &tool.spec().parameters;
        let made =
            (0..TRIES).map(|tries| arguments(&root, operation, &mut chance, 4 * (TRIES - tries) / TRIES));
        let Some(arguments) = made.into_iter().find(|made| jsonschema::is_valid(schema, made)) else {
            unmade.insert(operation.id);
            assert!(unmade.len() < 10, "no arguments were found for {unmade:?}");
            continue;
        };
        let result = call(tool, arguments.clone()).await.unwrap();
        let request = server.requests().pop().unwrap();
        assert!(result.text().ends_with(" → 200\n\n"), "{}: {}", operation.id, result.text());
        compare(operation, &request, &arguments);
        called += 1;
        if called == CALLS {
            break;
        }
    }
    println!("{called} random calls arrived as declared; no arguments were found for {unmade:?}");
}

/// Compares a request with the arguments of its call. All parameters are in a path or a query, in the usual style.
fn compare(operation: &Declared<'_>, request: &RecordedRequest, arguments: &Json) {
    let about = format!("{}: {} {}, {arguments}", operation.id, request.method, request.path);
    assert_eq!(request.method, operation.method, "{about}");
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let (mut pairs, mut expected) = (Vec::new(), Vec::new());
    let mut parts: Vec<String> = operation.path.split('/').map(str::to_owned).collect();
    for parameter in &operation.parameters {
        let Some(value) = arguments.get(parameter.name) else { continue };
        match (parameter.place, value) {
            ("path", value) => {
                let name = format!("{{{}}}", parameter.name);
                parts.iter_mut().for_each(|part| *part = part.replace(&name, &plain(value)));
            }
            ("query", Json::Array(items)) => {
                expected.extend(items.iter().map(|item| (parameter.name.to_owned(), plain(item))));
            }
            ("query", value) => expected.push((parameter.name.to_owned(), plain(value))),
            (place, _) => panic!("{about}: in {place}"),
        }
    }
    assert_eq!(path.split('/').map(decoded).collect::<Vec<_>>(), parts, "{about}");
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap();
        pairs.push((decoded(name), decoded(value)));
    }
    pairs.sort();
    expected.sort();
    assert_eq!(pairs, expected, "{about}");
    let body = operation.body.as_ref().and_then(|body| Some((body, arguments.get(body.key)?)));
    let Some((body, value)) = body else {
        assert_eq!(request.text, "", "{about}");
        return;
    };
    assert_eq!(request.header("content-type"), Some(body.media), "{about}");
    match body.media {
        "application/json" => assert_eq!(&request.body, value, "{about}"),
        _ => assert_eq!(request.text, plain(value), "{about}"),
    }
}

/// Returns a value as it stands in a path, in a query or in a body of text.
fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns arguments that are valid, unless a schema has a rule that [`value`] does not know. Up to `depth`, optional
/// parts are added.
fn arguments(root: &Json, operation: &Declared<'_>, chance: &mut Chance, depth: u64) -> Json {
    let mut arguments = Map::new();
    for parameter in &operation.parameters {
        if parameter.is_required || depth > 0 && chance.percent(50) {
            arguments.insert(parameter.name.to_owned(), value(root, parameter.schema, chance, 1));
        }
    }
    if let Some(body) = operation.body.as_ref().filter(|body| body.is_required || chance.percent(60)) {
        arguments.insert(body.key.to_owned(), value(root, body.schema(), chance, depth));
    }
    Json::Object(arguments)
}

/// Returns a value of a schema. Lists have at least one item, because an empty one cannot be seen in a query.
fn value(root: &Json, schema: &Json, chance: &mut Chance, depth: u64) -> Json {
    let schema = &chosen(root, schema, chance);
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().filter(|value| !value.is_null()).collect();
        return values[usize::try_from(chance.below(values.len() as u64)).unwrap()].clone();
    }
    let number = |key: &str| schema[key].as_i64();
    match schema["type"].as_str() {
        Some("integer" | "number") => {
            let least = number("minimum").unwrap_or(0);
            let most = number("maximum").unwrap_or(least + 1_000);
            (least + i64::try_from(chance.below((most - least + 1).unsigned_abs())).unwrap()).into()
        }
        Some("boolean") => chance.percent(50).into(),
        Some("array") => {
            let least = number("minItems").unwrap_or(0).max(1);
            let most = if schema["uniqueItems"] == true { least } else { least + 1 };
            let count = least + i64::try_from(chance.below((most - least + 1).unsigned_abs())).unwrap();
            (0..count).map(|_| value(root, &schema["items"], chance, depth.saturating_sub(1))).collect()
        }
        Some("object") => object(root, schema, chance, depth),
        None if schema.get("properties").is_some() => object(root, schema, chance, depth),
        _ => string(schema, chance).into(),
    }
}

/// Returns a schema without references and choices at its top: one of each choice is merged into it.
fn chosen(root: &Json, schema: &Json, chance: &mut Chance) -> Json {
    let mut merged = target(root, schema).clone();
    for key in ["allOf", "anyOf", "oneOf"] {
        let Some(Json::Array(choices)) = merged.as_object_mut().and_then(|fields| fields.remove(key)) else {
            continue;
        };
        let one = usize::try_from(chance.below(choices.len() as u64)).unwrap();
        let choices = if key == "allOf" { &choices[..] } else { &choices[one..=one] };
        for choice in choices {
            let Json::Object(choice) = chosen(root, choice, chance) else { continue };
            for (name, more) in choice {
                match (&mut merged[&name], more) {
                    (Json::Object(own), Json::Object(more)) => own.extend(more),
                    (Json::Array(own), Json::Array(more)) if name == "required" => own.extend(more),
                    (own, more) => *own = more,
                }
            }
        }
    }
    merged
}

fn object(root: &Json, schema: &Json, chance: &mut Chance, depth: u64) -> Json {
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let mut fields = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let is_wanted = required.contains(name.as_str()) || depth > 0 && chance.percent(50);
        if is_wanted && target(root, property)["readOnly"] != true {
            fields.insert(name.clone(), value(root, property, chance, depth.saturating_sub(1)));
        }
    }
    let more = &schema["additionalProperties"];
    if fields.is_empty() && more.is_object() {
        fields.insert("a".to_owned(), value(root, more, chance, depth.saturating_sub(1)));
    }
    Json::Object(fields)
}

/// Returns a text that keeps the length and the pattern of a schema.
fn string(schema: &Json, chance: &mut Chance) -> String {
    let (hash, commit) = (format!("sha256:{}", "0a".repeat(32)), "0a".repeat(20));
    let known = [
        "v1.2",
        "1.2.3",
        "YWJj",
        &hash,
        &commit,
        "refs/heads/main",
        "https://example.com/a?b=c",
        "pkg:npm/left-pad@1.3.0",
        "ssh-rsa AAAA",
        "2026-11-28",
        "2026-11-28T00:00:00Z",
    ];
    let rules = json!({
        "type": "string", "minLength": schema["minLength"].as_u64().unwrap_or(0),
        "maxLength": schema["maxLength"].as_u64().unwrap_or(1_000),
        "pattern": schema["pattern"].as_str().unwrap_or(""),
    });
    let short = text(chance, "");
    let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).unwrap();
    let long = short.clone() + &"a".repeat(least.saturating_sub(short.chars().count()));
    let mut all = [short, long].into_iter().chain(known.map(str::to_owned));
    all.find(|text| jsonschema::is_valid(&rules, &json!(text))).unwrap_or_default()
}
