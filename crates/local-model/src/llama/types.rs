//! The used structures of `include/llama.h` of llama.cpp 0.5.0, in the memory layout of C.
//!
//! They were generated from that header with bindgen 0.73 and shortened: pointers to unused types are
//! `void`, enumerations are numbers. The sizes and offsets of bindgen are checked at compile time below.
#![allow(non_camel_case_types, reason = "the names are those of the header")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::{offset_of, size_of};

pub(super) type ggml_log_level = c_uint;

/// Declares types that are only used behind pointers.
macro_rules! opaque {
    ($($name:ident)+) => {
        $(#[repr(C)]
        pub(super) struct $name {
            _opaque: [u8; 0],
        })+
    };
}

opaque! { llama_model llama_context llama_vocab llama_memory_i ggml_backend_reg }

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

// The library exists for 64-bit processors only, but this must compile elsewhere too.
#[cfg(target_pointer_width = "64")]
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
