//! The engine: one thread that owns a model and its context, and answers one prompt after the other.
//!
//! This file and `engine/worker.rs` are the only ones that use `llama`. A context belongs to one thread, so requests
//! reach that thread through a channel and tokens come back through another, as they are made.

mod prompt_cache;
mod worker;

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use archon_types::CancellationToken;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::copying::Copying;
use crate::error::LocalModelError;
use crate::llama::{Library, Model};
use crate::matcher::Matcher;
use crate::sampler::Sampler;
use crate::vocabulary::{Token, Vocabulary};
use prompt_cache::PromptCache;

/// How a model is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Threads that compute. One by default: several spin while they wait for each other, and on busy cores that is much
    /// slower than one.
    pub threads: u32,
    /// Tokens that the context holds; never more than the model was trained for.
    pub context: u32,
    /// Prompt tokens that are read at once; cancellation is noticed between two batches.
    pub batch: u32,
    /// The folder that `pull_engine` unpacked the engine into. Not read where the engine was built from source.
    pub folder: PathBuf,
    /// The kernel that computes, such as `haswell`; by default the one that suits the processor best. One for the
    /// whole process, and its figures differ from another's in the last digits: name one where results have to repeat.
    pub kernel: Option<String>,
    /// A folder where what was computed of prompts' fixed beginnings (instructions, tools, examples) is kept, so that the
    /// next process need not read them again: some 20 kB a token, eight beginnings at most. By default none is.
    pub cache: Option<PathBuf>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { threads: 1, context: 8192, batch: 128, folder: PathBuf::new(), kernel: None, cache: None }
    }
}

impl EngineOptions {
    /// The same with the engine in this folder.
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// The same with a folder for the beginnings of prompts.
    pub fn with_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// The same with this kernel.
    pub fn with_kernel(mut self, kernel: impl Into<String>) -> Self {
        self.kernel = Some(kernel.into());
        self
    }

    /// The same with this many threads.
    pub fn with_threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// The same with a context of this many tokens.
    pub fn with_context(mut self, tokens: u32) -> Self {
        self.context = tokens;
        self
    }
}

/// The engine that was opened: version, kernel, threads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineInfo {
    /// Its version.
    pub version: String,
    /// The kernel that computes.
    pub kernel: String,
    /// Threads that compute.
    pub threads: u32,
    /// The system's libraries that it uses, with their versions.
    pub system: String,
}

impl EngineInfo {
    /// All that an answer depends on: version, kernel and threads.
    pub fn name(&self) -> String {
        let Self { version, kernel, threads, .. } = self;
        let plural = if *threads == 1 { "" } else { "s" };
        format!("llama.cpp {version}, kernel {kernel}, {threads} thread{plural}")
    }
}

impl fmt::Display for EngineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.name(), self.system)
    }
}

/// Opens the engine without a model, to see whether it can be used.
///
/// # Errors
/// The engine is not there, is not the one that was pinned, or cannot run on this machine.
pub fn open_engine(options: &EngineOptions) -> Result<EngineInfo, LocalModelError> {
    let library = Library::open(options)?;
    let (version, kernel) = (library.version().to_owned(), library.kernel().to_owned());
    Ok(EngineInfo { version, kernel, threads: options.threads.max(1), system: library.system() })
}

/// A prompt in tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) tokens: Vec<Token>,
    /// So many of them are the same in every conversation.
    pub(crate) fixed: usize,
}

/// A prompt and how it is to be answered.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) prompt: Prompt,
    /// The answer begins with the likeliest of these; empty if the model begins freely.
    pub(crate) choices: Vec<Beginning>,
    /// The grammar that the answer keeps to; none if it may be any text.
    pub(crate) matcher: Option<Matcher>,
    pub(crate) sampler: Sampler,
    /// Most tokens of the answer.
    pub(crate) max_tokens: usize,
    /// Stops the work at the next token, or between two batches of the prompt.
    pub(crate) cancel: CancellationToken,
    /// Takes what happens. The work stops when nobody listens.
    pub(crate) steps: UnboundedSender<Step>,
}

