//! Random valid calls arrive at a server as their document declares them: every style, with and without `explode`, for
//! texts, lists and objects. What arrives is read by code of its own.

use std::{collections::BTreeMap, sync::Arc};

use archon_openapi::{OpenApiConfig, OpenApiTool, OpenApiTools, OperationFilter};
use archon_testkit::{Chance, MockResponse, MockServer, RecordedRequest, cases, first_seed};
use archon_types::{Json, Tool};
use serde_json::{Map, json};

use crate::support::call;

/// Styles by their place, each with the characters that mean something in it and so cannot be in a value.
const STYLES: &[(&str, &str, &str)] = &[
    ("path", "simple", ""),
    ("path", "label", "."),
    ("path", "matrix", ""),
    ("query", "form", ""),
    ("query", "spaceDelimited", " "),
    ("query", "pipeDelimited", "|"),
    ("query", "deepObject", ""),
    // Values of headers are not encoded.
    ("header", "simple", ",= é😀%"),
];
const KINDS: &[&str] = &["string", "integer", "array", "object"];

/// One parameter of the document.
struct Cell {
    place: &'static str,
    style: &'static str,
    explode: bool,
    kind: &'static str,
    forbidden: &'static str,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for &(place, style, forbidden) in STYLES {
        for explode in [false, true] {
            for &kind in KINDS {
                // The specification has no such cells.
                let is_missing = match style {
                    "deepObject" => kind != "object" || !explode,
                    "spaceDelimited" | "pipeDelimited" => explode || kind == "string" || kind == "integer",
                    _ => false,
                };
                if !is_missing {
                    cells.push(Cell { place, style, explode, kind, forbidden });
                }
            }
        }
    }
    cells
}

