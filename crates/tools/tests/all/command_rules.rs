//! Rules about commands as tables: what passes by its first words, and what a rule that denies or asks holds
//! back.

use std::{fs, path::Path};

use archon_tools::{Permissions, Ruling};
use archon_types::Subject;

fn ruling(deny: &[&str], ask: &[&str], allow: &[&str], line: &str, root: &Path) -> &'static str {
    let rules = Permissions::parse(deny, ask, allow).unwrap();
    let subject = Subject::Command { line: line.to_owned(), root: root.to_owned() };
    match rules.ruling("bash", &subject, &[]) {
        Ruling::Deny(_) => "deny",
        Ruling::Ask(_) => "ask",
        Ruling::Allow => "allow",
        _ => "silent",
    }
}

fn root() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    (dir, root)
}

/// A rule that a person wrote for a program, and a line that begins so and runs another.
const SMUGGLERS: &[(&str, &str)] = &[
    // Short options in one word.
    ("tar", "tar -cI 'sh -c \"touch x; cat\"' -f a.tar b"),
    ("tar", "tar -cvI./e.sh -f a.tar b"),
    ("tar", "tar cIf 'sh -c x' a.tar b"),
    ("rsync", "rsync -ae ./e.sh a b:c"),
    ("rsync", "rsync -ve ./e.sh a b:c"),
    ("rsync", "rsync -avze ./e.sh a b:c"),
    ("git clone", "git clone -qu 'touch x' . b"),
    // Options that name a program in other ways.
    ("make test", "make test --eval='test:;touch x'"),
    ("gcc", "gcc -wrapper ./e.sh -c a.c"),
    ("diff3", "diff3 --diff-program=./e.sh a b c"),
    ("sdiff", "sdiff --diff-program=./e.sh a b"),
    ("git merge-index", "git merge-index ./e.sh -a"),
    ("scp", "scp -S ./e.sh a b:c"),
    ("scp", "scp -qS./e.sh a b:c"),
    ("sftp", "sftp -S ./e.sh a"),
    ("sftp", "sftp -D ./e.sh a"),
    ("wget", "wget --use-askpass=./e.sh https://a"),
    ("sqlite3", "sqlite3 :memory: '.shell touch x'"),
    // The settings of another repository.
    ("git", "git -C bare status"),
    ("git", "git --git-dir=bare --work-tree=src status"),
    ("git status", "cd bare && git status"),
    // Programs that run others.
    ("prlimit", "prlimit touch x"),
    ("capsh", "capsh -- -c 'touch x'"),
    ("cmake", "cmake -E env touch x"),
    ("start-stop-daemon", "start-stop-daemon -S -x /bin/touch -- x"),
    ("prove", "prove -e ./e.sh a.t"),
    ("logsave", "logsave log touch x"),
];

/// The same for lines that write a file which no rule names.
const WRITERS: &[(&str, &str)] = &[
    ("sort", "sort -uo x a"),
    ("sort", "sort -ropwn a"),
    ("uniq", "uniq a x"),
    ("shuf", "shuf -o x a"),
    ("tar", "tar --index-file=x -tf a.tar"),
    ("split", "split a x"),
    ("xxd", "xxd a x"),
    ("sdiff", "sdiff -o x a b"),
    ("git archive", "git archive -o x HEAD"),
    ("git bundle", "git bundle create x HEAD"),
    ("git format-patch", "git format-patch -o x HEAD"),
    ("git fast-export", "git fast-export --export-marks=x HEAD"),
    ("git mailinfo", "git mailinfo x y"),
    ("git worktree", "git worktree add x"),
];

// spec: AP-11
#[test]
fn ruling_of_an_option_or_program_that_is_not_known_to_be_harmless_allows_the_exact_line_only() {
    let (_dir, root) = root();
    for (program, line) in SMUGGLERS.iter().chain(WRITERS) {
        let whole = program.split(' ').next().unwrap();
        let words = [format!("bash({program}:*)"), format!("bash({whole}:*)"), "bash(cd:*)".to_owned()];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(ruling(&[], &[], &words, line, &root), "silent", "{line}");
        let exact = format!("bash({line})");
        assert_eq!(ruling(&[], &[], &[&exact], line, &root), "allow", "{line}");
    }
}

