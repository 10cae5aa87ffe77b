//! Checks that the files exist that pages and comments name in code spans. A path that begins with a folder of the
//! repository is looked up there; a name in the table of a source file's head, in its crate; and a Rust file that is
//! named without its crate, in all folders.

use std::collections::BTreeSet;
use std::path::Path;

use crate::doc_links::package_name;
use crate::repository::{self, TextFile};
use crate::rust_source::RustSource;

/// Code spans that begin so are paths from the top of the repository.
const FOLDERS: &[&str] = &["crates/", "xtask/", "tests/", "docs/", "evals/"];

/// It may name files that are gone.
const CHANGELOG: &str = "CHANGELOG.md";

/// Pages about projects of readers, with files of their own.
const TUTORIALS: &str = "docs/book/tutorials/";

pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let root = repository::root();
    check_with(files, &|path| root.join(path).exists())
}

/// The repository, as far as the check needs it.
struct Known<'a> {
    exists: &'a dyn Fn(&Path) -> bool,
    /// Paths of all files.
    files: Vec<&'a str>,
    /// The ends of their names, such as `rs`.
    endings: BTreeSet<&'a str>,
    /// Names of packages, each with its folder.
    packages: Vec<(&'a str, &'a str)>,
}

/// A code span, and the span that follows after the word "of".
struct Span<'a> {
    text: &'a str,
    of: Option<&'a str>,
}

fn check_with(files: &[TextFile], exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let known = Known::read(files, exists);
    let mut problems = Vec::new();
    for file in files {
        let wrong = if file.path.ends_with(".md") && file.path != CHANGELOG {
            wrong_in_page(file, &known)
        } else if file.is_rust() {
            wrong_in_comments(file, &known)
        } else {
            continue;
        };
        problems.extend(
            wrong
                .into_iter()
                .map(|(line, name)| format!("{}:{}: there is no file {name}", file.path, line + 1)),
        );
    }
    problems
}

/// Returns the names without a file, each with its line, counted from 0.
fn wrong_in_page(page: &TextFile, known: &Known<'_>) -> Vec<(usize, String)> {
    let mut wrong = Vec::new();
    for (number, line) in page.text.lines().enumerate() {
        // A row of a table names a crate once, with its first file.
        let mut of_row = None;
        for Span { text, .. } in spans(line) {
            let exists = if is_from_top(text) {
                of_row = Some(crate_folder(text)).filter(|_| line.starts_with('|'));
                known.has(text)
            } else if let Some(folder) = of_row.filter(|_| text.ends_with(".rs") || text.ends_with('/')) {
                known.has(&format!("{folder}/src/{text}"))
            } else {
                !text.ends_with(".rs") || page.path.starts_with(TUTORIALS) || known.has_named(text)
            };
            if !exists {
                wrong.push((number, text.to_owned()));
            }
        }
    }
    wrong
}

/// As [`wrong_in_page`], for the comments of a source file.
fn wrong_in_comments(file: &TextFile, known: &Known<'_>) -> Vec<(usize, String)> {
    let mut wrong = Vec::new();
    // Most files name none, and to separate comments from code takes long.
    if !file.text.lines().any(|line| line.contains("//") && spans(line).any(|span| may_be_file(span.text))) {
        return wrong;
    }
    for (number, line) in RustSource::parse(&file.text).comment_lines().iter().enumerate() {
        let is_row = ["//! |", "// |"].iter().any(|mark| line.trim_start().starts_with(mark));
        for span in spans(line) {
            let exists = if is_from_top(span.text) {
                // Tests and examples have folders of these names in a crate too, and other projects have files there.
                let in_crate = format!("{}/{}", crate_folder(&file.path), span.text);
                !known.is_kind_of_ours(span.text) || known.has(span.text) || known.has(&in_crate)
            } else if is_row && known.is_in_crate(span.text) {
                known.has_in_crate(file, &span)
            } else {
                !span.text.ends_with(".rs") || known.has_named(span.text)
            };
            if !exists {
                wrong.push((number, span.text.to_owned()));
            }
        }
    }
    wrong
}

