//! Checks of the book that need no program: every page is in the table of contents, every Rust block is compiled, every
//! shell block is run or says why not, and every block has a known language.

use crate::markdown::{self, Block, Fence};
use crate::repository::TextFile;

pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";
/// The list of pages whose Rust blocks are compiled.
pub(crate) const COMPILED: &str = "crates/archon/src/book.rs";
/// The comment before a Rust block that is not compiled; the reason follows.
const NOT_COMPILED: &str = "not compiled: ";
/// The comment before a block of commands that is not run; one of `NOT_RUN_REASONS` follows.
const NOT_RUN: &str = "not run: ";
const NOT_RUN_REASONS: &[&str] = &[
    "needs a clone",
    "needs a crash",
    "needs a key",
    "needs a model",
    "needs a project",
    "needs a server",
    "needs a terminal",
    "needs another program",
    "needs the network",
    "runs until Ctrl-C",
];

/// Languages of blocks: `console` and `sh` are run, and the output of `console` is compared; `text` is for all other
/// text.
const LANGUAGES: &[&str] = &[
    "console",
    "diff",
    "dockerfile",
    "ini",
    "json",
    "jsonl",
    "markdown",
    "python",
    "rust",
    "sh",
    "sql",
    "svg",
    "text",
    "toml",
    "typescript",
    "xml",
    "yaml",
];

/// The numbers of blocks, by their fate.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) pages: usize,
    pub(crate) rust: usize,
    pub(crate) rust_not_compiled: usize,
    pub(crate) console: usize,
    pub(crate) sh: usize,
    pub(crate) sh_not_run: usize,
}

/// Returns the pages of the book: all of docs, and those at the top of the repository that the contents list.
pub(crate) fn pages(files: &[TextFile]) -> Vec<&TextFile> {
    let listed = listed(files);
    let is_page = |file: &&TextFile| {
        file.path.ends_with(".md")
            && file.path != SUMMARY
            && (file.path.starts_with("docs/") || listed.contains(&file.path))
    };
    files.iter().filter(is_page).collect()
}

/// Returns the pages of the book, and the README, which is no page but has the same blocks.
pub(crate) fn pages_and_readme(files: &[TextFile]) -> Vec<&TextFile> {
    let mut pages = pages(files);
    let readme = files.iter().find(|file| file.path == "README.md");
    pages.extend(readme.filter(|readme| pages.iter().all(|page| page.path != readme.path)));
    pages
}

/// Returns the problems of all pages, and counts their blocks.
pub(crate) fn check(files: &[TextFile]) -> (Vec<String>, Counts) {
    let (mut problems, mut counts) = (Vec::new(), Counts::default());
    let listed = listed(files);
    let compiled =
        files.iter().find(|file| file.path == COMPILED).map(|file| file.text.as_str()).unwrap_or_default();
    let pages = pages(files);
    counts.pages = pages.len();
    for page in pages {
        if !listed.contains(&page.path) {
            problems.push(format!("{}: {SUMMARY} has no line for the page", page.path));
        }
    }
    for page in pages_and_readme(files) {
        let is_compiled = compiled.contains(&format!("\"{}\"", page.path));
        let mut has_rust = false;
        for fence in markdown::fences(&page.text) {
            count(&fence, &mut counts);
            has_rust |= is_compiled_rust(&fence);
            let problem = problem(&fence).into_iter();
            problems.extend(problem.map(|problem| format!("{}:{}: {problem}", page.path, fence.line)));
        }
        let stale = stale_reasons(&page.text).into_iter();
        problems.extend(stale.map(|(line, problem)| format!("{}:{line}: {problem}", page.path)));
        if has_rust && !is_compiled {
            problems
                .push(format!("{}: its Rust blocks are not compiled: add the page to {COMPILED}", page.path));
        }
        if is_compiled && !has_rust {
            problems.push(format!("{COMPILED}: {} has no Rust block to compile; remove its line", page.path));
        }
    }
    (problems, counts)
}

/// Returns the files that the table of contents links to, by their paths from the top of the repository.
fn listed(files: &[TextFile]) -> Vec<String> {
    let summary =
        files.iter().find(|file| file.path == SUMMARY).map(|file| file.text.as_str()).unwrap_or_default();
    let links = markdown::links(summary).into_iter();
    links.map(|link| crate::doc_links::target(SUMMARY, link.path).display().to_string()).collect()
}

fn is_compiled_rust(fence: &Fence) -> bool {
    fence.language() == "rust" && !fence.has("ignore")
}

