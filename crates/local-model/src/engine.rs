//! The engine: a thread that owns a model and its context, and answers one prompt after the other.
//!
//! Only this file and `engine/worker.rs` use `llama`. A context belongs to one thread, so requests are sent
//! to that thread through a channel, and tokens come back through another channel as they are generated.

mod prompt_cache;
mod worker;

use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, mpsc};

use archon_types::CancellationToken;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::copying::Copying;
use crate::engine_options::LocalEngineOptions;
use crate::error::LocalModelError;
use crate::llama::{Library, Model};
use crate::matcher::Matcher;
use crate::sampler::Sampler;
use crate::vocabulary::{Token, Vocabulary};
use prompt_cache::PromptCache;

/// Facts about the opened engine, which is the library llama.cpp.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineInfo {
    /// The version of llama.cpp.
    pub version: String,
    /// The kernel in use: the library with the computing code for one generation of processors, such as `haswell`; or
    /// `built from source`.
    pub kernel: String,
    /// The number of threads that compute.
    pub threads: u32,
    /// The system libraries that the engine uses, with their versions.
    pub system: String,
}

impl EngineInfo {
    /// Returns the facts on which answers depend as one text: `llama.cpp VERSION, kernel KERNEL, 2 threads`.
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

/// Opens the engine without a model, to check that it can be used.
///
/// # Errors
/// [`LocalModelError`] if the engine is missing, is not the pinned one, or cannot run on this machine.
pub fn open_engine(options: &LocalEngineOptions) -> Result<EngineInfo, LocalModelError> {
    let library = Library::open(options)?;
    let (version, kernel) = (library.version().to_owned(), library.kernel().to_owned());
    Ok(EngineInfo { version, kernel, threads: options.threads.max(1), system: library.system() })
}

/// A prompt in tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) tokens: Vec<Token>,
    /// The number of leading tokens that are the same in every conversation.
    pub(crate) fixed: usize,
}

/// A prompt and the options of its answer.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) prompt: Prompt,
    /// The possible beginnings of the answer, of which the most likely one is used; empty if the model may
    /// begin freely.
    pub(crate) choices: Vec<Beginning>,
    /// The matcher of the grammar that the answer must follow; `None` if any text is allowed.
    pub(crate) matcher: Option<Matcher>,
    pub(crate) sampler: Sampler,
    /// The maximum number of tokens of the answer.
    pub(crate) max_tokens: usize,
    /// Cancels the work before the next token, or between two batches of the prompt.
    pub(crate) cancel: CancellationToken,
    /// The channel for the events. The work stops when the channel's receiver is dropped.
    pub(crate) steps: UnboundedSender<Step>,
}

/// One of several beginnings of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    /// The text whose likelihood selects this beginning.
    pub(crate) evidence: Evidence,
    /// The score of this beginning without a request. It is subtracted from the score with the request, so
    /// that a beginning that the model always prefers has no advantage.
    pub(crate) bias: f32,
    /// Text that the model reads between the prompt and `read`. It is the same for every request, and not
    /// part of the answer.
    pub(crate) shown: String,
    /// Text that the model reads between `shown` and `said`. It is not part of the answer.
    pub(crate) read: String,
    /// The first words of the answer.
    pub(crate) said: String,
    /// The helper that copies texts of the request into the answer after `said`; `None` for no copying.
    pub(crate) copying: Option<Copying>,
}

/// A text whose log-probability is computed (`judged`), and the text between the prompt and it (`given`).
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) given: String,
    pub(crate) judged: String,
}

/// Prompts, and texts whose log-probability after each prompt is computed.
#[derive(Debug)]
pub(crate) struct Scoring {
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) texts: Vec<Evidence>,
    pub(crate) cancel: CancellationToken,
    /// The channel for the result: one list for each prompt, with a log-probability for each text; `None` if
    /// the work was cancelled.
    pub(crate) reply: oneshot::Sender<Result<Option<Vec<Vec<f32>>>, LocalModelError>>,
}