impl<'a> Known<'a> {
    fn read(files: &'a [TextFile], exists: &'a dyn Fn(&Path) -> bool) -> Self {
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let package = |file: &'a TextFile| {
            let folder =
                file.path.strip_suffix("/Cargo.toml").filter(|folder| folder.starts_with("crates/"))?;
            Some((package_name(&file.text)?, folder))
        };
        Self {
            exists,
            endings: paths.iter().filter_map(|path| ending(path)).collect(),
            packages: files.iter().filter_map(package).collect(),
            files: paths,
        }
    }

    fn has(&self, path: &str) -> bool {
        (self.exists)(Path::new(path))
    }

    /// Returns whether a file of any folder has the name, which may begin with folders.
    fn has_named(&self, name: &str) -> bool {
        self.files.iter().any(|path| {
            path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    }

    fn is_kind_of_ours(&self, name: &str) -> bool {
        ending(name).is_some_and(|ending| self.endings.contains(ending))
    }

    /// Returns whether a name in the table of a file's head is one of a file or folder of the crate.
    fn is_in_crate(&self, name: &str) -> bool {
        let is_path = name.contains('/') && (name.ends_with('/') || self.is_kind_of_ours(name));
        name.ends_with(".rs") || is_path
    }

    /// Returns whether the crate has the file: below `src`, or in the module's own folder. After "of", another crate is
    /// named.
    fn has_in_crate(&self, file: &TextFile, span: &Span<'_>) -> bool {
        let other = self.packages.iter().find(|(name, _)| Some(*name) == span.of);
        if let Some((_, folder)) = other {
            return self.has(&format!("{folder}/src/{}", span.text));
        }
        let module = file.path.strip_suffix(".rs").unwrap_or(&file.path);
        self.has(&format!("{}/src/{}", crate_folder(&file.path), span.text))
            || self.has(&format!("{module}/{}", span.text))
    }
}

/// Returns the code spans that may be names of files: none with spaces or placeholders.
fn spans(line: &str) -> impl Iterator<Item = Span<'_>> {
    let parts: Vec<&str> = line.split('`').collect();
    (1..parts.len())
        .step_by(2)
        .map(move |at| {
            let is_followed = parts.get(at + 1).is_some_and(|between| between.trim() == "of");
            Span { text: parts[at], of: parts.get(at + 2).copied().filter(|_| is_followed) }
        })
        .filter(|span| !span.text.contains([' ', '*', '{', '<']))
}

fn may_be_file(name: &str) -> bool {
    name.ends_with(".rs") || name.contains('/')
}

fn is_from_top(name: &str) -> bool {
    FOLDERS.iter().any(|folder| name.starts_with(folder))
}

/// Returns the folder of the package: `crates/a`, or a folder of the top.
fn crate_folder(path: &str) -> &str {
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    path.match_indices('/').nth(depth - 1).map_or(path, |(at, _)| &path[..at])
}