/// Returns whether the commands of the block are run.
pub(crate) fn is_run(fence: &Fence) -> bool {
    match fence.language() {
        "console" => true,
        "sh" => !has_reason_not_to_run(fence),
        _ => false,
    }
}

/// Returns whether the block shows a session of a reader's own project, which `cargo xtask tutorials` runs.
pub(crate) fn is_session(fence: &Fence) -> bool {
    fence.language() == "text" && fence.lines.first().is_some_and(|line| line.starts_with("$ "))
}

/// Returns whether the comment above the block says why its commands are not run.
pub(crate) fn has_reason_not_to_run(fence: &Fence) -> bool {
    fence.comment.as_deref().is_some_and(|comment| comment.starts_with(NOT_RUN))
}

fn may_be_left_out(fence: &Fence) -> bool {
    fence.language() == "sh" || is_session(fence)
}

/// Returns the lines of reasons that are above no block which is left out, and what is wrong with them.
fn stale_reasons(text: &str) -> Vec<(usize, String)> {
    let mut stale = Vec::new();
    let mut blocks = markdown::blocks(text).into_iter().peekable();
    while let Some(block) = blocks.next() {
        let Block::Comment(line, comment) = block else { continue };
        let next = match blocks.peek() {
            Some(Block::Fence(fence)) if fence.comment.is_some() => Some(fence),
            _ => None,
        };
        if comment.starts_with(NOT_RUN) && !next.is_some_and(may_be_left_out) {
            stale.push((
                line,
                format!(
                    "`{comment}` is not directly above a block of the language `sh`, or `text` with commands"
                ),
            ));
        }
        let is_left_out = |fence: &Fence| fence.language() == "rust" && fence.has("ignore");
        if comment.starts_with(NOT_COMPILED) && !next.is_some_and(is_left_out) {
            stale.push((line, format!("`{comment}` is not directly above a Rust block with `ignore`")));
        }
    }
    stale
}

fn count(fence: &Fence, counts: &mut Counts) {
    match fence.language() {
        "rust" if is_compiled_rust(fence) => counts.rust += 1,
        "rust" => counts.rust_not_compiled += 1,
        "console" => counts.console += 1,
        "sh" if is_run(fence) => counts.sh += 1,
        "sh" => counts.sh_not_run += 1,
        _ => {}
    }
}

