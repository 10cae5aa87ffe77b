//! Implements [`Provider`] for a local model file.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use archon_types::{
    AssistantMessage, BoxStream, CancellationToken, Capabilities, Clock, Message, ModelEvent, Provider,
    ProviderError, Reads, Request, Timestamp,
};
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot};

use crate::copying::Copying;
use crate::engine::{self, Beginning, End, Engine, Evidence, Generation, Scoring, Step};
use crate::engine_options::LocalEngineOptions;
use crate::error::LocalModelError;
use crate::listener::Listener;
use crate::matcher::Matcher;
use crate::prompt::{AfterResult, Prompt, Reply, SAYING_NOTHING, Text, Writer, heading};
use crate::reply::{Choice, Form, ReplyReader, reply_grammar};
use crate::sampler::Sampler;
use crate::schema::{SchemaLimits, schema_grammar};

/// Options of a [`LocalModel`].
///
/// ```
/// use std::sync::Arc;
///
/// use archon_local_model::{AfterResult, LocalEngineOptions, LocalModelOptions};
/// use archon_types::Clock;
///
/// fn options(clock: Arc<dyn Clock>) -> LocalModelOptions {
///     LocalModelOptions::default()
///         .with_engine(LocalEngineOptions::default().with_threads(2))
///         .with_max_tokens(500)
///         .with_after_result(AfterResult::Free)
///         .with_copying(2.0)
///         .with_clock(clock)
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct LocalModelOptions {
    /// Options of the engine.
    pub engine: LocalEngineOptions,
    /// The maximum number of answer tokens for a request that sets no limit. Default 512.
    pub max_tokens: u32,
    /// The maximum lengths of texts and lists whose schema sets none. Default: 4,000 characters, 64 items.
    pub limits: SchemaLimits,
    /// Decides if the model may call another tool after a successful call. Default [`AfterResult::Answer`].
    pub after_result: AfterResult,
    /// Makes it more likely that arguments copy words of the conversation, and answers copy words of tool results: the
    /// number is added to the logits of tokens that continue such a word. Default 3; 0 turns this off.
    pub copying: f32,
    /// The clock that gives the times of messages. Default: the system's clock.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Default for LocalModelOptions {
    fn default() -> Self {
        Self {
            engine: LocalEngineOptions::default(),
            max_tokens: 512,
            limits: SchemaLimits::default(),
            after_result: AfterResult::default(),
            copying: 3.0,
            clock: None,
        }
    }
}

impl LocalModelOptions {
    /// Sets the options of the engine: folder, threads, context and others.
    pub fn with_engine(mut self, engine: LocalEngineOptions) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the maximum number of answer tokens for a request that sets no limit. Default 512.
    pub fn with_max_tokens(mut self, max_tokens: u32) -> Self {
        self.max_tokens = max_tokens;
        self
    }

    /// Sets if the model may call another tool after a successful call. Default [`AfterResult::Answer`].
    pub fn with_after_result(mut self, after_result: AfterResult) -> Self {
        self.after_result = after_result;
        self
    }

    /// Sets how likely arguments copy words of the request; see [`copying`](Self::copying). Default 3; 0
    /// turns this off.
    pub fn with_copying(mut self, copying: f32) -> Self {
        self.copying = copying;
        self
    }

    /// Sets the clock that gives the times of messages. Default: the system's clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
}

/// A model that runs in this process. Clones share the model; requests are answered one after the other.
///
/// ```
/// use archon_local_model::{LocalModel, LocalModelError, LocalModelOptions};
///
/// fn load() -> Result<LocalModel, LocalModelError> {
///     LocalModel::load("models/gemma.gguf".as_ref(), LocalModelOptions::default())
/// }
/// ```
#[derive(Clone)]
pub struct LocalModel(Arc<Inner>);

struct Inner {
    engine: Engine,
    options: LocalModelOptions,
    can_chat: bool,
    is_small: bool,
    /// The scores that replies have when no question is asked, by prompt.
    biases: Mutex<HashMap<String, Vec<f32>>>,
}

/// The size of the model file in bytes below which a model counts as small: with the usual four bits, about
/// a billion parameters.
const SMALL: u64 = 900_000_000;

impl LocalModel {
    /// Loads a GGUF file. This reads the whole file and may take seconds: do not call it on an async thread.
    ///
    /// # Errors
    /// [`LocalModelError`] if the file is missing, unreadable, damaged or not a GGUF file, if the engine is
    /// missing or cannot run, or if there is not enough memory.
    pub fn load(path: &Path, options: LocalModelOptions) -> Result<Self, LocalModelError> {
        let engine = Engine::load(path, &options.engine)?;
        let can_chat = engine.can_chat();
        let is_small = path.metadata().is_ok_and(|file| file.len() < SMALL);
        Ok(Self(Arc::new(Inner { engine, options, can_chat, is_small, biases: Mutex::default() })))
    }

    /// Returns the name in the metadata of the model file (`general.name`); empty if the file has none.
    pub fn name(&self) -> String {
        self.0.engine.name()
    }
}

