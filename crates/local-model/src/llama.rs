//! Safe wrappers of the used parts of llama.cpp: the opened library, a model, and a context that processes
//! tokens.
//!
//! This is the only module with unsafe code. It is sound for these reasons:
//!
//! - The declarations (`types`, `functions`) are those of the header of the exact version that is opened;
//!   `library` opens no file with another SHA-256, and refuses a library that lacks a function or reports
//!   another version. When built from source (`llama/linked.rs`), the compiler checks the functions against
//!   the source that is built.
//! - The library is opened once per process and never closed, so pointers that it returns stay valid as it
//!   documents.
//! - A [`Model`] is read-only once it is loaded, and llama.cpp lets many threads read one. A [`Context`] is
//!   changed through `&mut` only, stays on the thread that made it, and keeps its model alive.
//! - Every pointer that is passed comes from a live slice or string, with its length.
#![allow(unsafe_code, reason = "calls a C library; the reasons stand above and at each call")]

mod functions;
#[cfg(not(feature = "from-source"))]
mod types;

// The library: built with this program, opened at run time, or not available on this platform.
#[cfg_attr(feature = "from-source", path = "llama/linked.rs")]
#[cfg_attr(
    all(not(feature = "from-source"), not(all(target_os = "linux", target_env = "gnu"))),
    path = "llama/absent.rs"
)]
mod library;

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::error::LocalModelError;
use crate::vocabulary::Token;
use functions::Functions;
pub(crate) use library::Library;
#[cfg(feature = "from-source")]
use llama_cpp_sys_2 as types;
use types::{llama_batch, llama_chat_message, llama_context, llama_model, llama_vocab};

/// A model in memory.
pub(crate) struct Model {
    functions: &'static Functions,
    model: NonNull<llama_model>,
    vocab: NonNull<llama_vocab>,
}

// SAFETY: llama.cpp does not change a loaded model, and documents that contexts of several threads may share
// it.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

impl Model {
    /// Loads a GGUF file. Returns `None` if llama.cpp cannot load it.
    pub(crate) fn load(library: &'static Library, path: &Path) -> Option<Self> {
        let functions = library.functions();
        let path = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
        // SAFETY: `path` ends with a zero byte and outlives the call; the parameters are the library's own.
        let model = unsafe {
            let mut params = (functions.llama_model_default_params)();
            params.n_gpu_layers = 0;
            (functions.llama_model_load_from_file)(path.as_ptr(), params)
        };
        let model = NonNull::new(model)?;
        // SAFETY: the model was just loaded; its vocabulary lives as long as it does.
        let vocab = unsafe { (functions.llama_model_get_vocab)(model.as_ptr()) };
        let Some(vocab) = NonNull::new(vocab.cast_mut()) else {
            // SAFETY: loaded above and used by nobody.
            unsafe { (functions.llama_model_free)(model.as_ptr()) };
            return None;
        };
        Some(Self { functions, model, vocab })
    }

    /// Returns the size of the context in tokens that the model was trained for.
    pub(crate) fn trained_context(&self) -> u32 {
        // SAFETY: the model is loaded.
        let tokens = unsafe { (self.functions.llama_model_n_ctx_train)(self.model.as_ptr()) };
        u32::try_from(tokens).unwrap_or(0)
    }

    /// Returns a text from the file's metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        let mut text = vec![0_u8; 4096];
        // SAFETY: the buffer is as long as is said, and what is written ends with a zero byte inside of it.
        let length = unsafe {
            let (model, key) = (self.model.as_ptr(), key.as_ptr());
            (self.functions.llama_model_meta_val_str)(model, key, text.as_mut_ptr().cast(), text.len())
        };
        text.truncate(usize::try_from(length).ok()?.min(text.len() - 1));
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the number of tokens in the vocabulary. The ids of tokens begin at 0.
    pub(crate) fn vocabulary_size(&self) -> Token {
        // SAFETY: the vocabulary is its model's.
        unsafe { (self.functions.llama_vocab_n_tokens)(self.vocab.as_ptr()) }
    }