fn problem(fence: &Fence) -> Option<String> {
    let language = fence.language();
    if !fence.is_closed {
        return Some("the block has no end".to_owned());
    }
    if !LANGUAGES.contains(&language) {
        return Some(format!("a block of the language `{language}`; known are {}", LANGUAGES.join(", ")));
    }
    if language == "console" && !fence.lines.first().is_some_and(|line| line.starts_with("$ ")) {
        return Some("a block of commands begins with `$ `; output alone is `text`".to_owned());
    }
    let is_sh_session = language == "sh" && fence.lines.iter().any(|line| line.starts_with("$ "));
    if is_sh_session {
        return Some("commands after `$ ` with their output are `console`, which is compared".to_owned());
    }
    let comment = fence.comment.as_deref().unwrap_or_default();
    let reason = comment.strip_prefix(NOT_RUN);
    if let Some(reason) = reason.filter(|reason| may_be_left_out(fence) && !NOT_RUN_REASONS.contains(reason))
    {
        return Some(format!(
            "`{reason}` is no reason to leave commands out; use one of: {}",
            NOT_RUN_REASONS.join(", ")
        ));
    }
    let has_reason = comment.strip_prefix(NOT_COMPILED).is_some_and(|reason| reason.len() > 5);
    if language == "rust" && fence.has("ignore") && !has_reason {
        return Some(format!(
            "a Rust block with `ignore` needs a line `<!-- {NOT_COMPILED}REASON -->` above it"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    fn check_page(text: &str) -> (Vec<String>, Counts) {
        check(&[
            TextFile::new(SUMMARY, "- [A](a.md)\n- [Security](../SECURITY.md)\n"),
            TextFile::new(COMPILED, "A: \"docs/a.md\","),
            TextFile::new("docs/a.md", &format!("```rust\n```\n{text}")),
            TextFile::new("SECURITY.md", "# Security\n"),
            TextFile::new("CHANGELOG.md", "# Changes\n"),
        ])
    }

    #[test]
    fn check_of_the_repository_finds_no_problem() {
        let (problems, counts) = check(&repository::text_files().unwrap());
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        assert!(counts.rust > 0 && counts.pages > 40, "{counts:?}");
    }

    /// Without one of them, no page would be compiled, and no test would say so.
    #[test]
    fn features_without_which_no_page_is_compiled_are_those_of_the_command() {
        let read = |path: &str| std::fs::read_to_string(repository::root().join(path)).unwrap();
        let (facade, command) = (read("crates/archon/src/lib.rs"), read("crates/cli/Cargo.toml"));
        let gate = facade.split_once("doctest,\n").unwrap().1.split_once("mod book;").unwrap().0;
        let features: Vec<&str> =
            gate.split("feature = \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(features.len() > 5, "{features:?}");
        for feature in features {
            let of_command = [format!("\"{feature}\""), format!("\"archon/{feature}\"")];
            assert!(of_command.iter().any(|name| command.contains(name)), "{feature}");
        }
    }

    #[test]
    fn check_counts_the_blocks_by_their_fate() {
        let (problems, counts) = check_page(
            "```rust,no_run\n```\n<!-- not compiled: needs a server -->\n```rust,ignore\n```\n```console\n$ ls\n```\n```sh\nls\n```\n<!-- not run: needs a server -->\n```sh\ncurl\n```\n<!-- not run: needs a server -->\n```text\n$ curl\n```\n```text\n```\n",
        );
        assert_eq!(problems, [""; 0]);
        let counts_of_page =
            Counts { pages: 2, rust: 2, rust_not_compiled: 1, console: 1, sh: 1, sh_not_run: 1 };
        assert_eq!(counts, counts_of_page);
    }

    #[test]
    fn check_page_that_the_contents_lack_is_a_problem() {
        let files = [TextFile::new(SUMMARY, "- [A](a.md)\n"), TextFile::new("docs/book/b.md", "# B\n")];
        assert_eq!(check(&files).0, ["docs/book/b.md: docs/SUMMARY.md has no line for the page"]);
    }

    #[test]
    fn check_rust_block_of_a_page_that_is_not_compiled_is_a_problem() {
        let summary = TextFile::new(SUMMARY, "- [A](a.md)\n");
        let page = TextFile::new("docs/a.md", "```rust,no_run\n```\n");
        let problem =
            "docs/a.md: its Rust blocks are not compiled: add the page to crates/archon/src/book.rs";
        assert_eq!(check(&[summary, page]).0, [problem]);
    }

    #[test]
    fn check_blocks_without_a_known_fate_are_problems() {
        for (text, expected) in [
            ("```rust,ignore\n```\n", "needs a line `<!-- not compiled: REASON -->` above it"),
            ("```\nx\n```\n", "a block of the language ``; known are console"),
            ("```bash\nls\n```\n", "a block of the language `bash`"),
            ("```console\nls\n```\n", "begins with `$ `"),
            ("```sh\n$ ls\n```\n", "are `console`, which is compared"),
            ("```text\n", "the block has no end"),
        ] {
            let (problems, _) = check_page(text);
            assert!(problems.len() == 1 && problems[0].starts_with("docs/a.md:3: "), "{problems:?}");
            assert!(problems[0].contains(expected), "{problems:?}");
        }
    }

    #[test]
    fn check_reason_that_is_unknown_or_above_no_block_left_out_is_a_problem() {
        for (text, expected) in [
            ("<!-- not run: is slow -->\n```sh\nls\n```\n", "docs/a.md:4: `is slow` is no reason to leave"),
            (
                "<!-- not run: is slow -->\n```text\n$ ls\n```\n",
                "docs/a.md:4: `is slow` is no reason to leave",
            ),
            ("<!-- not run: needs a server -->\n```text\nls\n```\n", "is not directly above a block of"),
            ("<!-- not run: needs a server -->\n\n```sh\nls\n```\n", "is not directly above a block of"),
            ("<!-- not run: needs a server -->\n```console\n$ ls\n```\n", "is not directly above a block of"),
            ("<!-- not run: needs a server -->\n", "docs/a.md:3: `not run: needs a server` is not directly"),
            ("<!-- not compiled: no crate -->\n```rust\n```\n", "is not directly above a Rust block with"),
        ] {
            let (problems, _) = check_page(text);
            assert!(problems.len() == 1 && problems[0].contains(expected), "{text}: {problems:?}");
        }
    }

    #[test]
    fn pages_and_readme_has_the_readme_once() {
        let readme = || TextFile::new("README.md", "# A\n");
        for contents in ["", "- [A](../README.md)\n"] {
            let files = [TextFile::new(SUMMARY, contents), readme()];
            let paths: Vec<&str> = pages_and_readme(&files).iter().map(|page| page.path.as_str()).collect();
            assert_eq!(paths, ["README.md"]);
        }
    }
}
