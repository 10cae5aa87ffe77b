//! The layers of settings, as tables: what each layer says, and what holds in the end.

use expect_test::{Expect, expect};

use archon::providers::LocalServer;

use super::*;

/// Loads settings from an environment, and from files in a temporary directory; a person agreed to the project's file.
fn load(user: &str, project: &str, env: &[(&str, &str)], flags: Settings) -> Result<Config, Failure> {
    load_after(project, user, project, env, flags)
}

/// Does the same as [`load`], but the person agreed to the project's file when it had the text `agreed`.
fn load_after(
    agreed: &str,
    user: &str,
    project: &str,
    env: &[(&str, &str)],
    flags: Settings,
) -> Result<Config, Failure> {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name).join(FILE);
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        if !text.is_empty() {
            std::fs::write(&path, text).unwrap();
        }
        Some(path)
    };
    let mut sources = Sources {
        user: write("user", user),
        project: write("project", project),
        env: env.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
    };
    sources.env.insert("XDG_DATA_HOME".to_owned(), dir.path().join("home").display().to_string());
    for folder in ["home/archon", "user/data"] {
        let file = sources.project.as_deref().unwrap();
        Agreements::in_folder(&dir.path().join(folder)).add(file, agreed).unwrap();
    }
    let shorten = |text: &str| text.replace(&format!("{}/", dir.path().display()), "");
    Config::load(&sources, flags).map_err(|e| Failure::new(e.exit(), shorten(e.what()), e.advice().concat()))
}

#[test]
fn later_layers_win() {
    let flag = || Settings { model: Some("flag".into()), ..Settings::default() };
    let none = Settings::default;
    let env: &[(&str, &str)] = &[("ARCHON_MODEL", "env")];
    let (user, project) = ("model = 'user'", "model = 'project'");
    for (user, project, env, flags, expected) in [
        ("", "", &[][..], none(), None),
        (user, "", &[], none(), Some("user")),
        (user, project, &[], none(), Some("project")),
        (user, project, env, none(), Some("env")),
        (user, project, env, flag(), Some("flag")),
        (user, "", &[("ARCHON_MODEL", "")], none(), Some("user")),
    ] {
        let config = load(user, project, env, flags).unwrap();
        assert_eq!(config.settings.model.as_deref(), expected);
        let origin = config.origin("model").map(|o| match o {
            Origin::User(_) => "user",
            Origin::Project(_) => "project",
            Origin::Env(name) => {
                assert_eq!(name, "ARCHON_MODEL");
                "env"
            }
            Origin::Flag(name) => {
                assert_eq!(name, "--model");
                "flag"
            }
        });
        assert_eq!(origin, expected);
    }
}

#[test]
fn config_layers_merge_and_paths_are_relative_to_their_file() {
    let user = "data_dir = 'data'\ntools = ['calculator', 'search']\nbase_url = 'http://h/v1'";
    let project = "workspace = 'src'\nmax_turns = 7\nmode = 'text'\nsystem = 'Be brief.'";
    let config =
        load(user, project, &[("ARCHON_TOOLS", "all"), ("ARCHON_WORKSPACE", "w")], Settings::default());
    let s = config.unwrap().settings;
    assert_eq!(s.tools, Some(ToolSelection::All));
    assert_eq!((s.max_turns, s.mode), (Some(7), Some(Mode::Text)));
    assert_eq!((s.base_url.as_deref(), s.system.as_deref()), (Some("http://h/v1"), Some("Be brief.")));
    assert_eq!(s.workspace, Some("w".into()), "the environment is meant from the current directory");
    assert!(s.data_dir.unwrap().ends_with("user/data"));
}

#[test]
fn tools_are_written_in_several_ways() {
    let names = |n: &[&str]| ToolSelection::Names(n.iter().map(|n| n.to_string()).collect());
    for (text, expected) in [
        ("all", ToolSelection::All),
        ("none", ToolSelection::None),
        ("a", names(&["a"])),
        (" a, b ,", names(&["a", "b"])),
    ] {
        assert_eq!(ToolSelection::from_text(text).unwrap(), expected);
        let config = load(&format!("tools = '{text}'"), "", &[], Settings::default()).unwrap();
        assert_eq!(config.settings.tools, Some(expected));
    }
}

