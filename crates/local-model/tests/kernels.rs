//! A processor without AVX2: the kernels for older ones answer as well. In a program of its own, because a process
//! computes with one kernel. Skipped, and says so, where no engine or model was fetched.

#![cfg(all(feature = "engine", not(feature = "from-source"), target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic and says what it skips")]

mod fetched;

use archon_local_model::{LocalModel, LocalModelOptions, open_engine};
use archon_types::{CancellationToken, Message, ModelEvent, Provider as _, Request, Timestamp};
use futures_util::StreamExt as _;

/// The kernel that needs nothing but SSE 4.2.
const KERNEL: &str = "sse42";

#[tokio::test]
async fn local_model_with_a_kernel_without_avx_answers() {
    let Some(model) = fetched::model("smollm2-135m-instruct") else { return };
    let options = fetched::engine().with_kernel(KERNEL);
    let options = LocalModelOptions::default().with_engine(options.with_threads(1)).with_max_tokens(8);
    let model = LocalModel::load(&model, options.clone()).unwrap();
    assert_eq!(open_engine(&options.engine).unwrap().kernel, KERNEL);
    let request = Request::new("local", vec![Message::user("Hello", Timestamp::default())]);
    let mut stream = model.stream(request, CancellationToken::new());
    let mut answer = None;
    while let Some(event) = stream.next().await {
        if let ModelEvent::Done(message) = event.unwrap() {
            answer = Some(message.text());
        }
    }
    assert!(!answer.unwrap().is_empty());

    let other = open_engine(&options.engine.with_kernel("haswell")).unwrap_err().to_string();
    assert!(
        other.contains("this process already uses the kernel sse42, but haswell was requested"),
        "{other}"
    );
}
