//! A petstore: from its document to requests and results.

use std::{fs, sync::Arc};

use archon_openapi::{OpenApiConfig, OpenApiTool, OpenApiTools, OperationFilter};
use archon_testkit::{MockResponse, MockServer};
use archon_types::{Content, Effect, Json, Subject, Tool, ToolError};
use serde_json::json;

use crate::support::{PETSTORE, call, run, tool};

fn petstore(server: &str) -> Vec<Arc<OpenApiTool>> {
    let config = OpenApiConfig::default().with_base_url(format!("{server}/v1/"));
    let made = OpenApiTools::from_str(PETSTORE, config, OperationFilter::All).unwrap();
    assert_eq!(made.warnings, []);
    made.tools
}

fn named<'t>(tools: &'t [Arc<OpenApiTool>], name: &str) -> &'t OpenApiTool {
    tools.iter().find(|tool| tool.spec().name == name).unwrap()
}

// spec: A-57, OA-02, OA-05, OA-06
#[tokio::test]
async fn calls_of_the_petstore_arrive_and_their_results_begin_with_the_request() {
    let server = MockServer::start([
        MockResponse::json(200, &json!({ "name": "Rex" })),
        MockResponse::json(201, &json!({ "id": 7 })),
        MockResponse::new(204),
    ])
    .await;
    let tools = petstore(&server.url());
    let result =
        call(named(&tools, "getPet"), json!({ "petId": "a/b ö", "X-Request-Id": "r1" })).await.unwrap();
    let url = format!("{}/v1/pets/a%2Fb%20%C3%B6", server.url());
    assert_eq!(result.text(), format!("GET {url} → 200\n\n{{\"name\":\"Rex\"}}"));
    assert!(!result.is_error());
    let pet = json!({ "name": "Rex", "nick": null, "category": { "parent": { "parent": {} } } });
    let result = call(named(&tools, "createPet"), json!({ "body": pet })).await.unwrap();
    assert!(result.text().starts_with(&format!("POST {}/v1/pets → 201\n\n", server.url())));
    let result = call(named(&tools, "deletePet"), json!({ "petId": 7 })).await.unwrap();
    assert_eq!(result.text(), format!("DELETE {}/v1/pets/7 → 204\n\n", server.url()));
    let requests = server.requests();
    assert_eq!(requests[0].header("x-request-id"), Some("r1"));
    assert_eq!(
        (requests[1].body.clone(), requests[1].header("content-type")),
        (pet, Some("application/json"))
    );
    assert_eq!((requests[2].method.as_str(), requests[2].path.as_str()), ("DELETE", "/v1/pets/7"));
}

// spec: OA-05
#[tokio::test]
async fn body_has_another_argument_if_a_parameter_is_called_body() {
    let server = MockServer::start([MockResponse::new(200)]).await;
    let tools = petstore(&server.url());
    let note = json!({ "text": "a&b", "labels": ["x", "y z"], "place": { "x": 1 } });
    let arguments = json!({ "petId": "7", "body": "query", "_request_body": note });
    call(named(&tools, "addNote"), arguments).await.unwrap();
    let request = server.requests().remove(0);
    assert_eq!(request.path, "/v1/pets/7/notes?body=query");
    assert_eq!(request.text, "text=a%26b&labels=x&labels=y%20z&place%5Bx%5D=1");
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
}

// spec: OA-07
#[tokio::test]
async fn arguments_are_an_object_or_null() {
    let server = MockServer::start([MockResponse::new(200)]).await;
    let tools = petstore(&server.url());
    let list = named(&tools, "listPets");
    assert!(call(list, json!(null)).await.is_ok());
    for wrong in [json!([]), json!("x"), json!(1), json!(true)] {
        assert!(matches!(call(list, wrong).await, Err(ToolError::InvalidArgs(_))));
    }
    assert_eq!(server.requests().len(), 1);
}

