//! A command line taken apart: the commands that it runs, and the files that it redirects from and to.
//!
//! What cannot be told before it runs is not guessed: a line with anything that could run more than can be seen here
//! (arithmetic, functions, assignments, here-documents that expand) is not taken apart at all, and then no rule allows
//! it but one to the letter.

mod reader;
#[cfg(test)]
mod tests;
mod word;

/// What a command line does, as far as rules speak of it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Every command that may run, those of substitutions too.
    pub(crate) parts: Vec<Part>,
    /// Files that are read by redirection; none for one that is known only when it runs.
    pub(crate) reads: Vec<Option<String>>,
    /// Files that are written by redirection.
    pub(crate) writes: Vec<Option<String>>,
    /// A command may change the folder that relative paths are meant from.
    pub(crate) moves: bool,
}

/// One command: its words, none for one that is known only when it runs.
#[derive(Debug)]
pub(crate) struct Part {
    words: Vec<Option<String>>,
}

/// A line that is longer is not taken apart.
const LONGEST: usize = 4_096;

/// Takes a command line apart; none if it cannot be told what it may run.
pub(crate) fn analyse(line: &str) -> Option<Line> {
    // Comments, joined lines and text that is not printed are read differently by different readers.
    let is_strange = |c: char| {
        c == '#' || (c.is_control() && c != '\n' && c != '\t') || (!c.is_ascii() && c.is_whitespace())
    };
    if line.len() > LONGEST || line.contains(is_strange) || line.contains("\\\n") {
        return None;
    }
    reader::read(line)
}

impl Part {
    /// Whether the command begins with these words, and its first words say all of what it runs.
    pub(crate) fn begins_with(&self, prefix: &[&str]) -> bool {
        !prefix.is_empty()
            && self.words.len() >= prefix.len()
            && self.words.iter().zip(prefix).all(|(word, prefix)| word.as_deref() == Some(prefix))
            && !self.runs_others()
    }

    /// Whether these words stand in the command: at its beginning, whatever folder its program is in, or behind others
    /// that may run them.
    pub(crate) fn holds(&self, prefix: &[&str]) -> bool {
        if prefix.is_empty() {
            return false;
        }
        let is = |word: &Option<String>, wanted: &str| {
            word.as_deref().is_none_or(|word| name(word) == name(wanted))
        };
        let at = |start: usize| {
            let words = &self.words[start..];
            words.len() >= prefix.len() && words.iter().zip(prefix).all(|(word, wanted)| is(word, wanted))
        };
        match self.runs_others() {
            true => {
                let inside = |word: &Option<String>| {
                    word.as_deref()
                        .is_none_or(|word| word.split_whitespace().any(|word| name(word) == name(prefix[0])))
                };
                (0..self.words.len()).any(at) || self.words.iter().any(inside)
            }
            false => at(0),
        }
    }

    /// The words of a rule that a person may want for commands like this one.
    pub(crate) fn suggestion(&self) -> Option<String> {
        if self.runs_others() {
            return None;
        }
        let plain = |word: &&String| {
            word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+/".contains(c)) && !word.starts_with('-')
        };
        let first = self.words.first()?.as_ref().filter(plain)?;
        let second = self.words.get(1).and_then(|word| word.as_ref()).filter(plain);
        let second = second.filter(|word| SPEAKS_IN_TWO.contains(&name(first)) && !word.contains('/'));
        Some(match second {
            Some(second) => format!("{first} {second}"),
            None => first.clone(),
        })
    }

    /// Whether more may run than the first words say.
    fn runs_others(&self) -> bool {
        let Some(Some(first)) = self.words.first() else { return true };
        // `python3.11` is `python`.
        let program = name(first);
        let unversioned = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_listed = |programs: &[&str]| programs.contains(&program) || programs.contains(&unversioned);
        let rest = &self.words[1..];
        let known = rest.iter().all(Option::is_some);
        let has = |options: &[&str]| {
            let is = |word: &str, option: &&str| word == *option || word.starts_with(&format!("{option}="));
            rest.iter().flatten().any(|word| options.iter().any(|option| is(word, option)))
        };
        let begins = |options: &[&str]| {
            rest.iter().flatten().any(|word| options.iter().any(|option| may_be(word, option)))
        };
        if is_listed(RUNS_OTHERS) || BUILTINS.contains(&program) {
            return true;
        }
        let risky = OPTIONS_THAT_RUN.iter().find(|(programs, _)| is_listed(programs));
        risky.is_some_and(|(_, options)| !known || begins(options)) || program == "git" && has(GIT_PARTS)
    }
}