/// One of several beginnings of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    /// The text whose likelihood decides.
    pub(crate) evidence: Evidence,
    /// Subtracted from its score: the score where the prompt says nothing, so that what the model likes
    /// anyway has no advantage.
    pub(crate) bias: f32,
    /// Read behind the prompt, whatever was asked, and not passed on.
    pub(crate) shown: String,
    /// Read behind that, and not passed on either.
    pub(crate) read: String,
    /// The first words of the answer.
    pub(crate) said: String,
    /// Helps with what comes behind it.
    pub(crate) copying: Option<Copying>,
}

/// A text whose log-probability is asked for, and what stands between the prompt and it.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) given: String,
    pub(crate) judged: String,
}

/// Prompts, and texts whose log-probability behind each prompt is asked for.
#[derive(Debug)]
pub(crate) struct Scoring {
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) texts: Vec<Evidence>,
    pub(crate) cancel: CancellationToken,
    /// Takes one list for each prompt, with a number for each text; `None` if it was cancelled.
    pub(crate) reply: oneshot::Sender<Result<Option<Vec<Vec<f32>>>, LocalModelError>>,
}

/// Events while a prompt is answered.
#[derive(Debug)]
pub(crate) enum Step {
    /// The prompt was read: so many tokens afresh, and so many that the context still knew.
    Read { fresh: usize, reused: usize },
    /// A piece of the answer, of so many tokens; may end inside a UTF-8 sequence.
    Piece { bytes: Vec<u8>, tokens: usize },
    /// The answer is over.
    Done(End),
    /// The engine failed.
    Failed(LocalModelError),
}

/// Why an answer is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is complete.
    Complete,
    /// It reached its limit.
    Length,
    /// It was cancelled.
    Cancelled,
}

/// Work for the engine's thread.
#[derive(Debug)]
enum Job {
    Generate(Generation),
    Score(Scoring),
}

/// A loaded model with its thread. Clones share both; the thread ends when the last one is gone.
#[derive(Clone)]
pub(crate) struct Engine {
    model: Arc<Loaded>,
    jobs: mpsc::Sender<Job>,
    /// Version, kernel and threads, as the log has them.
    info: Arc<str>,
}

struct Loaded {
    model: Arc<Model>,
    /// Tokens that the context holds.
    context: u32,
    vocabulary: Vocabulary,
    /// Texts that the tokenizer would read as control tokens.
    control: Vec<String>,
}

impl Engine {
    /// Loads the model and starts its thread.
    ///
    /// # Errors
    /// The file is missing, unreadable, no GGUF file or damaged; or the context cannot be made.
    pub(crate) fn load(path: &Path, options: &EngineOptions) -> Result<Self, LocalModelError> {
        check_file(path)?;
        let library = Library::open(options)?;
        let broken = || LocalModelError::Broken { path: path.to_owned() };
        let model = Model::load(library, path).ok_or_else(broken)?;
        let context = options.context.min(model.trained_context()).max(SMALLEST_CONTEXT);
        let model = Arc::new(Loaded::new(model, context));
        let (jobs, queue) = mpsc::channel();
        let (ready, made) = mpsc::channel();
        let info: Arc<str> = open_engine(options)?.name().into();
        let shown = format!("{info} {options:?}");
        let cache = options.cache.as_deref().and_then(|folder| PromptCache::new(folder, path, &shown));
        let (shared, options) = (model.clone(), options.clone());
        std::thread::Builder::new()
            .name("archon-local-model".into())
            .spawn(move || worker::run(&shared, &options, cache, &queue, &ready))
            .map_err(|e| LocalModelError::engine("starting its thread", e))?;
        made.recv().map_err(|e| LocalModelError::engine("starting its thread", e))??;
        Ok(Self { model, jobs, info })
    }

