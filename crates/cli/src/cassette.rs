//! Cassettes: `--record FILE` records model calls, `--replay FILE` answers model calls from such a file.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use archon::{
    providers::{ModelRef, RecordingProvider, ReplayProvider, SetupError},
    types::Provider,
};

use crate::{
    chosen::{Chosen, PREFIX},
    exit::Exit,
    failure::Failure,
    output::Output,
};

/// The recording or the replay of the model calls of one command.
#[derive(Clone, Default)]
pub(crate) enum Cassette {
    /// Models are called, and their calls are not recorded.
    #[default]
    None,
    /// Models are called, and their calls are recorded in this file. The recording begins when the first model is
    /// built.
    Recording(PathBuf, Arc<Mutex<Option<RecordingProvider>>>),
    /// No model is called: the answers come from a cassette.
    Replaying(ReplayProvider),
}

/// The provider id of a replay in logs.
const ID: &str = "replay";

impl Cassette {
    /// Creates a recording to this file. A file that is not a cassette is not overwritten.
    pub(crate) fn recording(path: &Path) -> Result<Self, Failure> {
        let is_free = match fs::metadata(path) {
            Ok(file) => file.len() == 0 || ReplayProvider::open(path).is_ok(),
            Err(_) => true,
        };
        match is_free {
            true => Ok(Self::Recording(path.to_owned(), Arc::default())),
            false => Err(Failure::usage(
                format!("{} exists and is not a cassette", path.display()),
                "give another file: --record FILE",
            )),
        }
    }

    /// Creates a replay of this file.
    pub(crate) fn replaying(path: &Path) -> Result<Self, Failure> {
        let replay = ReplayProvider::open(path).map_err(|e| {
            Failure::usage(e.to_string(), "give a file that `archon run --record FILE` wrote")
        })?;
        Ok(Self::Replaying(replay.with_id(ID)))
    }

    /// Returns true if answers come from a cassette, so that no model is called.
    pub(crate) fn is_replay(&self) -> bool {
        matches!(self, Self::Replaying(_))
    }

    /// Returns the replay as a model with this name, or with the name of the first recorded model; `None` if models are
    /// called.
    pub(crate) fn instead(&self, name: Option<&str>) -> Option<Result<Chosen, Failure>> {
        let Self::Replaying(replay) = self else { return None };
        let path = replay.path().display();
        let Some(model) = name.map(model_of).or_else(|| replay.models().next().map(str::to_owned)) else {
            return Some(Err(Failure::usage(
                format!("{path} has no recorded calls"),
                "record calls with `archon run --record FILE`",
            )));
        };
        let why = format!("--replay {path}");
        Some(Ok(Chosen { provider: Arc::new(replay.clone()), keys: Vec::new(), model, why }))
    }

    /// Wraps a model so that its calls are recorded, if this command records.
    pub(crate) fn around(&self, mut chosen: Chosen) -> Result<Chosen, Failure> {
        let Self::Recording(path, first) = self else { return Ok(chosen) };
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        let mut recorded = |inner: Arc<dyn Provider>| -> Result<Arc<dyn Provider>, Failure> {
            let recording = match &*first {
                Some(first) => first.also_record(inner),
                None => RecordingProvider::create(inner, path).map_err(unwritable)?,
            };
            first.get_or_insert_with(|| recording.clone());
            Ok(Arc::new(recording))
        };
        chosen.provider = recorded(chosen.provider)?;
        chosen.keys = chosen.keys.into_iter().map(recorded).collect::<Result<_, _>>()?;
        Ok(chosen)
    }

    /// Replaces the cassette file by the recording if the command ended with an answer, a question or a limit.
    /// Otherwise an earlier cassette stays. Returns the result of the command.
    pub(crate) fn finish(&self, result: Result<Exit, Failure>, output: &Output) -> Result<Exit, Failure> {
        let Self::Recording(path, recording) = self else { return result };
        let recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(recording) = &*recording else { return result };
        if let Ok(Exit::Finished | Exit::Suspended | Exit::Limit | Exit::NotAllowed) = result {
            recording.finish().map_err(unwritable)?;
        } else {
            output.warn(format!("nothing was recorded, and {} is as it was", path.display()));
        }
        result
    }

    /// Writes a warning about recorded calls that were not used.
    pub(crate) fn warn_of_unused_calls(&self, output: &Output) {
        if let Self::Replaying(replay) = self
            && replay.unused_calls() > 0
        {
            let path = replay.path().display();
            output.warn(format!("{} recorded calls of {path} were not used", replay.unused_calls()));
        }
    }
}

fn unwritable(error: SetupError) -> Failure {
    Failure::failed(error.to_string(), "give a file that can be written: --record FILE")
}

/// Returns the model's name without its provider.
fn model_of(name: &str) -> String {
    match name.parse::<ModelRef>() {
        Ok(parts) => parts.model,
        Err(_) => name.strip_prefix(PREFIX).unwrap_or(name).to_owned(),
    }
}

/// Returns an error if the model in a log is the replay of a cassette.
pub(crate) fn refuse_replayed(recorded: &str) -> Result<(), Failure> {
    match recorded.strip_prefix(ID).is_some_and(|rest| rest.starts_with(':')) {
        true => Err(Failure::usage(
            "the run was started with --replay, and its cassette is not in the log",
            "start it again with --replay FILE, or choose a model: --model PROVIDER:MODEL",
        )),
        false => Ok(()),
    }
}
