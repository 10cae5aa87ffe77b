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
/// How often a page is run that kills its program after some seconds.
const TIMED_ATTEMPTS: usize = 3;

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

/// The numbers of a page or of all pages.
#[derive(Default)]
struct Counts {
    programs: usize,
    outputs: usize,
    left_out: usize,
}

impl Counts {
    fn of(lesson: &Lesson) -> Self {
        let mut counts = Self::default();
        for (_, part) in &lesson.parts {
            match part {
                Part::File { .. } => counts.programs += 1,
                Part::Command { .. } => counts.outputs += 1,
                Part::LeftOut => counts.left_out += 1,
                _ => {}
            }
        }
        counts
    }

    fn add(&mut self, other: &Self) {
        self.programs += other.programs;
        self.outputs += other.outputs;
        self.left_out += other.left_out;
    }
}

/// Runs the pages one after the other, since cargo would wait for the shared folder anyway. Returns the problems.
fn check_pages(pages: &[&TextFile], folder: &Path, target: &Path, update: bool) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut all = Counts::default();
    for (number, page) in pages.iter().enumerate() {
        let begun = Instant::now();
        let (ran, counts) = attempt_page(page, &folder.join(number.to_string()), target)
            .with_context(|| format!("cannot run the tutorial {}", page.path))?;
        if update && ran.updated != page.text {
            fs::write(repository::root().join(&page.path), &ran.updated)
                .with_context(|| format!("cannot write {}", page.path))?;
            println!("wrote {}", page.path);
        }
        problems.extend(ran.problems);
        problems.extend(ran.differences.into_iter().filter(|_| !update));
        let Counts { programs, outputs, left_out } = counts;
        let seconds = begun.elapsed().as_secs();
        println!("{}: {programs} programs, {outputs} outputs, {left_out} not run, {seconds} s", page.path);
        all.add(&counts);
    }
    println!(
        "tutorials: {} pages, {} programs run, {} outputs compared, {} blocks not run",
        pages.len(),
        all.programs,
        all.outputs,
        all.left_out
    );
    Ok(problems)
}

/// Runs a page, and runs it again from nothing if it kills its program after some seconds and the output is another one:
/// on a busy machine, the program may get less far.
fn attempt_page(page: &TextFile, folder: &Path, target: &Path) -> Result<(Ran, Counts)> {
    let is_timed = page.text.lines().any(|line| line.starts_with("$ timeout "));
    let mut attempts = if is_timed { TIMED_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let lesson = Lesson::read(page);
        let counts = Counts::of(&lesson);
        let mut project = Project::create(&folder.join(attempts.to_string()), target)?;
        let ran = run_page(page, lesson, &mut project)?;
        if attempts == 0 || ran.is_as_shown() {
            return Ok((ran, counts));
        }
        println!("{}: differs, and is run again because of its times", page.path);
    }
}

/// Follows a page from its first step to its last.
fn run_page(page: &TextFile, lesson: Lesson, project: &mut Project) -> Result<Ran> {
    let mut problems = lesson.problems;
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
