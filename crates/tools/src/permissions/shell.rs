//! A command line taken apart: the commands that it runs, and the files that it redirects from and to.
//!
//! What cannot be told before it runs is not guessed: a line with anything that could run more than can be seen here
//! (arithmetic, functions, assignments, here-documents that expand) is not taken apart at all, and then no rule allows
//! it but one to the letter.

use brush_parser::{
    Parser, ParserOptions,
    ast::{
        AndOr, AndOrList, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand,
        CompoundList, IoFileRedirectKind as Kind, IoFileRedirectTarget as Target, IoRedirect, Pipeline,
        SimpleCommand, Word,
    },
    word::{self, Parameter, ParameterExpr, WordPiece, WordPieceWithSource},
};

use crate::execute::contain;

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

/// A line that is longer, or nested deeper, is not taken apart.
const LONGEST: usize = 4_096;
const DEEPEST: usize = 64;

/// Takes a command line apart; none if it cannot be told what it may run.
pub(crate) fn analyse(line: &str) -> Option<Line> {
    let mut found = Line::default();
    // The parser is somebody else's: whatever it does with strange text, it does not end the process.
    let known = contain(|| list_of(line, &mut found, 0)).ok().flatten();
    known.map(|()| found)
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

fn options() -> ParserOptions {
    ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() }
}

fn list_of(line: &str, found: &mut Line, depth: usize) -> Option<()> {
    let nested = line.matches(['(', '{', '`', '[']).count();
    let words =
        line.split_whitespace().filter(|word| ["if", "while", "until", "for", "case", "!"].contains(word));
    // Comments, joined lines and text that is not printed are read differently by different readers.
    let strange = |c: char| {
        c == '#' || (c.is_control() && c != '\n' && c != '\t') || (!c.is_ascii() && c.is_whitespace())
    };
    let is_too_much = line.len() > LONGEST || nested > DEEPEST || words.count() > DEEPEST || depth > 8;
    if is_too_much || line.contains(strange) || line.contains("\\\n") {
        return None;
    }
    let program = Parser::new(line.as_bytes(), &options()).parse_program().ok()?;
    program.complete_commands.iter().try_for_each(|list| commands(list, found, depth))
}

fn commands(list: &CompoundList, found: &mut Line, depth: usize) -> Option<()> {
    list.0.iter().try_for_each(|item| and_or(&item.0, found, depth))
}

fn and_or(list: &AndOrList, found: &mut Line, depth: usize) -> Option<()> {
    pipeline(&list.first, found, depth)?;
    list.additional.iter().try_for_each(|next| match next {
        AndOr::And(next) | AndOr::Or(next) => pipeline(next, found, depth),
    })
}

fn pipeline(pipeline: &Pipeline, found: &mut Line, depth: usize) -> Option<()> {
    pipeline.seq.iter().try_for_each(|one| match one {
        Command::Simple(simple) => simple_command(simple, found, depth),
        Command::Compound(compound, redirects) => {
            for redirect in redirects.iter().flat_map(|list| &list.0) {
                redirection(redirect, found, depth)?;
            }
            compound_command(compound, found, depth)
        }
        // What a function does depends on who calls it; tests evaluate arithmetic in what they compare.
        _ => None,
    })
}

fn compound_command(compound: &CompoundCommand, found: &mut Line, depth: usize) -> Option<()> {
    match compound {
        CompoundCommand::BraceGroup(group) => commands(&group.list, found, depth),
        CompoundCommand::Subshell(shell) => commands(&shell.list, found, depth),
        CompoundCommand::ForClause(each) => {
            // Any other name may mean something to the commands of the loop.
            let plain = each.variable_name.chars().all(|c| c.is_ascii_lowercase());
            for value in each.values.iter().flatten() {
                text_of(value, found, depth)?;
            }
            plain.then(|| commands(&each.body.list, found, depth)).flatten()
        }
        CompoundCommand::IfClause(when) => {
            commands(&when.condition, found, depth)?;
            commands(&when.then, found, depth)?;
            when.elses.iter().flatten().try_for_each(|other| {
                other.condition.iter().try_for_each(|list| commands(list, found, depth))?;
                commands(&other.body, found, depth)
            })
        }
        CompoundCommand::WhileClause(again) | CompoundCommand::UntilClause(again) => {
            commands(&again.0, found, depth)?;
            commands(&again.1.list, found, depth)
        }
        CompoundCommand::CaseClause(case) => {
            text_of(&case.value, found, depth)?;
            case.cases.iter().try_for_each(|item| {
                for pattern in &item.patterns {
                    text_of(pattern, found, depth)?;
                }
                item.cmd.iter().try_for_each(|list| commands(list, found, depth))
            })
        }
        _ => None,
    }
}

