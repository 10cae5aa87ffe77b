//! Random valid calls arrive at a server as their documents declare them: a petstore; every style, with and without
//! `explode`, for texts, lists and objects; servers of paths and operations. What arrives is read by code of its own.

use archon_openapi::{OpenApiConfig, OpenApiTools, OperationFilter};
use archon_testkit::{Chance, MockResponse, MockServer, cases, first_seed};
use archon_types::{Json, Tool};
use serde_json::{Map, json};

use crate::{
    declared::{Declared, Parameter, kind, operations, target},
    support::{PETSTORE, call},
};

/// A document whose servers are those of its address.
const SERVERS: &str = include_str!("servers.yaml");

/// The styles of each place.
const STYLES: &[(&str, &str)] = &[
    ("path", "simple"),
    ("path", "label"),
    ("path", "matrix"),
    ("query", "form"),
    ("query", "spaceDelimited"),
    ("query", "pipeDelimited"),
    ("query", "deepObject"),
    ("header", "simple"),
];
const KINDS: &[&str] = &["string", "integer", "array", "object"];

/// One parameter of the document.
struct Cell {
    place: &'static str,
    style: &'static str,
    explode: bool,
    kind: &'static str,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for &(place, style) in STYLES {
        for explode in [false, true] {
            for &kind in KINDS {
                // The specification has no such cells.
                let is_missing = match style {
                    "deepObject" => kind != "object" || !explode,
                    "spaceDelimited" | "pipeDelimited" => explode || kind == "string" || kind == "integer",
                    _ => false,
                };
                if !is_missing {
                    cells.push(Cell { place, style, explode, kind });
                }
            }
        }
    }
    cells
}

/// Makes a document with one operation for each cell, and a body.
fn document_of_styles() -> Json {
    let cells = cells();
    assert_eq!(cells.len(), 45);
    let mut paths = Map::new();
    for (number, cell) in cells.iter().enumerate() {
        let path = match cell.place {
            "path" => format!("/c{number}/{{value}}/end"),
            _ => format!("/c{number}"),
        };
        let schema = match cell.kind {
            "array" => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
            "object" => json!({ "$ref": "#/components/schemas/Fields" }),
            kind => json!({ "type": kind }),
        };
        let parameter = json!({
            "name": "value", "in": cell.place, "style": cell.style, "explode": cell.explode, "required": true,
            "schema": schema,
        });
        let body = json!({ "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Tree" } } } });
        let operation =
            json!({ "operationId": format!("c{number}"), "parameters": [parameter], "requestBody": body });
        paths.insert(path, json!({ "post": operation }));
    }
    let fields = json!({
        "type": "object", "minProperties": 1, "additionalProperties": false, "required": ["b"],
        "properties": { "a": { "type": "string" }, "b": { "type": "integer" }, "c d": { "type": "string" } },
    });
    let tree = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "below": { "type": "array", "items": { "$ref": "#/components/schemas/Tree" } },
        },
    });
    json!({ "openapi": "3.1.0", "paths": paths, "components": { "schemas": { "Fields": fields, "Tree": tree } } })
}

