//! `archon config`: which files hold settings, what they say, and how a setting is changed.

use serde_json::json;

use crate::setup::Place;

/// Writes the user's settings.
fn write_own(place: &Place, text: &str) {
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(place.path(".config/archon/archon.toml"), text).unwrap();
}

/// The lines of an output, without the folder of the place.
fn lines(place: &Place, out: &str) -> Vec<String> {
    let real = format!("{}/", place.dir.path().canonicalize().unwrap().display());
    let given = format!("{}/", place.dir.path().display());
    out.lines().map(|line| line.replace(&real, "").replace(&given, "")).collect()
}

#[tokio::test]
async fn config_path_names_the_files_in_their_order() {
    let place = Place::new();
    std::fs::write(place.path("archon.toml"), "no TOML").unwrap();
    let shown = place.archon("config path", &[]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert_eq!(
        lines(&place, &shown.out),
        [".config/archon/archon.toml  (yours, missing)", "archon.toml  (the project's)"]
    );
    let items = place.archon("config path --json", &[]).await.json();
    assert_eq!((&items[0]["exists"], &items[1]["exists"]), (&json!(false), &json!(true)));
}

#[tokio::test]
async fn config_get_prints_values_with_the_place_of_each() {
    let place = Place::new();
    write_own(&place, "# Mine.\nmodel = 'openai:a'\nmax_turns = 3\n[permissions]\nallow = ['read_file']\n");
    std::fs::write(
        place.path("archon.toml"),
        "max_turns = 7\nsystem = 'x'\n[permissions]\ndeny = ['bash']\n",
    )
    .unwrap();
    let turns = place.archon("config get", &["max_turns"]).await;
    assert_eq!(lines(&place, &turns.out), ["max_turns = 7  # archon.toml:1"], "{turns:?}");
    let all = place.command("config get", &[]).env("ARCHON_MAX_TOKENS", "100").output().await.unwrap();
    assert_eq!(
        lines(&place, &String::from_utf8(all.stdout).unwrap()),
        [
            "model = \"openai:a\"  # .config/archon/archon.toml:2",
            "max_turns = 7  # archon.toml:1",
            "max_tokens = 100  # ARCHON_MAX_TOKENS",
            "permissions.allow = [\"read_file\"]  # .config/archon/archon.toml:5",
            "permissions.deny = [\"bash\"]  # archon.toml:4",
            &format!(
                "data_dir = \"{}\"  # --data-dir",
                lines(&place, &place.data().display().to_string())[0]
            ),
            "local_servers = \"none\"  # ARCHON_LOCAL_SERVERS",
        ]
    );
    let warned = String::from_utf8(all.stderr).unwrap();
    assert!(warned.contains("sets system, but no person has agreed to it"), "{warned}");
    let item = place.archon("config get --json", &["permissions.deny"]).await.json().remove(0);
    assert_eq!((&item["value"], &item["line"]), (&json!(["bash"]), &json!(4)));
}

#[tokio::test]
async fn config_get_of_an_unset_or_unknown_setting_is_refused() {
    let place = Place::new();
    place.archon("config get", &["max_turns"]).await.check_refused(
        1,
        "`max_turns` is not set",
        "archon config set max_turns VALUE",
    );
    place.archon("config get", &["max_turn"]).await.check_refused(
        2,
        "there is no setting `max_turn`",
        "did you mean `max_turns`?",
    );
    write_own(&place, "max_turns = 'x'\n");
    place.archon("config get", &["model"]).await.check_refused(2, "archon.toml:1: ", "known settings");
}

#[cfg(feature = "setup")]
mod changes {
    use super::*;

    fn own(place: &Place) -> String {
        std::fs::read_to_string(place.path(".config/archon/archon.toml")).unwrap()
    }

    #[tokio::test]
    async fn config_set_changes_one_setting_and_keeps_the_rest() {
        let place = Place::new();
        let made = place.archon("config set", &["max_turns", "3"]).await;
        assert_eq!((made.code, made.out.as_str()), (Some(0), ""), "{made:?}");
        assert_eq!(lines(&place, &made.err), [".config/archon/archon.toml: max_turns = 3"]);
        assert_eq!(own(&place), "max_turns = 3\n");
        write_own(&place, "# Mine.\nmax_turns =  3 # few\n\n[permissions]\n# none\n");
        place.archon("config set", &["max_turns", "9"]).await;
        let item =
            place.archon("config set --json", &["permissions.deny", "bash,web_fetch"]).await.json().remove(0);
        assert_eq!(item["value"], json!(["bash", "web_fetch"]));
        assert_eq!(
            own(&place),
            "# Mine.\nmax_turns =  9 # few\n\n[permissions]\ndeny = [\"bash\", \"web_fetch\"]\n# none\n"
        );
        let got = place.archon("config get", &["max_turns"]).await;
        assert_eq!(lines(&place, &got.out), ["max_turns = 9  # .config/archon/archon.toml:2"]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn config_set_keeps_a_symbolic_link_and_the_permissions_of_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = Place::new();
        std::fs::create_dir_all(place.path(".config/archon")).unwrap();
        std::fs::write(place.path("dotfile"), "# Mine.\n").unwrap();
        std::fs::set_permissions(place.path("dotfile"), std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(place.path("dotfile"), place.path(".config/archon/archon.toml")).unwrap();
        let set = place.archon("config set", &["max_turns", "3"]).await;
        assert_eq!(set.code, Some(0), "{set:?}");
        assert!(place.path(".config/archon/archon.toml").is_symlink());
        assert_eq!(std::fs::read_to_string(place.path("dotfile")).unwrap(), "# Mine.\n\nmax_turns = 3\n");
        assert_eq!(std::fs::metadata(place.path("dotfile")).unwrap().permissions().mode() & 0o777, 0o640);
        let left = std::fs::read_dir(place.dir.path()).unwrap().count();
        assert_eq!(left, 2, "no half-written file is left");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn config_set_of_a_project_follows_no_link_that_the_project_may_have_set() {
        let place = Place::new();
        for name in ["theirs.toml", "other"] {
            std::fs::write(place.path(name), "max_turns = 3\n").unwrap();
        }
        std::os::unix::fs::symlink(place.path("theirs.toml"), place.path("archon.toml")).unwrap();
        std::os::unix::fs::symlink(place.path("other"), place.path("archon.toml.new")).unwrap();
        let set = place.archon("config set --project", &["max_turns", "4"]).await;
        assert_eq!(set.code, Some(0), "{set:?}");
        for name in ["theirs.toml", "other"] {
            assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), "max_turns = 3\n", "{name}");
        }
        assert_eq!(std::fs::read_to_string(place.path("archon.toml")).unwrap(), "max_turns = 4\n");
    }

    #[tokio::test]
    async fn config_set_refuses_wrong_names_and_values_and_broken_files_and_writes_nothing() {
        let place = Place::new();
        let text = "max_turns = 3 # few\n";
        write_own(&place, text);
        for (name, value, what, advice) in [
            ("max_turn", "3", "there is no setting `max_turn`", "did you mean `max_turns`?"),
            ("permissions.alow", "x", "there is no setting `permissions.alow`", "did you mean `allow`?"),
            ("a b", "x", "\"a b\" is not the name of a setting", "between quotes"),
            (
                "max_turns",
                "many",
                "`max_turns` cannot be \"many\": a whole number is needed",
                "The maximum number of model calls",
            ),
            ("max_turns", "-1", "`max_turns` cannot be \"-1\"", "The maximum number of model calls"),
            ("mode", "loud", "`native` or `text` is needed", "The form in which"),
            ("agents.a.system", "x", "missing field `description`", "The agent's instructions"),
        ] {
            place.archon("config set", &[name, value]).await.check_refused(2, what, advice);
            assert_eq!(own(&place), text, "{name}");
        }
        write_own(&place, "max_turns = 3\nmodel = \n");
        let refused = place.archon("config set", &["max_turns", "4"]).await;
        refused.check_refused(2, "archon.toml:2: ", "known settings");
        assert_eq!(own(&place), "max_turns = 3\nmodel = \n");
        assert!(!place.path("archon.toml").exists() && !place.data().exists());
    }

    #[tokio::test]
    async fn config_set_for_a_project_refuses_forbidden_settings_and_notes_the_needed_agreement() {
        let place = Place::new();
        for (name, value, what) in [
            ("api_key_env", "K", "a project may not choose your keys"),
            ("data_dir", "d", "a project may not choose the folder of the logs"),
            ("permissions.allow", "read_file", "may not allow calls in a project's settings"),
            ("workspace", "../..", "is a path outside the project"),
        ] {
            let refused = place.archon("config set --project", &[name, value]).await;
            refused.check_refused(2, what, "in your own settings");
        }
        assert!(!place.path("archon.toml").exists());
        let set = place.archon("config set --project", &["max_turns", "5"]).await;
        assert_eq!((set.code, set.err.lines().count()), (Some(0), 1), "{set:?}");
        let asks = place.archon("config set --project", &["system", "Be brief."]).await;
        assert!(
            asks.err.contains("the setting takes effect after you agree to the file: archon trust"),
            "{asks:?}"
        );
        let hidden = place.archon("config set", &["max_turns", "6"]).await;
        assert!(
            lines(&place, &hidden.err)[1].ends_with("archon.toml sets it as well, and takes precedence"),
            "{hidden:?}"
        );
    }

    #[tokio::test]
    async fn config_set_into_a_folder_that_cannot_be_made_is_refused() {
        let place = Place::new();
        std::fs::write(place.path(".config"), "a file").unwrap();
        let refused = place.archon("config set", &["max_turns", "3"]).await;
        assert!(matches!(refused.code, Some(1 | 2)), "{refused:?}");
        assert!(refused.err.starts_with("error: cannot "), "{refused:?}");
        assert_eq!(std::fs::read_to_string(place.path(".config")).unwrap(), "a file");
    }
}

#[tokio::test]
async fn config_check_lists_every_problem_of_every_file_with_its_line() {
    let place = Place::new();
    let clean = place.archon("config check", &[]).await;
    assert_eq!((clean.code, clean.err.as_str()), (Some(0), "0 files read, 0 problems\n"), "{clean:?}");
    write_own(&place, "max_turn = 3\nmode = 'loud'\n\n[permissions]\nallow = ['bash(']\n");
    std::fs::write(place.path("archon.toml"), "max_turns = 3\napi_key_env = 'K'\nmodel = 'x\n").unwrap();
    let checked = place.archon("config check", &[]).await;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    let found = lines(&place, &checked.out);
    let places: Vec<_> = found.iter().map(|line| line.split(": ").next().unwrap()).collect();
    let own = ".config/archon/archon.toml";
    assert_eq!(
        places,
        [&format!("{own}:1"), &format!("{own}:2"), &format!("{own}:5"), "archon.toml:2", "archon.toml:3"],
        "{checked:?}"
    );
    assert!(found[0].ends_with("there is no setting `max_turn`; did you mean `max_turns`?"), "{checked:?}");
    assert!(found[2].contains("the closing bracket is missing"), "{checked:?}");
    assert!(found[3].contains("a project may not choose your keys"), "{checked:?}");
    assert_eq!(checked.err, "2 files read, 5 problems\n");
    let item = place.archon("config check --json", &[]).await.json().remove(0);
    assert_eq!((&item["line"], &item["advice"]), (&json!(1), &json!("did you mean `max_turns`?")));
}
