//! `cargo xtask eval NAME`: measures how well a model does on a fixed set of tasks, or how well memories or tools
//! are found. The measuring programs are next to the code that they measure; this starts them, and fetches what
//! they need.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::{bfcl, talk_sets};

/// The default model of `cargo xtask eval local [MODEL] [--verbose] [--check]`. With `--check` it fails if
/// the model is below the required result, which the measuring program defines.
pub(crate) const LOCAL_MODEL: &str = "gemma-3-270m";

const PROGRAM: &str = "run --quiet -p archon-agents-cli";

pub(crate) fn run(mut args: Args) -> Result<()> {
    match args.name()?.as_str() {
        "local" => local(args.rest()),
        "memory" => memory(args.rest()),
        "tools" => tools(args.rest()),
        other => bail!("there is no eval `{other}`; there are: local, memory, tools"),
    }
}

/// Measures a model, by its name for `archon model pull` or by the path of its file.
fn local(words: Vec<String>) -> Result<()> {
    let (options, models): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.starts_with('-'));
    let model = match models.as_slice() {
        [] => LOCAL_MODEL,
        [model] => model,
        _ => bail!("one model at a time: {}", models.join(", ")),
    };
    let path = if model.ends_with(".gguf") {
        model.to_owned()
    } else {
        CommandLine::cargo(&format!("{PROGRAM} -- model pull {model}")).run()?;
        CommandLine::cargo(&format!("{PROGRAM} -- model path {model}")).output()?.trim().to_owned()
    };
    CommandLine::cargo(&format!("{PROGRAM} --example eval --")).args([path]).args(options).run()
}

/// `cargo xtask eval memory [--fetch | --from FOLDER] [--check] [--gate | [--development] [--ablations] [--sqlite]]`. The
/// conversations are taken from the cache. Only `--fetch` downloads them, since the caller has to accept their licences;
/// `--from` takes them from clones of their repositories.
fn memory(mut options: Vec<String>) -> Result<()> {
    let Some(cache) = user_folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("archon/talks")) else {
        bail!("neither HOME nor XDG_CACHE_HOME says where fetched data is kept; set one")
    };
    if let Some(at) = options.iter().position(|option| option == "--from") {
        let Some(from) = options.get(at + 1).cloned() else {
            bail!("`--from` needs the folder with the clones")
        };
        options.drain(at..at + 2);
        talk_sets::copy(from.as_ref(), &cache)?;
    }
    if let Some(at) = options.iter().position(|option| option == "--fetch") {
        options.remove(at);
        talk_sets::download(&cache)?;
    }
    if !talk_sets::are_in(&cache) {
        bail!(
            "the conversations of LoCoMo, REALTALK and BEAM are not in {}: `--fetch` downloads them, `--from FOLDER` takes \
             them from clones of snap-research/LoCoMo, danny911kr/REALTALK and mohammadtavakoli78/BEAM",
            cache.display()
        );
    }
    let models = models([EMBEDDER, TABLE])?;
    let words = [cache.display().to_string(), "--models".to_owned(), models.display().to_string()];
    CommandLine::cargo("run --quiet --profile measure -p archon-evals --bin eval_memory --")
        .args(words)
        .args(options)
        .run()
}

/// `cargo xtask eval tools [--by-meaning] [--check]`. Fetches the data into the cache, and for `--by-meaning` the
/// embedder.
fn tools(mut options: Vec<String>) -> Result<()> {
    let Some(cache) = user_folder("XDG_CACHE_HOME", ".cache") else {
        bail!("neither HOME nor XDG_CACHE_HOME says where fetched data is kept; set one")
    };
    let data = bfcl::fetch(&cache.join("archon"))?;
    let count = options.len();
    options.retain(|option| option != "--by-meaning");
    let mut features = "--no-default-features";
    if options.len() < count {
        features = "--features minilm";
        options.extend(["--models".to_owned(), models([EMBEDDER])?.display().to_string()]);
    }
    CommandLine::cargo(&format!(
        "run --quiet --profile measure -p archon-evals {features} --bin eval_tools --"
    ))
    .args([data.display().to_string()])
    .args(options)
    .run()
}

/// Fetches embedders, unless they are there. Returns the folder of the models.
fn models(names: impl IntoIterator<Item = &'static str>) -> Result<PathBuf> {
    let Some(models) = models_folder() else {
        bail!("neither HOME nor XDG_DATA_HOME is set, so the folder of models is unknown: set one of them")
    };
    for name in names {
        if !models.join(format!("{name}.safetensors")).is_file() {
            CommandLine::cargo(&format!("{PROGRAM} -- model pull {name}")).run()?;
        }
    }
    Ok(models)
}

/// The embedder for measuring memories and the tool search.
const EMBEDDER: &str = "all-minilm-l6-v2";

/// The small embedder for measuring memories.
const TABLE: &str = "wordllama-256";

/// Returns the path of the default model, if it was fetched to the default place.
pub(crate) fn fetched_model() -> Option<PathBuf> {
    model_file(LOCAL_MODEL, "gguf")
}

/// Returns the name of an embedder that was not fetched to the default place; `None` if all were.
pub(crate) fn missing_embedder() -> Option<&'static str> {
    [TABLE, EMBEDDER].into_iter().find(|name| model_file(name, "safetensors").is_none())
}

fn model_file(name: &str, end: &str) -> Option<PathBuf> {
    Some(models_folder()?.join(format!("{name}.{end}"))).filter(|path| path.is_file())
}

fn models_folder() -> Option<PathBuf> {
    Some(user_folder("XDG_DATA_HOME", ".local/share")?.join("archon/models"))
}

/// Returns a folder of the user: from `variable`, else the default.
pub(crate) fn user_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set(variable).or_else(|| set("HOME").map(|home| home.join(below_home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_model_is_measured_at_a_time() {
        let words = ["a.gguf", "b.gguf", "--verbose"].map(str::to_owned).to_vec();
        assert_eq!(local(words).unwrap_err().to_string(), "one model at a time: a.gguf, b.gguf");
        let error = memory(vec!["--from".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "`--from` needs the folder with the clones");
    }
}
