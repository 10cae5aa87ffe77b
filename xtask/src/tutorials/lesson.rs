//! Reads a tutorial: the steps that its reader takes, in order. CONTRIBUTING.md has the rules of these pages.

use crate::book::checks;
use crate::book::session::{self, Step};
use crate::markdown::{self, Block, Fence};
use crate::repository::TextFile;

/// The steps of a page, and what is wrong with its blocks.
#[derive(Debug)]
pub(crate) struct Lesson {
    /// Each part with its line, counted from 1.
    pub(crate) parts: Vec<(usize, Part)>,
    pub(crate) problems: Vec<String>,
}

/// A step of the reader.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    /// A script with `cargo new`, and the name of the project.
    Project { script: String, name: String },
    /// The table `[dependencies]` of the manifest.
    Dependencies(String),
    /// A file of the project in full.
    File { name: String, text: String },
    /// Lines at the end of a file.
    Appended { name: String, text: String },
    /// A place of a file that gets another text.
    Edit { name: String, old: String, new: String },
    /// A command, and the line of its output that the reader types.
    Command { step: Step, typed: Option<String> },
    /// A block of commands that is not run.
    LeftOut,
}

impl Lesson {
    pub(crate) fn read(page: &TextFile) -> Self {
        let mut lesson = Self { parts: Vec::new(), problems: Vec::new() };
        for block in markdown::blocks(&page.text) {
            let (line, read) = match &block {
                Block::Comment(line, comment) => (*line, read_edit(comment).map(Vec::from_iter)),
                Block::Fence(fence) => (fence.line, read_fence(fence)),
            };
            match read {
                Ok(parts) => lesson.parts.extend(parts.into_iter().map(|part| (part.line(line), part))),
                Err(problem) => lesson.problems.push(format!("{}:{line}: {problem}", page.path)),
            }
        }
        let unused = lesson.files_without_a_command();
        lesson.problems.extend(unused.into_iter().map(|(line, name)| {
            format!("{}:{line}: no command of the page runs this {name}; show one with its output", page.path)
        }));
        lesson
    }

    /// Returns the files that are replaced, or that the page ends with, before any command ran.
    fn files_without_a_command(&self) -> Vec<(usize, String)> {
        let mut unused = Vec::new();
        let mut waiting: Vec<(usize, String)> = Vec::new();
        for (line, part) in &self.parts {
            match part {
                Part::File { name, .. } => {
                    unused.extend(waiting.extract_if(.., |(_, other)| other == name));
                    waiting.push((*line, name.clone()));
                }
                Part::Command { .. } | Part::LeftOut => waiting.clear(),
                _ => {}
            }
        }
        unused.extend(waiting);
        unused
    }
}

impl Part {
    /// Returns the line of a command, or else that of its block.
    fn line(&self, block: usize) -> usize {
        match self {
            Self::Command { step, .. } => step.line,
            _ => block,
        }
    }
}

/// Reads a comment `edit: FILE` with the old text, a line `=>` and the new text.
fn read_edit(comment: &str) -> Result<Option<Part>, String> {
    let Some(edit) = comment.strip_prefix("edit: ") else { return Ok(None) };
    let parts = edit.split_once('\n').and_then(|(name, texts)| {
        let (old, new) = texts.split_once("\n=>").filter(|(old, _)| !old.is_empty())?;
        Some((name.trim(), old, new.strip_prefix('\n').unwrap_or(new)))
    });
    let Some((name, old, new)) = parts else {
        return Err(
            "an edit has the lines `edit: FILE`, then the old text, `=>`, and then the new text".to_owned()
        );
    };
    Ok(Some(Part::Edit { name: name.to_owned(), old: old.to_owned(), new: new.to_owned() }))
}

fn read_fence(fence: &Fence) -> Result<Vec<Part>, String> {
    let text = || fence.lines.join("\n") + "\n";
    let comment = fence.comment.as_deref().unwrap_or_default();
    match fence.language() {
        "sh" => Ok(project_name(&fence.lines)
            .map(|name| Part::Project { script: text(), name })
            .into_iter()
            .collect()),
        "toml" if fence.lines.first().is_some_and(|line| line == "[dependencies]") => {
            Ok(vec![Part::Dependencies(text())])
        }
        "text" if checks::is_session(fence) && checks::has_reason_not_to_run(fence) => {
            Ok(vec![Part::LeftOut])
        }
        "text" if checks::is_session(fence) => {
            let typed = comment.strip_prefix("typed: ");
            Ok(session::steps(fence).into_iter().map(|step| command(step, typed)).collect())
        }
        "rust" => read_rust(fence, comment),
        _ => Ok(vec![]),
    }
}