fn simple_command(command: &SimpleCommand, found: &mut Line, depth: usize) -> Option<()> {
    let mut part = Part { words: Vec::new() };
    let before = command.prefix.iter().flat_map(|prefix| &prefix.0);
    for item in before {
        match item {
            Item::IoRedirect(redirect) => redirection(redirect, found, depth)?,
            // A variable may change what a command does.
            _ => return None,
        }
    }
    if let Some(first) = &command.word_or_name {
        part.words.push(text_of(first, found, depth)?);
    }
    for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
        match item {
            Item::IoRedirect(redirect) => redirection(redirect, found, depth)?,
            Item::Word(word) => part.words.push(text_of(word, found, depth)?),
            Item::AssignmentWord(assignment, word) => {
                if matches!(assignment.value, AssignmentValue::Array(_)) {
                    return None;
                }
                part.words.push(text_of(word, found, depth)?);
            }
            Item::ProcessSubstitution(_, shell) => {
                commands(&shell.list, found, depth)?;
                part.words.push(None);
            }
        }
    }
    if !part.words.is_empty() {
        let first = part.words[0].as_deref();
        found.moves |= first.is_none_or(|word| ["cd", "pushd", "popd"].contains(&word));
        found.parts.push(part);
    }
    Some(())
}

fn redirection(redirect: &IoRedirect, found: &mut Line, depth: usize) -> Option<()> {
    match redirect {
        IoRedirect::File(_, kind, target) => {
            let path = match target {
                Target::Fd(_) => return Some(()),
                Target::Filename(word) => text_of(word, found, depth)?,
                Target::ProcessSubstitution(_, shell) => return commands(&shell.list, found, depth),
                Target::Duplicate(word) => match text_of(word, found, depth)? {
                    Some(fd) if fd.trim_end_matches('-').chars().all(|c| c.is_ascii_digit()) => {
                        return Some(());
                    }
                    path => path,
                },
            };
            match kind {
                Kind::Read | Kind::DuplicateInput => found.reads.push(path),
                _ => found.writes.push(path),
            }
        }
        IoRedirect::OutputAndError(word, _) => {
            let path = text_of(word, found, depth)?;
            found.writes.push(path);
        }
        IoRedirect::HereString(_, word) => {
            text_of(word, found, depth)?;
        }
        IoRedirect::HereDocument(_, document) => {
            if document.requires_expansion && document.doc.value.contains(['$', '`', '\\']) {
                return None;
            }
        }
    }
    Some(())
}

/// What a word says, or none within if that is known only when it runs; none at all if more may run than is seen.
fn text_of(word: &Word, found: &mut Line, depth: usize) -> Option<Option<String>> {
    let pieces = word::parse(&word.value, &options()).ok()?;
    let mut text = String::new();
    let known = pieces_of(&pieces, false, &mut text, found, depth)?;
    Some(known.then_some(text))
}

fn pieces_of(
    pieces: &[WordPieceWithSource],
    quoted: bool,
    text: &mut String,
    found: &mut Line,
    depth: usize,
) -> Option<bool> {
    let mut known = true;
    for piece in pieces {
        match &piece.piece {
            WordPiece::Text(plain) => {
                known &= quoted || !plain.contains(['*', '?', '[', ']', '{', '}', '~', '(', ')']);
                text.push_str(plain);
            }
            WordPiece::SingleQuotedText(plain) => text.push_str(plain),
            WordPiece::DoubleQuotedSequence(pieces) => known &= pieces_of(pieces, true, text, found, depth)?,
            WordPiece::EscapeSequence(escaped) => {
                let plain = escaped.strip_prefix('\\').unwrap_or(escaped);
                if quoted && !["$", "`", "\"", "\\"].contains(&plain) {
                    text.push('\\');
                }
                text.push_str(plain);
            }
            WordPiece::TildeExpansion(_) => known = false,
            WordPiece::ParameterExpansion(ParameterExpr::Parameter {
                parameter: Parameter::Named(_) | Parameter::Positional(_) | Parameter::Special(_),
                indirect: false,
            }) => known = false,
            WordPiece::CommandSubstitution(line) => {
                list_of(line, found, depth + 1)?;
                known = false;
            }
            // Arithmetic and the longer forms of parameters may hold commands where nobody looks for them.
            _ => return None,
        }
    }
    Some(known)
}
