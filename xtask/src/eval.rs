//! `cargo xtask eval NAME`: measures how well a model does on a fixed set of tasks, or how well memories or tools
//! are found. The measuring programs are next to the code that they measure; this starts them, and fetches what
//! they need.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::{bfcl, locomo};

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

/// `cargo xtask eval memory [FILE] [--fetch] [--development] [--ablations] [--sqlite] [--check]`. The file is
/// `data/locomo10.json` of the repository snap-research/locomo; without FILE it is taken from the cache. Only
/// `--fetch` downloads it, since the caller has to accept its licence (CC BY-NC 4.0).
fn memory(words: Vec<String>) -> Result<()> {
    let (mut options, files): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.starts_with('-'));
    let fetch = options.iter().any(|option| option == "--fetch");
    options.retain(|option| option != "--fetch");
    let cached = user_folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("archon/locomo10.json"));
    if let (true, [], Some(cached)) = (fetch, files.as_slice(), &cached) {
        locomo::fetch(cached)?;
    }
    let file = match files.as_slice() {
        [] => cached.clone().filter(|file| file.is_file()),
        [file] => Some(PathBuf::from(file)),
        _ => bail!("one file at a time: {}", files.join(", ")),
    };
    let Some(file) = file else {
        let place = cached.unwrap_or_default();
        bail!(
            "`cargo xtask eval memory --fetch` brings data/locomo10.json of github.com/snap-research/locomo (CC BY-NC 4.0) \
             to {}; or name the file",
            place.display()
        );
    };
    let models = embedder()?;
    let words = [file.display().to_string(), "--models".to_owned(), models.display().to_string()];
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
        options.extend(["--models".to_owned(), embedder()?.display().to_string()]);
    }
    CommandLine::cargo(&format!(
        "run --quiet --profile measure -p archon-evals {features} --bin eval_tools --"
    ))
    .args([data.display().to_string()])
    .args(options)
    .run()
}

/// Fetches the embedder, unless it is there. Returns the folder of the models.
fn embedder() -> Result<PathBuf> {
    let Some(models) = models_folder() else { bail!("neither HOME nor XDG_DATA_HOME says where models are") };
    if !models.join(format!("{EMBEDDER}.safetensors")).is_file() {
        CommandLine::cargo(&format!("{PROGRAM} -- model pull {EMBEDDER}")).run()?;
    }
    Ok(models)
}

/// The embedder for measuring memories and the tool search.
const EMBEDDER: &str = "all-minilm-l6-v2";

/// Returns the path of the default model, if it was fetched to the default place.
pub(crate) fn fetched_model() -> Option<PathBuf> {
    Some(models_folder()?.join(format!("{LOCAL_MODEL}.gguf"))).filter(|path| path.is_file())
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
        let words = ["a.json", "--ablations", "b.json"].map(str::to_owned).to_vec();
        assert_eq!(memory(words).unwrap_err().to_string(), "one file at a time: a.json, b.json");
    }
}
