//! What is not in a build: whoever asks for it is told the feature that brings it.

use crate::setup::Place;

#[cfg(not(feature = "embedder"))]
#[tokio::test]
async fn embedder_local_without_the_feature_is_refused_with_its_name() {
    let place = Place::new();
    let refused = place.archon("memory search --embedder local", &["tea"]).await;
    refused.check_refused(2, "the embedder `local` is not in this build", "build with `--features embedder`");
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(place.path(".config/archon/archon.toml"), "embedder = 'local'").unwrap();
    let refused = place.archon("memory search", &["tea"]).await;
    refused.check_refused(2, "the embedder `local` is not in this build", "build with `--features embedder`");
}

#[cfg(not(feature = "local"))]
#[tokio::test]
async fn local_model_without_the_feature_is_refused_with_its_name() {
    let place = Place::new();
    for (line, more) in [
        ("run --model local:gemma-3-270m", &["hi"][..]),
        ("run --model openai:m --fallback m.gguf", &["hi"]),
        ("model pull", &["gemma-3-270m"]),
    ] {
        let mut command = place.command(line, more);
        let ran = crate::setup::Ran::from(command.env("OPENAI_API_KEY", "sk-1").output().await.unwrap());
        ran.check_refused(
            2,
            "the engine for local models is not in this build",
            "build with `--features local`",
        );
    }
}

