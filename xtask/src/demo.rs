//! `cargo xtask demo`: shows from a fresh clone what an agent of Archon can do, on this machine, without an
//! account or a key. Each command is shown as a person would type it, and each scene proves its result or
//! fails.

mod build;
mod cargo;
mod download;
mod machine;
mod phases;
mod preflight;
mod progress;
mod scenes;
mod stage;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::eval::{LOCAL_MODEL, user_folder};
use crate::metadata::Metadata;
pub(crate) use machine::cargo_home;
use machine::{Room, Source};
pub(crate) use phases::{Phases, load};
pub(crate) use preflight::{GLIBC, MEMORY_MB};
use preflight::{Machine, Report, problems};
use stage::Stage;

/// A task that a small model often gets wrong without a calculator.
pub(crate) const TASK: &str = "What is 15% of 200?";

/// A right answer has this number, from this tool.
pub(crate) const ANSWER: &str = "30";
pub(crate) const TOOL: &str = "calculator";

/// The model, always this one: it is small, and the scenes were measured with it.
const MODEL: &str = "local:gemma-3-270m";

/// Needed disk space in MB: measured (1,057, 368, and twice 253 while the model is put together), and rounded
/// up.
const BUILD_MB: u64 = 1_200;
const CRATES_MB: u64 = 400;
const MODEL_MB: u64 = 600;
/// All of it.
pub(crate) const DISK_MB: u64 = BUILD_MB + CRATES_MB + MODEL_MB;

/// The size in MB of what is fetched for the model: the model and its engine.
pub(crate) const DOWNLOAD_MB: u64 = 264;

pub(crate) fn run(mut args: Args) -> Result<()> {
    // All checks always run; the flag is accepted because scripts use it.
    args.flag("--check");
    let scene = args.option("--scene")?.map(|number| scenes::numbered(&number)).transpose()?;
    args.finish()?;
    let began = Instant::now();
    let data = data_folder()?;
    let target = Metadata::load()?.target_directory;
    println!(
        "Archon's demo: a build, a download of {DOWNLOAD_MB} MB (each only once), and four things that an agent does here."
    );
    look_before(&data, &target)?;
    let looked = began.elapsed();
    let built = build::build(&data, LOCAL_MODEL)?;
    let before_main = began.elapsed();
    let stage = Stage::set(built.archon.clone(), target.join("demo-workspace"), &data)?;
    scenes::play(&stage, scene)?;
    let total = began.elapsed();
    let phases = Phases::new(looked, &built, total - before_main, total);
    phases.keep(&target)?;
    println!("\n{}", ending(&built.archon, &phases));
    Ok(())
}

/// The servers that `archon-pull` uses if no setting names others.
const FROM_REGISTRY: Source = Source {
    what: "the engine",
    host: concat!("registry.npm", "js.org"),
    variables: &[
        "npm_config_registry",
        "NPM_CONFIG_REGISTRY",
        "NPM_CONFIG_USERCONFIG",
        "npm_config_userconfig",
    ],
    file: Some(".npmrc"),
};
const FROM_INDEX: Source =
    Source { what: "the model", host: concat!("py", "pi.org"), variables: &["PIP_INDEX_URL"], file: None };

/// Fails before any long work if this machine cannot run the demo.
fn look_before(data: &Path, target: &Path) -> Result<()> {
    let has_model = data.join("models").join(format!("{LOCAL_MODEL}.gguf")).is_file();
    let has_engine = is_engine_there(&data.join("engines"));
    let has_build = target.join("demo").join("archon").is_file();
    let crates = machine::cargo_home().context("neither CARGO_HOME nor HOME is set: set one of them")?;
    let unless = |there, mb| if there { 0 } else { mb };
    let rooms = [
        Room { what: "the build", folder: target.to_owned(), mb: unless(has_build, BUILD_MB) },
        Room { what: "crates", folder: crates, mb: unless(has_build, CRATES_MB) },
        Room { what: "the model", folder: data.to_owned(), mb: unless(has_model, MODEL_MB) },
    ];
    let is_there = has_model && has_engine && has_build;
    let sources: Vec<Source> = [(has_engine, FROM_REGISTRY), (has_model, FROM_INDEX)]
        .into_iter()
        .filter_map(|(is_there, source)| (!is_there).then_some(source))
        .collect();
    let problems = problems(&Machine::look(&rooms, !has_build, !is_there, &sources));
    if problems.is_empty() { Ok(()) } else { bail!("{}", Report(problems)) }
}

/// Returns whether an engine was fetched, which is a folder. Its files are checked when it is opened.
fn is_engine_there(engines: &Path) -> bool {
    let entries = std::fs::read_dir(engines).into_iter().flatten().flatten();
    let mut folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    folders.any(|folder| folder.extension().is_none_or(|ending| ending != "parts"))
}

/// Returns the folder of models and runs: the user's own, so that later commands use them.
fn data_folder() -> Result<PathBuf> {
    let set = std::env::var_os("ARCHON_DATA_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    set.or_else(|| Some(user_folder("XDG_DATA_HOME", ".local/share")?.join("archon")))
        .context("neither HOME nor XDG_DATA_HOME is set, so the folder of models is unknown: set one of them")
}

fn ending(archon: &Path, phases: &Phases) -> String {
    let archon = archon.display();
    format!(
        "{phases}\n\nTry next:\n  \
         {archon} run --model {MODEL} \"How much is 19% of 1250?\"\n  \
         {archon} runs list        # everything above is there; `runs show RUN` tells one\n  \
         {archon} doctor           # which models, keys and servers are here\n\
         The program is {archon}; `cargo install --path crates/cli` installs an optimised one."
    )
}
