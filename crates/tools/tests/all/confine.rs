//! The places within the workspace that a command may not change or see, with real commands and real git, and the
//! approvals of file tools for such places.

use std::{fs, os::unix::fs::MetadataExt, path::Path, process::Command, sync::Arc};

use archon_testkit::VirtualClock;
use archon_tools::{
    Ask, EngineOptions, Permissions, ToolEngine, Workspace,
    builtin::{Bash, BashOptions, file_tools},
    sandbox,
};
use archon_types::{
    Answer, ApprovalRequest, Approver, Decision, Json, Prepared, Tool, ToolCall, ToolResult,
    ToolResultStatus, Toolbox,
};
use expect_test::expect;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    fixture::{call_id, context_at, engine, run_call},
    sandbox::{Watch, can_be_held, run},
    users::{User, as_user},
};

/// A repository with a file, one commit and a branch, `ws`, beside a folder that nobody granted.
struct Project {
    outer: TempDir,
    engine: ToolEngine,
}

const ANNA: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "Anna"),
    ("GIT_AUTHOR_EMAIL", "anna@example.org"),
    ("GIT_COMMITTER_NAME", "Anna"),
    ("GIT_COMMITTER_EMAIL", "anna@example.org"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
];

fn git(folder: &Path, arguments: &str) -> String {
    let done =
        Command::new("git").args(arguments.split(' ')).current_dir(folder).envs(ANNA).output().unwrap();
    assert!(done.status.success(), "git {arguments}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn project() -> Project {
    project_with(Permissions::new(), |workspace, _| workspace)
}

fn project_with(rules: Permissions, change: impl FnOnce(Workspace, &Path) -> Workspace) -> Project {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("ws");
    for folder in ["", "secrets", "src", ".vscode"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    git(&root, "init -q -b main");
    for (file, text) in [
        ("a.txt", "one\n"),
        ("AGENTS.md", "be good\n"),
        (".vscode/tasks.json", "{}\n"),
        ("secrets/key", "treasure\n"),
        (".env", "treasure\n"),
        ("src/lib.rs", "//! nothing\n"),
    ] {
        fs::write(root.join(file), text).unwrap();
    }
    git(&root, "add a.txt AGENTS.md .vscode src");
    git(&root, "commit -q -m first");
    // Git would leave it to a process of its own.
    git(&root, "config maintenance.auto false");
    git(&root, "config user.name Anna");
    git(&root, "config user.email anna@example.org");
    fs::create_dir(outer.path().join("outside")).unwrap();
    fs::write(outer.path().join("outside/f"), "as it was").unwrap();
    let workspace = change(Workspace::new(&root).unwrap(), &root);
    let mut tools = file_tools(&workspace);
    tools.push(Arc::new(Bash::new(workspace.clone(), BashOptions::default())));
    tools.push(Arc::new(Bash::read_only(workspace, BashOptions::default())));
    let mut options =
        EngineOptions::default().granting(["shell_exec", "fs_write"]).asking(Ask::WhereRequired);
    options.permissions = rules;
    Project { engine: engine(tools).with_options(options), outer }
}

impl Project {
    fn root(&self) -> std::path::PathBuf {
        self.outer.path().join("ws")
    }

    async fn call(&self, tool: &str, arguments: Json) -> ToolResult {
        run_call(&self.engine, &ToolCall::new("c", tool, arguments), &run()).await
    }

    async fn bash(&self, command: &str) -> String {
        self.call("bash", json!({ "command": command })).await.text()
    }
}

/// Content, mode and link target of all control files, and names of all other files but git's own.
fn controls(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut queue = vec![root.to_owned()];
    while let Some(folder) = queue.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let relative = path.strip_prefix(root).unwrap();
            let is_folder = entry.file_type().unwrap().is_dir();
            if archon_tools::is_control_file(relative) && relative != Path::new(".git") && !is_folder {
                use std::os::unix::fs::PermissionsExt;
                let mode = entry.metadata().unwrap().permissions().mode();
                let content = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
                found.push(format!(
                    "{} {mode:o} {:?} {content}",
                    relative.display(),
                    fs::read_link(&path).ok()
                ));
            }
            if is_folder {
                queue.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Each is a way to change a control file that is there, or to make one.
const CHANGES: &[&str] = &[
    "printf '[core]\\nfsmonitor = touch pwned\\n' > data.txt; sort -o .git/config data.txt",
    "git config core.fsmonitor 'touch pwned'",
    "echo 'touch pwned' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "mv .git old; git init -q; git config core.fsmonitor 'touch pwned'",
    "cp -r .git new; git config -f new/config core.fsmonitor 'touch pwned'; mv .git old; mv new .git",
    "rm -rf .git/hooks; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
    "mv .git/hooks .git/h2; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
    "ln .git/config c; echo '[core] fsmonitor=x' >> c",
    "rm .git/config; ln -s ../data.txt .git/config",
    "mkdir -p evil; printf '[core]\\nrepositoryformatversion=0\\nfsmonitor=x\\n' > evil/config; echo ../evil > .git/commondir",
    "printf '[core]\\nfsmonitor=x\\n' > .git/config.worktree",
    "echo x >> AGENTS.md",
    "rm AGENTS.md",
    "mv AGENTS.md b; echo evil > AGENTS.md",
    "mv AGENTS.md GEMINI.md",
    "mv .git/config .git/config.worktree",
    "echo '* filter=x' > .git/info/attributes",
    "echo evil > .vscode/tasks.json",
    "echo evil > .vscode/settings.json",
    "mv .vscode v; mkdir .vscode; echo evil > .vscode/tasks.json",
    "chmod 777 AGENTS.md",
    "echo evil > .envrc",
    "echo evil > archon.toml",
    "echo evil > src/GEMINI.md",
    "mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml",
    "mkdir -p src/.git/hooks; echo x > src/.git/hooks/post-checkout",
    "git init -q sub; git -C sub config core.fsmonitor 'touch pwned'",
    "git init -q --bare bare; printf '[core]\\nbare=true\\nfsmonitor=x\\n' > bare/config",
    "mkdir e; ln -s ../src/lib.rs e/AGENTS.md",
    "mkdir real; echo 'x' > real/tasks.json; ln -s real .zed",
    "echo 'gitdir: ../src' > src/.git",
    "(sleep 0.2; echo late > .envrc) & sleep 0.1; echo early > .mcp.json; sleep 0.2",
];

// spec: TE-39
#[tokio::test]
async fn a_command_changes_no_control_file_and_makes_none() {
    if !can_be_held() {
        return;
    }
    for change in CHANGES {
        let project = project();
        let before = controls(&project.root());
        let text = project.bash(change).await;
        let after: Vec<String> = controls(&project.root());
        // A new repository may stay, with the hooks that git does not run and a plain configuration.
        let may_stay = |file: &str| {
            file.contains(".sample") || (file.contains("/config ") && !file.contains("fsmonitor"))
        };
        let new: Vec<_> = after.iter().filter(|file| !before.contains(file) && !may_stay(file)).collect();
        assert_eq!(new, Vec::<&String>::new(), "{change}: {text}");
        assert!(before.iter().all(|file| after.contains(file)), "{change}: {text}\n{before:#?}\n{after:#?}");
        git(&project.root(), "status");
        assert!(!project.root().join("pwned").exists(), "{change}: {text}");
    }
}

// spec: TE-39
#[tokio::test]
async fn sandbox_in_a_huge_workspace_moves_no_user_files() {
    if !can_be_held() {
        return;
    }
    let project = project();
    let root = project.root();
    fs::create_dir_all(root.join("deep/er")).unwrap();
    fs::write(root.join("deep/er/AGENTS.md"), "be nice\n").unwrap();
    for number in 0..50_100 {
        fs::write(root.join(format!("deep/{number}")), "").unwrap();
    }
    // The time of a change is counted in seconds.
    while fs::metadata(root.join("deep/er/AGENTS.md")).unwrap().ctime() >= seconds() {
        std::thread::yield_now();
    }
    let text = project.bash("rm deep/?????; echo evil > .envrc; echo evil > deep/er/GEMINI.md").await;
    assert!(text.contains("looked for in a part of it only"), "{text}");
    assert!(root.join("deep/er/AGENTS.md").exists(), "{text}");
    assert!(!root.join(".envrc").exists() && !root.join("deep/er/GEMINI.md").exists(), "{text}");
}

fn seconds() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_secs().cast_signed()
}

// spec: TE-39
#[tokio::test]
async fn sandbox_protects_files_named_by_git_settings() {
    if !can_be_held() {
        return;
    }
    let project = project();
    let root = project.root();
    fs::create_dir(root.join("tools")).unwrap();
    fs::write(root.join("tools/pre-commit"), "true\n").unwrap();
    fs::write(root.join("more.ini"), "[user]\nname = Anna\n").unwrap();
    git(&root, "config core.hooksPath tools");
    git(&root, "config include.path ../more.ini");
    for change in [
        "echo evil >> tools/pre-commit",
        "echo evil > tools/post-commit",
        "mv tools t; mkdir tools; echo evil > tools/pre-commit",
        "rm -rf tools; mkdir tools; echo evil > tools/pre-commit",
        "printf '[core]\\nfsmonitor=x\\n' > more.ini",
    ] {
        let text = project.bash(change).await;
        let hooks = fs::read_dir(root.join("tools")).unwrap().count();
        assert_eq!(hooks, 1, "{change}: {text}");
        assert_eq!(fs::read_to_string(root.join("tools/pre-commit")).unwrap(), "true\n", "{change}: {text}");
        assert!(
            !fs::read_to_string(root.join("more.ini")).unwrap().contains("fsmonitor"),
            "{change}: {text}"
        );
    }
}

/// Ways to a control file that is none by its name, or behind rights that a command takes away. Each line is for one command.
// spec: TE-39
#[tokio::test]
async fn sandbox_detects_renamed_and_hidden_control_files() {
    if !can_be_held() {
        return;
    }
    for (settings, commands, left) in [
        // A folder that only looks like git's own.
        ("", "rm -rf lib2; cp -r lib lib2; echo 'gitdir: ../lib2' > sub/.git", "sub/.git"),
        ("", "echo 'gitdir: ../lib' > sub/.git", "sub/.git"),
        (
            "",
            "mkdir -p .git/worktrees/x; cd .git/worktrees/x; touch HEAD; echo ../../../lib > commondir",
            ".git/worktrees/x/commondir",
        ),
        // Hooks that settings name, in a worktree and where there are none yet.
        (
            "core.hooksPath scripts/hooks",
            "mkdir -p scripts/hooks; echo evil > scripts/hooks/pre-commit",
            "scripts/hooks/pre-commit",
        ),
        (
            "core.hooksPath scripts/hooks",
            "git worktree add -q wt; mkdir -p wt/scripts/hooks; echo evil > wt/scripts/hooks/pre-commit",
            "wt/scripts/hooks/pre-commit",
        ),
        // Rights that are taken away, for the look, or for putting it right.
        ("", "mkdir d; echo evil > d/.envrc; chmod 311 d", "d/.envrc"),
        ("", "echo evil > .envrc; chmod 555 .", ".envrc"),
        ("", "echo evil > .envrc; chmod 311 .", ".envrc"),
    ] {
        let project = project();
        for folder in ["lib/objects", "lib/refs", "sub"] {
            fs::create_dir_all(project.root().join(folder)).unwrap();
        }
        fs::write(project.root().join("lib/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(project.root().join("lib/config"), "[core]\n\tfsmonitor = evil\n").unwrap();
        if !settings.is_empty() {
            git(&project.root(), &format!("config {settings}"));
        }
        let text = project.bash(commands).await;
        assert!(!project.root().join(left).exists(), "{commands}: {text}");
        assert!(text.contains("it may not"), "{commands}: {text}");
    }
}

// spec: TE-39
#[tokio::test]
async fn a_command_in_a_workspace_that_cannot_be_listed_is_refused() {
    if !can_be_held() || rustix::process::geteuid().is_root() {
        return;
    }
    let project = project();
    let set = |mode| {
        fs::set_permissions(project.root(), std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap()
    };
    set(0o311);
    let text = project.bash("echo evil >> .git/config").await;
    set(0o755);
    assert!(text.contains("cannot be listed") && text.contains("chmod u+rwx"), "{text}");
}

// spec: TE-39
#[test]
fn an_ordinary_user_s_command_hides_no_control_file_with_or_without_mounts() {
    if can_be_held() {
        let tests = [
            "confine::sandbox_detects_renamed_and_hidden_control_files",
            "confine::a_command_in_a_workspace_that_cannot_be_listed_is_refused",
        ];
        as_user(User::Ordinary, &tests);
        as_user(User::WithoutNamespaces, &tests);
    }
}

/// Without mounts it is compared and put back: the test above again, as nobody.
// spec: TE-39
#[test]
fn sandbox_without_root_restores_changed_control_files() {
    if can_be_held() {
        as_user(User::WithoutNamespaces, &["confine::a_command_changes_no_control_file_and_makes_none"]);
    }
}

// spec: TE-39
#[tokio::test]
async fn sandbox_reports_removed_control_files_in_the_result() {
    if !can_be_held() {
        return;
    }
    let project = project();
    let result = project.call("bash", json!({ "command": "echo done; echo evil > .envrc" })).await;
    expect![[r#"
        done
        [the command made '.envrc', which it may not (a shell can run commands from it). It was set aside and is now '.envrc.set-aside'. Use write_file to make such a file: a person is asked]"#]]
    .assert_eq(&result.text());
    assert_eq!(result.metadata["sandbox_notes"], 1);
    assert_eq!(fs::read_to_string(project.root().join(".envrc.set-aside")).unwrap(), "evil\n");
    assert_eq!(project.bash("true").await, "(no output)", "it is said once");
}

/// The usual git commands of an agent.
const FLOW: &str = "set -e; echo two >> a.txt; echo new > b.txt; git add .; git commit -q -m second; git switch -q -c topic; \
    echo three >> a.txt; git stash -q; git switch -q main; git switch -q topic; git stash pop -q; git commit -q -a -m third; \
    git worktree add -q wt -b side; cd wt; echo four >> a.txt; git add a.txt; git commit -q -m fourth; git log --oneline | wc -l; \
    git status --short; cd ..; git mv b.txt c.txt; git commit -q -m moved; git merge -q --no-edit side; git tag v1; git gc -q; \
    git rebase -q main; git status --short | grep -v '^??' || true; mkdir p; mv src p/src; git add -A p src; git commit -q -m m; \
    git init -q inner; git clone -q . p/clone; echo end";

// spec: TE-39
#[tokio::test]
async fn a_whole_flow_of_git_works_in_the_sandbox() {
    if !can_be_held() {
        return;
    }
    let project = project();
    fs::write(project.root().join(".gitignore"), "secrets\n.env\nwt\n").unwrap();
    let text = project.bash(FLOW).await;
    assert_eq!(text, "4\nend\n");
    // The worktree is there by now, and what makes it one is held.
    let text = project
        .bash("cd wt && echo five >> a.txt && git commit -q -a -m fifth && git log --oneline | wc -l")
        .await;
    assert_eq!(text, "5\n");
    let before = controls(&project.root());
    let text = project
        .bash("echo ../../../evil > .git/worktrees/wt/commondir; echo 'gitdir: ../evil' > wt/.git")
        .await;
    assert_eq!(controls(&project.root()), before, "{text}");
    assert_eq!(git(&project.root().join("wt"), "log -1 --format=%s"), "fifth\n");
}

// spec: TE-39
#[test]
fn a_whole_flow_of_git_works_for_an_ordinary_user() {
    if can_be_held() {
        as_user(User::WithoutNamespaces, &["confine::a_whole_flow_of_git_works_in_the_sandbox"]);
    }
}

// spec: TE-39
#[tokio::test]
async fn a_folder_with_a_control_file_in_it_can_be_moved() {
    if !can_be_held() {
        return;
    }
    let project = project();
    fs::write(project.root().join("src/AGENTS.md"), "be nice\n").unwrap();
    let text = project.bash("mv src lib && cat lib/AGENTS.md && mv lib/lib.rs a.rs && echo moved").await;
    assert_eq!(text, "be nice\nmoved\n");
    let text = project.bash("mv lib b && mkdir lib && echo evil > lib/AGENTS.md").await;
    assert!(text.contains("the command made 'lib/AGENTS.md'"), "{text}");
    assert_eq!(fs::read_to_string(project.root().join("b/AGENTS.md")).unwrap(), "be nice\n");
}

/// Only mounts hold what Landlock does not see; `sandbox::gaps` says so elsewhere.
fn can_be_mounted() -> bool {
    can_be_held() && sandbox::gaps().is_none()
}

// spec: TE-39, TE-48, AP-11
#[test]
fn an_ordinary_user_s_commands_are_held_by_mounts() {
    if can_be_held() {
        let tests = [
            "confine::modes_and_times_outside_of_the_workspace_cannot_be_changed",
            "confine::sandbox_scratch_folder_has_a_size_limit",
            "confine::sandbox_denied_files_cannot_be_read",
            "confine::sandbox_denied_files_cannot_be_written",
            "confine::folders_that_belong_to_no_workspace_are_not_there_for_commands",
            "confine::a_command_changes_no_control_file_and_makes_none",
            "confine::a_whole_flow_of_git_works_in_the_sandbox",
        ];
        as_user(User::Ordinary, &tests);
    }
}

// spec: TE-39
#[tokio::test]
async fn modes_and_times_outside_of_the_workspace_cannot_be_changed() {
    if !can_be_mounted() {
        return;
    }
    let project = project();
    let outside = project.outer.path().join("outside");
    let look = || {
        [outside.clone(), outside.join("f")].map(|path| {
            let of = fs::metadata(path).unwrap();
            (of.mode(), of.mtime(), of.mtime_nsec(), of.atime())
        })
    };
    let before = look();
    for command in [
        "chmod 000 OUT",
        "chmod 777 OUT/f",
        "touch -d 2001-01-01 OUT/f",
        "touch -a -d 2001-01-01 OUT",
        "chmod 700 /usr",
    ] {
        let text = project.bash(&command.replace("OUT", outside.to_str().unwrap())).await;
        assert!(text.contains("Read-only file system"), "{command}: {text}");
        assert_eq!(look(), before, "{command}");
    }
    let text = project.bash("chmod 600 a.txt && touch -d 2001-01-01 a.txt && stat -c '%a %Y' a.txt && echo x > $TMPDIR/f && chmod 700 $TMPDIR/f && echo fine").await;
    assert!(text.starts_with("600 ") && text.ends_with("fine\n"), "{text}");
}

// spec: TE-39
#[tokio::test]
async fn a_command_makes_no_program_that_runs_as_its_owner() {
    if !can_be_held() {
        return;
    }
    let project = project();
    // mknod(2) of a file.
    let make = if cfg!(target_arch = "x86_64") {
        "perl -e 'syscall(133, my $s = \"s5\", 0104755, 0) == 0 or print $!'"
    } else {
        "echo Operation not permitted"
    };
    let open = if cfg!(target_arch = "x86_64") {
        "perl -e 'use Fcntl; sysopen(F, \"s6\", O_RDWR|O_CREAT, 04755) or print $!'"
    } else {
        "echo Operation not permitted"
    };
    for command in [
        "cp /bin/true s1; chmod 4755 s1",
        "cp /bin/true s2; chmod u+s s2",
        "install -m 4755 /bin/true s3",
        "perl -e 'open(F, q(>), q(s4)); chmod(04755, *F) or print $!'",
        make,
        open,
    ] {
        let text = project.bash(command).await;
        assert!(text.contains("Operation not permitted"), "{command}: {text}");
        for entry in fs::read_dir(project.root()).unwrap().flatten() {
            assert_eq!(entry.metadata().unwrap().mode() & 0o4000, 0, "{command}: {entry:?}");
        }
    }
    assert_eq!(
        project
            .bash("cp /bin/ls l && chmod 2755 src && chmod 755 l && umask 022 && echo x > m && echo fine")
            .await,
        "fine\n"
    );
}

// spec: TE-39, TE-30
#[tokio::test]
async fn sandbox_moves_control_files_of_a_cancelled_command_away() {
    if !can_be_held() {
        return;
    }
    let project = project();
    let mut context = run();
    let cancel = context.cancel.clone();
    context.sink = Arc::new(Watch(Box::new(move |_| cancel.cancel())));
    let command = json!({ "command": "echo evil > .envrc; echo made; sleep 60" });
    let result = run_call(&project.engine, &ToolCall::new("c", "bash", command), &context).await;
    assert_eq!(result.status, ToolResultStatus::Cancelled);
    assert!(!project.root().join(".envrc").exists() && project.root().join(".envrc.set-aside").exists());
}

// spec: TE-39
#[tokio::test]
async fn sandbox_scratch_folder_has_a_size_limit() {
    if !can_be_mounted() {
        return;
    }
    let outer = TempDir::new().unwrap();
    let mut options = BashOptions::default();
    options.sandbox.max_scratch = 1 << 20;
    let bash: [Arc<dyn Tool>; 1] = [Arc::new(Bash::new(Workspace::new(outer.path()).unwrap(), options))];
    let engine = engine(bash)
        .with_options(EngineOptions::default().granting(["shell_exec"]).asking(Ask::WhereRequired));
    let command =
        json!({ "command": "head -c 900000 /dev/zero > $TMPDIR/a && head -c 900000 /dev/zero > $TMPDIR/b" });
    let text = run_call(&engine, &ToolCall::new("c", "bash", command), &run()).await.text();
    assert!(text.contains("No space left on device"), "{text}");
}

fn rules(deny: &[&str]) -> Permissions {
    Permissions::parse(deny.iter().copied(), [], ["bash"]).unwrap()
}

// spec: AP-11
#[tokio::test]
async fn sandbox_denied_files_cannot_be_read() {
    if !can_be_mounted() {
        return;
    }
    let project = project_with(
        rules(&["read_file(secrets/**)", "read_file(.env)", "read_file(deep/er/key)", "read_file(.link)"]),
        |workspace, root| {
            fs::create_dir(root.join("env")).unwrap();
            fs::write(
                root.join("env/real"),
                "treasure
",
            )
            .unwrap();
            std::os::unix::fs::symlink("env/real", root.join(".link")).unwrap();
            fs::create_dir_all(root.join("deep/er")).unwrap();
            fs::write(root.join("deep/er/key"), "treasure\n").unwrap();
            workspace
        },
    );
    for command in [
        "cat secrets/key",
        "cat .env",
        "cat ./s*/key",
        "grep -rh treasure .",
        "cp .env b; cat b",
        "cp -r secrets s; cat s/key",
        "mv secrets t; cat t/key",
        "ln .env hard; cat hard",
        "ln -s .env soft; cat soft",
        "tar c . | tr -d '\\0'",
        "cat /proc/self/root$PWD/.env",
        "mv deep d2; cat d2/er/key",
        "cat .link env/real",
    ] {
        for tool in ["bash", "bash_readonly"] {
            let text = project.call(tool, json!({ "command": command })).await.text();
            assert!(!text.contains("treasure"), "{command}: {text}");
        }
    }
    assert!(project.root().join("deep/er/key").exists(), "a folder above what is denied stays where it is");
    assert_eq!(fs::read_to_string(project.root().join("secrets/key")).unwrap(), "treasure\n");
    assert_eq!(fs::read_to_string(project.root().join(".env")).unwrap(), "treasure\n");
    assert_eq!(project.bash("cat a.txt").await, "one\n");
    let text = project.call("read_file", json!({ "path": ".link" })).await.text();
    assert!(!text.contains("treasure"), "{text}");
}

// spec: AP-11
#[tokio::test]
async fn sandbox_denied_files_cannot_be_written() {
    if !can_be_held() {
        return;
    }
    let deny = ["write_file(secrets/**)", "write_file(*.lock)"];
    let project = project_with(rules(&deny), |workspace, root| {
        fs::write(root.join("Cargo.lock"), "locked\n").unwrap();
        workspace
    });
    for command in [
        "echo x > secrets/key",
        "echo x > secrets/new",
        "ln -s secrets s2; echo x > s2/new4",
        "mv secrets t; mkdir secrets; echo x > secrets/key",
        "echo x | tee Cargo.lock",
        "cp a.txt other.lock",
        "rm -rf secrets",
    ] {
        let text = project.bash(command).await;
        let there: Vec<_> = fs::read_dir(project.root().join("secrets")).unwrap().flatten().collect();
        assert_eq!(there.len(), 1, "{command}: {text}");
        assert_eq!(
            fs::read_to_string(project.root().join("secrets/key")).unwrap(),
            "treasure\n",
            "{command}: {text}"
        );
        assert_eq!(
            fs::read_to_string(project.root().join("Cargo.lock")).unwrap(),
            "locked\n",
            "{command}: {text}"
        );
        assert!(!project.root().join("other.lock").exists(), "{command}: {text}");
    }
    assert_eq!(project.bash("cat secrets/key").await, "treasure\n", "it may be read");
}

// spec: AP-11
#[test]
fn sandbox_denied_files_cannot_be_written_without_root() {
    if can_be_held() {
        as_user(User::WithoutNamespaces, &["confine::sandbox_denied_files_cannot_be_written"]);
    }
}

/// The folders of Archon's own in the workspace, as when it is the home folder.
fn home() -> Project {
    project_with(Permissions::new(), |workspace, root| {
        fs::create_dir_all(root.join(".local/share/archon")).unwrap();
        fs::write(root.join(".local/share/archon/log"), "treasure").unwrap();
        workspace
            .without(root.join(".local/share/archon"), "Archon's data")
            .without(root.join(".config/archon"), "Archon's settings")
    })
}

// spec: TE-48
#[tokio::test]
async fn folders_that_belong_to_no_workspace_are_not_there_for_commands() {
    if !can_be_mounted() {
        return;
    }
    let project = home();
    for command in [
        "cat .local/share/archon/log",
        "grep -rh treasure .local",
        "echo x > .local/share/archon/log",
        "mkdir -p .config/archon; echo x > .config/archon/permissions.toml",
        "mv .config c2; mkdir -p .config/archon; echo x > .config/archon/permissions.toml",
        "mv .local l2; cat l2/share/archon/log; mkdir -p .local/share/archon; echo x > .local/share/archon/y",
        "mv .local/share/archon a2; rm -rf .local .config",
        "chmod 777 .local/share/archon",
    ] {
        let text = project.bash(command).await;
        let list = |folder: &str| fs::read_dir(project.root().join(folder)).unwrap().count();
        assert_eq!((list(".local/share/archon"), list(".config/archon")), (1, 0), "{command}: {text}");
        assert_eq!(fs::read_to_string(project.root().join(".local/share/archon/log")).unwrap(), "treasure");
        assert!(!text.contains("treasure"), "{command}: {text}");
    }
    assert_eq!(project.bash("echo x > .config/app && cat .config/app").await, "x\n");
}

// spec: TE-48
#[tokio::test]
async fn sandbox_refuses_commands_if_a_private_folder_cannot_be_hidden() {
    if !can_be_held() || sandbox::gaps().is_none() {
        return;
    }
    let project = home();
    let text = project.bash("true").await;
    assert!(text.contains("belongs to no workspace (Archon's data)"), "{text}");
}

// spec: TE-48
#[test]
fn an_ordinary_user_has_no_commands_where_archon_s_own_folders_are() {
    if can_be_held() {
        as_user(
            User::WithoutNamespaces,
            &["confine::sandbox_refuses_commands_if_a_private_folder_cannot_be_hidden"],
        );
    }
}

// spec: TE-48
#[tokio::test]
async fn folders_that_belong_to_no_workspace_are_refused_by_file_tools() {
    let project = home();
    for (tool, arguments) in [
        ("read_file", json!({ "path": ".local/share/archon/log" })),
        ("list_files", json!({ "path": ".local/share/archon" })),
        ("search", json!({ "path": ".local/share/archon", "pattern": "treasure" })),
        ("write_file", json!({ "path": ".local/share/archon/x.json", "content": "x" })),
        ("write_file", json!({ "path": ".config/archon/permissions.toml", "content": "x" })),
        ("write_file", json!({ "path": "src/../.config/archon/permissions.toml", "content": "x" })),
    ] {
        let text = project.call(tool, arguments.clone()).await.text();
        assert!(text.contains("belongs to no workspace: Archon's "), "{tool} {arguments}: {text}");
    }
    let listed = project.call("glob", json!({ "pattern": "**", "path": ".local" })).await.text();
    assert!(!listed.contains("archon/log"), "{listed}");
    let listed = project.call("list_files", json!({ "path": ".local/share" })).await.text();
    assert!(!listed.contains("share/archon"), "{listed}");
}

/// Approves everything, and keeps the questions.
#[derive(Default)]
struct Yes(std::sync::Mutex<Vec<ApprovalRequest>>);

impl Approver for Yes {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.0.lock().unwrap().push(request.clone());
        Decision::Now(Answer::Approve)
    }
}

// spec: TE-01, AP-11
#[tokio::test]
async fn file_tool_asks_about_control_files_despite_allow_rules() {
    let project = project_with(
        Permissions::parse([], [], ["write_file", "edit_file", "write_file(**)"]).unwrap(),
        |workspace, _| workspace,
    );
    let mut run = context_at(Arc::new(VirtualClock::new()));
    run.trusted = Arc::new(["write_file".to_owned()]);
    let write = |path: &str| ToolCall::new("c", "write_file", json!({ "path": path, "content": "evil\n" }));
    git(&project.root(), "config core.hooksPath scripts/hooks");
    for folder in ["lib/objects", "lib/refs"] {
        fs::create_dir_all(project.root().join(folder)).unwrap();
    }
    fs::write(project.root().join("lib/HEAD"), "ref: refs/heads/main\n").unwrap();
    for path in [
        ".git/hooks/pre-commit",
        ".envrc",
        "src/../archon.toml",
        "src/AGENTS.md",
        ".github/workflows/ci.yml",
        "scripts/hooks/pre-commit",
        "lib/config",
        "lib/hooks/post-checkout",
    ] {
        let refused = run_call(&project.engine, &write(path), &run).await.text();
        assert!(refused.contains("there is nobody to ask"), "{path}: {refused}");
        assert!(!project.root().join(path).exists(), "{path}");
    }
    assert!(!run_call(&project.engine, &write("plain.txt"), &run).await.is_error());
    let yes = Arc::new(Yes::default());
    let engine = project.engine.clone().with_approver(yes.clone());
    for _ in 0..2 {
        let result = run_call(&engine, &write(".git/hooks/pre-commit"), &run).await;
        assert!(!result.is_error(), "{}", result.text());
    }
    let asked = std::mem::take(&mut *yes.0.lock().unwrap());
    assert_eq!(asked.len(), 2, "a yes is for one call");
    expect!["Create '.git/hooks/pre-commit' (git can run commands from it, so a change can start programs outside the sandbox; needs approval each time)"]
        .assert_eq(&asked[0].action_summary);
    assert!(asked.iter().all(|asked| asked.rules.is_empty()), "no rule is offered");
    assert_eq!(
        asked[0].details["preview"]["warning"],
        "git can run commands from it, so a change can start programs outside the sandbox"
    );
}

// spec: TE-01
#[tokio::test]
async fn a_control_file_is_written_by_its_own_path_only() {
    let project = project();
    std::os::unix::fs::symlink(".git/hooks", project.root().join("docs")).unwrap();
    let engine = project.engine.clone().with_approver(Arc::new(Yes::default()));
    let call = ToolCall::new("c", "write_file", json!({ "path": "docs/post-commit", "content": "evil" }));
    let text = run_call(&engine, &call, &run()).await.text();
    expect!["Error: 'docs/post-commit' leads to '.git/hooks/post-commit', and git can run commands from it. Such a file is written by its own path only, after a person has agreed."]
        .assert_eq(&text);
    // The link may also come when a person has agreed.
    fs::remove_file(project.root().join("docs")).unwrap();
    fs::create_dir(project.root().join("docs")).unwrap();
    let Prepared::Ready(ready) = engine.prepare(call_id(), &call, &run()).await else { panic!() };
    fs::remove_dir(project.root().join("docs")).unwrap();
    std::os::unix::fs::symlink(".git/hooks", project.root().join("docs")).unwrap();
    let done = engine.execute(ready, &run()).await;
    assert!(format!("{done:?}").contains("by its own path only"), "{done:?}");
    assert!(!project.root().join(".git/hooks/post-commit").exists());
}