/// Makes a document with one operation for each cell, and a body.
fn document(cells: &[Cell]) -> Json {
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
        "type": "object", "minProperties": 1, "additionalProperties": false,
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

fn text(chance: &mut Chance, forbidden: &str) -> String {
    let letters: Vec<char> =
        "abcXYZ019-_~.,;:/?#[]@!$&'()*+= |%\"<>é😀".chars().filter(|c| !forbidden.contains(*c)).collect();
    let length = 1 + chance.below(6);
    let letter = |_| letters[usize::try_from(chance.below(letters.len() as u64)).unwrap()];
    let text: String = (0..length).map(letter).collect();
    // A path cannot have these parts, and a header loses blanks at its ends.
    if text.trim_matches('.').is_empty() || text.trim() != text { "a".to_owned() } else { text }
}

fn value(cell: &Cell, chance: &mut Chance) -> Json {
    let number = |chance: &mut Chance| i64::try_from(chance.below(2_000)).unwrap() - 1_000;
    match cell.kind {
        "string" => text(chance, cell.forbidden).into(),
        "integer" => number(chance).into(),
        "array" => (0..=chance.below(4)).map(|_| text(chance, cell.forbidden)).collect::<Vec<_>>().into(),
        _ => {
            let mut fields = Map::new();
            fields.insert("b".to_owned(), number(chance).into());
            // The blank in this name is what is between the parts of one style.
            let has_blank = cell.forbidden.contains(' ');
            for name in ["a", "c d"].into_iter().filter(|name| !(has_blank && name.contains(' '))) {
                if chance.percent(50) {
                    fields.insert(name.to_owned(), text(chance, cell.forbidden).into());
                }
            }
            Json::Object(fields)
        }
    }
}

fn tree(chance: &mut Chance, depth: u64) -> Json {
    let mut tree = json!({ "name": text(chance, "") });
    if depth > 0 {
        tree["below"] = (0..chance.below(3)).map(|_| tree_below(chance, depth)).collect::<Vec<_>>().into();
    }
    tree
}

fn tree_below(chance: &mut Chance, depth: u64) -> Json {
    tree(chance, depth - 1)
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            // A strict reader: nothing stays that is not allowed as it is.
            byte => {
                assert!(byte.is_ascii_alphanumeric() || b"-._~".contains(&byte), "{text}");
                bytes.push(byte);
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Reads what arrived as the specification says for the cell.
fn arrived(cell: &Cell, request: &RecordedRequest) -> Json {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    match cell.place {
        "path" => {
            let part = path.split('/').nth(2).unwrap();
            assert_eq!(path.split('/').count(), 4, "{path}");
            in_path(cell, part)
        }
        "header" => listed(cell, request.header("value").unwrap(), ",", |text| text.to_owned()),
        _ => in_query(cell, query),
    }
}

fn in_path(cell: &Cell, part: &str) -> Json {
    match (cell.style, cell.explode) {
        ("label", true) => listed(cell, part.strip_prefix('.').unwrap(), ".", decoded),
        ("label", false) => listed(cell, part.strip_prefix('.').unwrap(), ",", decoded),
        ("matrix", true) if cell.kind == "array" => {
            let items = part.split(';').skip(1).map(|item| decoded(item.strip_prefix("value=").unwrap()));
            items.collect::<Vec<_>>().into()
        }
        ("matrix", true) if cell.kind == "object" => {
            listed(cell, part.strip_prefix(';').unwrap(), ";", decoded)
        }
        ("matrix", _) => listed(cell, part.strip_prefix(";value=").unwrap(), ",", decoded),
        _ => listed(cell, part, ",", decoded),
    }
}

fn in_query(cell: &Cell, query: &str) -> Json {
    let between = match cell.style {
        "spaceDelimited" => "%20",
        "pipeDelimited" => "%7C",
        _ => ",",
    };
    match (cell.style, cell.kind, cell.explode) {
        ("deepObject", ..) => {
            let fields = query.split('&').map(|pair| pair.split_once('=').unwrap());
            let name = |key: &str| {
                decoded(key).strip_prefix("value[").unwrap().strip_suffix(']').unwrap().to_owned()
            };
            fields.map(|(key, text)| (name(key), typed(&name(key), decoded(text)))).collect()
        }
        (_, "array", true) => {
            let items = query.split('&').map(|item| decoded(item.strip_prefix("value=").unwrap()));
            items.collect::<Vec<_>>().into()
        }
        (_, "object", true) => listed(cell, query, "&", decoded),
        _ => listed(cell, query.strip_prefix("value=").unwrap(), between, decoded),
    }
}

/// Reads the parts of a value that have this text between them.
fn listed(cell: &Cell, text: &str, between: &str, decode: fn(&str) -> String) -> Json {
    let parts: Vec<&str> = text.split(between).collect();
    match (cell.kind, cell.explode) {
        ("array", _) => parts.iter().map(|part| decode(part)).collect::<Vec<_>>().into(),
        ("object", true) => {
            let pairs = parts.iter().map(|part| part.split_once('=').unwrap());
            pairs.map(|(key, text)| (decode(key), typed(&decode(key), decode(text)))).collect()
        }
        ("object", false) => {
            let pairs = parts.chunks(2).map(|pair| (decode(pair[0]), decode(pair[1])));
            pairs.map(|(key, text)| (key.clone(), typed(&key, text))).collect()
        }
        ("integer", _) => decode(text).parse::<i64>().unwrap().into(),
        _ => decode(text).into(),
    }
}

fn typed(key: &str, text: String) -> Json {
    if key == "b" { text.parse::<i64>().unwrap().into() } else { text.into() }
}

fn sorted(value: &Json) -> BTreeMap<String, Json> {
    value.as_object().map(|fields| fields.clone().into_iter().collect()).unwrap_or_default()
}

// spec: OA-05, OA-06
#[tokio::test]
async fn random_calls_of_every_style_arrive_as_declared() {
    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let cells = cells();
    assert_eq!(cells.len(), 45);
    let config = OpenApiConfig::default().with_base_url(server.url());
    let made = OpenApiTools::from_value(document(&cells), config, OperationFilter::All).unwrap();
    assert_eq!((made.tools.len(), made.warnings.len()), (cells.len(), 0));
    let mut chance = Chance(first_seed() + 31);
    for number in 0..cases(180, 1_000) {
        let place = usize::try_from(number).unwrap() % cells.len();
        let (cell, tool): (&Cell, &Arc<OpenApiTool>) = (&cells[place], &made.tools[place]);
        let mut arguments = json!({ "value": value(cell, &mut chance) });
        if chance.percent(50) {
            arguments["body"] = tree(&mut chance, 3);
        }
        assert!(jsonschema::is_valid(&tool.spec().parameters, &arguments), "{arguments}");
        let result = call(tool, arguments.clone()).await.unwrap();
        let request = server.requests().pop().unwrap();
        assert_eq!(result.text(), format!("POST {}{} → 200\n\n", server.url(), request.path));
        let (value, arrived) = (&arguments["value"], arrived(cell, &request));
        let cell = (cell.place, cell.style, cell.explode, cell.kind);
        match value.is_object() {
            true => assert_eq!(sorted(&arrived), sorted(value), "{cell:?} {}", request.path),
            false => assert_eq!(&arrived, value, "{cell:?} {}", request.path),
        }
        assert_eq!(request.body, arguments.get("body").cloned().unwrap_or_default());
    }
}