/// Returns the characters that mean something in the style of a parameter, and so cannot be in a value.
fn forbidden(parameter: &Parameter<'_>) -> &'static str {
    match (parameter.place, parameter.style) {
        // A slash behind the first dot would make a step to another path of it.
        ("path", "label") => "./",
        ("query", "spaceDelimited") => " ",
        ("query", "pipeDelimited") => "|",
        // Values of headers are not encoded.
        ("header", _) => ",= é😀%",
        _ => "",
    }
}

pub(crate) fn text(chance: &mut Chance, forbidden: &str) -> String {
    let letters: Vec<char> =
        "abcXYZ019-_~.,;:/?#[]@!$&'()*+= |%\"<>é😀".chars().filter(|c| !forbidden.contains(*c)).collect();
    let length = 1 + chance.below(6);
    let letter = |_| letters[usize::try_from(chance.below(letters.len() as u64)).unwrap()];
    let text: String = (0..length).map(letter).collect();
    // A path cannot have these steps, and a header loses blanks at its ends.
    let has_step = text.split('/').any(|part| matches!(part, "." | ".."));
    if has_step || text.trim() != text { "a".to_owned() } else { text }
}

/// Returns a value that a schema allows and that can be seen in a request: no empty list and no empty object.
fn value(root: &Json, schema: &Json, forbidden: &str, chance: &mut Chance, depth: u64) -> Json {
    let schema = target(root, schema);
    if schema["nullable"] == true && chance.percent(30) {
        return Json::Null;
    }
    match kind(root, schema) {
        "integer" => {
            let number = i64::try_from(chance.below(2_000)).unwrap() - 1_000;
            number.max(schema["minimum"].as_i64().unwrap_or(i64::MIN)).into()
        }
        "array" => {
            let items = 0..=chance.below(if depth == 0 { 1 } else { 4 });
            items.map(|_| value(root, &schema["items"], forbidden, chance, depth.saturating_sub(1))).collect()
        }
        "object" => object(root, schema, forbidden, chance, depth),
        _ => text(chance, forbidden).into(),
    }
}

fn object(root: &Json, schema: &Json, forbidden: &str, chance: &mut Chance, depth: u64) -> Json {
    let (mut fields, mut first) = (Map::new(), None);
    for (name, property) in schema["properties"].as_object().unwrap() {
        // A name with a forbidden character cannot be read either.
        if property["readOnly"] == true || name.contains(|c| forbidden.contains(c)) {
            continue;
        }
        first = first.or(Some((name, property)));
        let required = schema["required"].as_array();
        let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
        if is_required || depth > 0 && chance.percent(50) {
            fields.insert(name.clone(), value(root, property, forbidden, chance, depth.saturating_sub(1)));
        }
    }
    if let (true, Some((name, property))) = (fields.is_empty(), first) {
        fields.insert(name.clone(), value(root, property, forbidden, chance, 0));
    }
    Json::Object(fields)
}

/// Returns the arguments of a valid call.
fn arguments(root: &Json, operation: &Declared<'_>, chance: &mut Chance) -> Json {
    let mut arguments = Map::new();
    for parameter in &operation.parameters {
        if parameter.is_required || chance.percent(70) {
            let value = value(root, parameter.schema, forbidden(parameter), chance, 1);
            arguments.insert(parameter.name.to_owned(), value);
        }
    }
    if let Some(body) = operation.body.as_ref().filter(|body| body.is_required || chance.percent(60)) {
        arguments.insert(body.key.to_owned(), value(root, body.schema(), "", chance, 4));
    }
    Json::Object(arguments)
}

/// Makes random valid calls, and compares what arrives.
async fn check(server: &MockServer, made: &OpenApiTools, root: &Json, base: Option<&str>) {
    let operations = operations(root, base);
    assert_eq!((made.tools.len(), made.warnings.len()), (operations.len(), 0), "{:?}", made.warnings);
    let mut chance = Chance(first_seed() + 31);
    for number in 0..cases(180, 1_000) {
        let operation = &operations[usize::try_from(number).unwrap() % operations.len()];
        let tool = made.tools.iter().find(|tool| tool.spec().name == operation.id).unwrap();
        let arguments = arguments(root, operation, &mut chance);
        assert!(jsonschema::is_valid(&tool.spec().parameters, &arguments), "{}: {arguments}", operation.id);
        let result = call(tool, arguments.clone()).await.unwrap();
        let request = server.requests().pop().unwrap();
        let line = format!("{} {}{} → 200\n\n", request.method, server.url(), request.path);
        assert_eq!(result.text(), line);
        assert_eq!(operation.arguments(&request), arguments, "{}: {}", operation.id, request.path);
    }
}

async fn check_at(base: &str, root: Json) {
    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let config = OpenApiConfig::default().with_base_url(format!("{}{base}", server.url()));
    let made = OpenApiTools::from_value(root.clone(), config, OperationFilter::All).unwrap();
    check(&server, &made, &root, Some(base)).await;
}

// spec: OA-05, OA-06
#[tokio::test]
async fn random_calls_of_the_petstore_arrive_as_declared() {
    check_at("/v1", serde_saphyr::from_str(PETSTORE).unwrap()).await;
}

// spec: OA-05, OA-06
#[tokio::test]
async fn random_calls_of_every_style_arrive_as_declared() {
    check_at("", document_of_styles()).await;
}

// spec: OA-05, OA-06
#[tokio::test]
async fn random_calls_arrive_at_the_servers_of_paths_and_operations() {
    let server = MockServer::answering(|request| match request.path.ends_with(".yaml") {
        true => MockResponse::new(200).chunk(SERVERS),
        false => MockResponse::new(200),
    })
    .await;
    let address = format!("{}/docs/openapi.yaml", server.url());
    let made =
        OpenApiTools::from_url(&address, OpenApiConfig::default(), OperationFilter::All).await.unwrap();
    assert_eq!(made.servers(), [server.url()]);
    check(&server, &made, &serde_saphyr::from_str(SERVERS).unwrap(), None).await;
}
