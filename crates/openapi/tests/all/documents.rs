//! Broken and unusual documents: each broken operation is left out with a warning, and the others work.

use archon_openapi::{OpenApiConfig, OpenApiTools, OperationFilter};
use archon_testkit::{MockResponse, MockServer};
use archon_types::{Json, Subject, Tool};
use serde_json::json;

use crate::support::{SWAGGER, call, document, tools};

const BROKEN: &str = r##"openapi: 3.1.0
info: { title: "Bro[ken]\u200b" }
servers: [{ url: https://api.example.com }]
paths:
  /good:
    get: { operationId: good }
  /no-id:
    get: {}
  /far:
    post:
      operationId: far
      requestBody: { content: { application/json: { schema: { $ref: 'models.yaml#/Pet' } } } }
  /parts:
    post:
      operationId: parts
      requestBody: { content: { multipart/form-data: { schema: {} } } }
  /pets/{petId}:
    get: { operationId: noParameter }
  /style:
    get:
      operationId: style
      parameters: [{ name: a, in: query, style: matrix }]
  /pattern:
    get:
      operationId: pattern
      parameters: [{ name: a, in: query, schema: { type: string, pattern: '(' } }]
  /local:
    get:
      operationId: local
      servers: [{ url: 'http://169.254.169.254/' }]
  /lost:
    $ref: '#/components/pathItems/none'
  /word: nonsense
  /cookie:
    get:
      operationId: cookie
      parameters: [{ name: sid, in: cookie, required: true }]
"##;

// spec: OA-04
#[test]
fn broken_operation_is_left_out_with_its_line_and_its_pointer() {
    let made = OpenApiTools::from_str(BROKEN, OpenApiConfig::default(), OperationFilter::All).unwrap();
    let names: Vec<&str> = made.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names, ["good", "cookie"]);
    assert!(made.tools[0].spec().description.starts_with("[OpenAPI document 'Broken'] "));
    let warnings: Vec<String> = made.warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "the text:8: #/paths/~1no-id/get: the operation was left out: it has no `operationId`",
        "the text:10: #/paths/~1far/post/requestBody/content/application~1json/schema: the operation was left out: it \
         refers to `models.yaml#/Pet`, which is outside of the document",
        "the text:14: #/paths/~1parts/post/requestBody/content: the operation was left out: its body is multipart",
        "the text:18: #/paths/~1pets~1{petId}/get: the operation was left out: its path has '{petId}', and no such",
        "the text:20: #/paths/~1style/get/parameters/0: the operation was left out: the style 'matrix' does not exist",
        "the text:24: #/paths/~1pattern/get: the operation was left out: the schema of its arguments is not",
        "the text:28: #/paths/~1local/get: the operation was left out: its server 'http://169.254.169.254/' is not on",
        "the text: #/paths/~1lost: the path was left out: it refers to `#/components/pathItems/none`, which does not",
        "the text: #/paths/~1word: it is not an object",
        "the text:35: #/paths/~1cookie/get/parameters/0: the cookie 'sid' is required",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
    for (warning, expected) in warnings.iter().zip(expected) {
        assert!(warning.starts_with(expected), "{warning}\n{expected}");
    }
}

#[test]
fn operation_without_an_id_can_be_named_by_its_path() {
    let mut config = OpenApiConfig::default();
    config.name_by_path = true;
    let made =
        OpenApiTools::from_str(BROKEN, config, OperationFilter::ByPathPrefix("/no-id".to_owned())).unwrap();
    assert_eq!(made.tools[0].spec().name, "get_no_id");
}

// spec: OA-02
#[test]
fn operation_without_a_server_needs_the_base_address() {
    let made =
        |config| OpenApiTools::from_value(document("/a", "get", json!({})), config, OperationFilter::All);
    let without = made(OpenApiConfig::default()).unwrap();
    assert!(
        without.tools.is_empty()
            && without.warnings[0].problem.contains("names no server; set the base address")
    );
    assert_eq!(made(OpenApiConfig::default().with_base_url("https://a.example")).unwrap().tools.len(), 1);
    assert!(made(OpenApiConfig::default().with_base_url("a.example")).is_err());
}

#[test]
fn setting_that_cannot_be_used_is_an_error() {
    for prefix in ["", "a__b", "a_", "1", "a b", &"a".repeat(33)] {
        let config = OpenApiConfig::default().with_base_url("https://a.example").with_name_prefix(prefix);
        let made = OpenApiTools::from_value(document("/a", "get", json!({})), config, OperationFilter::All);
        assert!(made.unwrap_err().to_string().contains("name prefix"), "{prefix}");
    }
}

#[test]
fn names_of_arguments_are_legal_and_differ() {
    let parameter =
        |name: &str, place: &str| json!({ "name": name, "in": place, "description": "a\u{200b}b" });
    let list = ["filter[name]", "$top", "id"].map(|name| parameter(name, "query"));
    let headers = ["id", "Host", "X-Original-URL"].map(|name| parameter(name, "header"));
    let list = [list.to_vec(), headers.to_vec()].concat();
    let operation = json!({ "parameters": list });
    let config = OpenApiConfig::default().with_base_url("https://a.example");
    let tools = tools(document("/a", "get", operation), config);
    let properties = tools[0].spec().parameters["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["filter_name", "_top", "id", "id_2"]);
    assert_eq!(properties["id"], json!({ "description": "ab" }));
}

#[test]
fn version_changes_with_the_request_and_not_with_its_description() {
    let version = |operation| {
        let config = OpenApiConfig::default().with_base_url("https://a.example");
        tools(document("/a", "get", operation), config)[0].spec().version.clone()
    };
    let same = version(json!({ "summary": "a" }));
    assert_eq!(same, version(json!({ "summary": "b" })));
    let in_query = version(json!({ "parameters": [{ "name": "a", "in": "query" }] }));
    assert_ne!(same, in_query);
    // The schema of the arguments is the same.
    assert_ne!(in_query, version(json!({ "parameters": [{ "name": "a", "in": "header" }] })));
}

#[test]
fn texts_that_a_person_cannot_see_are_not_in_a_schema() {
    let made = |schema: Json| {
        let operation = json!({ "parameters": [{ "name": "a", "in": "query", "schema": schema }] });
        let config = OpenApiConfig::default().with_base_url("https://a.example");
        let made = OpenApiTools::from_value(document("/a", "get", operation), config, OperationFilter::All);
        let made = made.unwrap();
        let schema = made.tools.first().map(|tool| tool.spec().parameters["properties"]["a"].clone());
        (schema, made.warnings.first().map(|warning| warning.problem.clone()).unwrap_or_default())
    };
    let left = json!({ "default": "b\u{202e}", "examples": ["\u{e0041}"], "type": "string" });
    assert_eq!(made(left), (Some(json!({ "type": "string" })), String::new()));
    for hidden in [
        json!({ "enum": ["a", "\u{e0041}"] }),
        json!({ "const": "\u{2066}" }),
        json!({ "pattern": "\u{e0041}" }),
        json!({ "properties": { "\u{e0041}": {} } }),
    ] {
        let (schema, problem) = made(hidden);
        assert!(schema.is_none() && problem.contains("invisible characters"), "{problem}");
    }
}

#[test]
fn operation_with_too_many_parts_is_left_out() {
    let many = |count: usize, part: &dyn Fn(usize) -> Json| (0..count).map(part).collect::<Vec<Json>>();
    let parameters = many(1_001, &|number| json!({ "name": format!("p{number}"), "in": "query" }));
    let schemas = json!({ "anyOf": many(140_000, &|_| json!({})) });
    for (operation, problem) in [
        (json!({ "parameters": parameters }), "more than 1000 parameters"),
        (
            json!({ "parameters": [{ "name": "a", "in": "query", "schema": schemas }] }),
            "more than 131072 parts",
        ),
    ] {
        let config = OpenApiConfig::default().with_base_url("https://a.example");
        let made = OpenApiTools::from_value(document("/a", "get", operation), config, OperationFilter::All);
        let warnings = made.unwrap().warnings;
        assert!(warnings[0].problem.contains(problem), "{warnings:?}");
    }
}

#[tokio::test]
async fn document_of_version_2_has_the_same_tools() {
    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let made = |config| OpenApiTools::from_str(SWAGGER, config, OperationFilter::All).unwrap();
    let own = made(OpenApiConfig::default());
    let subject = own.tools[0].subject(&json!({ "id": "7", "body": {} }));
    assert_eq!(subject, Subject::Urls(vec!["https://api.example.com/v1/pets/7".to_owned()]));
    assert!(own.warnings.len() == 1 && own.warnings[0].problem.contains("multipart/form-data"), "{own:?}");
    let tools = made(OpenApiConfig::default().with_base_url(server.url())).tools;
    let arguments =
        json!({ "id": "7", "size": [1, 2], "tags": ["a", "b"], "body": { "mother": { "mother": {} } } });
    assert!(jsonschema::is_valid(&tools[0].spec().parameters, &arguments));
    call(&tools[0], arguments).await.unwrap();
    call(&tools[1], json!({ "id": "7", "body": { "name": "Rex" } })).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].path, "/pets/7?size=1%7C2&tags=a,b");
    assert_eq!(requests[0].body, json!({ "mother": { "mother": {} } }));
    assert_eq!((requests[1].path.as_str(), requests[1].text.as_str()), ("/pets/7", "name=Rex"));
}

