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
          set it: export OPENAI_API_KEY=…
    "#]],
    )
    .await;
    check(
        "run --model groq:m",
        &[],
        expect![[r#"
        2
        error: groq needs a key
          set it: export GROQ_API_KEY=…
    "#]],
    )
    .await;
    check(
        "run --model openai-responses:gpt-5-mini",
        &[],
        expect![[r#"
        2
        error: openai-responses needs a key: set OPENAI_API_KEY
          set it: export OPENAI_API_KEY=…
    "#]],
    )
    .await;
    check(
        "run --model anthropic:claude-sonnet-4-5",
        &[("ANTHROPIC_API_KEY", " ")],
        expect![[r#"
        2
        error: anthropic needs a key: set ANTHROPIC_API_KEY
          set it: export ANTHROPIC_API_KEY=…
    "#]],
    )
    .await;
    check(
        "run --model gemini:gemini-2.5-pro",
        &[],
        expect![[r#"
        2
        error: gemini needs a key: set GEMINI_API_KEY
          set it: export GEMINI_API_KEY=…
    "#]],
    )
    .await;
    check(
        "run --model vertex:gemini-2.5-pro",
        &[],
        expect![[r#"
        2
        error: vertex needs a key: set GOOGLE_OAUTH_ACCESS_TOKEN
          set it: export GOOGLE_OAUTH_ACCESS_TOKEN=…
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
          set it: export AZURE_OPENAI_API_KEY=…
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
          set it: export AWS_BEARER_TOKEN_BEDROCK=…
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
async fn a_name_that_nobody_has_is_answered_with_names_like_it() {
    check("run --model antropic:claude-sonnet-4-5", &[], expect![[r#"
        2
        error: no provider is called "antropic"
          did you mean anthropic, groq, nvidia? say who runs it: --model PROVIDER:MODEL or --base-url U; `archon models list` shows what there is
    "#]]).await;
    check("run --model ollma@http://127.0.0.1:9/v1:m", &[], expect![[r#"
        2
        error: no provider is called "ollma"
          did you mean ollama, vllm, llamacpp? say who runs it: --model PROVIDER:MODEL or --base-url U; `archon models list` shows what there is
    "#]]).await;
    check(
        "run --model openai-compatible:m",
        &[],
        expect![[r#"
        2
        error: nobody was found who runs the model "openai-compatible:m"
          say who runs it: --model PROVIDER:MODEL or --base-url U; `archon models list` shows what there is
    "#]],
    )
    .await;
    check("run --model openai:", &[("OPENAI_API_KEY", KEY)], expect![[r#"
        1
        run run_01a203c647da716aa8da17437b9290f4, model openai: (openai)
        > hi
        the model gave no answer (attempt 1): network: https://api.openai.com/v1/chat/completions is not reached: error sending request: client error (Connect): dns error: error resolving DNS: failed to lookup address information: Name or service not known
        the model gave no answer (attempt 2): network: https://api.openai.com/v1/chat/completions is not reached: error sending request: client error (Connect): dns error: error resolving DNS: failed to lookup address information: Name or service not known
        the model gave no answer (attempt 3): network: https://api.openai.com/v1/chat/completions is not reached: error sending request: client error (Connect): dns error: error resolving DNS: failed to lookup address information: Name or service not known
        the model gave no answer (attempt 4): network: https://api.openai.com/v1/chat/completions is not reached: error sending request: client error (Connect): dns error: error resolving DNS: failed to lookup address information: Name or service not known
        failed: 0 turns, 0 tokens, 6.4 s
        error: network: https://api.openai.com/v1/chat/completions is not reached: error sending request: client error (Connect): dns error: error resolving DNS: failed to lookup address information: Name or service not known
          check the connection, and that the service runs: `archon doctor`; then: archon resume run_01a203c647da716aa8da17437b9290f4 --data-dir /tmp/.tmppI1uyH/data
    "#]]).await;
}

// spec: P-15, P-31
#[tokio::test]
async fn an_address_or_a_proxy_that_is_none_is_refused_before_anything_is_sent() {
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
        error: base URL "h/v1": holds a user name or a password
          send them as a header; the address looks like http://127.0.0.1:8080/v1
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
async fn what_is_no_answer_is_shown_with_status_type_and_first_bytes_and_without_the_key() {
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
            let lines: Vec<_> = ran.err.lines().skip_while(|line| !line.starts_with("error: ")).collect();
            let [why, advice] = lines.as_slice() else { panic!("not two lines: {ran:?}") };
            let (advice, _) = advice.split_once("; then: archon resume").expect("a way on");
            told += &format!("{model} {}: {why} /{advice}\n", ran.code.unwrap());
        }
        told.push('\n');
    }
    expect![[r#"
        vllm:m 1: error: protocol: status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  try again, or choose another model; then: archon resume run_01a203c64e6b7481a7fde0415512b44b --data-dir /tmp/.tmpibgJ1Y/data
        vllm:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows which one is used; then: archon resume run_01a203c64f487dbbb6d32dd945d0cd08 --data-dir /tmp/.tmpCv7Urv/data
        vllm:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`; then: archon resume run_01a203c6503c7c4c86f4927566c29c9a --data-dir /tmp/.tmpSyOJh4/data
        vllm:m 1: error: protocol: status 200, application/json: {"object":"list","data":["****"]} /  try again, or choose another model; then: archon resume run_01a203c65163749db768d639c07f8619 --data-dir /tmp/.tmp3bvGHR/data
        vllm:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`; then: archon resume run_01a203c6522974268287f91575dd9416 --data-dir /tmp/.tmpJNDMBL/data
        vllm:m 1: error: protocol: status 200, text/plain: not now **** /  try again, or choose another model; then: archon resume run_01a203c6535f7bd0b70aeca244c396c3 --data-dir /tmp/.tmpFESW5P/data
        vllm:m 1: error: protocol: status 200, text/event-stream: not now **** /  try again, or choose another model; then: archon resume run_01a203c654587f96aaed1a5faa50fdb3 --data-dir /tmp/.tmpUn3Pgq/data
        vllm:m 1: error: protocol: an event that is no chunk (expected ident at line 1 column 2): not now **** /  try again, or choose another model; then: archon resume run_01a203c6553d7235b3c98c699437e1ab --data-dir /tmp/.tmp9VrONi/data

        openai-responses:m 1: error: protocol: status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  try again, or choose another model; then: archon resume run_01a203c6561570349fa1ff72ee64c933 --data-dir /tmp/.tmp8Y4uiD/data
        openai-responses:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows which one is used; then: archon resume run_01a203c657097fd3a5c79e6467bb36c3 --data-dir /tmp/.tmp4TK7zk/data
        openai-responses:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`; then: archon resume run_01a203c657ea7a2697ffbc60c622b628 --data-dir /tmp/.tmp46DR5j/data
        openai-responses:m 1: error: protocol: status 200, application/json: {"object":"list","data":["****"]} /  try again, or choose another model; then: archon resume run_01a203c658e772e7898e2d8a96e84020 --data-dir /tmp/.tmppVk9iI/data
        openai-responses:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`; then: archon resume run_01a203c659d87685afe54f4ff12a04b9 --data-dir /tmp/.tmpizYxzg/data
        openai-responses:m 1: error: protocol: status 200, text/plain: not now **** /  try again, or choose another model; then: archon resume run_01a203c65b1c75669b0fdc2c1d11425a --data-dir /tmp/.tmpqr3mj6/data
        openai-responses:m 1: error: protocol: status 200, text/event-stream: not now **** /  try again, or choose another model; then: archon resume run_01a203c65c0c7ffa93b7b6f4804a9fea --data-dir /tmp/.tmpckraw5/data
        openai-responses:m 1: error: protocol: an event that is none (expected ident at line 1 column 2): not now **** /  try again, or choose another model; then: archon resume run_01a203c65cf87caabd51cb4a5bcd3cbd --data-dir /tmp/.tmpyxWApg/data

        anthropic:m 1: error: protocol: status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  try again, or choose another model; then: archon resume run_01a203c65df1756e9cf1b449af7e9a4e --data-dir /tmp/.tmppBcXJF/data
        anthropic:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows which one is used; then: archon resume run_01a203c65eff78669c0abf135aa557dd --data-dir /tmp/.tmpoLYy8K/data
        anthropic:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`; then: archon resume run_01a203c65fed7441b1617e7d65760d91 --data-dir /tmp/.tmpXi98uj/data
        anthropic:m 1: error: protocol: status 200, application/json: {"object":"list","data":["****"]} /  try again, or choose another model; then: archon resume run_01a203c660d471daa141223b1295a0e9 --data-dir /tmp/.tmpqGTDBE/data
        anthropic:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`; then: archon resume run_01a203c661c6789dae0ec5124965ddd3 --data-dir /tmp/.tmpsHcAtf/data
        anthropic:m 1: error: protocol: status 200, text/plain: not now **** /  try again, or choose another model; then: archon resume run_01a203c662cd766c8091a885caa85110 --data-dir /tmp/.tmpuCax0C/data
        anthropic:m 1: error: protocol: status 200, text/event-stream: not now **** /  try again, or choose another model; then: archon resume run_01a203c663ca7ce2833a0c0b8939b389 --data-dir /tmp/.tmpVqYdEI/data
        anthropic:m 1: error: protocol: an event that is none (expected ident at line 1 column 2): not now **** /  try again, or choose another model; then: archon resume run_01a203c664a47d7db62ad62bfc3bdc7d --data-dir /tmp/.tmpGmZkiS/data

        gemini:m 1: error: protocol: status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  try again, or choose another model; then: archon resume run_01a203c665887f46b6a3ee66f696499f --data-dir /tmp/.tmprrTILI/data
        gemini:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows which one is used; then: archon resume run_01a203c6666c7c3582cbec9cc9db1fa3 --data-dir /tmp/.tmpIxKL9F/data
        gemini:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`; then: archon resume run_01a203c6678a7026abe54e35f7a0468f --data-dir /tmp/.tmpP5UIac/data
        gemini:m 1: error: protocol: status 200, application/json: {"object":"list","data":["****"]} /  try again, or choose another model; then: archon resume run_01a203c668a079c585b9835adfdf439c --data-dir /tmp/.tmpDaDHB0/data
        gemini:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`; then: archon resume run_01a203c669847ec28440272aca71c90a --data-dir /tmp/.tmpyInTsE/data
        gemini:m 1: error: protocol: status 200, text/plain: not now **** /  try again, or choose another model; then: archon resume run_01a203c66ac37a3aa12f0f8620d69b91 --data-dir /tmp/.tmpDAqCiR/data
        gemini:m 1: error: protocol: status 200, text/event-stream: not now **** /  try again, or choose another model; then: archon resume run_01a203c66b947ef48ee9947e80db421c --data-dir /tmp/.tmp5Atcn5/data
        gemini:m 1: error: protocol: an event that is no chunk (expected ident at line 1 column 2): not now **** /  try again, or choose another model; then: archon resume run_01a203c66c9c780b8ae549a6b3a999eb --data-dir /tmp/.tmpRkoRyb/data

        vertex:m 1: error: protocol: status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  try again, or choose another model; then: archon resume run_01a203c66d9170c18bcacf9153648e69 --data-dir /tmp/.tmpxheSf7/data
        vertex:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows which one is used; then: archon resume run_01a203c66e6b78e58d29ba7b965041aa --data-dir /tmp/.tmpGi3Gzo/data
        vertex:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`; then: archon resume run_01a203c66f5d70948c537d013357b9b0 --data-dir /tmp/.tmpCa7C1y/data
        vertex:m 1: error: protocol: status 200, application/json: {"object":"list","data":["****"]} /  try again, or choose another model; then: archon resume run_01a203c6702b7a18bf94ea785fa595bb --data-dir /tmp/.tmpfZ1yL6/data
        vertex:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`; then: archon resume run_01a203c670ec7f29bc019de98fcda682 --data-dir /tmp/.tmppulOc5/data
        vertex:m 1: error: protocol: status 200, text/plain: not now **** /  try again, or choose another model; then: archon resume run_01a203c6721d7f6d9add4b445d191b8f --data-dir /tmp/.tmpc0CsRs/data
        vertex:m 1: error: protocol: status 200, text/event-stream: not now **** /  try again, or choose another model; then: archon resume run_01a203c67311707c87979abe75ecf662 --data-dir /tmp/.tmpWZxxq8/data
        vertex:m 1: error: protocol: an event that is no chunk (expected ident at line 1 column 2): not now **** /  try again, or choose another model; then: archon resume run_01a203c673d974fabddbf00ee4bb1c55 --data-dir /tmp/.tmp6PYD1D/data

        azure:m 1: error: protocol: status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  try again, or choose another model; then: archon resume run_01a203c674b470de9f42b4bf73de8872 --data-dir /tmp/.tmpTZ1dqf/data
        azure:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows which one is used; then: archon resume run_01a203c675a170e6a4b33b867c8eff3f --data-dir /tmp/.tmp5QwHjY/data
        azure:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`; then: archon resume run_01a203c6768f781b9a928f357f566679 --data-dir /tmp/.tmpjiEsYN/data
        azure:m 1: error: protocol: status 200, application/json: {"object":"list","data":["****"]} /  try again, or choose another model; then: archon resume run_01a203c6778d709e9dd34bb1305f80d4 --data-dir /tmp/.tmpkGq1mI/data
        azure:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`; then: archon resume run_01a203c6788d72b4b5032b8db4e01b62 --data-dir /tmp/.tmpgVtxAe/data
        azure:m 1: error: protocol: status 200, text/plain: not now **** /  try again, or choose another model; then: archon resume run_01a203c6798b7f70a8208a5c1535d29e --data-dir /tmp/.tmpDQS1rT/data
        azure:m 1: error: protocol: status 200, text/event-stream: not now **** /  try again, or choose another model; then: archon resume run_01a203c67a95713787b39b406b5fbb93 --data-dir /tmp/.tmp5LlsBz/data
        azure:m 1: error: protocol: an event that is none (expected ident at line 1 column 2): not now **** /  try again, or choose another model; then: archon resume run_01a203c67b9f7971a1fd4ce298fb16b2 --data-dir /tmp/.tmpNpnXGh/data

        bedrock:m 1: error: protocol: status 200, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  try again, or choose another model; then: archon resume run_01a203c67cbe7926b5b0868d927d9e1b --data-dir /tmp/.tmpKduoED/data
        bedrock:m 1: error: not authorised: status 403, text/html: <!DOCTYPE html><title>Gateway</title> key **** /  check the key: `archon doctor` shows which one is used; then: archon resume run_01a203c67dc273f8877ba28c14db7883 --data-dir /tmp/.tmpER71Mg/data
        bedrock:m 1: error: the service refused the request (InvalidRequest, status 400): the key **** is wrong (status 200, application/json: {"error":{"message":"the key **** is wrong","type":"invalid_request_error"}}) /  check the model's name: `archon models list`; then: archon resume run_01a203c67ec87ea3af3b4dab913fd7a8 --data-dir /tmp/.tmp01PgsJ/data
        bedrock:m 1: error: protocol: JSON and no event stream (status 200, application/json: {"object":"list","data":["****"]}) /  try again, or choose another model; then: archon resume run_01a203c67f937eb2993b810cb3fee10d --data-dir /tmp/.tmpdk0d4Q/data
        bedrock:m 1: error: the service refused the request (NotFound, status 404): The model `gtp-5` does not exist /  check the model's name: `archon models list`; then: archon resume run_01a203c6809a7785814758b30dc7af11 --data-dir /tmp/.tmpAJfX7r/data
        bedrock:m 1: error: protocol: status 200, text/plain: not now **** /  try again, or choose another model; then: archon resume run_01a203c681d1746e91fa8bb6797bcb8b --data-dir /tmp/.tmpGCWY9b/data
        bedrock:m 1: error: protocol: status 200, text/event-stream: not now **** /  try again, or choose another model; then: archon resume run_01a203c682c67c9e906254f06069b307 --data-dir /tmp/.tmpbCkuSb/data
        bedrock:m 1: error: protocol: no event stream: a message of 1684108385 bytes /  try again, or choose another model; then: archon resume run_01a203c6839c70c8b64e63b703cba496 --data-dir /tmp/.tmpFozQoD/data

    "#]].assert_eq(&told);
}
