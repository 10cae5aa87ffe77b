//! `archon doctor --fix`: mends what is safe to mend, and only says so without the flag.

use archon_testkit::MockServer;

use crate::setup::{Place, Ran, answer};

/// The lines about what can be mended.
fn fixes(ran: &Ran) -> Vec<String> {
    ran.out.lines().filter(|line| line[2..].trim_start().starts_with("fix ")).map(str::to_owned).collect()
}

fn check_one(ran: &Ran, mark: &str, parts: &[&str]) {
    let found = fixes(ran);
    let [line] = found.as_slice() else { panic!("one repair: {ran:?}") };
    assert!(line.starts_with(mark) && parts.iter().all(|part| line.contains(part)), "{line}");
}

#[tokio::test]
async fn doctor_with_fix_makes_a_missing_data_folder() {
    let place = Place::new();
    let ran = place.archon("doctor", &[]).await;
    check_one(&ran, "-- ", &["the data folder", "is missing", "`archon doctor --fix` repairs it"]);
    assert!(!place.data().exists());
    let ran = place.archon("doctor --fix", &[]).await;
    check_one(&ran, "ok ", &["is missing: created"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(place.data()).unwrap().permissions().mode() & 0o777, 0o700);
    }
    assert_eq!(fixes(&place.archon("doctor --fix", &[]).await), [""; 0]);
}

#[cfg(unix)]
#[tokio::test]
async fn doctor_with_fix_closes_files_with_secrets_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    std::fs::create_dir(place.data()).unwrap();
    let file = place.data().join("credentials.key");
    std::fs::write(&file, "k".repeat(32)).unwrap();
    let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    for wrong in [0o644, 0o660, 0o400] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(wrong)).unwrap();
        let ran = place.archon("doctor", &[]).await;
        check_one(&ran, "-- ", &["credentials.key", "--fix"]);
        assert_eq!(mode(), wrong);
        check_one(
            &place.archon("doctor --fix", &[]).await,
            "ok ",
            &["credentials.key", "now only its owner can read it"],
        );
        assert_eq!(mode(), 0o600);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "k".repeat(32));
}

#[tokio::test]
async fn doctor_with_fix_builds_an_index_again_that_lacks_runs() {
    let server = MockServer::start([answer("Paris"), answer("Rome")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["Capital of France?"]).await;
    place.archon("run", &["Capital of Italy?"]).await;
    assert_eq!(place.archon("runs list", &[]).await.out.lines().count(), 2);
    std::fs::write(place.data().join("index/recent"), "").unwrap();
    assert_eq!(place.archon("runs list", &[]).await.out.lines().count(), 0, "it is stale");
    check_one(&place.archon("doctor", &[]).await, "-- ", &["lacks runs", "--fix"]);
    check_one(&place.archon("doctor --fix", &[]).await, "ok ", &["lacks runs: built again"]);
    assert_eq!(place.archon("runs list", &[]).await.out.lines().count(), 2);
    assert_eq!(fixes(&place.archon("doctor --fix", &[]).await), [""; 0]);
}

#[tokio::test]
async fn doctor_with_fix_removes_a_lock_without_a_log_and_leaves_every_other() {
    let place = Place::new();
    let runs = place.data().join("runs");
    std::fs::create_dir_all(&runs).unwrap();
    for name in ["run_stale.lock", "run_held.lock", "run_cut_off.lock"] {
        std::fs::write(runs.join(name), "").unwrap();
    }
    // A run that was cut off: its lock knows how long its log has to be.
    std::fs::write(runs.join("run_cut_off.jsonl"), "").unwrap();
    let held = std::fs::File::options().write(true).open(runs.join("run_held.lock")).unwrap();
    held.lock().unwrap();
    check_one(&place.archon("doctor", &[]).await, "-- ", &["run_stale.lock", "--fix"]);
    check_one(
        &place.archon("doctor --fix", &[]).await,
        "ok ",
        &["run_stale.lock belongs to no run: removed"],
    );
    assert!(!runs.join("run_stale.lock").exists());
    assert!(runs.join("run_held.lock").exists() && runs.join("run_cut_off.lock").exists());
}

#[cfg(feature = "local")]
#[tokio::test]
async fn doctor_fix_fetches_the_configured_model_or_reports_the_failure() {
    let place = Place::new();
    std::fs::create_dir(place.data()).unwrap();
    let doctor = async |line: &str| {
        let mut command = place.command(line, &[]);
        Ran::from(command.env("ARCHON_FALLBACK", "local:gemma-3-270m,local:unknown").output().await.unwrap())
    };
    let ran = doctor("doctor").await;
    check_one(&ran, "-- ", &["the model gemma-3-270m of the settings was not downloaded", "--fix"]);
    // There is no network here.
    let ran = doctor("doctor --fix").await;
    check_one(&ran, "-- ", &["gemma-3-270m", "could not be repaired: "]);
    assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
}
