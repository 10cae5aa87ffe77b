//! A server that does not start: what is wrong, and what to do.

use std::os::unix::fs::PermissionsExt as _;

use archon_testkit::MockServer;

use super::client::settle;
use crate::setup::Place;

#[tokio::test]
async fn serve_is_refused_where_it_cannot_or_may_not_listen() {
    let model = MockServer::start([]).await;
    let place = Place::new();
    settle(&place, &model, "");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let file = place.path("notes.txt");
    std::fs::write(&file, "mine").unwrap();
    let file = file.display().to_string();
    for (more, what, remedy) in [
        (&["--listen", address.as_str()][..], "cannot listen at 127.0.0.1:", "choose another port"),
        (&["--listen", "0.0.0.0:0"], "other machines reach 0.0.0.0:0", "--behind-proxy"),
        (&["--listen", "192.0.2.7:80"], "other machines reach 192.0.2.7:80", "listen at 127.0.0.1"),
        (&["--listen", "localhost:80"], "invalid value 'localhost:80'", "--help"),
        (&["--listen", "127.0.0.1:0", "--ask-later"], "--ask-later has no effect", "leave the flag out"),
        (&["--behind-proxy"], "no name is set", "--host agents.example"),
        (
            &["--listen", "0.0.0.0:0", "--tls-cert", "a", "--tls-key", "b"],
            "every address (0.0.0.0:0), and no name is set",
            "--host agents.example",
        ),
        (&["--host", "https://agents.example"], "is not a name", "as in agents.example"),
        (&["--socket", file.as_str()], "exists, and is not a socket", "choose another path"),
        (&["--listen", "127.0.0.1:0", "--socket", "s"], "cannot be used with", "--help"),
        (&["--agent", "reviewer", "--listen", "127.0.0.1:0"], "no agent \"reviewer\"", "[agents.reviewer]"),
        (&["--memory", "no collection:", "--listen", "127.0.0.1:0"], "--memory", "--help"),
    ] {
        place.archon("serve", more).await.check_refused(2, what, remedy);
    }
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).unwrap(), "mine");
}

#[tokio::test]
async fn serve_is_refused_with_settings_that_let_nobody_or_too_many_in() {
    let model = MockServer::start([]).await;
    let place = Place::new();
    let start = async |settings: &str| {
        settle(&place, &model, settings);
        place.archon("serve --listen 127.0.0.1:0", &[]).await
    };
    let tenant = "[serve]\nmemory = 'user:anna'\n[serve.tokens.bob]\nrole = 'viewer'\ntenant = 'bob'\n";
    for (settings, what, remedy) in [
        ("[serve.tokens.'a/b']\nrole = 'admin'", "the name \"a/b\"", "letters, digits"),
        (
            "[serve.tokens.a]\nrole = 'admin'\nvariable = 'A_TOKEN'",
            "A_TOKEN for the token a is not set",
            "export A_TOKEN=",
        ),
        ("[serve.tokens.a]\nrole = 'boss'", "unknown variant `boss`", "known settings"),
        (tenant, "would read the memory user:anna", "leave the memory out"),
        ("[serve]\nmemory = ''", "[serve] memory: ", "user:anna"),
        ("[agents.archon]\ndescription = 'x'", "the default agent of the server", "another name"),
    ] {
        start(settings).await.check_refused(2, what, remedy);
    }
    let file = place.data().join("tokens/owner");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    for (text, mode, what) in [
        ("0123456789abcdef", 0o644, "other users can read the token owner"),
        ("\n", 0o600, "is empty or too short"),
    ] {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        start("").await.check_refused(2, what, "remove the file: then a new token is written");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    start("").await.check_refused(2, "cannot read", "a new token is written");
}

#[tokio::test]
async fn serve_with_a_key_that_others_can_read_or_that_is_none_is_refused() {
    let model = MockServer::start([]).await;
    let place = Place::new();
    settle(&place, &model, "");
    for name in ["server.pem", "server.key"] {
        std::fs::write(place.path(name), "nothing").unwrap();
    }
    for (mode, what, remedy) in [
        (0o644, "other users can read the private key server.key", "chmod 600 server.key"),
        (0o600, "cannot use server.pem with server.key", "name a certificate and its private key"),
    ] {
        std::fs::set_permissions(place.path("server.key"), std::fs::Permissions::from_mode(mode)).unwrap();
        let line = "serve --listen 127.0.0.1:0 --tls-cert server.pem --tls-key server.key";
        place.archon(line, &[]).await.check_refused(2, what, remedy);
    }
}

#[tokio::test]
async fn serve_settings_of_a_project_are_refused() {
    let model = MockServer::start([]).await;
    let place = Place::new();
    settle(&place, &model, "");
    std::fs::write(place.path("archon.toml"), "[serve]\nlisten = '0.0.0.0:80'\n").unwrap();
    let refused = place.archon("serve", &[]).await;
    refused.check_refused(2, "a project may not choose who listens", "in your own settings");
}
