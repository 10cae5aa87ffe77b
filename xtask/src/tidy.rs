//! `cargo xtask tidy`: checks the house rules that a program can check, on every file of the repository.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::reach::exported;
use crate::repository::{self, TextFile};
use crate::rust_source::RustSource;
use crate::{
    banned, crate_pages, doc_links, environment, named_files, readme, readme_figures, reference_pages, sizes,
    type_names,
};

/// Macros that must not be left in code.
const LEFTOVERS: &[&str] = &["todo!", "unimplemented!", "dbg!"];

/// Names that say nothing of the content, so that everything ends up inside.
const VAGUE_NAMES: &[&str] = &["core", "common", "util", "utils", "helper", "helpers", "misc"];

/// Function names that do not say what the function does.
const VAGUE_FUNCTIONS: &[&str] = &["asked", "heard", "made", "said", "told"];

/// The root of the crate that every crate uses, and the most items that it may export.
const TYPES_ROOT: &str = "crates/types/src/lib.rs";
const MOST_TYPES: usize = 400;

/// First words of a comment that asks a question where it should name a thing.
const QUESTION_WORDS: &[&str] = &["What", "How", "Whether", "Who", "Where", "Why"];
/// The most documentation comments that may begin with one of them, in percent.
const MOST_QUESTIONS: usize = 3;

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    let files = repository::text_files()?;
    for remark in sizes::wanted_smaller(&files) {
        println!("remark: {remark}");
    }
    let problems = check(&files)?;
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    if !problems.is_empty() {
        bail!("{} untidy places; the rules are in xtask/src/tidy.rs", problems.len());
    }
    println!("tidy: {} files", files.len());
    Ok(())
}

/// Returns one line for each breach of a rule.
fn check(files: &[TextFile]) -> Result<Vec<String>> {
    let mut problems = banned::check(files);
    problems.extend(doc_links::check(files));
    problems.extend(named_files::check(files));
    problems.extend(reference_pages::check(files));
    problems.extend(environment::check(files));
    problems.extend(crate_pages::check(files));
    problems.extend(readme::check(files));
    problems.extend(readme_figures::check(files));
    problems.extend(exported_types(files));
    problems.extend(question_openings(files));
    problems.extend(type_names::check(files));
    for file in files {
        problems.extend(names(&file.path));
        if file.is_rust() {
            problems.extend(opening(file));
            problems.extend(leftovers(file));
            problems.extend(modules(file));
            problems.extend(vague_functions(file));
        }
    }
    let path = repository::root().join(sizes::EXCEPTIONS);
    let exceptions =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", sizes::EXCEPTIONS))?;
    problems.extend(sizes::check(sizes::measure(files), &exceptions)?);
    Ok(problems)
}

fn opening(file: &TextFile) -> Option<String> {
    let opens_well = file.text.lines().next().is_some_and(|line| line.starts_with("//! ") && line.len() > 10);
    (!opens_well)
        .then(|| format!("{}:1: the file has to open with a `//!` line that says why it exists", file.path))
}

/// Counts the items that the crate of the types exports.
fn exported_types(files: &[TextFile]) -> Option<String> {
    let root = files.iter().find(|file| file.path == TYPES_ROOT)?;
    let count = exported(&root.text).len();
    (count > MOST_TYPES).then(|| {
        format!("{TYPES_ROOT}: {count} items are exported, {MOST_TYPES} are allowed; keep some inside")
    })
}

/// Counts the documentation comments that begin with a question word.
fn question_openings(files: &[TextFile]) -> Option<String> {
    let (mut comments, mut found) = (0, Vec::new());
    for file in files.iter().filter(|file| file.is_rust()) {
        let mut before = None;
        for (number, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            let mark = ["///", "//!"].into_iter().find(|mark| line.starts_with(*mark));
            if let Some(text) = mark.filter(|_| mark != before).and_then(|mark| line.strip_prefix(mark)) {
                comments += 1;
                let first = text.trim_start().split(|c: char| !c.is_alphanumeric()).next();
                if first.is_some_and(|word| QUESTION_WORDS.contains(&word)) {
                    found.push(format!("{}:{}", file.path, number + 1));
                }
            }
            before = mark;
        }
    }
    (found.len() * 100 > comments * MOST_QUESTIONS).then(|| {
        let (count, places) = (found.len(), found.join(", "));
        format!("{count} of {comments} comments begin with a question word, {MOST_QUESTIONS} % may: {places}")
    })
}

fn vague_functions(file: &TextFile) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let name = line.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
        if let Some(name) = name.filter(|name| VAGUE_FUNCTIONS.contains(name)) {
            let place = number + 1;
            problems.push(format!(
                "{}:{place}: a function called `{name}`: name what it does or returns",
                file.path
            ));
        }
    }
    problems
}

fn leftovers(file: &TextFile) -> Vec<String> {
    let source = RustSource::parse(&file.text);
    let mut problems = Vec::new();
    for (number, line) in source.code().lines().enumerate() {
        for leftover in LEFTOVERS.iter().filter(|leftover| holds_word(line, leftover)) {
            problems.push(format!("{}:{}: `{leftover}` was left behind", file.path, number + 1));
        }
    }
    problems
}