// spec: OA-05
#[tokio::test]
async fn call_that_cannot_be_made_is_refused_before_the_wire() {
    let server = MockServer::start([]).await;
    let tools = petstore(&server.url());
    for (name, arguments) in [
        ("getPet", json!({})),
        ("getPet", json!({ "petId": null })),
        ("getPet", json!({ "petId": "" })),
        ("getPet", json!({ "petId": ".." })),
        ("getPet", json!({ "petId": "../admin" })),
        ("getPet", json!({ "petId": "7/..\\admin" })),
        ("addNote", json!({ "petId": "." })),
        ("getPet", json!({ "petId": "7", "X-Request-Id": "a\r\nX-Admin: 1" })),
        ("createPet", json!({})),
    ] {
        let refused = call(named(&tools, name), arguments.clone()).await;
        assert!(matches!(refused, Err(ToolError::InvalidArgs(_))), "{name} {arguments}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn path_of_a_document_that_leaves_the_base_address_is_refused() {
    let server = MockServer::start([]).await;
    for path in ["/%2e%2e/admin", "/.%2E/admin", "/a/../admin"] {
        let refused = call(&tool(&server.url(), path, "get", json!({})), json!({})).await;
        assert!(matches!(refused, Err(ToolError::InvalidArgs(_))), "{path}");
    }
    assert!(server.requests().is_empty());
}

// spec: OA-06
#[tokio::test]
async fn status_of_400_or_more_is_a_failed_call_with_its_body() {
    let statuses = [302, 400, 404, 500, 503];
    let server = MockServer::start(statuses.map(|status| MockResponse::new(status).chunk("why"))).await;
    let tool = tool(&server.url(), "/a", "get", json!({}));
    for status in statuses {
        let result = call(&tool, json!({})).await.unwrap();
        assert_eq!(result.text(), format!("GET {}/a → {status}\n\nwhy", server.url()));
        assert_eq!(result.is_error(), status >= 400);
    }
}

// spec: OA-02, OA-06
#[tokio::test]
async fn long_body_is_cut_off_at_a_whole_character() {
    let server = MockServer::answering(|_| MockResponse::new(200).chunk("aé😀z")).await;
    for (most, body) in [(1, "a"), (2, "a"), (3, "aé"), (6, "aé"), (7, "aé😀"), (8, "aé😀z")] {
        let mut config = OpenApiConfig::default().with_base_url(server.url());
        assert_eq!((config.max_response_bytes, config.timeout_secs), (65_536, 30));
        config.max_response_bytes = most;
        let made = OpenApiTools::from_str(PETSTORE, config, OperationFilter::All).unwrap();
        let text = call(&made.tools[0], json!({})).await.unwrap().text();
        let shown = text.split_once("\n\n").unwrap().1;
        match most {
            8 => assert_eq!(shown, body),
            _ => {
                let note = format!("{body}\n\n(The body was cut off after {} bytes.)", body.len());
                assert_eq!(shown, note);
            }
        }
    }
}

#[tokio::test]
async fn data_that_are_no_text_are_described_and_tags_are_removed_from_text() {
    let picture = MockResponse::new(200).header("content-type", "image/png").chunk([0x89, 0, 1, 0xff]);
    let server = MockServer::start([picture, MockResponse::new(200).chunk("a\u{e0041}b")]).await;
    let tool = tool(&server.url(), "/a", "get", json!({}));
    let shown = call(&tool, json!({})).await.unwrap().text();
    assert!(shown.ends_with("\n\n(image/png of 4 bytes, not shown)"), "{shown}");
    assert!(call(&tool, json!({})).await.unwrap().text().ends_with("\n\nab"));
}

#[tokio::test]
async fn unreachable_server_is_named_in_the_error() {
    let tool = tool("http://127.0.0.1:1", "/a", "get", json!({}));
    let Err(ToolError::Resource(text)) = call(&tool, json!({})).await else { panic!("no server is there") };
    assert!(text.starts_with("GET http://127.0.0.1:1/a failed: "), "{text}");
}

#[test]
fn spec_of_a_tool_has_its_schema_its_effect_and_its_origin() {
    let tools = petstore("https://pets.example.com");
    let get = named(&tools, "getPet").spec();
    assert_eq!(get.description, "[OpenAPI document 'Petstore'] Returns a pet.\nGET /pets/{petId} (pets)");
    assert_eq!(get.parameters["required"], json!(["petId"]));
    assert!(
        get.annotations.effect == Effect::ReadOnly && get.annotations.deferrable && get.annotations.network
    );
    for name in ["createPet", "deletePet", "addNote"] {
        let annotations = &named(&tools, name).spec().annotations;
        assert!(annotations.destructive && annotations.effect == Effect::SideEffect, "{name}");
    }
    let list = &named(&tools, "listPets").spec().parameters;
    let names: Vec<&String> = list["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["limit", "tags"]);
    assert_eq!(list["properties"]["limit"]["description"], "Maximum number of pets.");
    assert_eq!(named(&tools, "deletePet").tags(), ["pets", "admin"]);
    assert_eq!(named(&tools, "deletePet").spec().groups, ["pets", "admin"]);
    let subject = named(&tools, "getPet").subject(&json!({ "petId": "7" }));
    assert_eq!(subject, Subject::Urls(vec!["https://pets.example.com/v1/pets/7".to_owned()]));
}

#[test]
fn preview_of_a_call_is_its_method_and_its_address() {
    let tools = petstore("https://pets.example.com");
    let preview = |arguments: Json| named(&tools, "deletePet").preview(&arguments, &run());
    let shown = preview(json!({ "petId": "7 8" })).unwrap().unwrap().summary;
    assert_eq!(shown, "DELETE https://pets.example.com/v1/pets/7%208 (deletePet)");
    assert!(matches!(preview(json!({ "petId": ".." })), Err(ToolError::InvalidArgs(_))));
}

#[test]
fn schema_of_a_body_holds_its_circle_and_only_what_it_reaches() {
    let tools = petstore("https://pets.example.com");
    let schema = &named(&tools, "createPet").spec().parameters;
    let defs: Vec<&String> = schema["$defs"].as_object().unwrap().keys().collect();
    assert_eq!(defs, ["NewPet", "Category"]);
    assert_eq!(schema["properties"]["body"]["$ref"], "#/$defs/NewPet");
    let is_valid = |pet: Json| jsonschema::is_valid(schema, &json!({ "body": pet }));
    assert!(is_valid(
        json!({ "name": "a", "nick": null, "category": { "parent": { "parent": { "name": "b" } } } })
    ));
    assert!(!is_valid(json!({ "name": "a", "category": { "parent": { "parent": { "name": 3 } } } })));
    assert!(!is_valid(json!({ "nick": "b" })));
}

// spec: OA-04
#[test]
fn filter_chooses_operations_and_the_prefix_names_them() {
    let names = |filter: OperationFilter| {
        let config = OpenApiConfig::default().with_name_prefix("shop");
        let made = OpenApiTools::from_str(PETSTORE, config, filter).unwrap();
        let names: Vec<String> = made.tools.iter().map(|tool| tool.spec().name.clone()).collect();
        (names.join(" ").replace("shop__", ""), made.warnings.len())
    };
    let ids = |ids: &[&str]| OperationFilter::ByOperationId(ids.iter().map(|id| (*id).to_owned()).collect());
    assert_eq!(names(OperationFilter::All).0, "listPets createPet getPet deletePet addNote");
    assert_eq!(names(ids(&["getPet", "addNote"])), ("getPet addNote".to_owned(), 0));
    assert_eq!(names(ids(&["getPet", "getpet"])), ("getPet".to_owned(), 1));
    assert_eq!(
        names(OperationFilter::ByTag(vec!["notes".to_owned(), "admin".to_owned()])).0,
        "deletePet addNote"
    );
    assert_eq!(names(OperationFilter::ByPathPrefix("/pets/{petId}/".to_owned())).0, "addNote");
}

// spec: OA-01
#[test]
fn file_is_read_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pets.yaml");
    fs::write(&path, PETSTORE).unwrap();
    let from_file = |path| OpenApiTools::from_file(path, OpenApiConfig::default(), OperationFilter::All);
    assert_eq!(from_file(path).unwrap().into_iter().count(), 5);
    let missing = from_file(folder.path().join("none.yaml")).unwrap_err().to_string();
    assert!(missing.contains("none.yaml cannot be read"), "{missing}");
}

// spec: OA-01
#[tokio::test]
async fn document_at_an_address_has_the_servers_of_that_address() {
    let text = PETSTORE.replace("https://petstore.example.com/v1", "v1");
    let server = MockServer::start([MockResponse::new(200).chunk(text), MockResponse::new(200)]).await;
    let address = format!("{}/api/openapi.yaml", server.url());
    let fetched = OpenApiTools::from_url(&address, OpenApiConfig::default(), OperationFilter::All).await;
    call(&fetched.unwrap().tools[0], json!({})).await.unwrap();
    assert_eq!(server.requests()[1].path, "/api/v1/pets");
    let refused = OpenApiTools::from_url(&address, OpenApiConfig::default(), OperationFilter::All).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("cannot be read") && refused.contains("500"), "{refused}");
    server.push(MockResponse::new(302).header("location", "https://b.example/openapi.yaml"));
    let moved = OpenApiTools::from_url(&address, OpenApiConfig::default(), OperationFilter::All).await;
    let moved = moved.unwrap_err().to_string();
    assert!(
        moved.contains("redirects to another server; if you trust it, use https://b.example/"),
        "{moved}"
    );
}

// spec: OA-05
#[tokio::test]
async fn hoisted_fields_of_a_body_are_arguments() {
    let server = MockServer::start([MockResponse::new(200), MockResponse::new(200)]).await;
    let mut config = OpenApiConfig::default().with_base_url(server.url());
    config.hoist_body = true;
    let made = OpenApiTools::from_str(PETSTORE, config, OperationFilter::All).unwrap();
    let create = named(&made.tools, "createPet");
    assert_eq!(create.spec().parameters["required"], json!(["name"]));
    call(create, json!({ "name": "Rex" })).await.unwrap();
    let note = named(&made.tools, "addNote");
    call(note, json!({ "petId": "7", "text": "x" })).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].body, json!({ "name": "Rex" }));
    assert_eq!(requests[1].text, "text=x");
}