fn ending(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    name.rsplit_once('.').map(|(_, ending)| ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the problems of a file in a small repository.
    fn problems(path: &str, text: &str) -> Vec<String> {
        let mut files = vec![
            TextFile::new("crates/a/Cargo.toml", "[package]\nname = \"archon-a\"\n"),
            TextFile::new("crates/b/Cargo.toml", "[package]\nname = \"archon-b\"\n"),
            TextFile::new("crates/a/src/machine.rs", ""),
            TextFile::new("crates/a/src/machine/form.rs", ""),
            TextFile::new("crates/a/tests/cli.rs", ""),
            TextFile::new("crates/b/src/ledger.rs", ""),
            TextFile::new("docs/tools.md", ""),
        ];
        let there: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
        let exists = |path: &Path| {
            let path = path.to_string_lossy().replace('\\', "/");
            there.iter().any(|file| *file == path || path.ends_with('/') && file.starts_with(&path))
        };
        files.push(TextFile::new(path, text));
        check_with(&files, &exists)
    }

    #[test]
    fn page_path_that_does_not_exist_is_a_problem() {
        let text =
            "`crates/a/src/machine.rs` `crates/a/src/c.rs`, `tests/*.rs`, `docs/tools.md`\n`docs/tool.md`";
        assert_eq!(
            problems("docs/x.md", text),
            ["docs/x.md:1: there is no file crates/a/src/c.rs", "docs/x.md:2: there is no file docs/tool.md"]
        );
        assert_eq!(problems(CHANGELOG, text), [""; 0]);
    }

    #[test]
    fn page_name_of_a_rust_file_that_no_folder_has_is_a_problem() {
        let text = "`ledger.rs`, `machine/form.rs`, `form.toml`\n`orm.rs` and `src/ledger.rs`, `b/form.rs`\n";
        assert_eq!(
            problems("README.md", text),
            ["README.md:2: there is no file orm.rs", "README.md:2: there is no file b/form.rs"]
        );
        assert_eq!(problems("docs/book/tutorials/x.md", text), [""; 0]);
    }

    #[test]
    fn page_row_names_files_of_the_crate_before() {
        let text = "| form | `crates/a/src/machine.rs`, `machine/form.rs`, `machine/` |\n\
                    | budget | `crates/a/src/machine.rs`, `ledger.rs`, `ledger/` |\n\
                    | budget | `crates/a/src/machine.rs`, `crates/b/src/ledger.rs`, `machine.rs` |\n";
        assert_eq!(
            problems("docs/x.md", text),
            [
                "docs/x.md:2: there is no file ledger.rs",
                "docs/x.md:2: there is no file ledger/",
                "docs/x.md:3: there is no file machine.rs"
            ]
        );
    }

    #[test]
    fn table_of_a_head_names_files_of_its_crate() {
        let text = "//! | topic | file |\n//! |---|---|\n//! | form | `machine/form.rs` |\n\
                    //! | budget | `machine.rs`, `ledger.rs` of `archon-b` |\n//! | budget | `ledger.rs` |\n\
                    //! | form | `form.rs`, `machine/` |\n//! | form | `machine/form.toml`, `form.toml` |\n\
                    //! | log | `{dir}/a.rs`, `io.example/tasks` |\n//! | budget | `machine.rs` of `archon-b` |\n\
                    \n// | budget | `ledger.rs` |\n";
        assert_eq!(
            problems("crates/a/src/lib.rs", text),
            [
                "crates/a/src/lib.rs:5: there is no file ledger.rs",
                "crates/a/src/lib.rs:6: there is no file form.rs",
                "crates/a/src/lib.rs:7: there is no file machine/form.toml",
                "crates/a/src/lib.rs:9: there is no file machine.rs",
                "crates/a/src/lib.rs:11: there is no file ledger.rs"
            ]
        );
    }

    #[test]
    fn table_of_a_module_may_name_files_of_its_folder() {
        assert_eq!(problems("crates/a/src/machine.rs", "//! | form | `form.rs` |\n"), [""; 0]);
        assert_eq!(
            problems("crates/a/src/machine.rs", "//! | form | `forms.rs` |\n"),
            ["crates/a/src/machine.rs:1: there is no file forms.rs"]
        );
    }

    #[test]
    fn comment_with_a_path_that_does_not_exist_is_a_problem() {
        let text = "//! See `docs/tools.md`.\n/// See `docs/tool.md`.\nfn a() {}\n// `tests/cli.rs`, `tests/a.c`\n\
                    // `crates/a/src/b.rs`\nconst X: &str = \"`docs/no.md`\";\n// `ledger.rs`, `lodger.rs`\n";
        assert_eq!(
            problems("crates/a/src/x.rs", text),
            [
                "crates/a/src/x.rs:2: there is no file docs/tool.md",
                "crates/a/src/x.rs:5: there is no file crates/a/src/b.rs",
                "crates/a/src/x.rs:7: there is no file lodger.rs"
            ]
        );
    }
}