// spec: AP-11
#[test]
fn ruling_of_words_and_harmless_options_behind_them_allows() {
    let (_dir, root) = root();
    let here = format!("cd {} && cargo test", root.display());
    for (allow, line, expected) in [
        ("sort", "sort -rnk2 -t, a b", "allow"),
        ("sort", "sort --reverse a", "allow"),
        ("sort", "sort --rev a", "silent"),
        ("sort", "sort -k -o a", "silent"),
        ("sort", "sort -- -o", "allow"),
        ("sort", "sort src/*.rs", "allow"),
        ("sort", "sort *", "silent"),
        ("sort", "sort \"$x\"", "silent"),
        ("sort", "sort -- \"$x\"", "allow"),
        ("sort -o", "sort -o x a", "silent"),
        ("uniq", "uniq -c a", "allow"),
        ("uniq", "uniq src/*", "silent"),
        ("find", "find . -maxdepth 2 -name '*.rs' -mtime -7", "allow"),
        ("find", "find -- . -delete", "silent"),
        ("find . -exec", "find . -exec rm x +", "silent"),
        ("ls", "ls -la $x *", "allow"),
        ("printf", "printf '%s\\n' -v \"$x\"", "allow"),
        ("printf", "printf %d%n 5 PATH", "silent"),
        ("printf", "printf \"$x\" a", "silent"),
        ("date", "date -u +%s", "allow"),
        ("date", "date 01010000", "silent"),
        ("sed", "sed -n '1,20p' a", "allow"),
        ("sed", "sed -n '1w x' a", "silent"),
        ("sed", "sed -ni 1p a", "silent"),
        ("awk", "awk -F: '{print $1, $NF}' a", "allow"),
        ("awk", "awk '{print > \"x\"}' a", "silent"),
        ("awk", "awk 'BEGIN{system(\"x\")}'", "silent"),
        ("awk", "awk -f a", "silent"),
        ("git", "git log -5 --oneline -- src", "allow"),
        ("git", "git log --output=x", "silent"),
        ("git", "git log --format=%G?", "silent"),
        ("git log", "git status", "silent"),
        ("git", "git stash clear", "silent"),
        ("git", "git fetch ./evil", "silent"),
        ("git", "git push", "silent"),
        ("git push", "git push -q", "allow"),
        ("git", "git --no-pager log -3", "allow"),
        ("git", "git --no-pager push", "silent"),
        ("sed", "sed -n '/a/,/b/p' c", "allow"),
        ("sed", "sed 's/a/b/g' c", "allow"),
        ("sed", "sed 's/a/b/e' c", "silent"),
        ("sed", "sed 's/[/]/x/w y' c", "silent"),
        ("[", "[ -f a ]", "allow"),
        ("[", "[ -v 'x[$(a)]' ]", "silent"),
        ("git", "git commit -m 'Fix #12'", "allow"),
        ("git push origin main", "git push -u origin main", "silent"),
        ("git push origin main", "git push origin main -q", "allow"),
        ("git push origin", "git push origin evil", "silent"),
        ("git -C a status", "git -C a status -s", "silent"),
        ("cargo test", "cargo test -p a b::c -- --nocapture", "allow"),
        ("cargo test", "cargo test -- --logfile x", "silent"),
        ("cargo build", "cargo build --config x", "silent"),
        ("cargo", "cargo +nightly build", "silent"),
        ("cargo clippy", "cargo clippy --all-targets -- -D warnings", "allow"),
        ("cargo clippy", "cargo clippy -- -C linker=x", "silent"),
        ("cargo run", "cargo run --release", "allow"),
        ("cargo run", "cargo run -- x", "silent"),
        ("cargo run -- x", "cargo run -- x", "allow"),
        ("make", "make -j4 all test", "allow"),
        ("make", "make CC=x", "silent"),
        ("make test", "make test -s", "allow"),
        ("make test", "make test install", "silent"),
        ("npm run", "npm run build", "allow"),
        ("npm run", "npm run build -- --x", "silent"),
        ("npm run build", "npm run build evil", "silent"),
        ("npm test", "npm test --script-shell=x", "silent"),
        ("node", "node a.js", "silent"),
        ("node a.js", "node a.js", "allow"),
        ("node a.js", "node a.js x", "silent"),
        ("node a.js", "node -r ./x a.js", "silent"),
        ("python -m pytest", "python -m pytest -q tests/a.py -k b", "allow"),
        ("python -m pytest", "python -m pytest -p x", "silent"),
        ("python -m pytest", "python -m pytest -- -p x", "silent"),
        ("python -m pytest", "python -m pytest ../x", "silent"),
        ("rm", "rm -rf target", "allow"),
        ("cargo test", &here, "silent"),
    ] {
        let rule = format!("bash({allow}:*)");
        assert_eq!(ruling(&[], &[], &[&rule], line, &root), expected, "{rule} {line}");
    }
    assert_eq!(ruling(&[], &[], &["bash(cd:*)", "bash(cargo test:*)"], &here, &root), "allow");
    assert_eq!(ruling(&[], &[], &["bash(cd:*)", "bash(cat:*)"], "cd a && cat b", &root), "allow");
    // The folder itself is a repository, with settings that are ordinary files.
    assert_eq!(ruling(&[], &[], &["bash(git:*)"], "git status", &root), "allow");
    fs::create_dir(root.join("HEAD")).unwrap();
    assert_eq!(ruling(&[], &[], &["bash(git:*)"], "git status", &root), "silent");
}