/// Whether a word is an option, or begins like it. Programs take a long one by its first letters, too: `--to-comm=sh`.
fn may_be(word: &str, option: &str) -> bool {
    let said = word.split('=').next().unwrap_or(word);
    word.starts_with(option) || option.starts_with("--") && said.len() > 2 && option.starts_with(said)
}

/// Programs that run others, delete, or write where no path of a rule says, where a word begins so; words that are not known may begin in any way.
const OPTIONS_THAT_RUN: &[(&[&str], &[&str])] = &[
    (&["test", "[", "printf"], &["-v", "-R"]),
    (&["find", "fd", "fdfind"], &["-exec", "-ok", "-delete", "-fprint", "-fls", "-x", "-X", "--exec"]),
    (
        &["git"],
        &[
            "-c",
            "--config",
            "--output",
            "--exec",
            "-x",
            "-O",
            "--open-files-in-pager",
            "--upload-pack",
            "--receive-pack",
            "--extcmd",
            "--ext-diff",
            "--textconv",
            "-u",
            "--tool",
            "ext::",
        ],
    ),
    (
        &["tar", "gtar", "bsdtar"],
        &[
            "--to-command",
            "--checkpoint",
            "-I",
            "--use-compress",
            "-F",
            "--rsh",
            "--rmt-command",
            "--info-script",
            "--new-volume-script",
        ],
    ),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["sort"], &["--compress-program", "-o", "--output"]),
    (&["split", "csplit"], &["--filter"]),
    (&["install"], &["--strip-program"]),
    (&["rg"], &["--pre", "--hostname-bin"]),
];

/// Parts of git that run what its configuration or a file of the repository says.
const GIT_PARTS: &[&str] =
    &["bisect", "submodule", "filter-branch", "difftool", "mergetool", "config", "alias"];

/// A program without the folder that it is in.
fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Programs whose arguments are commands, or say what runs.
const RUNS_OTHERS: &[&str] = &[
    "ash",
    "at",
    "awk",
    "bash",
    "batch",
    "bun",
    "busybox",
    "catchsegv",
    "chroot",
    "chrt",
    "cmd",
    "cpulimit",
    "csh",
    "dash",
    "dbus-run-session",
    "dc",
    "deno",
    "doas",
    "ed",
    "emacs",
    "entr",
    "env",
    "ex",
    "expect",
    "fakeroot",
    "faketime",
    "firejail",
    "fish",
    "flatpak",
    "flock",
    "gawk",
    "gdb",
    "gsed",
    "i386",
    "ionice",
    "ksh",
    "ld.so",
    "less",
    "linux32",
    "linux64",
    "lldb",
    "ltrace",
    "lua",
    "luajit",
    "m4",
    "man",
    "mawk",
    "mksh",
    "more",
    "nawk",
    "nc",
    "ncat",
    "nice",
    "nix-shell",
    "node",
    "nodejs",
    "nohup",
    "npx",
    "nsenter",
    "numactl",
    "nvim",
    "parallel",
    "perf",
    "perl",
    "php",
    "pkexec",
    "proot",
    "pwsh",
    "python",
    "python2",
    "python3",
    "rbash",
    "rlwrap",
    "ruby",
    "run-parts",
    "runuser",
    "screen",
    "script",
    "sed",
    "setarch",
    "setpriv",
    "setsid",
    "sh",
    "socat",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tclsh",
    "tcsh",
    "time",
    "timeout",
    "tmux",
    "torsocks",
    "toybox",
    "unbuffer",
    "unshare",
    "uv",
    "uvx",
    "valgrind",
    "vi",
    "view",
    "vim",
    "watch",
    "x86_64",
    "xargs",
    "xvfb-run",
    "yash",
    "zsh",
];

/// Commands of the shell itself that run, name or load others, or change what words mean later in the line.
const BUILTINS: &[&str] = &[
    ".",
    "alias",
    "bg",
    "bind",
    "builtin",
    "caller",
    "command",
    "compgen",
    "complete",
    "compopt",
    "coproc",
    "declare",
    "disown",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "trap",
    "typeset",
    "ulimit",
    "unalias",
    "unset",
    "wait",
    "kill",
];

/// Programs whose second word says what they do.
const SPEAKS_IN_TWO: &[&str] = &[
    "apt",
    "apt-get",
    "brew",
    "bundle",
    "cargo",
    "composer",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "systemctl",
    "terraform",
    "yarn",
];
