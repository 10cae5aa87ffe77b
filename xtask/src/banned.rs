//! Words that no file of the project may contain: paths of a single machine, names of personal tools, hosts
//! that are reached through cargo or a setting. The project speaks of itself alone.

use crate::repository::TextFile;

struct Banned {
    /// In two halves, so that this file passes its own check.
    word: (&'static str, &'static str),
    why: &'static str,
    /// Files (or folders, ending in `/`) that need the word.
    allowed_in: &'static [&'static str],
}

const fn banned(first: &'static str, second: &'static str, why: &'static str) -> Banned {
    Banned { word: (first, second), why, allowed_in: &[] }
}

/// Places whose subject is a format of that program: they read it, or say how it is read.
const READERS: &[&str] = &[
    "docs/book/",
    "docs/permissions.md",
    "docs/reference/",
    "docs/spec.md",
    "CHANGELOG.md",
    "crates/hooks/",
    "crates/skills/",
    "crates/archon/",
    "crates/cli/",
];

/// A word that the readers of a format may use.
const fn format_of(first: &'static str, second: &'static str) -> Banned {
    Banned { word: (first, second), why: TOOL, allowed_in: READERS }
}

const PATH: &str = "is a path of one machine; use a relative path or a temporary folder";
const TOOL: &str = "names a tool that somebody worked with; say what the project does instead";
const HOST: &str = "is a registry's host; packages come through cargo, addresses through settings";
const NAME: &str = "fetches another project of that name; show a path or a git dependency";
const SESSION: &str = "speaks of how the text was made; say what holds now";

/// Compared without regard to case. Vendors' names are fine: providers are named after them.
const BANNED: &[Banned] = &[
    banned("/ro", "ot/", PATH),
    banned("/wo", "rk/", PATH),
    banned("/tmp", "/w/", PATH),
    banned("/home", "/user/", PATH),
    banned("/Us", "ers/", PATH),
    banned("co-auth", "ored-by", TOOL),
    banned("generated ", "with [", TOOL),
    format_of("claude ", "code"),
    banned("claude", ".ai", TOOL),
    format_of("claude", ".md"),
    banned("github ", "copilot", TOOL),
    banned("noreply@", "anthropic", TOOL),
    banned("session ", "limit", SESSION),
    banned("working ", "session", SESSION),
    banned("as an ai ", "language model", SESSION),
    banned("as an ai ", "assistant", SESSION),
    banned("cargo add ", "archon", NAME),
    banned("cargo install ", "archon", NAME),
    banned("crates", ".io", HOST),
    banned("pypi", ".org", HOST),
    banned("pythonhosted", ".org", HOST),
    banned("registry.npm", "js.org", HOST),
    banned("proxy.gol", "ang.org", HOST),
];

/// The source of a package as cargo writes it: in `Cargo.lock`, and in `deny.toml` to allow it.
const CARGO_SOURCE: (&str, &str) = ("github.com/rust-lang/crates", ".io-index");

/// Returns one line for each banned word found.
pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let words: Vec<(String, &Banned)> = BANNED
        .iter()
        .map(|entry| (format!("{}{}", entry.word.0, entry.word.1).to_lowercase(), entry))
        .collect();
    let cargo_source = format!("{}{}", CARGO_SOURCE.0, CARGO_SOURCE.1);
    let mut problems = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase().replace(&cargo_source, "");
            for (word, entry) in words.iter().filter(|(word, _)| line.contains(word.as_str())) {
                if !entry.allowed_in.iter().any(|allowed| covers(allowed, &file.path)) {
                    problems.push(format!("{}:{}: `{word}` {}", file.path, number + 1, entry.why));
                }
            }
        }
    }
    problems
}

fn covers(allowed: &str, path: &str) -> bool {
    path == allowed || (allowed.ends_with('/') && path.starts_with(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_word_is_reported_with_place_and_reason() {
        let text = format!("fine\nsee {}{}main\n", "/wo", "rk/");
        let problems = check(&[TextFile::new("docs/a.md", &text)]);
        assert_eq!(
            problems,
            [format!(
                "docs/a.md:2: `{}{}` is a path of one machine; use a relative path or a temporary folder",
                "/wo", "rk/"
            )]
        );
    }

    #[test]
    fn case_does_not_hide_it_and_vendors_may_be_named() {
        let text = format!("{}{}: x\nAnthropic and claude-sonnet are fine\n", "Co-Auth", "ored-By");
        assert_eq!(check(&[TextFile::new("a.md", &text)]).len(), 1);
    }

    #[test]
    fn banned_words_include_urls_of_other_projects() {
        let text = format!("```sh\ncargo add {}\ncargo add tokio\n```\n", "archon --features local");
        let problems = check(&[TextFile::new("README.md", &text)]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("README.md:2: ") && problems[0].contains("another project"));
    }

    #[test]
    fn check_format_of_another_program_is_reported_outside_its_readers() {
        let text = format!("it reads {}{}\n", "CLAUDE", ".md");
        assert_eq!(check(&[TextFile::new("crates/skills/src/a.rs", &text)]), [""; 0]);
        assert_eq!(check(&[TextFile::new("crates/store/src/a.rs", &text)]).len(), 1);
    }

    #[test]
    fn the_lock_file_may_name_its_registry() {
        let line = format!("source = \"registry+https://{}{}\"\n", CARGO_SOURCE.0, CARGO_SOURCE.1);
        assert_eq!(check(&[TextFile::new("Cargo.lock", &line)]), [""; 0]);
    }

    #[test]
    fn banned_exception_of_a_folder_covers_its_files() {
        assert!(covers("docs/", "docs/a.md") && covers("a.md", "a.md") && !covers("a.md", "docs/a.md"));
    }
}
