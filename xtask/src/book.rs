//! `cargo xtask book`: builds the book of `docs` with mdBook into `target/book`. `--check` also checks its links and
//! blocks and runs the commands of its pages; `--update` writes their output into the pages.

pub(crate) mod checks;
mod commands;
mod html;
pub(crate) mod output;
pub(crate) mod scripted_model;
pub(crate) mod session;

use std::path::Path;
use std::sync::Mutex;
use std::{env, fs, process, thread};

use anyhow::{Context, Result, anyhow, bail};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::doc_links;
use crate::markdown;
use crate::metadata::Metadata;
use crate::repository::{self, TextFile};

/// Pages whose commands run at the same time.
const AT_ONCE: usize = 4;

pub(crate) fn run(mut args: Args) -> Result<()> {
    let update = args.flag("--update");
    let only = args.option("--page")?;
    let check = args.flag("--check") || update || only.is_some();
    args.finish()?;
    let files = repository::text_files()?;
    let metadata = Metadata::load()?;
    let mut problems = Vec::new();
    if check {
        let (found, counts) = checks::check(&files);
        problems.extend(found);
        problems.extend(doc_links::check(&files));
        println!(
            "book: {} pages; Rust: {} blocks compiled by `cargo test`, {} not; shell: {} blocks run and compared, {} run, {} not",
            counts.pages, counts.rust, counts.rust_not_compiled, counts.console, counts.sh, counts.sh_not_run
        );
        CommandLine::cargo("build --quiet -p archon-agents-cli").run()?;
        let program = metadata.binary("debug", "archon");
        problems.extend(run_commands(&files, &program, only.as_deref(), update)?);
    }
    if only.is_none() {
        let (folder, dead) = html::build(&files, &metadata.target_directory)?;
        problems.extend(dead);
        println!("wrote {}", folder.join("index.html").display());
    }
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    match problems.len() {
        0 => Ok(()),
        number => bail!("{number} problems in the book; CONTRIBUTING.md says how pages are written"),
    }
}

/// Runs the commands of all pages, or of the one page. Returns the problems.
fn run_commands(files: &[TextFile], program: &Path, only: Option<&str>, update: bool) -> Result<Vec<String>> {
    let has_commands = |page: &&TextFile| markdown::fences(&page.text).iter().any(checks::is_run);
    let is_wanted = |page: &&TextFile| only.is_none_or(|only| page.path == only);
    let pages: Vec<&TextFile> =
        checks::pages_and_readme(files).into_iter().filter(has_commands).filter(is_wanted).collect();
    if let (Some(only), true) = (only, pages.is_empty()) {
        bail!("{only} is no page of the book with a `console` or `sh` block to run");
    }
    let folder = env::temp_dir().join(format!("archon-book-{}", process::id()));
    let waiting = Mutex::new(pages.iter().enumerate());
    let next = || waiting.lock().ok().and_then(|mut pages| pages.next());
    let work = || {
        let mut problems = Vec::new();
        while let Some((number, page)) = next() {
            let ran = commands::run(page, program, &folder.join(number.to_string()));
            let ran = ran.with_context(|| format!("cannot run the commands of {}", page.path))?;
            if update && ran.updated != page.text {
                fs::write(repository::root().join(&page.path), &ran.updated)
                    .with_context(|| format!("cannot write {}", page.path))?;
                println!("wrote {}", page.path);
            }
            problems.extend(ran.problems);
            problems.extend(ran.differences.into_iter().filter(|_| !update));
        }
        Ok(problems)
    };
    let found: Result<Vec<Vec<String>>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|it| it.join().unwrap_or_else(|_| Err(anyhow!("a thread that runs commands panicked"))))
            .collect()
    });
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(found?.concat())
}
