//! `cargo xtask tutorials`: makes the projects of the book's tutorials outside of the workspace, with their dependencies
//! and programs, runs the commands that the pages show, and compares the output with the pages. Nothing is fetched.
//! `--update` writes the printed output into the pages. All projects share what is built, in `target/tutorials`.

mod lesson;
mod project;

use std::path::Path;
use std::time::Instant;
use std::{env, fs, process};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::book::session::{self, Ran, Verdict};
use crate::metadata::Metadata;
use crate::repository::{self, TextFile};
use lesson::{Lesson, Part};
use project::Project;

const PAGES: &str = "docs/book/tutorials/";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let update = args.flag("--update");
    let only = args.option("--page")?;
    args.finish()?;
    let files = repository::text_files()?;
    let is_wanted = |page: &&TextFile| only.as_ref().is_none_or(|only| page.path == *only);
    let pages: Vec<&TextFile> = pages(&files).filter(is_wanted).collect();
    if pages.is_empty() {
        bail!("{} is no page of {PAGES}", only.unwrap_or_default());
    }
    let target = Metadata::load()?.target_directory.join("tutorials");
    let folder = env::temp_dir().join(format!("archon-tutorials-{}", process::id()));
    let checked = check_pages(&pages, &folder, &target, update);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let problems = checked?;
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    match problems.len() {
        0 => Ok(()),
        number => bail!("{number} problems in the tutorials; CONTRIBUTING.md says how pages are written"),
    }
}

fn pages(files: &[TextFile]) -> impl Iterator<Item = &TextFile> {
    files.iter().filter(|file| file.path.starts_with(PAGES) && file.path.ends_with(".md"))
}

/// Runs the pages one after the other, since cargo would wait for the shared folder anyway. Returns the problems.
fn check_pages(pages: &[&TextFile], folder: &Path, target: &Path, update: bool) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let (mut programs, mut outputs, mut left_out) = (0, 0, 0);
    for (number, page) in pages.iter().enumerate() {
        let begun = Instant::now();
        let lesson = Lesson::read(page);
        let count =
            |is_counted: fn(&Part) -> bool| lesson.parts.iter().filter(|(_, it)| is_counted(it)).count();
        let counts = (
            count(|part| matches!(part, Part::File { .. })),
            count(|part| matches!(part, Part::Command { .. })),
            count(|part| matches!(part, Part::LeftOut)),
        );
        problems.extend(lesson.problems.iter().cloned());
        let mut project = Project::create(&folder.join(number.to_string()), target)?;
        let ran = run_page(page, lesson, &mut project)
            .with_context(|| format!("cannot run the tutorial {}", page.path))?;
        if update && ran.updated != page.text {
            fs::write(repository::root().join(&page.path), &ran.updated)
                .with_context(|| format!("cannot write {}", page.path))?;
            println!("wrote {}", page.path);
        }
        problems.extend(ran.problems);
        problems.extend(ran.differences.into_iter().filter(|_| !update));
        println!(
            "{}: {} programs, {} outputs, {} not run, {} s",
            page.path,
            counts.0,
            counts.1,
            counts.2,
            begun.elapsed().as_secs()
        );
        (programs, outputs, left_out) = (programs + counts.0, outputs + counts.1, left_out + counts.2);
    }
    println!(
        "tutorials: {} pages, {programs} programs run, {outputs} outputs compared, {left_out} blocks not run",
        pages.len()
    );
    Ok(problems)
}

/// Follows a page from its first step to its last.
fn run_page(page: &TextFile, lesson: Lesson, project: &mut Project) -> Result<Ran> {
    let mut problems = Vec::new();
    let (mut differences, mut changes) = (Vec::new(), Vec::new());
    for (line, part) in lesson.parts {
        let at = |text: String| format!("{}:{line}: {text}", page.path);
        let Part::Command { step, typed } = part else {
            problems.extend(project.prepare(&part).err().map(|error| at(format!("{error:#}"))));
            continue;
        };
        match project.check(&step, typed.as_deref())? {
            Verdict::Fits => {}
            Verdict::Problem(problem) => problems.push(at(problem)),
            Verdict::Differs(difference, printed) => {
                differences.push(at(difference));
                changes.push((step, printed));
            }
        }
    }
    Ok(Ran { problems, differences, updated: session::updated(&page.text, changes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tutorials_of_the_book_have_a_project_programs_and_outputs() {
        let files = repository::text_files().unwrap();
        let mut number = 0;
        for page in pages(&files) {
            let lesson = Lesson::read(page);
            assert!(lesson.problems.is_empty(), "{}", lesson.problems.join("\n"));
            let count = |is_counted: fn(&Part) -> bool| {
                lesson.parts.iter().filter(|(_, part)| is_counted(part)).count()
            };
            assert_eq!(count(|part| matches!(part, Part::Project { .. })), 1, "{}", page.path);
            assert!(count(|part| matches!(part, Part::Dependencies(_))) > 0, "{}", page.path);
            assert!(count(|part| matches!(part, Part::File { .. })) > 0, "{}", page.path);
            assert!(count(|part| matches!(part, Part::Command { .. })) > 0, "{}", page.path);
            number += 1;
        }
        assert!(number > 10, "{number}");
    }

    #[test]
    fn run_page_follows_the_steps_and_reports_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let page = TextFile::new(
            "docs/book/tutorials/a.md",
            "```sh\ncargo new --quiet a\ncd a\n```\n```toml\n[dependencies]\nb = { path = \"../archon/crates/b\" }\n```\n\
             <!-- file: c.txt -->\n```rust\n# hidden\none\n```\n<!-- edit: c.txt\none\n=>\ntwo\n-->\n\
             <!-- append: c.txt -->\n```rust\nthree\n```\n```text\n$ cat c.txt\ntwo\n\nthree\n$ alias d='echo 4'\n$ d\n5\n```\n\
             <!-- typed: yes -->\n```text\n$ read x; echo \"x=$x\"\nyes\nx=yes\n```\n\
             <!-- edit: c.txt\nsix\n=>\n-->\n```text\n$ false\n$ kill -9 $$\nKilled\n$ grep -c '/.*/crates/b' Cargo.toml\n1\n```\n",
        );
        let lesson = Lesson::read(&page);
        assert_eq!(lesson.problems, [""; 0]);
        let mut project = Project::create(&folder.path().join("page"), folder.path()).unwrap();
        let ran = run_page(&page, lesson, &mut project).unwrap();
        let [edit, exit] = &ran.problems[..] else { panic!("{:?}", ran.problems) };
        assert!(edit.contains("c.txt has `six` 0 times, not once"), "{edit}");
        assert!(exit.contains("`false` ended with exit code 1, not 0"), "{exit}");
        let [differs] = &ran.differences[..] else { panic!("{:?}", ran.differences) };
        assert!(differs.contains("`d` printed:\n    4\n  the page shows:\n    5\n"), "{differs}");
        assert_eq!(ran.updated, page.text.replace("$ d\n5\n", "$ d\n4\n"));
    }
}