#[test]
fn servers_of_this_machine_are_written_in_several_ways() {
    let of = |servers: &[(&'static str, &str)]| {
        servers.iter().map(|(profile, url)| LocalServer::new(profile, *url)).collect::<LocalServers>()
    };
    let elsewhere = ("llamacpp", "http://127.0.0.1:9000/v1");
    for (text, expected) in [
        ("none", of(&[])),
        ("ollama", of(&[("ollama", "http://127.0.0.1:11434/v1")])),
        (
            "ollama, llamacpp@http://127.0.0.1:9000/v1",
            of(&[("ollama", "http://127.0.0.1:11434/v1"), elsewhere]),
        ),
    ] {
        assert_eq!(LocalServers::from_text(text), Ok(expected.clone()), "{text}");
        let set = load("", "", &[("ARCHON_LOCAL_SERVERS", text)], Settings::default()).unwrap();
        assert_eq!(set.settings.local_servers, Some(expected), "{text}");
    }
    let listed = "local_servers = ['llamacpp@http://127.0.0.1:9000/v1']";
    let listed = load(listed, "", &[], Settings::default()).unwrap().settings.local_servers;
    assert_eq!(listed, Some(of(&[elsewhere])));
}

#[test]
fn problem_is_reported_with_its_place() {
    let check = |user: &str, project: &str, env: &[(&str, &str)], expected: Expect| {
        let e = load(user, project, env, Settings::default()).unwrap_err();
        assert_eq!(e.exit(), crate::exit::Exit::Usage);
        expected.assert_eq(&format!("{}\n  {}", e.what(), e.advice().concat()));
    };
    check(
        "# mine\nmodel = 'm'\nmax_turn = 3\n",
        "",
        &[],
        expect![[r#"
        user/archon.toml:3: there is no setting `max_turn`
          did you mean `max_turns`?"#]],
    );
    check(
        "[limits]\nx = 1",
        "",
        &[],
        expect![[r#"
            user/archon.toml:1: there is no setting `limits`
              known settings: model, fallback, base_url, api_key_env, allow_plain_http, tools, definition_budget, workspace, agents, mcp, openapi, sandbox_hooks, search_url, models, mode, tool_execution, thinking, output_level, max_turns, max_tokens, max_cost, max_duration, system, project_file, permissions, embedder, extractor, local_threads, local_kernel, data_dir, local_servers, keys, chat, serve, channels, events"#]],
    );
    check(
        "max_turns = 'three'",
        "",
        &[],
        expect![[r#"
            user/archon.toml:1: invalid type: string "three", expected u32
              known settings: model, fallback, base_url, api_key_env, allow_plain_http, tools, definition_budget, workspace, agents, mcp, openapi, sandbox_hooks, search_url, models, mode, tool_execution, thinking, output_level, max_turns, max_tokens, max_cost, max_duration, system, project_file, permissions, embedder, extractor, local_threads, local_kernel, data_dir, local_servers, keys, chat, serve, channels, events"#]],
    );
    check(
        "model = \n",
        "",
        &[],
        expect![[r#"
            user/archon.toml:1: string values must be quoted, expected literal string
              known settings: model, fallback, base_url, api_key_env, allow_plain_http, tools, definition_budget, workspace, agents, mcp, openapi, sandbox_hooks, search_url, models, mode, tool_execution, thinking, output_level, max_turns, max_tokens, max_cost, max_duration, system, project_file, permissions, embedder, extractor, local_threads, local_kernel, data_dir, local_servers, keys, chat, serve, channels, events"#]],
    );
    check(
        "mode = 'loud'",
        "",
        &[],
        expect![[r#"
            user/archon.toml:1: unknown variant `loud`, expected `native` or `text`
              known settings: model, fallback, base_url, api_key_env, allow_plain_http, tools, definition_budget, workspace, agents, mcp, openapi, sandbox_hooks, search_url, models, mode, tool_execution, thinking, output_level, max_turns, max_tokens, max_cost, max_duration, system, project_file, permissions, embedder, extractor, local_threads, local_kernel, data_dir, local_servers, keys, chat, serve, channels, events"#]],
    );
    check(
        "",
        "",
        &[("ARCHON_MAX_TURNS", "many")],
        expect![[r#"
        the variable ARCHON_MAX_TURNS is "many": a whole number is needed
          change it or unset it: unset ARCHON_MAX_TURNS"#]],
    );
    check(
        "",
        "",
        &[("ARCHON_MODE", "loud")],
        expect![[r#"
        the variable ARCHON_MODE is "loud": `native` or `text` is needed
          change it or unset it: unset ARCHON_MODE"#]],
    );
    check(
        "tool_execution = '0'",
        "",
        &[],
        expect![[r#"
            user/archon.toml:1: `parallel`, `sequential` or a number of calls is needed
              known settings: model, fallback, base_url, api_key_env, allow_plain_http, tools, definition_budget, workspace, agents, mcp, openapi, sandbox_hooks, search_url, models, mode, tool_execution, thinking, output_level, max_turns, max_tokens, max_cost, max_duration, system, project_file, permissions, embedder, extractor, local_threads, local_kernel, data_dir, local_servers, keys, chat, serve, channels, events"#]],
    );
    check(
        "",
        "",
        &[("ARCHON_LOCAL_SERVERS", "olama")],
        expect![[r#"
        the variable ARCHON_LOCAL_SERVERS is "olama": there is no profile "olama"; write PROFILE or PROFILE@URL
          change it or unset it: unset ARCHON_LOCAL_SERVERS"#]],
    );
    check(
        "",
        "local_servers = 'ollama@http://example.com/v1'",
        &[],
        expect![[r#"
        project/archon.toml: `local_servers` is not allowed in a project's settings: a project may not choose the local servers
          set it with a flag or in your own settings, or remove `local_servers` there"#]],
    );
    check(
        "",
        "api_key_env = 'AWS_SECRET'",
        &[],
        expect![[r#"
        project/archon.toml: `api_key_env` is not allowed in a project's settings: a project may not choose your keys
          set it with a flag or in your own settings, or remove `api_key_env` there"#]],
    );
    check(
        "",
        "allow_plain_http = true",
        &[],
        expect![[r#"
        project/archon.toml: `allow_plain_http` is not allowed in a project's settings: a project may not send your keys unencrypted
          set it with a flag or in your own settings, or remove `allow_plain_http` there"#]],
    );
    check(
        "",
        "sandbox_hooks = false",
        &[],
        expect![[r#"
        project/archon.toml: `sandbox_hooks` is not allowed in a project's settings: a project may not choose the rights of its own commands
          set it with a flag or in your own settings, or remove `sandbox_hooks` there"#]],
    );
    check(
        "",
        "search_url = 'https://search.example.com'",
        &[],
        expect![[r#"
        project/archon.toml: `search_url` is not allowed in a project's settings: a project may not choose the service that receives your searches
          set it with a flag or in your own settings, or remove `search_url` there"#]],
    );
    check(
        "",
        "data_dir = '/tmp/elsewhere'",
        &[],
        expect![[r#"
        project/archon.toml: `data_dir` is not allowed in a project's settings: a project may not choose the folder of the logs
          set it with a flag or in your own settings, or remove `data_dir` there"#]],
    );
    check(
        "",
        "[models.'openai:gpt-9']\ninput = 0\noutput = 0",
        &[],
        expect![[r#"
        project/archon.toml: `models` is not allowed in a project's settings: a project may not change prices and properties of models
          set it with a flag or in your own settings, or remove `models` there"#]],
    );
    check(
        "",
        "[serve]\nlisten = '0.0.0.0:80'\nbehind_proxy = true",
        &[],
        expect![[r#"
        project/archon.toml: `serve` is not allowed in a project's settings: a project may not choose who listens, and who may come in
          set it with a flag or in your own settings, or remove `serve` there"#]],
    );
    check(
        "",
        "",
        &[("ARCHON_SERVE", "127.0.0.1:80")],
        expect![[r#"
        the variable ARCHON_SERVE is "127.0.0.1:80": the server can be set only in a file, under [serve]
          change it or unset it: unset ARCHON_SERVE"#]],
    );
    check(
        "",
        "workspace = '../..'",
        &[],
        expect![[r#"
        project/archon.toml: `workspace` is a path outside the project
          set it with a flag or in your own settings, or remove `workspace` there"#]],
    );
    check(
        "",
        "workspace = '/etc'",
        &[],
        expect![[r#"
        project/archon.toml: `workspace` is a path outside the project
          set it with a flag or in your own settings, or remove `workspace` there"#]],
    );
    check(
        "",
        "project_file = '../AGENTS.md'",
        &[],
        expect![[r#"
        project/archon.toml: `project_file` is a path outside the project
          set it with a flag or in your own settings, or remove `project_file` there"#]],
    );
    check(
        "",
        "[mcp.files]\ncommand = 'files'",
        &[],
        expect![[r#"
        project/archon.toml: `mcp` is not allowed in a project's settings: a project's servers are in .mcp.json, and each needs your agreement
          set it with a flag or in your own settings, or remove `mcp` there"#]],
    );
}

#[test]
fn project_settings_for_models_and_tools_need_agreement_to_the_exact_text() {
    for (key, value) in [
        ("model", "'ollama:m'"),
        ("fallback", "['openai:m']"),
        ("base_url", "'http://h/v1'"),
        ("tools", "'all'"),
        ("system", "'Obey.'"),
        ("agents", "{ x = { description = 'Obeys.' } }"),
        ("openapi", &format!("{{ x = {{ document = 'x.yaml', digest = '{}' }} }}", "0".repeat(64))),
        ("project_file", "'NOTES.md'"),
    ] {
        let project = format!("max_turns = 7\n{key} = {value}\n");
        let origin = |agreed: &str, user: &str| {
            let config = load_after(agreed, user, &project, &[], Settings::default()).unwrap();
            assert_eq!(config.settings.max_turns, Some(7), "the rest holds");
            let waits = config.asks.as_ref().map(|asks| asks.keys.clone()).unwrap_or_default();
            (config.origin(key).map(|origin| matches!(origin, Origin::Project(_))), waits)
        };
        assert_eq!(origin("", ""), (None, vec![key]));
        assert_eq!(origin(&project, ""), (Some(true), vec![]), "{key}");
        assert_eq!(origin(&format!("{project} "), ""), (None, vec![key]), "it is another text");
        let user = format!("{key} = {value}");
        assert_eq!(origin("", &user), (Some(false), vec![key]), "the user's own holds: {key}");
    }
    // What would not hold anyway is not asked about.
    let flags = Settings { system: Some("Mine.".into()), ..Settings::default() };
    let config =
        load_after("", "", "system = 'Obey.'\nmodel = 'm'", &[("ARCHON_MODEL", "own")], flags).unwrap();
    assert!(config.asks.is_none() && config.settings.model.as_deref() == Some("own"));
}

#[test]
fn every_setting_is_listed_as_allowed_or_forbidden_for_projects() {
    let refused: Vec<_> = trust::FORBIDDEN.iter().map(|(key, _)| *key).collect();
    let harmless = [
        "workspace",
        "mode",
        "tool_execution",
        "thinking",
        "output_level",
        "definition_budget",
        "max_turns",
        "permissions",
        "embedder",
        "local_threads",
        "local_kernel",
    ];
    let known = [trust::AFTER_AGREEMENT, refused.as_slice(), &harmless].concat();
    let misspelt: Vec<_> = known.iter().filter(|key| !KEYS.contains(key)).collect();
    assert!(misspelt.is_empty(), "these names in trust.rs or here are no settings: {misspelt:?}");
    let unknown: Vec<_> = KEYS.iter().filter(|key| !known.contains(key)).collect();
    assert!(
        unknown.is_empty(),
        "say of each in trust.rs and here what a project may do with it: {unknown:?}"
    );
}

#[test]
fn the_data_directory_follows_the_environment() {
    let dir = |env: &[(&str, &str)]| {
        let env = env.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Config::default().data_dir(&Sources { env, ..Sources::default() })
    };
    assert_eq!(dir(&[("XDG_DATA_HOME", "/x"), ("HOME", "/h")]).unwrap(), Path::new("/x/archon"));
    assert_eq!(
        dir(&[("XDG_DATA_HOME", "rel"), ("HOME", "/h")]).unwrap(),
        Path::new("/h/.local/share/archon")
    );
    assert!(dir(&[]).unwrap_err().advice()[0].contains("--data-dir"));
}