// spec: AP-11
#[test]
fn ruling_of_a_line_that_goes_to_a_folder_first_is_that_of_the_rest_there() {
    let (_dir, root) = root();
    for folder in ["a/b", "bare/refs", "-"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::os::unix::fs::symlink("/", root.join("link")).unwrap();
    let allow = &["bash(cd:*)", "bash(cargo test:*)", "bash(git:*)", "bash(echo:*)", "write_file(a/**)"];
    let absolute = format!("cd {}/a && cargo test", root.display());
    for (line, expected) in [
        ("cd a && cargo test", "allow"),
        ("cd ./a/b && git status", "allow"),
        (&*absolute, "allow"),
        ("cd a && echo x > b/f", "silent"),
        ("cd a && echo x > /dev/null", "allow"),
        ("cd a | echo x > f", "silent"),
        ("cd bare && git status", "silent"),
        ("cd bare/refs && git status", "silent"),
        ("cd link && git status", "silent"),
        ("cd a/.. && git status", "silent"),
        ("cd - && git status", "silent"),
        ("cd a && cd b && git status", "silent"),
        ("echo x; cd a && git status", "silent"),
        ("cd nowhere && git status", "silent"),
        ("cd $x && git status", "silent"),
        ("cd / && git status", "silent"),
    ] {
        assert_eq!(ruling(&[], &[], allow, line, &root), expected, "{line}");
    }
}

// spec: AP-11
#[test]
fn ruling_of_options_before_a_subcommand_is_that_of_the_subcommand() {
    let (_dir, root) = root();
    for (rule, allow, line) in [
        ("bash(git push:*)", "bash(git:*)", "git push origin HEAD:a"),
        ("bash(git push:*)", "bash(git:*)", "git -C . push origin HEAD:b"),
        ("bash(git push:*)", "bash(git:*)", "git --no-pager push origin HEAD:c"),
        ("bash(git push:*)", "bash(git:*)", "git --git-dir=.git push origin HEAD:d"),
        ("bash(git push:*)", "bash(git:*)", "git -P push origin HEAD:e"),
        ("bash(git push:*)", "bash(git:*)", "git --literal-pathspecs push origin HEAD:f"),
        ("bash(git push:*)", "bash", "git -C . push"),
        ("bash(git push:*)", "bash", "git -c alias.x=push x"),
        ("bash(git push:*)", "bash", "git $x origin"),
        ("bash(git push:*)", "bash", "/usr/bin/git -C . push"),
        ("bash(git push:*)", "bash", "sudo git -C . push"),
        ("bash(git push:*)", "bash", "sh -c 'cd a;git push'"),
        ("bash(git push:*)", "bash", "prlimit git push"),
        ("bash(git push:*)", "bash", "{git,push}"),
        ("bash(git push:*)", "bash", "echo 'git push' | sh"),
        ("bash(git push:*)", "bash", "echo push | xargs git"),
        ("bash(git push:*)", "bash", "sh <<< 'git push'"),
        ("bash(git push:*)", "bash", "sh <<'E'\ngit push\nE"),
        ("bash(git push:*)", "bash", "X=1 git push"),
        ("bash(git push:*)", "bash", "g=git; $g push"),
        ("bash(git push --force:*)", "bash", "git push origin --force"),
        ("bash(git push --force:*)", "bash", "git push origin -f"),
        ("bash(git push -f:*)", "bash", "git push --force-with-lease"),
        ("bash(rm -rf:*)", "bash", "rm -v -fr x"),
        ("bash(rm -rf:*)", "bash", "rm --recursive --force x"),
        ("bash(kubectl delete:*)", "bash", "kubectl -n x delete pod y"),
        ("bash(docker rm:*)", "bash", "docker --context x rm y"),
        ("bash(npm publish:*)", "bash", "npm --prefix . publish"),
        ("bash(cargo publish:*)", "bash", "cargo +nightly publish"),
        ("bash(python:*)", "bash", "python3.11 a"),
        ("bash(*)", "bash", "ls"),
    ] {
        assert_eq!(ruling(&[rule], &[], &[allow], line, &root), "deny", "{rule} {line}");
        assert_eq!(ruling(&[], &[rule], &[allow], line, &root), "ask", "{rule} {line}");
    }
    // Under another name it is not the same word; but no rule allows that.
    assert_eq!(ruling(&["bash(git push:*)"], &[], &["bash(git:*)"], "git send-pack a b:c", &root), "silent");
    for line in
        ["git status", "git log -3 src/*.rs", "echo git push", "cargo test", "ls push", "git add src/*"]
    {
        assert_eq!(
            ruling(&["bash(git push:*)", "bash(rm -rf:*)"], &[], &["bash"], line, &root),
            "allow",
            "{line}"
        );
    }
}

// spec: AP-11
#[test]
fn ruling_does_not_allow_a_redirection_next_to_link_or_move_commands() {
    let (_dir, root) = root();
    let allow = &[
        "bash(ln:*)",
        "bash(mkdir:*)",
        "bash(mv:*)",
        "bash(echo:*)",
        "bash(cat:*)",
        "bash(make:*)",
        "write_file(src/**)",
    ];
    for (line, expected) in [
        ("mkdir -p src; ln -s ../secrets src/l; echo PWN > src/l/x", "silent"),
        ("ln -s ../.git/config src/cfg; echo '[a]' >> src/cfg", "silent"),
        ("mv src src2; ln -s . src; echo PWN > src/rootfile", "silent"),
        ("ln -s secrets s2; echo x > src/new", "silent"),
        ("make; echo x > src/new", "silent"),
        ("mkdir src > /dev/null 2>&1", "allow"),
        ("cat a > src/new", "allow"),
        ("cat a b | cat > src/new && echo done", "allow"),
    ] {
        assert_eq!(ruling(&[], &[], allow, line, &root), expected, "{line}");
    }
}

// spec: AP-11
#[test]
fn ruling_of_a_command_with_a_denied_path_among_its_words_denies() {
    let (_dir, root) = root();
    fs::create_dir_all(root.join("secrets")).unwrap();
    fs::create_dir_all(root.join("src")).unwrap();
    std::os::unix::fs::symlink("secrets", root.join("link")).unwrap();
    let (read, write) = ("read_file(secrets/**)", "write_file(secrets/**)");
    let absolute = format!("cat {}/secrets/key", root.display());
    for (rule, line, expected) in [
        (read, "cat secrets/key", "deny"),
        ("read_file(.env)", "cat .env", "deny"),
        (read, "cat ./s*/key", "deny"),
        (read, "grep -r SECRET .", "deny"),
        (write, "cp x secrets/", "deny"),
        (write, "echo a | tee secrets/x", "deny"),
        (read, &absolute, "deny"),
        (read, "cat link/key", "deny"),
        (read, "cat src/../secrets/key", "deny"),
        (read, "cat s?crets/key", "deny"),
        (read, "cat {secrets,a}/key", "deny"),
        (read, "cat \"$x\"", "deny"),
        (read, "cat 'sec'rets/key", "deny"),
        (read, "cat < secrets/key", "deny"),
        (read, "cat < s*/key", "deny"),
        (read, "cd secrets && cat key", "deny"),
        (read, "cd src && cat ../secrets/key", "deny"),
        (read, "cd $x && cat key", "deny"),
        (read, "grep -r SECRET", "deny"),
        (read, "rg SECRET", "deny"),
        (read, "diff . other", "deny"),
        (read, "awk 'BEGIN{ARGV[1]=\"secrets/key\";ARGC=2}{print}'", "deny"),
        (read, "find . -exec cat {} +", "deny"),
        (read, "grep -rf secrets/key src", "deny"),
        (read, "git show HEAD:secrets/key", "deny"),
        (read, "sort --files0-from=secrets/key", "deny"),
        (read, "tar c .", "deny"),
        (read, "cp -r . ../x", "deny"),
        (read, "python -c \"open('secrets/key')\"", "deny"),
        (read, "x=1; cat secrets/key", "deny"),
        (read, "x=1; cat 'sec'rets/key", "deny"),
        (read, "x=1; cat s*/key", "deny"),
        (read, "sh -c 'cat secrets/key'", "deny"),
        (read, "echo secrets/key | xargs cat", "deny"),
        (read, "sh <<< 'cat secrets/key'", "deny"),
        (write, "x=1; echo a > secrets/x", "deny"),
        ("write_file(x)", "x=1; echo a > x", "deny"),
        ("write_file(.env)", "cp src/.env .", "deny"),
        ("write_file(secrets)", "mv a secrets", "deny"),
        ("read_file(**/*.pem)", "cat src/a.pem", "deny"),
        ("read_file(**/*.pem)", "cat src/*", "deny"),
        // What cannot touch it goes on.
        (read, "cat src/key", "allow"),
        (read, "cat src/*", "allow"),
        (read, "ls -la", "allow"),
        (read, "find . -name '*.rs'", "allow"),
        (read, "grep -rn SECRET src", "allow"),
        (read, "rg SECRET src", "allow"),
        (read, "echo secrets/key", "allow"),
        (read, "cargo test", "allow"),
        (read, "git commit -m 'see secrets/key'", "allow"),
        (read, "cd src && cat a", "allow"),
        (read, "x=1; cat src/key", "allow"),
        (write, "cat secrets/key", "allow"),
        (write, "cp a src/", "allow"),
        ("write_file(src/**)", "grep -rn a src", "allow"),
        ("read_file(.env)", "cat *.md", "allow"),
    ] {
        assert_eq!(ruling(&[rule], &[], &["bash"], line, &root), expected, "{rule} {line}");
        let asked = if expected == "deny" { "ask" } else { "allow" };
        assert_eq!(ruling(&[], &[rule], &["bash"], line, &root), asked, "{rule} {line}");
    }
}

// spec: AP-11
#[test]
fn ruling_of_an_address_holds_scheme_host_and_path_each_for_itself() {
    let ruling = |deny: &[&str], allow: &[&str], url: &str| {
        let rules = Permissions::parse(deny, &[], allow).unwrap();
        rules.ruling("web_fetch", &Subject::Urls(vec![url.to_owned()]), &[])
    };
    for (of, url, expected) in [
        ("https://*.docs.rs/*", "https://a.docs.rs/b", true),
        ("https://*.docs.rs/*", "https://evil.example/?x=.docs.rs/", false),
        ("https://*.docs.rs/*", "https://evil.example/.docs.rs/", false),
        ("https://*.docs.rs/*", "https://evil.example#.docs.rs/", false),
        ("https://*.docs.rs/*", "https://evil.example:80.docs.rs/", false),
        ("https://*.docs.rs/*", "https://evil@a.docs.rs/", false),
        ("https://docs.rs/*", "https://docs.rs/a?b#c", true),
        ("https://docs.rs/*", "https://DOCS.rs/", true),
        ("https://docs.rs/*", "https://docs.rs:8443/", false),
        ("https://docs.rs:*/*", "https://docs.rs:8443/", true),
        ("https://docs.rs:8443/*", "https://docs.rs/", false),
        ("http://[::1]:80/*", "http://[::1]:80/a", true),
        ("https://docs.rs/a/*", "https://docs.rs/b/a/", false),
        ("https://docs.rs", "https://docs.rs/", true),
        ("https://docs.rs", "https://docs.rs/a", false),
        ("https://docs.rs*", "https://docs.rs.evil.example/a", false),
        ("*://docs.rs/*", "http://docs.rs/a", true),
        ("*docs.rs*", "https://docs.rs/", false),
        ("*", "https://docs.rs/", true),
    ] {
        let rule = format!("web_fetch({of})");
        assert_eq!(ruling(&[], &[&rule], url) == Ruling::Allow, expected, "{rule} {url}");
    }
    let denied = ruling(&["web_fetch(*evil*)"], &["web_fetch"], "https://a.example/?evil");
    assert_eq!(denied, Ruling::Deny("web_fetch(*evil*)".into()));
}