/// Returns whether `line` has `word`, not merely a longer name that ends with it.
fn holds_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Checks file and folder names: no folder of a module with its own `mod` file, no vague module, no vague crate.
fn names(path: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if path.ends_with("/mod.rs") {
        problems.push(format!("{path}: a module `foo` is `foo.rs` beside its folder, not `foo/mod.rs`"));
    }
    let crate_name = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).map(|(name, _)| name);
    // A crate is reported once, at its manifest.
    if let Some(name) = crate_name.filter(|name| is_vague(name) && path.ends_with("/Cargo.toml")) {
        problems.push(format!("{path}: a crate called `{name}` says nothing of what is inside"));
    }
    if let Some(stem) = path.strip_suffix(".rs") {
        let modules = stem.split_once("src/").map_or(stem, |(_, inside)| inside);
        if let Some(name) = modules.split('/').find(|name| is_vague(name)) {
            problems.push(format!("{path}: a module called `{name}` says nothing of what is inside"));
        }
    }
    problems
}

/// Checks modules written inside a file; those with their own file are checked by its name.
fn modules(file: &TextFile) -> Vec<String> {
    let modules = RustSource::parse(&file.text).modules().into_iter().filter(|(_, name)| is_vague(name));
    modules
        .map(|(line, name)| {
            format!("{}:{}: a module called `{name}` says nothing of what is inside", file.path, line + 1)
        })
        .collect()
}

fn is_vague(name: &str) -> bool {
    VAGUE_NAMES.contains(&name.strip_prefix("archon-").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let problems = check(&repository::text_files().unwrap()).unwrap();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn opening_without_a_module_comment_is_a_problem() {
        let check = |text| opening(&TextFile::new("a.rs", text));
        assert_eq!(check("//! Why this exists.\n"), None);
        for text in ["", "//!\n", "// Plain.\n", "\n//! Too late.\n"] {
            let problem = check(text).unwrap();
            assert_eq!(
                problem, "a.rs:1: the file has to open with a `//!` line that says why it exists",
                "{text:?}"
            );
        }
    }

    #[test]
    fn leftovers_count_in_code_only() {
        let text = "// dbg!(x)\nlet a = \"todo!\";\nmy_dbg!(1);\nstd::dbg!(a);\ntodo!()\n";
        let problems = leftovers(&TextFile::new("a.rs", text));
        assert_eq!(problems, ["a.rs:4: `dbg!` was left behind", "a.rs:5: `todo!` was left behind"]);
    }

    #[test]
    fn exported_types_more_than_allowed_is_a_problem_with_their_number() {
        let root = |count: usize| {
            let names: Vec<String> = (0..count).map(|n| format!("T{n}")).collect();
            [TextFile::new(TYPES_ROOT, &format!("mod a;\n\npub use a::{{{}}};\n", names.join(", ")))]
        };
        assert_eq!(exported_types(&root(400)), None);
        let problem = exported_types(&root(401)).unwrap();
        assert!(problem.contains("401 items are exported, 400 are allowed"), "{problem}");
    }

    #[test]
    fn question_openings_more_than_three_percent_is_a_problem_with_their_places() {
        let file = |questions: usize| {
            let asks = "/// How it goes.\n/// What more.\nfn a() {}\n".repeat(questions);
            let names = "/// The way it goes.\nfn b() {}\n".repeat(100 - questions);
            [TextFile::new("a.rs", &format!("{asks}{names}"))]
        };
        assert_eq!(question_openings(&file(3)), None);
        assert_eq!(
            question_openings(&file(4)).unwrap(),
            "4 of 100 comments begin with a question word, 3 % may: a.rs:1, a.rs:4, a.rs:7, a.rs:10"
        );
    }

    #[test]
    fn vague_names_are_refused() {
        assert_eq!(names("crates/types/src/message.rs"), [""; 0]);
        assert_eq!(
            names("crates/types/src/ids/mod.rs"),
            ["crates/types/src/ids/mod.rs: a module `foo` is `foo.rs` beside its folder, not `foo/mod.rs`"]
        );
        assert_eq!(
            names("crates/tools/src/utils.rs"),
            ["crates/tools/src/utils.rs: a module called `utils` says nothing of what is inside"]
        );
        assert_eq!(
            names("crates/core/Cargo.toml"),
            ["crates/core/Cargo.toml: a crate called `core` says nothing of what is inside"]
        );
        assert_eq!(
            modules(&TextFile::new("a.rs", "fn a() {}\nmod helpers {}\n")),
            ["a.rs:2: a module called `helpers` says nothing of what is inside"]
        );
    }

    #[test]
    fn vague_functions_name_that_says_nothing_is_a_problem_with_its_line() {
        let text = "//! A file.\nfn \x73aid(&self) {}\nasync fn \x74old<T>() {}\nfn last_text() {}\n";
        let problems = vague_functions(&TextFile::new("a.rs", text));
        assert_eq!(
            problems,
            [
                "a.rs:2: a function called `said`: name what it does or returns",
                "a.rs:3: a function called `told`: name what it does or returns"
            ]
        );
    }
}
