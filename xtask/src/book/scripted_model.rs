//! A scripted model for the commands of the book's pages: a server on this machine that speaks OpenAI's chat
//! completions and answers with what a page lists.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// One answer of the model, on one line of a page's comment: a JSON text, or an object with some of `text`, `calls`
/// (a list of `[tool, arguments]`), `when` (words that the request has to contain) and `hangs` (no answer comes).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    text: String,
    calls: Vec<(String, Value)>,
    when: String,
    hangs: bool,
}

impl Answer {
    pub(crate) fn parse(line: &str) -> Result<Self> {
        let value: Value =
            serde_json::from_str(line).context("an answer of the model must be one line of JSON")?;
        let mut answer = Self { text: String::new(), calls: Vec::new(), when: String::new(), hangs: false };
        if let Value::String(text) = value {
            answer.text = text;
            return Ok(answer);
        }
        let fields = value.as_object().context("an answer of the model must be a text or an object")?;
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("text", Value::String(text)) => answer.text.clone_from(text),
                ("when", Value::String(words)) => answer.when.clone_from(words),
                ("hangs", Value::Bool(hangs)) => answer.hangs = *hangs,
                ("calls", Value::Array(calls)) => {
                    answer.calls = calls.iter().map(parse_call).collect::<Result<_>>()?;
                }
                _ => bail!(
                    "an answer of the model may have `text`, `calls`, `when` and `hangs`, not `{name}: {value}`"
                ),
            }
        }
        Ok(answer)
    }

    /// The message in the form of the protocol.
    fn message(&self, number: usize) -> Value {
        let calls = self.calls.iter().enumerate().map(|(index, (tool, arguments))| {
            let function = json!({"name": tool, "arguments": arguments.to_string()});
            json!({"index": index, "id": format!("call_{number}_{index}"), "type": "function", "function": function})
        });
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            message["tool_calls"] = calls.collect();
        }
        message
    }

    fn finish_reason(&self) -> &'static str {
        if self.calls.is_empty() { "stop" } else { "tool_calls" }
    }
}

fn parse_call(call: &Value) -> Result<(String, Value)> {
    match call.as_array().map(Vec::as_slice) {
        Some([Value::String(tool), arguments @ Value::Object(_)]) => Ok((tool.clone(), arguments.clone())),
        _ => bail!("a call must be written as [\"tool\", {{\"argument\": 1}}], not as {call}"),
    }
}

/// The server of one page. It ends with this program.
pub(crate) struct ScriptedModel {
    address: String,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    waiting: Vec<Answer>,
    answered: usize,
}

impl ScriptedModel {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no free port for the scripted model")?;
        let address = listener.local_addr()?.to_string();
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = Arc::clone(&script);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = Arc::clone(&shared);
                // A client that goes away in the middle is nobody's fault: it was killed.
                thread::spawn(move || drop(serve(stream, &script)));
            }
        });
        Ok(Self { address, script })
    }

    /// Returns the address up to and including `/v1`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn push(&self, answer: Answer) {
        lock(&self.script).waiting.push(answer);
    }

    /// Returns the number of answers that no request has used.
    pub(crate) fn unused(&self) -> usize {
        lock(&self.script).waiting.len()
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: TcpStream, script: &Mutex<Script>) -> Result<()> {
    let (path, body) = read_request(&mut stream)?;
    if path.ends_with("/models") {
        return respond(&mut stream, "200 OK", "application/json", &json!({"data": [{"id": "gpt-5-mini"}]}));
    }
    if !path.ends_with("/chat/completions") {
        let error = json!({"error": {"message": "the scripted model speaks chat completions only"}});
        return respond(&mut stream, "404 Not Found", "application/json", &error);
    }
    let Some((answer, number)) = next_answer(script, &body) else {
        let request: Value = serde_json::from_str(&body).unwrap_or_default();
        let last = request["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let error = json!({"error": {"message": format!("the page has no answer to {last}")}});
        return respond(&mut stream, "400 Bad Request", "application/json", &error);
    };
    if answer.hangs {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
        stream.read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120});
    let part = |object: &str, choice: Value| {
        json!({
            "id": "answer", "object": object, "created": 1, "model": "scripted",
            "choices": [choice], "usage": usage
        })
    };
    let (message, reason) = (answer.message(number), answer.finish_reason());
    let is_stream = body.contains("\"stream\":true");
    if !is_stream {
        let whole = part("chat.completion", json!({"index": 0, "message": message, "finish_reason": reason}));
        return respond(&mut stream, "200 OK", "application/json", &whole);
    }
    let events =
        part("chat.completion.chunk", json!({"index": 0, "delta": message, "finish_reason": reason}));
    respond(&mut stream, "200 OK", "text/event-stream", &format!("data: {events}\n\ndata: [DONE]\n\n"))
}

/// Takes the first answer that fits the request, and returns it with its number.
fn next_answer(script: &Mutex<Script>, request: &str) -> Option<(Answer, usize)> {
    let mut script = lock(script);
    let fits = script.waiting.iter().position(|answer| request.contains(&answer.when))?;
    script.answered += 1;
    Some((script.waiting.remove(fits), script.answered))
}

fn read_request(stream: &mut TcpStream) -> Result<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let path = first.split(' ').nth(1).context("not HTTP")?.to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, String::from_utf8(body)?))
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &impl ToString) -> Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    Ok(stream.write_all(body.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(model: &ScriptedModel, body: &str) -> String {
        let mut stream = TcpStream::connect(&model.address).unwrap();
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    #[test]
    fn parse_of_an_invalid_script_explains_the_format() {
        for (line, expected) in [
            ("words", "an answer of the model must be one line of JSON"),
            ("1", "an answer of the model must be a text or an object"),
            (r#"{"txt": "a"}"#, "may have `text`, `calls`, `when` and `hangs`, not `txt: \"a\"`"),
            (r#"{"calls": ["a"]}"#, "a call must be written as [\"tool\", {\"argument\": 1}], not as \"a\""),
        ] {
            let error = Answer::parse(line).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn request_gets_the_first_answer_that_fits_and_then_an_error() {
        let model = ScriptedModel::start().unwrap();
        for line in [r#"{"when": "Paris", "text": "France"}"#, r#"{"calls": [["add", {"a": 1}]]}"#] {
            model.push(Answer::parse(line).unwrap());
        }
        let called = ask(&model, r#"{"stream":true,"messages":[{"content":"Add"}]}"#);
        assert!(
            called.contains(r#""name":"add","arguments":"{\"a\":1}""#) && called.ends_with("[DONE]\n\n"),
            "{called}"
        );
        assert_eq!(model.unused(), 1);
        let refused = ask(&model, r#"{"messages":[{"content":"Add"}]}"#);
        assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("no answer to"), "{refused}");
        let text = ask(&model, r#"{"messages":[{"content":"Where is Paris?"}]}"#);
        assert!(text.contains(r#""content":"France""#) && model.unused() == 0, "{text}");
    }
}