/// An event while a prompt is answered.
#[derive(Debug)]
pub(crate) enum Step {
    /// The prompt was processed: `fresh` tokens were computed, `reused` tokens were still in the context.
    Read { fresh: usize, reused: usize },
    /// A part of the answer, of `tokens` tokens; it may end inside a UTF-8 sequence.
    Piece { bytes: Vec<u8>, tokens: usize },
    /// The answer ended.
    Done(End),
    /// The engine failed.
    Failed(LocalModelError),
}

/// The reason why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer is complete.
    Complete,
    /// The answer reached its token limit.
    Length,
    /// The answer was cancelled.
    Cancelled,
}

/// Work for the engine's thread.
#[derive(Debug)]
enum Job {
    Generate(Generation),
    Score(Scoring),
}

/// A loaded model with its thread. Clones share both; the thread ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Engine {
    model: Arc<Loaded>,
    jobs: mpsc::Sender<Job>,
    /// The version, the kernel and the number of threads, for the run's log.
    info: Arc<str>,
}

struct Loaded {
    model: Arc<Model>,
    /// The size of the context in tokens.
    context: u32,
    vocabulary: Vocabulary,
    /// The texts that the tokenizer would read as control tokens.
    control: Vec<String>,
}

impl Engine {
    /// Loads the model and starts its thread.
    ///
    /// # Errors
    /// [`LocalModelError`] if the file is missing, unreadable, damaged or not a GGUF file, or if the context
    /// cannot be created.
    pub(crate) fn load(path: &Path, options: &LocalEngineOptions) -> Result<Self, LocalModelError> {
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

    /// Returns the version, the kernel and the number of threads.
    pub(crate) fn info(&self) -> &str {
        &self.info
    }

    /// Returns the size of the context in tokens, including the answer.
    pub(crate) fn context(&self) -> u64 {
        u64::from(self.model.context)
    }

    /// Returns the model's name from its file. The name may be empty.
    pub(crate) fn name(&self) -> String {
        self.model.model.metadata("general.name").unwrap_or_default()
    }

    /// Returns true if the model has a chat template that the engine knows.
    pub(crate) fn can_chat(&self) -> bool {
        self.chat(&[("user", "?".to_owned())]).is_some()
    }

    /// Starts the answer to a prompt; events are sent to its `steps`. Prompts are answered one after the
    /// other.
    pub(crate) fn start(&self, generation: Generation) {
        if let Err(mpsc::SendError(Job::Generate(generation))) = self.jobs.send(Job::Generate(generation)) {
            let _ = generation.steps.send(Step::Failed(engine_ended()));
        }
    }

    /// Computes the log-probability of texts; the result is sent to the `reply` of `scoring`.
    pub(crate) fn score(&self, scoring: Scoring) {
        if let Err(mpsc::SendError(Job::Score(scoring))) = self.jobs.send(Job::Score(scoring)) {
            let _ = scoring.reply.send(Err(engine_ended()));
        }
    }

    /// Returns the tokens of a prompt. Control tokens in the text, such as turn markers, are read as control
    /// tokens.
    pub(crate) fn tokenize(&self, text: &str) -> Vec<Token> {
        let model = &self.model.model;
        model.tokenize(text.as_bytes(), model.marks_beginning(), true)
    }

    /// Returns the texts that would be read as control tokens; only the chat template may write these texts.
    pub(crate) fn control_texts(&self) -> &[String] {
        &self.model.control
    }

    /// Formats messages (role, text) with the model's chat template, up to the beginning of the assistant's
    /// turn. `None` if the engine does not support the model's template.
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

    /// Returns the tokens of a text in the middle of a document; nothing in it is read as a control token.
    fn tokens(&self, text: &[u8]) -> Vec<Token> {
        self.model.tokenize(text, false, false)
    }
}

/// The minimum context in tokens; a smaller one has no room for an answer.
const SMALLEST_CONTEXT: u32 = 64;

/// Returns an error for a file that is missing, unreadable or of another format: the engine reports the same
/// error for all of these.
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

fn engine_ended() -> LocalModelError {
    LocalModelError::engine("taking a prompt", "the engine's thread has ended")
}
