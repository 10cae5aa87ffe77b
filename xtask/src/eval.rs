//! `cargo xtask eval NAME`: how well a model does on a fixed set of tasks. The measuring programs live beside what
//! they measure; this only knows where, and fetches what they need.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;

/// `cargo xtask eval local [MODEL] [--verbose] [--check]` measures this one where no other is named. With `--check`
/// it fails if the model does worse than is required, which the measuring program knows.
pub(crate) const LOCAL_MODEL: &str = "gemma-3-270m";

const PROGRAM: &str = "run --quiet -p archon-cli --features local";

pub(crate) fn run(mut args: Args) -> Result<()> {
    match args.name()?.as_str() {
        "local" => local(args.rest()),
        other => bail!("there is no eval `{other}`; there is: local"),
    }
}

/// A model is named as for `archon model pull`, or by the path of its file.
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

/// The model that is measured, if it was fetched to the default place.
pub(crate) fn fetched_model() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join(format!("archon/models/{LOCAL_MODEL}.gguf"))).filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_model_is_measured_at_a_time() {
        let words = ["a.gguf", "b.gguf", "--verbose"].map(str::to_owned).to_vec();
        assert_eq!(local(words).unwrap_err().to_string(), "one model at a time: a.gguf, b.gguf");
    }
}