    /// Returns true if the token is a control token, which has no text.
    pub(crate) fn is_control(&self, token: Token) -> bool {
        // SAFETY: any number may be asked about.
        unsafe { (self.functions.llama_vocab_is_control)(self.vocab.as_ptr(), token) }
    }

    /// Returns true if the token ends an answer.
    pub(crate) fn ends_text(&self, token: Token) -> bool {
        // SAFETY: any number may be asked about.
        unsafe { (self.functions.llama_vocab_is_eog)(self.vocab.as_ptr(), token) }
    }

    /// Returns the text of a token; with `special`, also the name of a control token.
    pub(crate) fn piece(&self, token: Token, special: bool) -> Vec<u8> {
        let mut piece = vec![0_u8; 32];
        loop {
            let room = i32::try_from(piece.len()).unwrap_or(i32::MAX);
            // SAFETY: the buffer is as long as is said.
            let length = unsafe {
                let (vocab, text) = (self.vocab.as_ptr(), piece.as_mut_ptr().cast::<c_char>());
                (self.functions.llama_token_to_piece)(vocab, token, text, room, 0, special)
            };
            match usize::try_from(length) {
                Ok(length) => {
                    piece.truncate(length);
                    return piece;
                }
                // A negative length is the room that is needed.
                Err(_) => piece.resize(length.unsigned_abs() as usize, 0),
            }
        }
    }

    /// Returns true if a prompt must begin with the model's token for the beginning of a text.
    pub(crate) fn marks_beginning(&self) -> bool {
        // SAFETY: the vocabulary is its model's.
        unsafe { (self.functions.llama_vocab_get_add_bos)(self.vocab.as_ptr()) }
    }

    /// Returns the tokens of a text; with `special`, the names of control tokens become these tokens.
    pub(crate) fn tokenize(&self, text: &[u8], beginning: bool, special: bool) -> Vec<Token> {
        let mut tokens = vec![0; text.len() + 2];
        loop {
            let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
            let room = i32::try_from(tokens.len()).unwrap_or(i32::MAX);
            // SAFETY: both buffers are as long as is said.
            let count = unsafe {
                let (vocab, text) = (self.vocab.as_ptr(), text.as_ptr().cast::<c_char>());
                (self.functions.llama_tokenize)(
                    vocab,
                    text,
                    length,
                    tokens.as_mut_ptr(),
                    room,
                    beginning,
                    special,
                )
            };
            match usize::try_from(count) {
                Ok(count) => {
                    tokens.truncate(count);
                    return tokens;
                }
                Err(_) if count == i32::MIN => return Vec::new(),
                Err(_) => tokens.resize(count.unsigned_abs() as usize, 0),
            }
        }
    }

