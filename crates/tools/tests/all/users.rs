//! Tests that run once more as users with fewer rights than root.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use tempfile::TempDir;

/// Returns whether mounts must protect commands, where a test runs once more.
const MOUNTS: &str = "ARCHON_TEST_MOUNTS";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// Mounts hold their commands, where the kernel makes user namespaces for them.
    Ordinary,
    /// No user namespace is made for them, and so no mounts.
    WithoutNamespaces,
}

impl User {
    fn command(self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        if self == Self::WithoutNamespaces {
            // The kernel limits the namespaces below one: the second is the last.
            let last = "echo 1 > /proc/sys/user/max_user_namespaces && exec unshare --user --map-user=65534 --map-group=65534 \"$@\"";
            command.args(["unshare", "--user", "--map-root-user", "sh", "-c", last, "sh"]);
        }
        command.arg(program);
        command
    }
}

/// Returns whether mounts protect the commands of this user, or `None` if that is not known.
pub(crate) fn has_mounts() -> Option<bool> {
    match std::env::var(MOUNTS) {
        Ok(said) => Some(said == "yes"),
        Err(_) => rustix::process::geteuid().is_root().then_some(true),
    }
}

/// Runs these tests once more as such a user.
#[allow(clippy::print_stdout, reason = "a test says that it was left out")]
pub(crate) fn as_user(user: User, tests: &[&str]) {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP: not root, so the test itself has shown it");
        return;
    }
    if !user.command(Path::new("true")).status().is_ok_and(|done| done.success()) {
        println!("SKIP: setpriv or unshare cannot start a program as such a user ({user:?})");
        return;
    }
    let can_mount = || {
        let mut tried = user.command(Path::new("unshare"));
        tried.args(["--user", "--map-root-user", "--mount", "true"]);
        tried.output().is_ok_and(|done| done.status.success())
    };
    let has_mounts = user == User::Ordinary && can_mount();
    // Where anybody may go.
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("tests");
    // By another process: what we have open for writing, a child of another test has for a moment too, and it cannot be run.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    for path in [folder.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let run = user
        .command(&program)
        .arg("--exact")
        .args(tests)
        .arg("--nocapture")
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        .env(MOUNTS, if has_mounts { "yes" } else { "no" })
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && told.contains(&format!("{} passed", tests.len())), "{told}");
}
