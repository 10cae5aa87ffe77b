//! APIs of OpenAPI documents: imported once with a summary, called in runs with a stored key, never fetched or changed in
//! between; those of a project only after a person agreed.

use archon_testkit::{MockResponse, MockServer};
use serde_json::{Value, json};

use crate::setup::{Place, answer, asks_for};

/// A document with two operations, of which one has no name.
pub(crate) fn document(server: &str) -> String {
    format!(
        "openapi: 3.1.0\ninfo: {{ title: Pet shop, version: '1' }}\nservers: [{{ url: '{server}/v1' }}]\n\
         security: [{{ token: [] }}]\ncomponents: {{ securitySchemes: {{ token: {{ type: http, scheme: bearer }} }} }}\n\
         paths:\n  /pets/{{petId}}:\n    get:\n      operationId: getPet\n      parameters: [{{ name: petId, in: path, \
         required: true, schema: {{ type: string }} }}]\n    delete:\n      summary: Has no name.\n"
    )
}

pub(crate) fn write(place: &Place, name: &str, text: &str) -> String {
    std::fs::write(place.path(name), text).unwrap();
    place.path(name).display().to_string()
}

/// Imports the document of this server, which the flag names, as the document may not name a private address.
async fn import(place: &Place, server: &str) -> Value {
    let file = write(place, "shop.yaml", &document("https://pets.example.com"));
    let base = format!("{server}/v1");
    let ran = place.archon("openapi import", &[&file, "--name", "shop", "--base-url", &base, "--json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json().remove(0)
}

#[tokio::test]
async fn import_shows_a_summary_and_the_tools_are_there_without_the_document() {
    let place = Place::new();
    let file = write(&place, "shop.yaml", &document("https://pets.example.com"));
    let ran = place.archon("openapi import", &[&file]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "Pet shop: 1 tools, named pet-shop__…",
        "  server       https://pets.example.com\n",
        "  credentials  token: a bearer token\n",
        "  sends        PET_SHOP_TOKEN\n",
        "#/paths/~1pets~1{petId}/delete: the operation was left out",
    ] {
        assert!(ran.out.contains(line), "{line}: {ran:?}");
    }
    assert!(ran.err.contains("PET_SHOP_TOKEN is missing; store it: archon credentials add PET_SHOP_TOKEN"));
    let again = place.archon("openapi import", &[&file]).await;
    again.check_refused(2, "has an API \"pet-shop\" already", "--replace");
    let again = place.archon("openapi import", &[&file, "--replace", "--auth", "none"]).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    std::fs::remove_file(&file).unwrap();
    let ran = place.archon("openapi list", &["--json"]).await;
    assert_eq!(ran.json()[0]["found"], json!("1 tools, 1 parts left out"), "{ran:?}");
    let ran = place.archon("tools list", &["--json"]).await;
    assert!(ran.json().iter().any(|tool| tool["name"] == "pet-shop__getPet"), "{ran:?}");
    let ran = place.archon("openapi remove pet-shop", &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_dir(place.data().join("openapi")).unwrap().count(), 0);
    let ran = place.archon("tools list", &["--json"]).await;
    assert!(ran.json().iter().all(|tool| tool["name"] != "pet-shop__getPet"), "{ran:?}");
}

// spec: OA-01
#[tokio::test]
async fn parts_that_are_left_out_are_named_by_a_run_and_by_doctor() {
    let model = MockServer::start([answer("Hello."), answer("Hello.")]).await;
    let place = Place::with_server(&model);
    let nameless = ["put", "post", "patch", "options", "head", "trace"];
    let more = |methods: &[&str]| {
        methods
            .iter()
            .map(|method| format!("    {method}:\n      summary: Has no name.\n"))
            .collect::<String>()
    };
    for (count, rest) in [(2, ""), (7, "; 2 more: archon openapi list --json")] {
        let text = document("https://pets.example.com") + &more(&nameless[..count - 1]);
        let file = write(&place, "shop.yaml", &text);
        let mut options = vec![file.as_str(), "--name", "shop", "--auth", "none"];
        options.extend((count > 2).then_some("--replace"));
        let imported = place.archon("openapi import", &options).await;
        assert_eq!(imported.code, Some(0), "{imported:?}");
        let ran = place.archon("run", &["Hello"]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let ran = ran.err.lines().find(|line| line.contains("parts left out")).unwrap().to_owned();
        let doctor = place.archon("doctor", &["--json"]).await;
        let found =
            doctor.json().into_iter().find(|found| found["check"] == "openapi").unwrap()["found"].clone();
        let found = found.as_str().unwrap().to_owned();
        for line in [&ran, &found] {
            assert!(line.contains(&format!("{count} parts left out: ")), "{line}");
            assert_eq!(line.matches("the operation was left out").count(), count.min(5), "{line}");
            assert!(line.contains("~1pets~1{petId}/put:") && line.ends_with(rest), "{line}");
        }
    }
}

#[cfg(feature = "credentials")]
#[tokio::test]
async fn run_calls_an_operation_with_the_stored_key() {
    let shop = MockServer::start([MockResponse::json(200, &json!({ "name": "Rex" }))]).await;
    let model = MockServer::start([asks_for("shop__getPet", r#"{"petId":"7"}"#), answer("Rex.")]).await;
    let place = Place::with_server(&model);
    let summary = import(&place, &shop.url()).await;
    assert_eq!(summary["missing_variables"], json!(["SHOP_TOKEN"]));
    assert_eq!(place.pipe("credentials add SHOP_TOKEN", &[], "tok-stored").await.code, Some(0));
    let ran = place.archon("run", &["Which pet is it?"]).await;
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Rex."), "{ran:?}");
    let request = shop.requests().remove(0);
    assert_eq!(
        (request.path.as_str(), request.header("authorization")),
        ("/v1/pets/7", Some("Bearer tok-stored"))
    );
}

#[tokio::test]
async fn api_without_its_key_is_left_out_with_a_warning_that_doctor_repeats() {
    let model = MockServer::start([answer("Hello.")]).await;
    let place = Place::with_server(&model);
    import(&place, "http://127.0.0.1:9").await;
    let ran = place.archon("run", &["Hello"]).await;
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Hello."), "{ran:?}");
    let needs = "API 'shop' needs the variable SHOP_TOKEN, which is not set";
    assert!(ran.err.contains(&format!("warning: {needs}: it is not used; store it: ")), "{ran:?}");
    let ran = place.archon("doctor", &["--json"]).await;
    let of_api = ran.json().into_iter().find(|found| found["check"] == "openapi").unwrap();
    assert_eq!(of_api["ok"], json!(false));
    assert!(of_api["found"].as_str().unwrap().starts_with(needs), "{of_api}");
}

#[tokio::test]
async fn changed_copy_of_a_document_is_not_used() {
    let place = Place::new();
    let summary = import(&place, "http://127.0.0.1:9").await;
    let copy = summary["copy"].as_str().unwrap();
    std::fs::write(copy, document("https://elsewhere.example.com")).unwrap();
    let ran = place.archon("openapi list", &["--json"]).await;
    let found = ran.json()[0]["found"].as_str().unwrap().to_owned();
    assert!(found.contains("is not the document that was imported"), "{found}");
}

#[tokio::test]
async fn api_of_a_project_is_used_after_a_person_agreed_and_gets_no_stored_key() {
    let place = Place::new();
    let text = document("https://pets.example.com");
    write(&place, "shop.yaml", &text);
    let summary = import(&place, "http://127.0.0.1:9").await;
    let digest = summary["digest"].as_str().unwrap().to_owned();
    assert_eq!(place.archon("openapi remove shop", &[]).await.code, Some(0));
    let entry = format!(
        "[openapi.theirs]\ndocument = 'shop.yaml'\ndigest = '{digest}'\nauth = {{ bearer = '${{SHOP_TOKEN}}' }}\n"
    );
    write(&place, "archon.toml", &entry);
    let listed = async || place.archon("openapi list", &["--json"]).await;
    assert_eq!(listed().await.out, "", "no person has agreed yet");
    assert_eq!(place.archon("trust", &["--yes"]).await.code, Some(0));
    #[cfg(feature = "credentials")]
    assert_eq!(place.pipe("credentials add SHOP_TOKEN", &[], "tok-stored").await.code, Some(0));
    let item = listed().await.json().remove(0);
    assert_eq!(item["from"], json!("project"));
    assert!(item["found"].as_str().unwrap().contains("needs the variable SHOP_TOKEN"), "{item}");
    let mut command = place.command("openapi list", &["--json"]);
    let output = command.env("SHOP_TOKEN", "tok").output().await.unwrap();
    let item: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&item["state"], &item["tools"]), (&json!("ready"), &json!(1)), "{item}");

    write(&place, "archon.toml", &entry.replace("SHOP_TOKEN", "OPENAI_API_KEY"));
    assert_eq!(place.archon("trust", &["--yes"]).await.code, Some(0));
    let mut command = place.command("openapi list", &["--json"]);
    let output = command.env("OPENAI_API_KEY", "key").output().await.unwrap();
    let item: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(item["found"].as_str().unwrap().contains("the key of a model service"), "{item}");
}

/// Writes a project with an API whose document has this text.
pub(crate) fn write_project(place: &Place, name: &str, text: &str, more: &str) {
    write(place, "theirs.yaml", text);
    let digest: String =
        hmac_sha256::Hash::hash(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let entry = format!("[openapi.{name}]\ndocument = 'theirs.yaml'\ndigest = '{digest}'\n{more}\n");
    write(place, "archon.toml", &entry);
}

#[tokio::test]
async fn trust_shows_the_document_the_servers_and_the_variables_of_an_api() {
    let place = Place::new();
    let shown = async || {
        let ran = place.archon("trust", &["--yes"]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.err
    };
    let text = document("https://pets.example.com");
    let auth = "auth = { token_url = 'https://id.example.com/${ID}', client_id = '${ID}', client_secret = '${OPENAI_API_KEY}' }\n\
                headers = { X-More = '${AWS_SECRET_ACCESS_KEY}' }";
    write_project(&place, "theirs", &text, auth);
    let err = shown().await;
    let file = place.path("theirs.yaml").canonicalize().unwrap();
    for line in [
        "  [openapi.theirs]:\n",
        &format!("    document         {}\n", file.display()),
        "    requests go to   https://pets.example.com\n",
        "    tokens come from https://id.example.com/${ID}\n",
        "    sends            the variable AWS_SECRET_ACCESS_KEY of your environment\n",
        "    sends            the variable ID of your environment\n",
        "    sends            nothing for OPENAI_API_KEY: the key of openai is refused\n",
    ] {
        assert!(err.contains(line), "{line}: {err}");
    }
    let operation = "  /far:\n    get: { operationId: far, servers: [{ url: 'https://far.example.com' }] }\n";
    let two = format!("{text}{operation}");
    write_project(&place, "theirs", &two, "");
    let err = shown().await;
    for server in ["https://pets.example.com", "https://far.example.com"] {
        assert!(err.contains(&format!("    requests go to   {server}\n")), "{err}");
    }
    assert!(err.contains("    sends            no variable of your environment\n"), "{err}");
    write_project(&place, "theirs", &two, "auth = { bearer = '${A}' }");
    let err = shown().await;
    let refused = "to several servers, https://far.example.com, https://pets.example.com";
    assert!(err.contains("    it is of no use  API 'theirs': ") && err.contains(refused), "{err}");
}

#[cfg(unix)]
#[tokio::test]
async fn document_of_a_project_is_a_file_of_the_project() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    let text = document("https://pets.example.com");
    std::fs::write(outside.path().join("shop.yaml"), &text).unwrap();
    write_project(&place, "theirs", &text, "");
    std::fs::remove_file(place.path("theirs.yaml")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("shop.yaml"), place.path("theirs.yaml")).unwrap();
    let ran = place.archon("trust", &["--yes"]).await;
    assert!(ran.err.contains("is outside of the project"), "{ran:?}");
    std::fs::remove_file(place.path("theirs.yaml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path("theirs.yaml")).unwrap();
    let item = place.archon("openapi list", &["--json"]).await.json().remove(0);
    assert!(item["found"].as_str().unwrap().contains("is outside of the project"), "{item}");
}

#[tokio::test]
async fn api_of_a_project_does_not_replace_the_own_one_of_its_name() {
    let model = MockServer::start([answer("Hello.")]).await;
    let place = Place::with_server(&model);
    import(&place, "http://127.0.0.1:9").await;
    write_project(&place, "shop", &document("https://theirs.example.com"), "");
    let ran = place.archon("trust", &["--yes"]).await;
    assert!(ran.err.contains("    it is not used   your own settings have an API of this name\n"), "{ran:?}");
    let item = place.archon("openapi list", &["--json"]).await.json().remove(0);
    assert_eq!(item["from"], json!("yours"), "{item}");
    let ran = place.archon("config get", &["openapi.shop.document"]).await;
    assert!(ran.out.contains("shop.yaml") && !ran.out.contains("theirs.yaml"), "{ran:?}");
    let ran = place.archon("run", &["Hello"]).await;
    let warning = "warning: API 'shop' of the project is not used: your own settings have one of this name";
    assert!(ran.code == Some(0) && ran.err.contains(warning), "{ran:?}");
    let ran = place.archon("doctor", &["--json"]).await;
    let is_found = |found: &Value| found["found"].as_str().unwrap().starts_with("API 'shop' of the project");
    assert!(ran.json().iter().any(|found| is_found(found) && found["ok"] == json!(false)), "{ran:?}");
}

#[tokio::test]
async fn name_from_a_document_sends_no_variable_that_is_set() {
    let place = Place::new();
    let file = write(&place, "shop.yaml", &document("https://pets.example.com"));
    let import = async |more: &[&str]| {
        let mut command = place.command("openapi import", &[&[file.as_str()], more].concat());
        crate::setup::Ran::from(command.env("PET_SHOP_TOKEN", "tok").output().await.unwrap())
    };
    let what = "would send PET_SHOP_TOKEN, which is set, to https://pets.example.com";
    import(&[]).await.check_refused(2, what, "--name pet-shop");
    assert!(!place.data().join("openapi").exists(), "no copy is kept of what was refused");
    let ran = import(&["--name", "pet-shop"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[tokio::test]
async fn import_of_a_document_with_several_servers_needs_the_one_that_gets_the_credentials() {
    let place = Place::new();
    let operation = "  /far:\n    get: { operationId: far, servers: [{ url: 'https://far.example.com' }] }\n";
    let file = write(&place, "shop.yaml", &format!("{}{operation}", document("https://pets.example.com")));
    let ran = place.archon("openapi import", &[&file]).await;
    ran.check_refused(2, "https://far.example.com, https://pets.example.com", "--base-url URL");
    let ran = place.archon("openapi import", &[&file, "--base-url", "https://pets.example.com/v1"]).await;
    assert!(ran.code == Some(0) && ran.out.contains("  server       https://pets.example.com\n"), "{ran:?}");
    let ran = place.archon("openapi import", &[&file, "--replace", "--auth", "none"]).await;
    for server in ["https://pets.example.com", "https://far.example.com"] {
        assert!(ran.out.contains(&format!("  server       {server}\n")), "{ran:?}");
    }
}

#[tokio::test]
async fn import_that_replaces_an_api_sends_its_credentials_to_no_new_server() {
    let place = Place::new();
    let file = write(&place, "shop.yaml", &document("https://pets.example.com"));
    let import = async |more: &[&str]| {
        let more = [&[file.as_str(), "--name", "shop", "--replace"], more].concat();
        place.archon("openapi import", &more).await
    };
    assert_eq!(import(&[]).await.code, Some(0));
    let text = document("https://pets.example.com").replace("version: '1'", "version: '2'");
    std::fs::write(&file, &text).unwrap();
    assert_eq!(import(&[]).await.code, Some(0), "the server is the same");
    std::fs::write(&file, document("https://other.example.com")).unwrap();
    let refused = import(&[]).await;
    let what = "API 'shop' would send SHOP_TOKEN to https://other.example.com; the servers of the document that it replaces \
                are https://pets.example.com";
    refused.check_refused(2, what, "--base-url URL");
    assert_eq!(import(&["--auth", "none"]).await.code, Some(0), "it gets no credentials");
    assert_eq!(import(&[]).await.code, Some(0), "the person has this server already");

    // A lost copy is made again from the same document, and from no other.
    std::fs::remove_dir_all(place.data().join("openapi")).unwrap();
    assert_eq!(import(&[]).await.code, Some(0));
    std::fs::remove_dir_all(place.data().join("openapi")).unwrap();
    std::fs::write(&file, &text).unwrap();
    import(&[]).await.check_refused(2, "replaces are not known", "archon openapi remove shop");
    let named = import(&["--base-url", "https://pets.example.com/v1"]).await;
    assert_eq!(named.code, Some(0), "{named:?}");
}

#[cfg(all(unix, feature = "mcp"))]
#[tokio::test]
async fn server_of_a_project_with_the_name_of_an_own_api_is_not_used() {
    let model = MockServer::start([answer("Hello.")]).await;
    let place = Place::with_server(&model);
    let file = write(&place, "shop.yaml", &document("https://pets.example.com"));
    place.archon("openapi import", &[&file, "--name", "shop", "--auth", "none"]).await;
    let servers = json!({"mcpServers": {"shop": {"command": "touch", "args": [place.path("started")]}}});
    std::fs::write(place.path(".mcp.json"), servers.to_string()).unwrap();
    let agreed = place.archon("mcp approve shop", &["--yes"]).await;
    let ran = place.archon("run", &["Hello"]).await;
    let warning = ".mcp.json: the MCP server \"shop\": an API of the settings has the same name";
    assert!(ran.code == Some(0) && ran.err.contains(warning), "{ran:?} {agreed:?}");
    assert!(!place.path("started").exists(), "it was started");
    let tools = place.archon("tools list", &["--json"]).await.json();
    assert!(tools.iter().any(|tool| tool["name"] == "shop__getPet"), "{tools:?}");
    let ran = place.archon("doctor", &["--json"]).await;
    let is_found = |found: &Value| found["found"].as_str().unwrap().contains("has the same name");
    assert!(ran.json().iter().any(|found| is_found(found) && found["ok"] == json!(false)), "{ran:?}");
}

#[tokio::test]
async fn import_refuses_what_cannot_work_with_the_way_out() {
    let place = Place::new();
    let file = write(&place, "shop.yaml", &document("http://127.0.0.1:9"));
    let ran = place.archon("openapi import", &[&file]).await;
    ran.check_refused(2, "no operation of the document can be a tool", "--base-url URL");
    let ran = place.archon("openapi import", &["no.yaml"]).await;
    ran.check_refused(2, "the OpenAPI document no.yaml cannot be read", "check the file or the address");
    let file = write(&place, "broken.yaml", "openapi: 3.1.0\npaths: [\n");
    let ran = place.archon("openapi import", &[&file]).await;
    ran.check_refused(2, "broken.yaml:", "correct the document");
    let ran = place.archon("openapi import", &[&file, "--auth", "client-credentials"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(!place.data().join("openapi").exists(), "no copy is kept of what was refused");
}
