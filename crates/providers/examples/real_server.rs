//! What a real OpenAI-compatible server does with our requests: streaming, a form that it holds the model
//! to, a tool call, and a cancel after which it answers the next question.
//!
//! `real_server BASE_URL MODEL`

#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use std::{error::Error, future::poll_fn, sync::Arc, time::Instant};

use archon_providers::{ConnectOptions, RetryProvider, resolve};
use archon_testkit::VirtualClock;
use archon_types::{
    AssistantMessage, CancellationToken, Encoded, Message, ModelEvent, Provider, Request, RequestOptions,
    ResponseFormat, StopReason, Timestamp, ToolChoice, ToolSpec,
};
use serde_json::json;

type Checked = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Checked {
    let mut words = std::env::args().skip(1);
    let (url, model) = (words.next().ok_or("no address")?, words.next().ok_or("no model")?);
    let resolved = resolve(&format!("llamacpp@{url}:{model}"), |_| None, ConnectOptions::default())?;
    // The server may close a connection that it said it would keep; who has no loop asks again.
    let provider = RetryProvider::new(resolved.provider, Arc::new(VirtualClock::jumping()));
    let (provider, model): (&dyn Provider, _) = (&provider, resolved.model.as_str());
    streaming(provider, model).await?;
    structured_output(provider, model).await?;
    tool_call(provider, model).await?;
    cancellation(provider, model).await
}

async fn streaming(provider: &dyn Provider, model: &str) -> Checked {
    let Answer { message, pieces } = ask(provider, request(model, "What is 7 times 12?"), None).await?;
    ensure(pieces > 1, "an answer comes in pieces")?;
    ensure(!message.text().is_empty(), "an answer says something")?;
    ensure(message.usage.input > 0 && message.usage.output > 0, "usage is reported")?;
    println!("streaming: {pieces} pieces, {} tokens in, {} out", message.usage.input, message.usage.output);
    Ok(())
}

async fn structured_output(provider: &dyn Provider, model: &str) -> Checked {
    let schema = json!({
        "type": "object",
        "properties": {
            "animal": {"enum": ["spider", "ant"]},
            "legs": {"type": "integer", "minimum": 0, "maximum": 99},
        },
        "required": ["animal", "legs"],
        "additionalProperties": false,
    });
    let request = with(request(model, "How many legs does a spider have?"), |options| {
        options.response_format = Some(ResponseFormat { name: "animal".into(), schema });
    });
    let text = ask(provider, request, None).await?.message.text();
    let said: serde_json::Value = serde_json::from_str(&text)?;
    let has_both = said["animal"].is_string() && said["legs"].is_u64();
    ensure(has_both && said.as_object().is_some_and(|o| o.len() == 2), "the answer has the form")?;
    println!("structured output: {said}");
    Ok(())
}

async fn tool_call(provider: &dyn Provider, model: &str) -> Checked {
    let schema = json!({
        "type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"],
    });
    let mut request = with(request(model, "What is 15% of 200?"), |options| {
        options.tool_choice = ToolChoice::Required;
    });
    request.tools = Arc::new(Encoded::new(vec![ToolSpec::new("calculator", "Computes.", schema)]));
    let message = ask(provider, request, None).await?.message;
    let call = message.tool_calls().next().ok_or("no tool was called")?;
    ensure(call.name == "calculator" && call.arguments["expression"].is_string(), "the call has arguments")?;
    ensure(message.stop_reason == StopReason::ToolUse, "the answer waits for results")?;
    println!("tool call: {} {}", call.name, call.arguments);
    Ok(())
}

async fn cancellation(provider: &dyn Provider, model: &str) -> Checked {
    let long = with(request(model, "Count from 1 to 1000."), |options| options.max_tokens = Some(2000));
    let begun = Instant::now();
    let message = ask(provider, long, Some(1)).await?.message;
    ensure(message.stop_reason == StopReason::Aborted, "a cancelled call is aborted")?;
    ensure(!message.text().is_empty(), "what was said is kept")?;
    let cancelled = begun.elapsed();
    // The server has one slot: it answers only once it has noticed that nobody listens.
    ask(provider, request(model, "What is 1+1?"), None).await?;
    println!("cancellation: after {cancelled:.1?}, and the next answer after {:.1?}", begun.elapsed());
    Ok(())
}

struct Answer {
    message: AssistantMessage,
    pieces: usize,
}

/// Reads an answer to its end, or cancels it after so many pieces.
async fn ask(
    provider: &dyn Provider,
    request: Request,
    cancel_after: Option<usize>,
) -> Result<Answer, Box<dyn Error>> {
    let cancel = CancellationToken::new();
    let mut events = provider.stream(request, cancel.clone());
    let mut pieces = 0;
    while let Some(event) = poll_fn(|cx| events.as_mut().poll_next(cx)).await {
        match event? {
            ModelEvent::TextDelta(_) | ModelEvent::ToolCallDelta { .. } => {
                pieces += 1;
                if cancel_after == Some(pieces) {
                    cancel.cancel();
                }
            }
            ModelEvent::Done(message) => return Ok(Answer { message: *message, pieces }),
            _ => {}
        }
    }
    Err("the stream has no end".into())
}

fn request(model: &str, text: &str) -> Request {
    let request = Request::new(model, vec![Message::user(text, Timestamp::default())]);
    with(request, |options| options.max_tokens = Some(80))
}

fn with(mut request: Request, change: impl FnOnce(&mut RequestOptions)) -> Request {
    let mut options = (*request.options).clone();
    change(&mut options);
    request.options = Arc::new(options);
    request
}

fn ensure(is_so: bool, what: &str) -> Checked {
    if is_so { Ok(()) } else { Err(format!("it is not so that {what}").into()) }
}