    /// Formats messages (role, text) with the model's own chat template, up to the beginning of the
    /// assistant's turn. `None` if llama.cpp does not support the model's template.
    pub(crate) fn chat(&self, messages: &[(&str, String)]) -> Option<String> {
        let texts: Option<Vec<(CString, CString)>> = messages
            .iter()
            .map(|(role, text)| Some((CString::new(*role).ok()?, CString::new(text.replace('\0', "")).ok()?)))
            .collect();
        let texts = texts?;
        let chat: Vec<_> = texts
            .iter()
            .map(|(role, text)| llama_chat_message { role: role.as_ptr(), content: text.as_ptr() })
            .collect();
        let mut written = vec![0_u8; 1024 + messages.iter().map(|(_, text)| text.len() + 64).sum::<usize>()];
        loop {
            let room = i32::try_from(written.len()).ok()?;
            // SAFETY: the template lives as long as the model, the messages point into `texts`, and the buffer is as
            // long as is said.
            let length = unsafe {
                let template = (self.functions.llama_model_chat_template)(self.model.as_ptr(), ptr::null());
                if template.is_null() {
                    return None;
                }
                let into = written.as_mut_ptr().cast::<c_char>();
                (self.functions.llama_chat_apply_template)(
                    template,
                    chat.as_ptr(),
                    chat.len(),
                    true,
                    into,
                    room,
                )
            };
            let length = usize::try_from(length).ok()?;
            if length <= written.len() {
                written.truncate(length);
                return String::from_utf8(written).ok();
            }
            written.resize(length, 0);
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: nobody else has it; contexts keep their model alive.
        unsafe { (self.functions.llama_model_free)(self.model.as_ptr()) }
    }
}

/// Options of a context.
pub(crate) struct ContextOptions {
    /// The size of the context in tokens.
    pub(crate) size: u32,
    /// The number of tokens that are processed at once.
    pub(crate) batch: u32,
    /// The number of threads that compute.
    pub(crate) threads: u32,
}

/// A context: the state of a model after the tokens that it processed.
pub(crate) struct Context {
    functions: &'static Functions,
    context: NonNull<llama_context>,
    /// The number of tokens in the vocabulary, which is also the number of logits after a token.
    vocabulary: usize,
    batch: Batch,
    /// Keeps the model alive; freed after the context.
    _model: Arc<Model>,
}

/// The tokens of a batch after which logits are computed: the last one or all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcomes {
    Last,
    All,
}

/// The arrays in which a batch of tokens is passed to llama.cpp.
#[derive(Default)]
struct Batch {
    tokens: Vec<Token>,
    positions: Vec<i32>,
    sequences: Vec<i32>,
    sequence_ids: Vec<*mut i32>,
    outcomes: Vec<i8>,
}

impl Context {
    /// Creates an empty context.
    ///
    /// # Errors
    /// [`LocalModelError`] if there is not enough memory, or if the model cannot be run.
    pub(crate) fn new(model: Arc<Model>, options: &ContextOptions) -> Result<Self, LocalModelError> {
        let functions = model.functions;
        let threads = i32::try_from(options.threads).unwrap_or(1);
        // SAFETY: the parameters are the library's own but for plain numbers; the model lives as long as the context.
        let context = unsafe {
            let mut params = (functions.llama_context_default_params)();
            (params.n_ctx, params.n_batch, params.n_ubatch) = (options.size, options.batch, options.batch);
            (params.n_threads, params.n_threads_batch) = (threads, threads);
            // With a sliding window only that much of the past would be kept, and nothing could be reused.
            params.swa_full = true;
            (functions.llama_init_from_model)(model.model.as_ptr(), params)
        };
        let context = NonNull::new(context)
            .ok_or_else(|| LocalModelError::engine("creating a context", "llama.cpp returned no context"))?;
        let vocabulary = usize::try_from(model.vocabulary_size()).unwrap_or(0);
        Ok(Self { functions, context, vocabulary, batch: Batch::default(), _model: model })
    }

    /// Processes tokens; the first one has the given `position`.
    ///
    /// # Errors
    /// The error number of llama.cpp. The state of the context is then unknown: [clear](Self::clear) it.
    pub(crate) fn decode(
        &mut self,
        tokens: &[Token],
        position: usize,
        outcomes: Outcomes,
    ) -> Result<(), i32> {
        let batch = self.batch.fill(tokens, position, outcomes);
        // SAFETY: the batch points into arrays of `self.batch` that are as long as it says; llama.cpp copies them.
        match unsafe { (self.functions.llama_decode)(self.context.as_ptr(), batch) } {
            0 => Ok(()),
            number => Err(number),
        }
    }

    /// Returns the logits after token `row` of the last batch, counted from 0; -1 means the last token. There
    /// is one logit for each token of the vocabulary. `None` if no logits were computed after that token.
    pub(crate) fn logits(&self, row: i32) -> Option<&[f32]> {
        // SAFETY: llama.cpp returns null for a row without them, else one number for each token of the vocabulary,
        // which stays until the next call that changes the context: that takes `&mut self`.
        unsafe {
            let logits = (self.functions.llama_get_logits_ith)(self.context.as_ptr(), row);
            (!logits.is_null()).then(|| std::slice::from_raw_parts(logits.cast_const(), self.vocabulary))
        }
    }

