//! OpenAI clients of the server: the agents as models, the rights of a token, and the runs that it reaches.

use archon_testkit::MockServer;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{Response, Served, settle};
use crate::setup::{Place, answer};

const SETTINGS: &str = "[serve]\nagents = ['reviewer']\n\
                        [serve.tokens.anna]\nrole = 'operator'\ntenant = 'anna'\n\
                        [serve.tokens.bert]\nrole = 'operator'\ntenant = 'bert'\n\
                        [serve.tokens.eve]\nrole = 'viewer'\n\
                        [agents.reviewer]\ndescription = 'Reviews.'\nsystem = 'You review.'\n\
                        [agents.secret]\ndescription = 'Is for nobody.'\n";

fn completion(model: &str) -> (&'static str, Value) {
    let messages = json!([{ "role": "user", "content": "Hi." }]);
    ("/v1/chat/completions", json!({ "model": model, "messages": messages }))
}

fn response(model: &str) -> (&'static str, Value) {
    ("/v1/responses", json!({ "model": model, "input": "Hi." }))
}

/// A server with three tokens, and its place.
struct Site {
    place: Place,
    served: Served,
}

impl Site {
    async fn start(model: &MockServer) -> Self {
        let place = Place::new();
        settle(&place, model, SETTINGS);
        let served = Served::of(place.command("serve --json --listen 127.0.0.1:0", &[]), 3).await;
        Self { place, served }
    }

    async fn get(&self, token: &str, path: &str) -> Response {
        self.served.send("GET", path, &self.header(token), None).await
    }

    async fn post(&self, token: &str, (path, body): (&str, Value)) -> Response {
        self.served.send("POST", path, &self.header(token), Some(&body)).await
    }

    fn header(&self, token: &str) -> String {
        let secret = std::fs::read_to_string(self.place.data().join("tokens").join(token)).unwrap();
        self.served.bearer(secret.trim())
    }
}

#[tokio::test]
async fn openai_client_of_serve_lists_the_agents_and_gets_their_answers() {
    let model = MockServer::start([answer("All well."), answer("Reviewed.")]).await;
    let site = Site::start(&model).await;
    let listed = site.get("anna", "/v1/models").await;
    assert_eq!(listed.status, 200, "{listed:?}");
    let models: Vec<_> = listed.body["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(models, ["archon", "reviewer"]);

    let completed = site.post("anna", completion("archon")).await;
    assert_eq!(completed.status, 200, "{completed:?}");
    assert_eq!(completed.body["choices"][0]["message"]["content"], "All well.");
    let responded = site.post("anna", response("reviewer")).await;
    assert_eq!((responded.status, &responded.body["status"]), (200, &json!("completed")), "{responded:?}");
    assert_eq!(responded.body["output"][0]["content"][0]["text"], "Reviewed.");
    let asked: Vec<_> = model.requests().iter().map(|request| request.body.to_string()).collect();
    assert_eq!(asked.iter().map(|asked| asked.contains("You review.")).collect::<Vec<_>>(), [false, true]);

    for request in [completion("secret"), response("secret")] {
        let refused = site.post("anna", request).await;
        assert_eq!((refused.status, &refused.body["error"]["code"]), (404, &json!("model_not_found")));
    }
    assert_eq!(model.requests().len(), 2);
    assert_eq!(site.served.end(Signal::TERM).await, Some(0));
}

// spec: EX-11
#[tokio::test]
async fn openai_client_of_serve_without_a_token_or_the_right_is_refused_and_starts_no_run() {
    let model = MockServer::start([]).await;
    let site = Site::start(&model).await;
    let (models, viewer) = (("/v1/models", Value::Null), site.header("eve"));
    for (path, body) in [models, completion("archon"), response("archon")] {
        let method = if body.is_null() { "GET" } else { "POST" };
        let body = (!body.is_null()).then_some(&body);
        for (header, status, rule) in [
            ("X-Nothing: 1", 401, "token-missing"),
            ("Authorization: Bearer not-a-token-of-it", 401, "token-unknown"),
            (viewer.as_str(), 403, "role"),
        ] {
            let refused = site.served.send(method, path, header, body).await;
            assert_eq!((refused.status, refused.rule()), (status, rule), "{method} {path}: {refused:?}");
        }
    }
    let runs = site.get("eve", "/v1/runs").await;
    assert_eq!((&runs.body["runs"], model.requests().len()), (&json!([]), 0), "{runs:?}");
    assert_eq!(site.served.end(Signal::TERM).await, Some(0));
}

// spec: EX-11
#[tokio::test]
async fn openai_client_of_serve_reaches_the_runs_of_its_tenant_only() {
    let model = MockServer::start([answer("For Anna."), answer("And more.")]).await;
    let site = Site::start(&model).await;
    let of_anna = site.post("anna", response("archon")).await;
    let id = of_anna.body["id"].as_str().unwrap();
    let (path, cancel) = (format!("/v1/responses/{id}"), format!("/v1/responses/{id}/cancel"));

    let foreign = site.get("bert", &path).await;
    assert_eq!((foreign.status, &foreign.body["error"]["code"]), (404, &json!("response_not_found")));
    let (responses, mut body) = response("archon");
    body["previous_response_id"] = json!(id);
    let continued = site.post("bert", (responses, body.clone())).await;
    assert_eq!(continued.body["error"]["code"], "previous_response_not_found", "{continued:?}");
    let cancelled = site.post("bert", (cancel.as_str(), json!({}))).await;
    assert_eq!(cancelled.status, 404, "{cancelled:?}");
    assert_eq!(model.requests().len(), 1, "nothing of Anna's went to a model for Bert");

    assert_eq!(site.get("anna", &path).await.body["output"], of_anna.body["output"]);
    let continued = site.post("anna", (responses, body)).await;
    assert_eq!(continued.body["output"][0]["content"][0]["text"], "And more.", "{continued:?}");
    assert_eq!(site.served.end(Signal::TERM).await, Some(0));
}
