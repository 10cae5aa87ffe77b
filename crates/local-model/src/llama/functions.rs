//! The declarations of the functions of llama.cpp that are used, as in `include/llama.h`, `ggml.h` and
//! `ggml-backend.h` of 0.5.0.

use std::ffi::{c_char, c_void};

use super::types::{
    ggml_backend_reg, ggml_log_level, llama_batch, llama_chat_message, llama_context, llama_context_params,
    llama_memory_i, llama_model, llama_model_params, llama_vocab,
};

type LogCallback = Option<unsafe extern "C" fn(ggml_log_level, *const c_char, *mut c_void)>;

/// Declares the functions and the code that looks them up, from one list.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)+) => {
        /// The functions of llama.cpp that are used.
        #[cfg_attr(feature = "from-source", allow(dead_code, reason = "it loads no kernel"))]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,)+
        }

        /// The names of the functions.
        #[cfg(test)]
        pub(super) const NAMES: &[&str] = &[$(stringify!($name)),+];

        impl Functions {
            /// Looks up all functions in the library and in the libraries that it was linked with.
            ///
            /// # Safety
            /// The library must be llama.cpp 0.5.0 and must stay open.
            #[cfg(all(not(feature = "from-source"), target_os = "linux", target_env = "gnu"))]
            pub(super) unsafe fn look_up(
                library: &libloading::os::unix::Library,
            ) -> Result<Self, libloading::Error> {
                // SAFETY: the caller guarantees it; the declarations are those of its header.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)+
                    })
                }
            }

            /// Returns the functions that are linked with this program. The compiler checks the
            /// declarations.
            #[cfg(feature = "from-source")]
            pub(super) fn linked() -> Self {
                Self { $($name: llama_cpp_sys_2::$name,)+ }
            }
        }
    };
}

functions! {
    fn ggml_commit() -> *const c_char;
    fn ggml_log_set(callback: LogCallback, user_data: *mut c_void);
    fn ggml_backend_load(path: *const c_char) -> *mut ggml_backend_reg;
    fn llama_version() -> *const c_char;
    fn llama_log_set(callback: LogCallback, user_data: *mut c_void);
    fn llama_backend_init();
    fn llama_model_default_params() -> llama_model_params;
    fn llama_model_load_from_file(path: *const c_char, params: llama_model_params) -> *mut llama_model;
    fn llama_model_free(model: *mut llama_model);
    fn llama_model_n_ctx_train(model: *const llama_model) -> i32;
    fn llama_model_meta_val_str(model: *const llama_model, key: *const c_char, text: *mut c_char, room: usize) -> i32;
    fn llama_model_chat_template(model: *const llama_model, name: *const c_char) -> *const c_char;
    fn llama_model_get_vocab(model: *const llama_model) -> *const llama_vocab;
    fn llama_chat_apply_template(
        template: *const c_char,
        chat: *const llama_chat_message,
        messages: usize,
        assistant: bool,
        text: *mut c_char,
        room: i32,
    ) -> i32;
    fn llama_vocab_n_tokens(vocab: *const llama_vocab) -> i32;
    fn llama_vocab_is_control(vocab: *const llama_vocab, token: i32) -> bool;
    fn llama_vocab_is_eog(vocab: *const llama_vocab, token: i32) -> bool;
    fn llama_vocab_get_add_bos(vocab: *const llama_vocab) -> bool;
    fn llama_token_to_piece(
        vocab: *const llama_vocab,
        token: i32,
        text: *mut c_char,
        room: i32,
        skipped: i32,
        special: bool,
    ) -> i32;
    fn llama_tokenize(
        vocab: *const llama_vocab,
        text: *const c_char,
        length: i32,
        tokens: *mut i32,
        room: i32,
        add_special: bool,
        parse_special: bool,
    ) -> i32;
    fn llama_context_default_params() -> llama_context_params;
    fn llama_init_from_model(model: *mut llama_model, params: llama_context_params) -> *mut llama_context;
    fn llama_free(context: *mut llama_context);
    fn llama_decode(context: *mut llama_context, batch: llama_batch) -> i32;
    fn llama_get_logits_ith(context: *mut llama_context, row: i32) -> *mut f32;
    fn llama_get_memory(context: *const llama_context) -> *mut llama_memory_i;
    fn llama_memory_clear(memory: *mut llama_memory_i, data: bool);
    fn llama_memory_seq_rm(memory: *mut llama_memory_i, sequence: i32, from: i32, to: i32) -> bool;
    fn llama_state_seq_get_size(context: *mut llama_context, sequence: i32) -> usize;
    fn llama_state_seq_get_data(context: *mut llama_context, into: *mut u8, room: usize, sequence: i32) -> usize;
    fn llama_state_seq_set_data(context: *mut llama_context, from: *const u8, size: usize, sequence: i32) -> usize;
}