    /// Removes all tokens from `position` on. Returns false if the model's architecture cannot remove a
    /// part.
    pub(crate) fn forget_from(&mut self, position: usize) -> bool {
        let from = i32::try_from(position).unwrap_or(i32::MAX);
        // SAFETY: the memory is its context's.
        unsafe {
            let memory = (self.functions.llama_get_memory)(self.context.as_ptr());
            (self.functions.llama_memory_seq_rm)(memory, SEQUENCE, from, -1)
        }
    }

    /// Removes all tokens.
    pub(crate) fn clear(&mut self) {
        // SAFETY: the memory is its context's.
        unsafe {
            let memory = (self.functions.llama_get_memory)(self.context.as_ptr());
            (self.functions.llama_memory_clear)(memory, false);
        }
    }

    /// Returns the state as bytes, for [`restore`](Self::restore) with the same model, library and options.
    pub(crate) fn save(&mut self) -> Vec<u8> {
        // SAFETY: the buffer is as long as is said.
        unsafe {
            let context = self.context.as_ptr();
            let mut state = vec![0; (self.functions.llama_state_seq_get_size)(context, SEQUENCE)];
            let written =
                (self.functions.llama_state_seq_get_data)(context, state.as_mut_ptr(), state.len(), SEQUENCE);
            state.truncate(written);
            state
        }
    }

    /// Replaces the state by one from [`save`](Self::save). If that fails, returns false, and the context is
    /// empty.
    pub(crate) fn restore(&mut self, state: &[u8]) -> bool {
        self.clear();
        // SAFETY: the buffer is as long as is said; llama.cpp checks what is in it against the context.
        let read = unsafe {
            let context = self.context.as_ptr();
            (self.functions.llama_state_seq_set_data)(context, state.as_ptr(), state.len(), SEQUENCE)
        };
        if read == 0 {
            self.clear();
        }
        read != 0
    }
}

/// The only sequence of a context.
const SEQUENCE: i32 = 0;

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { (self.functions.llama_free)(self.context.as_ptr()) }
    }
}

impl Batch {
    fn fill(&mut self, tokens: &[Token], position: usize, outcomes: Outcomes) -> llama_batch {
        let count = tokens.len();
        self.tokens.clear();
        self.tokens.extend_from_slice(tokens);
        self.positions.clear();
        self.positions.extend((position..position + count).map(|at| i32::try_from(at).unwrap_or(i32::MAX)));
        self.sequences.clear();
        self.sequences.resize(count.max(1), 1);
        self.outcomes.clear();
        self.outcomes.resize(count, i8::from(outcomes == Outcomes::All));
        if let Some(last) = self.outcomes.last_mut() {
            *last = 1;
        }
        // Each token belongs to one sequence; all entries point to the same number, which llama.cpp only
        // reads.
        let sequence = ptr::from_ref(&SEQUENCE).cast_mut();
        self.sequence_ids.clear();
        self.sequence_ids.resize(count, sequence);
        llama_batch {
            n_tokens: i32::try_from(count).unwrap_or(i32::MAX),
            token: self.tokens.as_mut_ptr(),
            embd: ptr::null_mut(),
            pos: self.positions.as_mut_ptr(),
            n_seq_id: self.sequences.as_mut_ptr(),
            seq_id: self.sequence_ids.as_mut_ptr(),
            logits: self.outcomes.as_mut_ptr(),
        }
    }
}

/// Copies a text that llama.cpp returned.
///
/// # Safety
/// The pointer is null, or points to a text that ends with a zero byte and lives as long as the library.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller guarantees it.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// Discards the log output of llama.cpp.
unsafe extern "C" fn silent(_: types::ggml_log_level, _: *const c_char, _: *mut c_void) {}