impl std::fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LocalModel").field(&self.0.engine).finish()
    }
}

impl Provider for LocalModel {
    fn id(&self) -> &str {
        "local"
    }

    fn capabilities(&self, _: &str) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.context_window = Some(self.0.engine.context());
        capabilities.is_small = self.0.is_small;
        capabilities.reads = Reads { images: Some(false), pdfs: Some(false) };
        capabilities
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let call = Call { model: self.0.clone(), request, cancel };
        futures_util::stream::once(call.begin()).flatten().boxed()
    }
}

type Events = BoxStream<'static, Result<ModelEvent, ProviderError>>;

/// One request while it is answered.
struct Call {
    model: Arc<Inner>,
    request: Request,
    cancel: CancellationToken,
}

impl Call {
    async fn begin(self) -> Events {
        let prompt = self.writer().write(&self.request);
        let beginnings = match self.cancel.run_until_cancelled(self.beginnings(&prompt)).await {
            Some(Ok(beginnings)) => beginnings,
            Some(Err(e)) => return futures_util::stream::iter([Err(e.into())]).boxed(),
            None => Vec::new(),
        };
        let (steps, heard) = mpsc::unbounded_channel();
        self.model.engine.start(self.generation(&prompt, beginnings, steps));
        let message = AssistantMessage {
            model: self.request.model.clone(),
            provider: "local".to_owned(),
            engine: Some(self.model.engine.info().to_owned()),
            ..AssistantMessage::default()
        };
        let stops = self.request.options.stop.clone();
        let listener = Listener::new(message, reader(&prompt.reply), call_id(&self.request), stops);
        let state = State { call: self, listener, heard, ready: VecDeque::new(), over: false };
        futures_util::stream::unfold(state, State::next).boxed()
    }

    fn writer(&self) -> Writer<'_> {
        Writer {
            can_chat: self.model.can_chat,
            after_result: self.model.options.after_result,
            control: self.model.engine.control_texts(),
        }
    }

    fn generation(
        &self,
        prompt: &Prompt,
        choices: Vec<Beginning>,
        steps: mpsc::UnboundedSender<Step>,
    ) -> Generation {
        let options = &self.request.options;
        let limits = self.model.options.limits;
        let matcher = match &prompt.reply {
            Reply::Free => None,
            Reply::Document(schema) => Some(Matcher::new(Arc::new(schema_grammar(schema, limits)))),
            Reply::Choice { form, choices, .. } => {
                let mut matcher = Matcher::new(Arc::new(reply_grammar(*form, choices, limits)));
                matcher.advance(form.lead().as_bytes());
                Some(matcher)
            }
        };
        Generation {
            prompt: self.in_tokens(prompt),
            choices,
            matcher,
            sampler: Sampler::new(options.temperature.unwrap_or(0.0), options.seed.unwrap_or(0)),
            max_tokens: options.max_tokens.unwrap_or(self.model.options.max_tokens) as usize,
            cancel: self.cancel.clone(),
            steps,
        }
    }

    fn in_tokens(&self, prompt: &Prompt) -> engine::Prompt {
        let (tokens, fixed) = (self.tokens(&prompt.text), self.tokens(&prompt.fixed));
        // The last tokens of the fixed text may differ when text follows it; and the last token of a prompt
        // is always processed again.
        let same = tokens.iter().zip(&fixed).take_while(|(a, b)| a == b).count();
        let fixed = same.min(tokens.len().saturating_sub(1));
        engine::Prompt { tokens, fixed }
    }

    fn tokens(&self, text: &Text) -> Vec<i32> {
        let engine = &self.model.engine;
        match text {
            Text::Transcript(text) => engine.tokenize(text),
            // `can_chat` says that there is a template; if it fails, the plain texts are used.
            Text::Chat(messages, lead) => {
                let plain = || messages.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
                engine.tokenize(&(engine.chat(messages).unwrap_or_else(plain) + lead))
            }
        }
    }

    /// Returns the possible beginnings of the reply, each with the text whose probability selects it.
    async fn beginnings(&self, prompt: &Prompt) -> Result<Vec<Beginning>, LocalModelError> {
        let Reply::Choice { form, choices, answer, question, before_answer, .. } = &prompt.reply else {
            return Ok(Vec::new());
        };
        let biases = match question {
            Some(_) => HashMap::new(),
            None => self.biases(*form, choices, answer).await?,
        };
        let weight = self.model.options.copying;
        let beginning = |choice: &Choice| {
            let source = if choice.name == *answer { &prompt.results } else { &prompt.spoken };
            let said = format!("{}{}", form.before_name(), choice.name);
            let (evidence, read) = match question {
                // Small models are better at judging which question fits a heading than which heading fits a
                // question (Min et al. 2022, "Noisy channel prompting").
                Some(question) => {
                    let given = heading(&choice.name);
                    let read = format!("{given}{question}{}", form.lead());
                    (Evidence { given, judged: question.clone() }, read)
                }
                None => (Evidence { given: String::new(), judged: said.clone() }, String::new()),
            };
            let shown = if choice.name == *answer { before_answer.clone() } else { String::new() };
            Beginning {
                shown,
                evidence,
                bias: biases.get(&choice.name).copied().unwrap_or(0.0),
                read,
                said,
                copying: (weight > 0.0 && !source.is_empty()).then(|| Copying::new(source, weight)),
            }
        };
        Ok(choices.iter().map(beginning).collect())
    }

    /// Returns the score that each reply has when no question is asked (Zhao et al. 2021, "Calibrate before
    /// use"). Small models always prefer some tools; subtracting this score removes that advantage.
    async fn biases(
        &self,
        form: Form,
        choices: &[Choice],
        answer: &str,
    ) -> Result<HashMap<String, f32>, LocalModelError> {
        if choices.len() < 2 {
            return Ok(HashMap::new());
        }
        let names: Vec<_> =
            self.request.tools.iter().map(|tool| tool.name.clone()).chain([answer.to_owned()]).collect();
        let writer = self.writer();
        let prompts: Vec<_> =
            SAYING_NOTHING.iter().map(|nothing| writer.saying_nothing(&self.request, nothing)).collect();
        let key = format!("{:?}", prompts.first().map(|prompt| &prompt.text));
        let known = self.model.biases.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let biases = match known {
            Some(biases) => biases,
            None => {
                let prompts = prompts.iter().map(|prompt| self.in_tokens(prompt)).collect();
                let text =
                    |name| Evidence { given: String::new(), judged: format!("{}{name}", form.before_name()) };
                let texts = names.iter().map(text).collect();
                let (reply, scores) = oneshot::channel();
                let cancel = self.cancel.clone();
                self.model.engine.score(Scoring { prompts, texts, cancel, reply });
                let scores = scores.await.map_err(|e| LocalModelError::engine("scoring the tools", e))??;
                let Some(scores) = scores else { return Ok(HashMap::new()) };
                let mean = |at| scores.iter().map(|of: &Vec<f32>| of[at]).sum::<f32>() / scores.len() as f32;
                let biases: Vec<_> = (0..names.len()).map(mean).collect();
                self.model.biases.lock().unwrap_or_else(PoisonError::into_inner).insert(key, biases.clone());
                biases
            }
        };
        Ok(names.into_iter().zip(biases).collect())
    }

    fn now(&self) -> Timestamp {
        match &self.model.options.clock {
            Some(clock) => clock.now(),
            None => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
            }
        }
    }
}