const VERSION_3_2: &str = r##"openapi: 3.2.0
$self: https://api.example.com/openapi.yaml
info: { title: New }
paths:
  /pets:
    query:
      operationId: findPets
      requestBody: { required: true, content: { application/json: { schema: { type: object } } } }
    additionalOperations:
      COPY: { operationId: copyPets, parameters: [{ name: to, in: query, schema: { type: string } }] }
  /search:
    get:
      operationId: search
      parameters: [{ name: all, in: querystring, content: { application/json: { schema: {} } } }]
"##;

// spec: OA-01
#[tokio::test]
async fn document_of_version_3_2_has_its_new_methods_and_warns_of_the_rest() {
    let server = MockServer::answering(|_| MockResponse::new(200)).await;
    let config = OpenApiConfig::default().with_base_url(server.url());
    let made = OpenApiTools::from_str(VERSION_3_2, config, OperationFilter::All).unwrap();
    let names: Vec<_> = made.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names, ["findPets", "copyPets"]);
    let [warning] = made.warnings.as_slice() else { panic!("{:?}", made.warnings) };
    assert_eq!(warning.pointer, "#/paths/~1search/get/parameters/0");
    assert!(warning.problem.contains("it is in 'querystring', which is not supported"), "{warning}");
    call(&made.tools[0], json!({ "body": { "age": 3 } })).await.unwrap();
    call(&made.tools[1], json!({ "to": "b" })).await.unwrap();
    let requests = server.requests();
    let seen: Vec<_> =
        requests.iter().map(|request| (request.method.as_str(), request.path.as_str())).collect();
    assert_eq!(seen, [("QUERY", "/pets"), ("COPY", "/pets?to=b")]);
    assert_eq!(requests[0].body, json!({ "age": 3 }));
}
