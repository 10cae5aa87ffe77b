//! The hint to the next page of a list.

use archon_testkit::{MockResponse, MockServer};
use archon_types::Json;
use serde_json::json;

use crate::support::{call, tool};

async fn hint(response: MockResponse, names: &[&str], arguments: Json) -> Option<String> {
    let server = MockServer::start([response]).await;
    let parameter = |name: &&str| json!({ "name": name, "in": "query", "schema": { "type": ["string"] } });
    let mut list: Vec<Json> = names.iter().map(parameter).collect();
    list.push(json!({ "name": "page", "in": "query", "schema": { "type": "integer" } }));
    let tool = tool(&server.url(), "/a", "get", json!({ "parameters": list }));
    let result = call(&tool, arguments).await.unwrap();
    let text = result.content.get(1)?.as_text()?.to_owned();
    Some(text.strip_prefix("There is a next page. To read it, call act with ").unwrap().to_owned())
}

#[tokio::test]
async fn link_to_the_next_page_becomes_the_arguments_of_the_next_call() {
    let link = |value: &str| MockResponse::new(200).header("link", value);
    let next = r#"</a?page=1>; rel="prev", </a?page=3&q=x>; rel="next", </a?page=9>; rel="last""#;
    let given = json!({ "page": 2, "q": "x" });
    assert_eq!(hint(link(next), &["q"], given.clone()).await.unwrap(), r#"{"page":3,"q":"x"}"#);
    for other in [
        r#"</a?page=1>; rel="prev""#,
        r#"<https://b.example/a?page=3>; rel=next"#,
        "</b?page=3>; rel=next",
        "<",
        "",
    ] {
        assert_eq!(hint(link(other), &["q"], given.clone()).await, None, "{other}");
    }
}

#[tokio::test]
async fn field_with_a_cursor_becomes_the_argument_that_takes_it() {
    for (body, name, next) in [
        (json!({ "next_cursor": "abc" }), "cursor", r#"{"cursor":"abc"}"#),
        (json!({ "nextPageToken": "abc" }), "pageToken", r#"{"pageToken":"abc"}"#),
        (json!({ "next_token": "abc" }), "next_token", r#"{"next_token":"abc"}"#),
        (json!({ "meta": { "next_cursor": 7 } }), "after", r#"{"after":"7"}"#),
    ] {
        let given = hint(MockResponse::json(200, &body), &[name], json!({})).await;
        assert_eq!(given.as_deref(), Some(next), "{body}");
    }
    for body in
        [json!({ "next_cursor": null }), json!({ "next_cursor": "" }), json!([]), json!({ "next": "abc" })]
    {
        assert_eq!(hint(MockResponse::json(200, &body), &["cursor"], json!({})).await, None, "{body}");
    }
    let failed = MockResponse::json(500, &json!({ "next_cursor": "abc" }));
    assert_eq!(hint(failed, &["cursor"], json!({})).await, None);
}