/// The state of a stream of events.
struct State {
    call: Call,
    listener: Listener,
    heard: mpsc::UnboundedReceiver<Step>,
    ready: VecDeque<Result<ModelEvent, ProviderError>>,
    over: bool,
}

impl State {
    async fn next(mut self) -> Option<(Result<ModelEvent, ProviderError>, Self)> {
        while self.ready.is_empty() && !self.over {
            // A cancel ends the stream at once, even while the engine works on another request.
            let step = self.call.cancel.run_until_cancelled(self.heard.recv()).await;
            match step.unwrap_or(Some(Step::Done(End::Cancelled))) {
                Some(Step::Read { fresh, reused }) => {
                    self.ready.push_back(Ok(self.listener.prompt_was_read(fresh, reused)));
                }
                Some(Step::Piece { bytes, tokens }) => {
                    self.ready.extend(self.listener.receive(&bytes, tokens).into_iter().map(Ok));
                }
                Some(Step::Done(end)) => self.finish(end),
                Some(Step::Failed(e)) => self.fail(e),
                None => self.fail(LocalModelError::engine("answering", "the engine's thread has ended")),
            }
            if self.listener.was_stopped() && !self.over {
                self.finish(End::Complete);
            }
        }
        let event = self.ready.pop_front()?;
        Some((event, self))
    }

    fn fail(&mut self, error: LocalModelError) {
        self.over = true;
        self.ready.push_back(Err(error.into()));
    }

    fn finish(&mut self, end: End) {
        self.over = true;
        let now = self.call.now();
        let (events, message) = self.listener.finish(end, now);
        self.ready.extend(events.into_iter().map(Ok));
        self.ready.push_back(Ok(ModelEvent::Done(Box::new(message))));
    }
}

/// Returns a reader that splits the reply; `None` if the reply has no form.
fn reader(reply: &Reply) -> Option<ReplyReader> {
    match reply {
        Reply::Choice { form, answer, answer_form, .. } => {
            let mut reader = ReplyReader::new(*form, answer, answer_form.clone());
            reader.push(form.lead().as_bytes());
            Some(reader)
        }
        _ => None,
    }
}

/// Returns an id that no other tool call of the conversation has.
fn call_id(request: &Request) -> String {
    let calls = request.messages.iter().filter_map(|message| match &**message {
        Message::Assistant(said) => Some(said.tool_calls().count()),
        _ => None,
    });
    format!("local-{}", calls.sum::<usize>() + 1)
}
