//! What a person sees when a service cannot be used: what and why in a line, what to do in the next, and the exit
//! code; never the key.

use archon_testkit::{MockResponse, MockServer};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::setup::{Place, Ran};

const KEY: &str = "sk-canary-1234567890";

/// Runs the line with these variables set, and looks at the exit code and at everything that was said.
async fn check(line: &str, set: &[(&str, &str)], expected: Expect) {
    let place = Place::new();
    let ran = Ran::from(place.command(line, &["hi"]).envs(set.iter().copied()).output().await.unwrap());
    assert!(ran.out.is_empty(), "{ran:?}");
    expected.assert_eq(&format!("{}\n{}", ran.code.unwrap(), ran.err));
}

// spec: P-31
#[tokio::test]
async fn a_missing_key_names_the_variable() {
    check(
        "run --model openai:gpt-5-mini",
        &[],
        expect![[r#"
        2
        error: openai needs a key
          set it: export OPENAI_API_KEY=…, or store it: archon credentials add openai
    "#]],
    )
    .await;
    check(
        "run --model groq:m",
        &[],
        expect![[r#"
        2
        error: groq needs a key
          set it: export GROQ_API_KEY=…, or store it: archon credentials add groq
    "#]],
    )
    .await;
    check(
        "run --model openai-responses:gpt-5-mini",
        &[],
        expect![[r#"
        2
        error: openai-responses needs a key: set OPENAI_API_KEY
          set it: export OPENAI_API_KEY=…, or store it: archon credentials add openai
    "#]],
    )
    .await;
    check(
        "run --model anthropic:claude-sonnet-4-5",
        &[("ANTHROPIC_API_KEY", " ")],
        expect![[r#"
        2
        error: anthropic needs a key: set ANTHROPIC_API_KEY
          set it: export ANTHROPIC_API_KEY=…, or store it: archon credentials add anthropic
    "#]],
    )
    .await;
    check(
        "run --model gemini:gemini-2.5-pro",
        &[],
        expect![[r#"
        2
        error: gemini needs a key: set GEMINI_API_KEY
          set it: export GEMINI_API_KEY=…, or store it: archon credentials add gemini
    "#]],
    )
    .await;
    check(
        "run --model vertex:gemini-2.5-pro",
        &[],
        expect![[r#"
        2
        error: vertex needs a key: set GOOGLE_OAUTH_ACCESS_TOKEN
          set it: export GOOGLE_OAUTH_ACCESS_TOKEN=…, or store it: archon credentials add vertex
    "#]],
    )
    .await;
    check(
        "run --model vertex:gemini-2.5-pro",
        &[("GOOGLE_OAUTH_ACCESS_TOKEN", KEY)],
        expect![[r#"
        2
        error: vertex needs the project: set GOOGLE_CLOUD_PROJECT
          set it: export GOOGLE_CLOUD_PROJECT=…
    "#]],
    )
    .await;
    check(
        "run --model azure:deployment",
        &[],
        expect![[r#"
        2
        error: azure needs a key: set AZURE_OPENAI_API_KEY
          set it: export AZURE_OPENAI_API_KEY=…, or store it: archon credentials add azure
    "#]],
    )
    .await;
    check(
        "run --model azure:deployment",
        &[("AZURE_OPENAI_API_KEY", KEY)],
        expect![[r#"
        2
        error: azure needs the resource's address: set AZURE_OPENAI_ENDPOINT
          set it: export AZURE_OPENAI_ENDPOINT=…
    "#]],
    )
    .await;
    check(
        "run --model bedrock:m",
        &[],
        expect![[r#"
        2
        error: bedrock needs a key: set AWS_BEARER_TOKEN_BEDROCK
          set it: export AWS_BEARER_TOKEN_BEDROCK=…, or store it: archon credentials add bedrock
    "#]],
    )
    .await;
    check(
        "run --model bedrock:m",
        &[("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")],
        expect![[r#"
        2
        error: bedrock needs a key: set AWS_SECRET_ACCESS_KEY
          set it: export AWS_SECRET_ACCESS_KEY=…
    "#]],
    )
    .await;
}

// spec: P-31
#[tokio::test]
async fn unknown_provider_or_model_error_lists_similar_names() {
    check("run --model antropic:claude-sonnet-4-5", &[], expect![[r#"
        2
        error: no provider is called "antropic"
          did you mean anthropic, groq, nvidia? name the provider: --model PROVIDER:MODEL or --base-url U; `archon models list` shows the models
    "#]]).await;
    check("run --model ollma@http://127.0.0.1:9/v1:m", &[], expect![[r#"
        2
        error: no provider is called "ollma"
          did you mean ollama, vllm, llamacpp? name the provider: --model PROVIDER:MODEL or --base-url U; `archon models list` shows the models
    "#]]).await;
    check(
        "run --model openai-compatible:m",
        &[],
        expect![[r#"
            2
            error: the model "openai-compatible:m" is not complete
              write the address as well: openai-compatible@http://host/v1:MODEL
        "#]],
    )
    .await;
    check(
        "run --model openai:",
        &[("OPENAI_API_KEY", KEY)],
        expect![[r#"
        2
        error: the model "openai:" is not complete
          names no model; write the model after the last colon
    "#]],
    )
    .await;
}

// spec: P-15, P-31
#[tokio::test]
async fn invalid_address_or_proxy_is_refused_before_any_request() {
    let key = ("OPENAI_COMPATIBLE_API_KEY", KEY);
    check("run --base-url localhost:8000/v1 --model m", &[key], expect![[r#"
        2
        error: base URL "localhost:8000/v1": has no scheme
          write http://localhost:8000/v1 or https://localhost:8000/v1; the address looks like http://127.0.0.1:8080/v1
    "#]]).await;
    check(
        "run --base-url ftp://h/v1 --model m",
        &[key],
        expect![[r#"
        2
        error: base URL "ftp://h/v1": the scheme is ftp
          only http and https work; the address looks like http://127.0.0.1:8080/v1
    "#]],
    )
    .await;
    check(
        "run --base-url http://me:canary@h/v1 --model m",
        &[key],
        expect![[r#"
            2
            error: base URL "http://h/v1": contains a user name or a password
              send them in a header; the address looks like http://127.0.0.1:8080/v1
        "#]],
    )
    .await;
    check(
        "run --model openai-compatible@h:8000/v1:m",
        &[key],
        expect![[r#"
        2
        error: base URL "h:8000/v1": has no scheme
          write http://h:8000/v1 or https://h:8000/v1; the address looks like http://127.0.0.1:8080/v1
    "#]],
    )
    .await;
    check(
        "run --model anthropic@h/v1:m",
        &[("ANTHROPIC_API_KEY", KEY)],
        expect![[r#"
        2
        error: base URL "h/v1": has no scheme
          write http://h/v1 or https://h/v1; the address looks like http://127.0.0.1:8080/v1
    "#]],
    )
    .await;
    let keyed = ("OPENAI_API_KEY", KEY);
    check(
        "run --model openai:m",
        &[keyed, ("HTTPS_PROXY", "http://me:canary@")],
        expect![[r#"
        2
        error: HTTPS_PROXY: is not a URL
          set it: export HTTPS_PROXY=http://HOST:PORT, or unset it
    "#]],
    )
    .await;
    check(
        "run --model openai:m",
        &[keyed, ("all_proxy", "socks5://proxy:1080")],
        expect![[r#"
        2
        error: all_proxy: only http and https proxies work
          set it: export all_proxy=http://HOST:PORT, or unset it
    "#]],
    )
    .await;
    check(
        "run --model gemini:m",
        &[("GEMINI_API_KEY", KEY), ("https_proxy", "::")],
        expect![[r#"
        2
        error: https_proxy: is not a URL
          set it: export https_proxy=http://HOST:PORT, or unset it
    "#]],
    )
    .await;
}

// spec: P-31
#[tokio::test]
async fn invalid_response_is_shown_with_status_type_and_first_bytes_without_the_key() {
    let page = format!("<!DOCTYPE html><title>Gateway</title> key {KEY}");
    let html = |status| MockResponse::new(status).header("content-type", "text/html").chunk(page.as_str());
    let error =
        json!({"error": {"message": format!("the key {KEY} is wrong"), "type": "invalid_request_error"}});
    let list = json!({"object": "list", "data": [KEY]});
    let missing =
        json!({"error": {"message": "The model `gtp-5` does not exist", "code": "model_not_found"}});
    let mut told = String::new();
    for model in
        ["vllm:m", "openai-responses:m", "anthropic:m", "gemini:m", "vertex:m", "azure:m", "bedrock:m"]
    {
        for response in [
            html(200),
            html(403),
            MockResponse::json(200, &error),
            MockResponse::json(200, &list),
            MockResponse::json(404, &missing),
            MockResponse::new(200).header("content-type", "text/plain").chunk(format!("not now {KEY}")),
            MockResponse::sse(format!("not now {KEY}\n\n")),
            MockResponse::sse(format!("data: not now {KEY}\n\n")),
        ] {
            let server = MockServer::start([response]).await;
            let url = format!("{}/v1", server.url());
            let place = Place::new();
            let mut command = place.command("run", &["--base-url", &url, "--model", model, "hi"]);
            for variable in [
                "OPENAI_COMPATIBLE_API_KEY",
                "OPENAI_API_KEY",
                "ANTHROPIC_API_KEY",
                "GEMINI_API_KEY",
                "GOOGLE_OAUTH_ACCESS_TOKEN",
                "AZURE_OPENAI_API_KEY",
                "AWS_BEARER_TOKEN_BEDROCK",
            ] {
                command.env(variable, KEY);
            }
            let ran = Ran::from(command.env("GOOGLE_CLOUD_PROJECT", "p").output().await.unwrap());
            assert!(!ran.err.contains("canary") && ran.out.is_empty(), "{ran:?}");
            let lines: Vec<_> = ran.err.lines().skip_while(|line| !line.starts_with("error: ")).collect();
            let [why, advice] = lines.as_slice() else { panic!("not two lines: {ran:?}") };
            let (advice, _) = advice.split_once("; then: archon resume").expect("a way on");
            let why = why.replace(&server.url(), "SERVER");
            told += &format!("{model} {}: {why} /{advice}\n", ran.code.unwrap());
        }
        told.push('\n');
    }
    expect![[r#"
        vllm:m 1: error: the answer violates the protocol: vllm@SERVER/v1, status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the address: another program or service may answer there
        vllm:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows the key that is used
        vllm:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`
        vllm:m 1: error: the answer violates the protocol: vllm@SERVER/v1, status 200, application/json: {"object":"list","data":["****"]} /  check the address: another program or service may answer there
        vllm:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`
        vllm:m 1: error: the answer violates the protocol: vllm@SERVER/v1, status 200, text/plain: not now **** /  check the address: another program or service may answer there
        vllm:m 1: error: the answer violates the protocol: vllm@SERVER/v1, status 200, text/event-stream: not now **** /  check the address: another program or service may answer there
        vllm:m 1: error: the answer violates the protocol: vllm@SERVER/v1, status 200: an event is not a chunk (expected ident at line 1 column 2): not now **** /  check the address: another program or service may answer there

        openai-responses:m 1: error: the answer violates the protocol: openai-responses@SERVER/v1, status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the address: another program or service may answer there
        openai-responses:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows the key that is used
        openai-responses:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`
        openai-responses:m 1: error: the answer violates the protocol: openai-responses@SERVER/v1, status 200, application/json: {"object":"list","data":["****"]} /  check the address: another program or service may answer there
        openai-responses:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`
        openai-responses:m 1: error: the answer violates the protocol: openai-responses@SERVER/v1, status 200, text/plain: not now **** /  check the address: another program or service may answer there
        openai-responses:m 1: error: the answer violates the protocol: openai-responses@SERVER/v1, status 200, text/event-stream: not now **** /  check the address: another program or service may answer there
        openai-responses:m 1: error: the answer violates the protocol: openai-responses@SERVER/v1, status 200: an event cannot be decoded (expected ident at line 1 column 2): not now **** /  check the address: another program or service may answer there

        anthropic:m 1: error: the answer violates the protocol: anthropic@SERVER/v1, status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the address: another program or service may answer there
        anthropic:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows the key that is used
        anthropic:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`
        anthropic:m 1: error: the answer violates the protocol: anthropic@SERVER/v1, status 200, application/json: {"object":"list","data":["****"]} /  check the address: another program or service may answer there
        anthropic:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`
        anthropic:m 1: error: the answer violates the protocol: anthropic@SERVER/v1, status 200, text/plain: not now **** /  check the address: another program or service may answer there
        anthropic:m 1: error: the answer violates the protocol: anthropic@SERVER/v1, status 200, text/event-stream: not now **** /  check the address: another program or service may answer there
        anthropic:m 1: error: the answer violates the protocol: anthropic@SERVER/v1, status 200: an event cannot be decoded (expected ident at line 1 column 2): not now **** /  check the address: another program or service may answer there

        gemini:m 1: error: the answer violates the protocol: gemini@SERVER/v1, status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the address: another program or service may answer there
        gemini:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows the key that is used
        gemini:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`
        gemini:m 1: error: the answer violates the protocol: gemini@SERVER/v1, status 200, application/json: {"object":"list","data":["****"]} /  check the address: another program or service may answer there
        gemini:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`
        gemini:m 1: error: the answer violates the protocol: gemini@SERVER/v1, status 200, text/plain: not now **** /  check the address: another program or service may answer there
        gemini:m 1: error: the answer violates the protocol: gemini@SERVER/v1, status 200, text/event-stream: not now **** /  check the address: another program or service may answer there
        gemini:m 1: error: the answer violates the protocol: gemini@SERVER/v1, status 200: an event is not a chunk (expected ident at line 1 column 2): not now **** /  check the address: another program or service may answer there

        vertex:m 1: error: the answer violates the protocol: vertex@SERVER/v1, status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the address: another program or service may answer there
        vertex:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows the key that is used
        vertex:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`
        vertex:m 1: error: the answer violates the protocol: vertex@SERVER/v1, status 200, application/json: {"object":"list","data":["****"]} /  check the address: another program or service may answer there
        vertex:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`
        vertex:m 1: error: the answer violates the protocol: vertex@SERVER/v1, status 200, text/plain: not now **** /  check the address: another program or service may answer there
        vertex:m 1: error: the answer violates the protocol: vertex@SERVER/v1, status 200, text/event-stream: not now **** /  check the address: another program or service may answer there
        vertex:m 1: error: the answer violates the protocol: vertex@SERVER/v1, status 200: an event is not a chunk (expected ident at line 1 column 2): not now **** /  check the address: another program or service may answer there

        azure:m 1: error: the answer violates the protocol: azure@SERVER/v1, status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the address: another program or service may answer there
        azure:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows the key that is used
        azure:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`
        azure:m 1: error: the answer violates the protocol: azure@SERVER/v1, status 200, application/json: {"object":"list","data":["****"]} /  check the address: another program or service may answer there
        azure:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`
        azure:m 1: error: the answer violates the protocol: azure@SERVER/v1, status 200, text/plain: not now **** /  check the address: another program or service may answer there
        azure:m 1: error: the answer violates the protocol: azure@SERVER/v1, status 200, text/event-stream: not now **** /  check the address: another program or service may answer there
        azure:m 1: error: the answer violates the protocol: azure@SERVER/v1, status 200: an event cannot be decoded (expected ident at line 1 column 2): not now **** /  check the address: another program or service may answer there

        bedrock:m 1: error: the answer violates the protocol: bedrock@SERVER/v1, status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the address: another program or service may answer there
        bedrock:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows the key that is used
        bedrock:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`
        bedrock:m 1: error: the answer violates the protocol: bedrock@SERVER/v1, the service sent JSON instead of an event stream (status 200, application/json: {"object":"list","data":["****"]}) /  check the address: another program or service may answer there
        bedrock:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`
        bedrock:m 1: error: the answer violates the protocol: bedrock@SERVER/v1, status 200, text/plain: not now **** /  check the address: another program or service may answer there
        bedrock:m 1: error: the answer violates the protocol: bedrock@SERVER/v1, status 200, text/event-stream: not now **** /  check the address: another program or service may answer there
        bedrock:m 1: error: the answer violates the protocol: bedrock@SERVER/v1, status 200, text/event-stream: data: not now **** /  check the address: another program or service may answer there

    "#]].assert_eq(&told);
}