fn command(step: Step, typed: Option<&str>) -> Part {
    let typed = typed.filter(|typed| step.shown.iter().any(|line| line == typed));
    Part::Command { typed: typed.map(str::to_owned), step }
}

/// Returns the name in a line `cargo new [--lib] NAME`.
fn project_name(lines: &[String]) -> Option<String> {
    let words = lines.iter().find_map(|line| line.strip_prefix("cargo new "))?;
    words.split_whitespace().last().map(str::to_owned)
}

/// Reads a block of Rust as its reader does, without the lines that are only compiled.
fn read_rust(fence: &Fence, comment: &str) -> Result<Vec<Part>, String> {
    let is_visible = |line: &&String| !line.starts_with("# ") && *line != "#";
    let text: String = fence.lines.iter().filter(is_visible).map(|line| line.clone() + "\n").collect();
    if let Some(name) = comment.strip_prefix("file: ") {
        return Ok(vec![Part::File { name: name.to_owned(), text }]);
    }
    if let Some(name) = comment.strip_prefix("append: ") {
        return Ok(vec![Part::Appended { name: name.to_owned(), text }]);
    }
    let starts = |start: &str| text.lines().any(|line| line.starts_with(start));
    match starts("async fn main(") || starts("fn main(") || starts("#[tokio::test]") {
        true => Err("a program has a line `<!-- file: src/main.rs -->` above it, or another name".to_owned()),
        false => Ok(vec![]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lesson(text: &str) -> Lesson {
        Lesson::read(&TextFile::new("docs/book/tutorials/a.md", text))
    }

    #[test]
    fn read_page_returns_its_steps_in_order() {
        let text = "```sh\ncargo new --lib a\ncd a\n```\n```toml\n[dependencies]\nb = \"1\"\n```\n```toml\n[other]\n```\n\
                    <!-- file: src/main.rs -->\n```rust,no_run\n# use c;\n#[d]\nfn main() {}\n#\n```\n\
                    <!-- typed: n -->\n```text\n$ cargo run\n[y/n]\nn\n$ ls\na\n```\n\
                    <!-- edit: src/main.rs\n  fn main\n=>\n  x\n  fn main\n-->\n\
                    <!-- not run: needs a key -->\n```text\n$ archon\n```\n```text\nno command\n```\n```rust\nlet e;\n```\n";
        let lesson = lesson(text);
        assert_eq!(lesson.problems, [""; 0]);
        let lines: Vec<usize> = lesson.parts.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 5, 13, 21, 24, 27, 34]);
        let owned = str::to_owned;
        let parts: Vec<Part> = lesson.parts.into_iter().map(|(_, part)| part).collect();
        let [project, dependencies, file, run, list, edit, left_out] = &parts[..] else {
            panic!("{parts:?}")
        };
        assert_eq!(*project, Part::Project { script: owned("cargo new --lib a\ncd a\n"), name: owned("a") });
        assert_eq!(*dependencies, Part::Dependencies(owned("[dependencies]\nb = \"1\"\n")));
        assert_eq!(*file, Part::File { name: owned("src/main.rs"), text: owned("#[d]\nfn main() {}\n") });
        assert!(
            matches!(run, Part::Command { step, typed: Some(typed) } if typed == "n" && step.shown.len() == 2)
        );
        assert!(matches!(list, Part::Command { step, typed: None } if step.command == "ls"));
        let (old, new) = (owned("  fn main"), owned("  x\n  fn main"));
        assert_eq!(*edit, Part::Edit { name: owned("src/main.rs"), old, new });
        assert_eq!(*left_out, Part::LeftOut);
    }

    #[test]
    fn read_page_with_a_program_that_is_not_run_is_a_problem() {
        let file = "<!-- file: src/main.rs -->\n```rust\nfn main() {}\n```\n";
        for (text, expected) in [
            (file.to_owned(), "a.md:2: no command of the page runs this src/main.rs"),
            (format!("{file}{file}```text\n$ cargo run\n```\n"), "a.md:2: no command of the page runs"),
            ("```rust\n#[tokio::main]\nasync fn main() {}\n```\n".to_owned(), "a.md:1: a program has a line"),
            ("<!-- edit: a\nold\n-->\n".to_owned(), "a.md:1: an edit has the lines"),
        ] {
            let problems = lesson(&text).problems;
            assert!(problems.len() == 1 && problems[0].contains(expected), "{problems:?}");
        }
    }
}
