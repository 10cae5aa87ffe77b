//! What is used of `include/llama.h`, `ggml.h` and `ggml-backend.h` of llama.cpp 0.5.0, as C lays it out.
//!
//! Made from those headers with bindgen 0.73 and shortened: pointers to what is not used are `void`, enumerations are
//! numbers. The sizes and places that bindgen found are checked below when this is compiled.
#![allow(non_camel_case_types, reason = "the names are those of the header")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::{offset_of, size_of};

use libloading::os::unix::Library;

pub(super) type ggml_log_level = c_uint;
pub(super) type ggml_log_callback = Option<unsafe extern "C" fn(ggml_log_level, *const c_char, *mut c_void)>;

#[repr(C)]
pub(super) struct llama_model {
    _opaque: [u8; 0],
}
#[repr(C)]
pub(super) struct llama_context {
    _opaque: [u8; 0],
}
#[repr(C)]
pub(super) struct llama_vocab {
    _opaque: [u8; 0],
}
#[repr(C)]
pub(super) struct llama_memory_i {
    _opaque: [u8; 0],
}
#[repr(C)]
pub(super) struct ggml_backend_reg {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(super) struct llama_batch {
    pub(super) n_tokens: i32,
    pub(super) token: *mut i32,
    pub(super) embd: *mut f32,
    pub(super) pos: *mut i32,
    pub(super) n_seq_id: *mut i32,
    pub(super) seq_id: *mut *mut i32,
    pub(super) logits: *mut i8,
}

#[repr(C)]
pub(super) struct llama_chat_message {
    pub(super) role: *const c_char,
    pub(super) content: *const c_char,
}

#[repr(C)]
pub(super) struct llama_model_params {
    devices: *mut c_void,
    tensor_buft_overrides: *const c_void,
    pub(super) n_gpu_layers: i32,
    split_mode: c_uint,
    load_mode: c_int,
    lazy_mode: c_uint,
    main_gpu: i32,
    tensor_split: *const f32,
    progress_callback: *mut c_void,
    progress_callback_user_data: *mut c_void,
    kv_overrides: *const c_void,
    vocab_only: bool,
    check_tensors: bool,
    use_extra_bufts: bool,
    no_host: bool,
    no_alloc: bool,
    load_mtp: bool,
}

#[repr(C)]
pub(super) struct llama_context_params {
    pub(super) n_ctx: u32,
    pub(super) n_batch: u32,
    pub(super) n_ubatch: u32,
    n_seq_max: u32,
    n_rs_seq: u32,
    n_outputs_max: u32,
    n_outputs_max_per_seq: u32,
    pub(super) n_threads: i32,
    pub(super) n_threads_batch: i32,
    ctx_type: c_uint,
    rope_scaling_type: c_int,
    pooling_type: c_int,
    attention_type: c_int,
    flash_attn_type: c_int,
    rope_freq_base: f32,
    rope_freq_scale: f32,
    yarn_ext_factor: f32,
    yarn_attn_factor: f32,
    yarn_beta_fast: f32,
    yarn_beta_slow: f32,
    yarn_orig_ctx: u32,
    defrag_thold: f32,
    cb_eval: *mut c_void,
    cb_eval_user_data: *mut c_void,
    type_k: c_uint,
    type_v: c_uint,
    abort_callback: *mut c_void,
    abort_callback_data: *mut c_void,
    embeddings: bool,
    offload_kqv: bool,
    no_perf: bool,
    op_offload: bool,
    pub(super) swa_full: bool,
    kv_unified: bool,
    samplers: *mut c_void,
    n_samplers: usize,
    ctx_other: *mut llama_context,
}

const _: () = {
    assert!(size_of::<llama_batch>() == 56);
    assert!(offset_of!(llama_batch, pos) == 24);
    assert!(offset_of!(llama_batch, logits) == 48);
    assert!(size_of::<llama_chat_message>() == 16);
    assert!(size_of::<llama_model_params>() == 80);
    assert!(offset_of!(llama_model_params, n_gpu_layers) == 16);
    assert!(offset_of!(llama_model_params, kv_overrides) == 64);
    assert!(offset_of!(llama_model_params, load_mtp) == 77);
    assert!(size_of::<llama_context_params>() == 160);
    assert!(offset_of!(llama_context_params, n_threads_batch) == 32);
    assert!(offset_of!(llama_context_params, flash_attn_type) == 52);
    assert!(offset_of!(llama_context_params, defrag_thold) == 84);
    assert!(offset_of!(llama_context_params, type_k) == 104);
    assert!(offset_of!(llama_context_params, embeddings) == 128);
    assert!(offset_of!(llama_context_params, swa_full) == 132);
    assert!(offset_of!(llama_context_params, ctx_other) == 152);
};

/// Declares the functions once; looking them up follows.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)+) => {
        /// The functions that are used.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,)+
        }

        impl Functions {
            /// Looks all of them up, in the library and in those that it was linked with.
            ///
            /// # Safety
            /// The library is llama.cpp 0.5.0, and stays open.
            pub(super) unsafe fn look_up(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the caller says so; the declarations are those of its header.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)+
                    })
                }
            }
        }
    };
}

functions! {
    fn ggml_commit() -> *const c_char;
    fn ggml_log_set(callback: ggml_log_callback, user_data: *mut c_void);
    fn ggml_backend_load(path: *const c_char) -> *mut ggml_backend_reg;
    fn llama_version() -> *const c_char;
    fn llama_log_set(callback: ggml_log_callback, user_data: *mut c_void);
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
