//! A person's sign-in to an API: the tokens are stored once, sent by calls, renewed, and deleted.

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;

use crate::{
    browser::{address_in, browse},
    openapi::{document, write, write_project},
    setup::{Place, Ran, answer, asks_for},
};

/// Returns a field of the query of an address, decoded as far as the tests need it.
fn field(address: &str, name: &str) -> String {
    let query = address.split_once('?').unwrap().1;
    let value = query.split('&').find_map(|field| field.strip_prefix(&format!("{name}="))).unwrap();
    value.replace("%3A", ":").replace("%2F", "/")
}

#[tokio::test]
async fn login_with_a_browser_signs_calls_in_until_the_logout() {
    let tokens = json!({ "access_token": "tok-of-anna", "refresh_token": "ref-of-anna", "expires_in": 3600 });
    let logins = MockServer::start([MockResponse::json(200, &tokens)]).await;
    let shop = MockServer::answering(|_| MockResponse::json(200, &json!({ "name": "Rex" }))).await;
    let call = || [asks_for("shop__getPet", r#"{"petId":"7"}"#), answer("Rex.")];
    let model = MockServer::start((0..3).flat_map(|_| call())).await;
    let place = Place::with_server(&model);
    let file = write(&place, "shop.yaml", &document("https://pets.example.com"));
    let (authorize, token) = (format!("{}/authorize", logins.url()), format!("{}/token", logins.url()));
    let base = format!("{}/v1", shop.url());
    let import = async |more: &[&str]| {
        let words = [&file, "--name", "shop", "--base-url", &base, "--auth", "authorization-code"];
        place.archon("openapi import", &[&words, more].concat()).await
    };
    let without = import(&["--token-url", &token]).await;
    without.check_refused(2, "needs --authorize-url, --token-url and --client-id", "add what is missing");
    let flags =
        ["--authorize-url", &authorize, "--token-url", &token, "--client-id", "me", "--scope", "read"];
    let imported = import(&flags).await;
    assert!(imported.out.contains("  sends        the tokens of your sign-in\n"), "{imported:?}");
    assert!(imported.err.contains("sign in with a browser: archon openapi login shop"), "{imported:?}");
    let ran = place.archon("run", &["Which pet is it?"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = model.requests()[1].body.to_string();
    assert!(told.contains("is missing. Tell the user to sign in: archon openapi login shop"), "{told}");
    assert!(shop.requests().is_empty());

    let mut child = place.command("openapi login", &["shop"]).spawn().unwrap();
    let url = address_in(&mut child).await;
    assert_eq!((field(&url, "client_id"), field(&url, "scope")), ("me".to_owned(), "read".to_owned()));
    let (back, state) = (field(&url, "redirect_uri"), field(&url, "state"));
    browse(&format!("{back}?code=c-1&state={state}")).await;
    let signed_in = Ran::from(child.wait_with_output().await.unwrap());
    assert!(
        signed_in.code == Some(0) && signed_in.err.contains("signed in to the API 'shop'"),
        "{signed_in:?}"
    );
    let ran = place.archon("run", &["Which pet is it?"]).await;
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Rex."), "{ran:?}");
    assert_eq!(shop.requests()[0].header("authorization"), Some("Bearer tok-of-anna"));

    let out = place.archon("openapi logout", &["shop"]).await;
    assert_eq!(
        (out.code, out.out.as_str()),
        (Some(0), "the tokens of the API 'shop' are deleted\n"),
        "{out:?}"
    );
    place.archon("run", &["Which pet is it?"]).await;
    assert_eq!(shop.requests().len(), 1);
}

// spec: CR-06
#[tokio::test]
async fn login_of_a_tenant_is_not_the_sign_in_of_this_program() {
    let tokens = json!({ "access_token": "tok-of-ben", "refresh_token": "ref-of-ben", "expires_in": 3600 });
    let logins = MockServer::start([MockResponse::json(200, &tokens)]).await;
    let shop = MockServer::start([]).await;
    let model = MockServer::start([asks_for("shop__getPet", r#"{"petId":"7"}"#), answer("Nobody.")]).await;
    let place = Place::with_server(&model);
    let file = write(&place, "shop.yaml", &document("https://pets.example.com"));
    let (authorize, token) = (format!("{}/authorize", logins.url()), format!("{}/token", logins.url()));
    let base = shop.url();
    let flags = [
        &file,
        "--name",
        "shop",
        "--base-url",
        &base,
        "--auth",
        "authorization-code",
        "--authorize-url",
        &authorize,
        "--token-url",
        &token,
        "--client-id",
        "me",
    ];
    assert_eq!(place.archon("openapi import", &flags).await.code, Some(0));
    let mut child = place.command("openapi login shop --tenant ben", &[]).spawn().unwrap();
    let url = address_in(&mut child).await;
    browse(&format!("{}?code=c-1&state={}", field(&url, "redirect_uri"), field(&url, "state"))).await;
    assert_eq!(Ran::from(child.wait_with_output().await.unwrap()).code, Some(0));
    place.archon("run", &["Which pet is it?"]).await;
    assert!(shop.requests().is_empty());
    let own = place.archon("openapi logout shop", &[]).await;
    assert_eq!(own.out, "there are no tokens of the API 'shop'\n", "{own:?}");
    let of_ben = place.archon("openapi logout shop --tenant ben", &[]).await;
    assert_eq!(of_ben.out, "the tokens of the API 'shop' are deleted\n", "{of_ben:?}");
}

#[tokio::test]
async fn login_is_for_apis_of_the_person_that_have_a_sign_in() {
    let place = Place::new();
    let text = document("https://pets.example.com");
    let file = write(&place, "shop.yaml", &text);
    place.archon("openapi import", &[&file, "--name", "shop"]).await;
    let ran = place.archon("openapi login", &["shop"]).await;
    ran.check_refused(2, "API 'shop' has no sign-in with a browser", "--auth authorization-code");
    let ran = place.archon("openapi login", &["shpo"]).await;
    ran.check_refused(2, "the settings have no API \"shpo\"", "archon openapi list");
    let auth = "auth = { authorize_url = 'https://a.example.com', token_url = 'https://b.example.com', client_id = 'c' }";
    write_project(&place, "theirs", &text, auth);
    let agreed = place.archon("trust", &["--yes"]).await;
    assert!(agreed.err.contains("of the project has a sign-in with a browser"), "{agreed:?}");
    let ran = place.archon("openapi login", &["theirs"]).await;
    ran.check_refused(2, "of the project has a sign-in with a browser", "into your own settings");
}