    /// Version, kernel and threads.
    pub(crate) fn info(&self) -> &str {
        &self.info
    }

    /// Tokens that the context holds, the answer included.
    pub(crate) fn context(&self) -> u64 {
        u64::from(self.model.context)
    }

    /// The model's name as its file gives it; may be empty.
    pub(crate) fn name(&self) -> String {
        self.model.model.metadata("general.name").unwrap_or_default()
    }

    /// Whether the model has a chat template that the engine knows.
    pub(crate) fn can_chat(&self) -> bool {
        self.chat(&[("user", "?".to_owned())]).is_some()
    }

    /// Answers a prompt; what happens goes to its `steps`. Prompts are answered one after the other.
    pub(crate) fn start(&self, generation: Generation) {
        if let Err(mpsc::SendError(Job::Generate(generation))) = self.jobs.send(Job::Generate(generation)) {
            let _ = generation.steps.send(Step::Failed(gone()));
        }
    }

    /// Tells how likely texts are; the reply goes to the scoring's `reply`.
    pub(crate) fn score(&self, scoring: Scoring) {
        if let Err(mpsc::SendError(Job::Score(scoring))) = self.jobs.send(Job::Score(scoring)) {
            let _ = scoring.reply.send(Err(gone()));
        }
    }

    /// The tokens of a prompt. Control tokens in it, such as turn markers, are read as such.
    pub(crate) fn tokenize(&self, text: &str) -> Vec<Token> {
        let model = &self.model.model;
        model.tokenize(text.as_bytes(), model.marks_beginning(), true)
    }

    /// Texts that would be read as control tokens; nobody but the chat template may write them.
    pub(crate) fn control_texts(&self) -> &[String] {
        &self.model.control
    }

    /// The messages (role, text) as the model's chat template writes them, up to the place where the
    /// assistant speaks. `None` without a template that the engine knows.
    pub(crate) fn chat(&self, messages: &[(&str, String)]) -> Option<String> {
        self.model.model.chat(messages)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("model", &self.name()).finish_non_exhaustive()
    }
}

impl Loaded {
    fn new(model: Model, context: u32) -> Self {
        let mut vocabulary = Vocabulary::default();
        let mut control = Vec::new();
        for token in 0..model.vocabulary_size() {
            let ends_text = model.ends_text(token);
            if ends_text || model.is_control(token) {
                vocabulary.push(&[], ends_text);
                control.push(String::from_utf8_lossy(&model.piece(token, true)).into_owned());
            } else {
                vocabulary.push(&model.piece(token, false), false);
            }
        }
        control.retain(|text| text.len() > 1);
        Self { model: Arc::new(model), context, vocabulary, control }
    }

    /// The tokens of a text that goes on in the middle; nothing in it is a control token.
    fn tokens(&self, text: &[u8]) -> Vec<Token> {
        self.model.tokenize(text, false, false)
    }
}

/// A context that holds less has no room for an answer.
const SMALLEST_CONTEXT: u32 = 64;

/// Tells a missing, unreadable or foreign file from a damaged one, which the engine does not.
fn check_file(path: &Path) -> Result<(), LocalModelError> {
    let unreadable = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => LocalModelError::Missing { path: path.to_owned() },
        _ => LocalModelError::Unreadable { path: path.to_owned(), source },
    };
    let mut start = Vec::new();
    std::fs::File::open(path).map_err(unreadable)?.take(8).read_to_end(&mut start).map_err(unreadable)?;
    if !start.starts_with(b"GGUF") {
        let found = String::from_utf8_lossy(&start).into_owned();
        return Err(LocalModelError::NotGguf { path: path.to_owned(), found });
    }
    Ok(())
}

fn gone() -> LocalModelError {
    LocalModelError::engine("taking a prompt", "its thread is gone")
}