#[tokio::test]
async fn redirect_is_followed_on_the_same_server_only() {
    let other = MockServer::start([]).await;
    let to = |address: &str| MockResponse::new(302).header("location", address);
    let server = MockServer::start([to("/b"), MockResponse::new(200), to(&other.url())]).await;
    let tool = tool(&server.url(), "/a", "get", json!({}));
    assert!(call(&tool, json!({})).await.unwrap().text().contains("→ 200"));
    let stopped = call(&tool, json!({})).await.unwrap();
    let note = format!("(The redirect to {} was not followed.)", other.url());
    assert!(
        matches!(&stopped.content[0], Content::Text { text } if text.contains("→ 302") && text.ends_with(&note))
    );
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn body_in_another_format_is_a_text_that_is_sent_as_it_is() {
    let server = MockServer::start([MockResponse::new(200)]).await;
    let content = json!({ "multipart/form-data": {}, "application/xml": { "schema": { "type": "object" } } });
    let tool =
        tool(&server.url(), "/a", "post", json!({ "requestBody": { "required": true, "content": content } }));
    call(&tool, json!({ "body": "<a/>" })).await.unwrap();
    let request = server.requests().remove(0);
    assert_eq!((request.text.as_str(), request.header("content-type")), ("<a/>", Some("application/xml")));
    assert!(matches!(call(&tool, json!({ "body": {} })).await, Err(ToolError::InvalidArgs(_))));
}