#[cfg(not(feature = "yaml"))]
#[tokio::test]
async fn template_in_yaml_without_the_feature_is_refused_with_its_name() {
    let place = Place::new();
    for name in ["t.yaml", "t.yml", "t"] {
        std::fs::write(place.path(name), "name: t\nsteps:\n- description: Say hi.\n").unwrap();
        let refused = place.archon("plan --template", &[name]).await;
        refused.check_refused(2, "YAML is not in this build", "build with `--features yaml`");
    }
    std::fs::write(place.path("t.yaml"), r#"{"name": "t", "steps": [{"description": "Say hi."}]}"#).unwrap();
    let drawn = place.archon("plan --model openai:m --template", &["t.yaml"]).await;
    assert!(!drawn.err.contains("YAML"), "JSON is YAML: {drawn:?}");
}

#[cfg(not(feature = "credentials"))]
#[tokio::test]
async fn credentials_without_the_feature_are_refused_with_its_name() {
    let refused = Place::new().archon("credentials list", &[]).await;
    refused.check_refused(
        2,
        "`archon credentials` is not in this build",
        "or build with `--features credentials`",
    );
}

#[tokio::test]
async fn tool_without_its_feature_is_refused_with_its_name() {
    let place = Place::new();
    for (tool, feature, is_built) in [
        ("web_fetch", "web", cfg!(feature = "web")),
        ("git_log", "git", cfg!(all(unix, feature = "git"))),
        ("code_executor", "python", cfg!(any(feature = "python", feature = "javascript"))),
    ] {
        let ran = place.archon("tools list --tools", &[tool]).await;
        match is_built {
            true => assert_eq!(ran.code, Some(0), "{ran:?}"),
            false => ran.check_refused(
                2,
                &format!("{tool} is not in this build"),
                &format!("build with `--features {feature}`"),
            ),
        }
    }
}

#[cfg(not(any(feature = "python", feature = "javascript")))]
#[tokio::test]
async fn tool_without_its_feature_is_named_with_it_in_settings_teams_and_templates() {
    let mut place = Place::new();
    let (what, advice) = ("code_executor is not in this build", "build with `--features python`");
    let team = "[[member]]\nid = \"ada\"\nroles = [\"writer\"]\ntools = [\"code_executor\"]\n";
    std::fs::write(place.path("team.toml"), team).unwrap();
    let refused = place.archon("team run --model openai:m", &["team.toml", "Write."]).await;
    refused.check_refused(2, &format!("team.toml:4: {what}"), advice);
    let template = r#"{"name": "t", "steps": [{"tool": "code_executor", "args": {"code": "1"}}]}"#;
    std::fs::write(place.path("t.json"), template).unwrap();
    let server = archon_testkit::MockServer::start([]).await;
    place.serve(&server);
    let drawn = place.archon("plan", &["--template", "t.json"]).await;
    let problem = format!("there is no tool \"code_executor\" ({advice})");
    assert!(drawn.code == Some(1) && drawn.err.contains(&problem), "{drawn:?}");
    let followed = place.archon("plan --execute", &["--template", "t.json"]).await;
    assert!(followed.code == Some(1) && followed.err.contains(advice), "{followed:?}");
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(place.path(".config/archon/archon.toml"), "tools = ['code_executor']\n").unwrap();
    let checked = place.archon("config check", &[]).await;
    assert!(checked.code == Some(1) && checked.out.contains(&format!(":1: {what}; {advice}")), "{checked:?}");
}

#[cfg(not(feature = "mcp"))]
#[tokio::test]
async fn mcp_without_the_feature_is_refused_with_its_name_and_a_run_goes_on_without_servers() {
    let mut place = Place::new();
    for more in [&["list"][..], &["add", "files", "--", "npx", "-y", "files"]] {
        let refused = place.archon("mcp", more).await;
        refused.check_refused(2, "`archon mcp` is not in this build", "build with `--features mcp`");
    }
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(place.path(".config/archon/archon.toml"), "[mcp.files]\ncommand = 'files'\n").unwrap();
    let checked = place.archon("config check", &[]).await;
    let problem = ":1: MCP is not in this build; build with `--features mcp`";
    assert!(checked.code == Some(1) && checked.out.contains(problem), "{checked:?}");
    let server = archon_testkit::MockServer::start([crate::setup::answer("Hello.")]).await;
    place.serve(&server);
    let ran = place.archon("run", &["Hi."]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    assert_eq!(ran.err.matches("warning: ").count(), 1, "{ran:?}");
    assert!(ran.err.contains("MCP is not in this build"), "{ran:?}");
}

#[cfg(all(unix, feature = "mcp", not(feature = "mcp-serve")))]
#[tokio::test]
async fn mcp_serve_without_the_feature_is_refused_with_its_name() {
    let refused = Place::new().archon("mcp serve", &["--tool", "calculator"]).await;
    refused.check_refused(2, "`archon mcp serve` is not in this build", "build with `--features mcp-serve`");
}

#[cfg(not(feature = "serve"))]
#[tokio::test]
async fn serve_without_the_feature_is_refused_with_its_name() {
    let refused = Place::new().archon("serve", &["--listen", "127.0.0.1:0"]).await;
    refused.check_refused(2, "`archon serve` is not in this build", "build with `--features serve`");
}

#[cfg(not(feature = "setup"))]
#[tokio::test]
async fn config_set_without_the_feature_is_refused_with_its_name() {
    let refused = Place::new().archon("config set", &["max_turns", "3"]).await;
    refused.check_refused(2, "`archon config set` is not in this build", "build with `--features setup`");
}

#[cfg(not(feature = "setup"))]
#[tokio::test]
async fn init_without_the_feature_is_refused_with_its_name() {
    for more in [&[][..], &["--provider", "openai", "--key-stdin"]] {
        let refused = Place::new().archon("init", more).await;
        refused.check_refused(2, "`archon init` is not in this build", "build with `--features setup`");
    }
}

#[cfg(not(feature = "shell"))]
#[tokio::test]
async fn completions_and_man_without_the_feature_are_refused_with_its_name() {
    for (line, what) in
        [("completions bash", "`archon completions`"), ("man", "`archon man`"), ("man pages", "`archon man`")]
    {
        let refused = Place::new().archon(line, &[]).await;
        refused.check_refused(2, &format!("{what} is not in this build"), "build with `--features shell`");
    }
}

#[cfg(not(feature = "chat"))]
#[tokio::test]
async fn chat_without_the_feature_is_refused_with_its_name() {
    let refused = Place::new().archon("chat --continue", &[]).await;
    refused.check_refused(2, "`archon chat` is not in this build", "build with `--features chat`");
}

#[cfg(not(feature = "undo"))]
#[tokio::test]
async fn undo_and_redo_without_the_feature_are_refused_with_its_name() {
    for line in ["undo", "redo"] {
        let refused = Place::new().archon(line, &["last"]).await;
        refused.check_refused(
            2,
            &format!("`archon {line}` is not in this build"),
            "build with `--features undo`",
        );
    }
}

#[cfg(not(feature = "skills"))]
#[tokio::test]
async fn skills_without_the_feature_are_refused_with_its_name() {
    let refused = Place::new().archon("skills list", &[]).await;
    refused.check_refused(2, "`archon skills` is not in this build", "build with `--features skills`");
}

#[cfg(not(feature = "triggers"))]
#[tokio::test]
async fn triggers_without_the_feature_are_refused_with_its_name() {
    let refused = Place::new().archon("triggers list", &[]).await;
    refused.check_refused(2, "`archon triggers` is not in this build", "build with `--features triggers`");
}

#[cfg(not(all(feature = "serve", feature = "skills", feature = "triggers")))]
#[tokio::test]
async fn assistant_without_its_features_is_refused_with_their_names() {
    let refused = Place::new().archon("assistant office", &[]).await;
    refused.check_refused(
        2,
        "`archon assistant` is not in this build",
        "build with `--features serve,skills,triggers`",
    );
}
