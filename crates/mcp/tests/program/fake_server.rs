//! A server for tests, which behaves as its first argument says. It speaks revision 2025-11-25, and writes its
//! lines by hand so that it can break every rule.
//!
//! | behaviour | what it does wrong |
//! |---|---|
//! | `well` | nothing |
//! | `silent` | reads, and never answers |
//! | `no-drain` | never reads |
//! | `half-line` | answers a call with half a line, and stops |
//! | `huge-line` | answers a call with a line that never ends |
//! | `stops-reading` | reads nothing more after the first call |
//! | `garbage` | writes lines that are no messages before each answer |
//! | `late` | answers a call after the next one |
//! | `dies` | ends in the middle of a call |
//! | `stubborn` | ignores SIGTERM and the end of its input |
//! | `grandchild` | leaves a process behind that ignores signals and has a session of its own |
//! | `foreign-id` | answers calls of nobody before each answer |
//! | `endless-list` | lists tools on pages without end |
//! | `noisy` | floods its error output |
//! | `floods` | reports after each list that the tools changed |
//! | `slow` | reads nothing in its first 11 s |
//! | `slow-stateless` | the same; it knows only revision 2026-07-28 |
//! | `old` | ends when the first message is not `initialize` |
//! | `exits` | ends at once, with code 3 and a message |
//! | `library` | nothing; it also has resources and prompts |
//! | `acts` | nothing; its tool `act` reads, writes, connects or starts a process, as its argument says |
//! | `asks` | nothing; its tool `ask` asks a person while the call is open |
//! | `asks-stateless` | nothing; the same by revision 2026-07-28: the call ends, and is made again with the answer |
//!
//! The argument `text` of `ask` says what is asked for: `url` an address, `two` two forms, `later` nothing but the call
//! again, `for ever` a form after each answer, anything else a form.
//!
//! Its tools: `echo` returns its argument `text`; `count` appends a line to the file of its argument, after it
//! was called; `picture`, `fail`, `progress`, `wait`. If the environment variable `FAKE_TOOLS` names a file, the
//! tools are read from it for every list. A call of `change` reports that the tools changed. If `FAKE_LOG` names a
//! file, all messages that it gets are appended to it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "that is how it speaks")]

use std::{
    env, fs,
    io::{self, BufRead, Write},
    net::TcpStream,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio, exit},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

fn main() {
    let behaviour = env::args().nth(1).unwrap_or_else(|| "well".to_owned());
    match &*behaviour {
        "no-drain" => sleep_for_ever(),
        "slow" | "slow-stateless" => thread::sleep(Duration::from_secs(11)),
        "stubborn" => {
            // A signal that the shell ignores is ignored in the program that replaces the shell.
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' TERM; exec \"$0\" deaf"]).args(env::args_os().take(1));
            eprintln!("no shell: {}", shell.exec());
            exit(1);
        }
        "exits" => {
            eprintln!("the key is missing");
            exit(3);
        }
        "grandchild" => {
            let mut sleeper = Command::new("setsid");
            sleeper.args(["sh", "-c", "trap '' TERM HUP; echo $$ > \"$0\"; while :; do sleep 1; done"]);
            sleeper.arg(env::args().nth(2).unwrap_or_default());
            let started = sleeper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            started.map(drop).unwrap_or_else(|e| eprintln!("no grandchild: {e}"));
        }
        _ => {}
    }
    let mut server = Server { behaviour, kept_back: None, asking: None };
    let log = env::var_os("FAKE_LOG");
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if let Some(log) = &log {
            append(log.as_ref(), &line).unwrap_or_else(|e| eprintln!("no log: {e}"));
        }
        let message = serde_json::from_str(&line).unwrap_or(Value::Null);
        server.receive(&message);
    }
    if server.behaviour == "deaf" {
        sleep_for_ever();
    }
}

fn sleep_for_ever() {
    loop {
        thread::sleep(Duration::from_secs(3_600));
    }
}

fn append(file: &Path, line: &str) -> io::Result<()> {
    writeln!(fs::OpenOptions::new().create(true).append(true).open(file)?, "{line}")
}

struct Server {
    behaviour: String,
    /// For `late`: the answer that is written after the next one.
    kept_back: Option<Value>,
    /// For `asks`: the call that waits for a person, and what it asks for.
    asking: Option<(Value, String)>,
}

impl Server {
    fn receive(&mut self, message: &Value) {
        let id = &message["id"];
        let parameters = &message["params"];
        match message["method"].as_str() {
            _ if self.behaviour == "silent" => {}
            Some("server/discover") if self.behaviour == "old" => exit(4),
            Some("server/discover") if self.behaviour.ends_with("-stateless") => {
                let result = json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                    "cacheScope": "private", "capabilities": { "tools": {} },
                });
                self.answer(id, "result", result);
            }
            Some("initialize") if self.behaviour != "slow-stateless" => {
                let version = parameters["protocolVersion"].clone();
                let mut capabilities = json!({ "tools": { "listChanged": true } });
                if self.behaviour == "library" {
                    (capabilities["resources"], capabilities["prompts"]) = (json!({}), json!({}));
                }
                let info = json!({ "name": "fake", "version": "1" });
                let result =
                    json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": info });
                self.answer(id, "result", result);
            }
            Some("tools/list") => {
                self.answer(id, "result", self.list(parameters));
                if self.behaviour == "floods" {
                    notify("notifications/tools/list_changed", json!({}));
                }
            }
            Some("tools/call") => self.call(id, parameters),
            Some("resources/list" | "prompts/list") => {
                self.answer(id, "result", library_list(message["method"] == "prompts/list", parameters));
            }
            Some("resources/read" | "prompts/get") => match library_read(parameters) {
                Some(result) => self.answer(id, "result", result),
                None => {
                    self.answer(id, "error", json!({ "code": -32002, "message": "there is no such thing" }))
                }
            },
            None if !message["result"].is_null() => {
                let Some((call, kind)) = self.asking.take() else { return };
                match kind == "for ever" && message["result"]["action"] == "accept" {
                    true => self.ask(call, &kind),
                    false => self.answer(&call, "result", content(&message["result"].to_string())),
                }
            }
            Some("ping") => self.answer(id, "result", json!({})),
            Some(method) if !id.is_null() => {
                let error = json!({ "code": -32601, "message": format!("no method {method}") });
                self.answer(id, "error", error);
            }
            _ => {}
        }
    }

    fn list(&self, parameters: &Value) -> Value {
        if let Some(text) = env::var_os("FAKE_TOOLS").and_then(|path| fs::read_to_string(path).ok()) {
            return json!({ "tools": serde_json::from_str::<Value>(&text).unwrap_or_default() });
        }
        let text = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let tool = |name: &str| json!({ "name": name, "description": name, "inputSchema": text });
        let echo = json!({
            "name": "echo", "description": "Returns its text.", "inputSchema": text,
            "annotations": { "readOnlyHint": true },
        });
        match (self.behaviour == "endless-list", parameters["cursor"].as_str()) {
            (true, _) => json!({ "tools": [echo], "nextCursor": "again" }),
            // Two pages.
            (false, None) => json!({ "tools": [echo, tool("count")], "nextCursor": "2" }),
            (false, Some(_)) => {
                let mut names = vec!["picture", "fail", "progress", "wait", "change"];
                if self.behaviour.starts_with("asks") {
                    names.push("ask");
                }
                if self.behaviour == "acts" {
                    names.push("act");
                }
                json!({ "tools": names.into_iter().map(tool).collect::<Vec<_>>() })
            }
        }
    }

    fn call(&mut self, id: &Value, parameters: &Value) {
        let text = parameters["arguments"]["text"].as_str().unwrap_or_default().to_owned();
        match &*self.behaviour {
            "dies" => exit(9),
            "stops-reading" => sleep_for_ever(),
            "half-line" => {
                print!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"resu");
                let _ = io::stdout().flush();
                return;
            }
            "huge-line" => loop {
                print!("{}", "x".repeat(1 << 16));
            },
            "garbage" => println!("not json\n{{\"a\":1}}\n[]\n{{\"jsonrpc\":\"2.0\"}}\n\u{0}"),
            "foreign-id" => {
                for foreign in [json!(987_654), json!("x"), json!(null)] {
                    self.answer(&foreign, "result", content("of nobody"));
                }
            }
            "noisy" => (0..2_000).for_each(|n| eprintln!("line {n} {}", "y".repeat(100))),
            _ => {}
        }
        let result = match parameters["name"].as_str() {
            Some("echo") => content(&text),
            Some("count") => content(&format!("{:?}", append(text.as_ref(), "called"))),
            Some("act") if self.behaviour == "acts" => {
                let done = act(&text);
                content(
                    &done.map_or_else(|e| format!("failed: {:?}", e.kind()), |said| format!("done: {said}")),
                )
            }
            Some("ask") if self.behaviour == "asks" => return self.ask(id.clone(), &text),
            Some("ask") => asked_in_result(&text, parameters),
            Some("picture") => {
                json!({ "content": [{ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" }] })
            }
            Some("fail") => json!({ "content": [{ "type": "text", "text": text }], "isError": true }),
            Some("progress") => {
                let token = &parameters["_meta"]["progressToken"];
                let progress = json!({ "progressToken": token, "progress": 1, "total": 2, "message": text });
                notify("notifications/progress", progress);
                // The notification is seen before the answer comes.
                thread::sleep(Duration::from_millis(50));
                content("done")
            }
            Some("wait") => return,
            Some("change") => {
                notify("notifications/tools/list_changed", json!({}));
                content("changed")
            }
            _ => return self.answer(id, "error", json!({ "code": -32602, "message": "unknown tool" })),
        };
        if self.behaviour == "late" {
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            if let Some(earlier) = self.kept_back.replace(answer) {
                println!("{earlier}");
            }
            return;
        }
        self.answer(id, "result", result);
    }

    /// Asks a person while the call is open.
    fn ask(&mut self, call: Value, kind: &str) {
        let request = json!({
            "jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": question(kind),
        });
        println!("{request}");
        self.asking = Some((call, kind.to_owned()));
    }

    fn answer(&self, id: &Value, kind: &str, value: Value) {
        println!("{}", json!({ "jsonrpc": "2.0", "id": id, kind: value }));
    }
}

/// Does what the argument of `act` says: `read FILE`, `write FILE`, `connect ADDRESS`, `home`, or `start MARK`,
/// which leaves a process behind that ignores signals and has the mark in its arguments.
fn act(text: &str) -> io::Result<String> {
    let (what, to) = text.split_once(' ').unwrap_or((text, ""));
    match what {
        "read" => fs::read_to_string(to),
        "write" => fs::write(to, "written").map(|()| String::new()),
        "connect" => TcpStream::connect(to).map(|_| String::new()),
        "home" => Ok(env::var("HOME").unwrap_or_default()),
        _ => {
            let mut left = Command::new("sh");
            left.args(["-c", "trap '' TERM HUP; while :; do sleep 1; done", to]);
            left.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            left.spawn().map(|left| left.id().to_string())
        }
    }
}

/// Returns the result of a call of `ask`: what is asked for, or the responses and the state.
fn asked_in_result(kind: &str, parameters: &Value) -> Value {
    let (responses, state) = (&parameters["inputResponses"], &parameters["requestState"]);
    let request = json!({ "method": "elicitation/create", "params": question(kind) });
    let requests = match kind {
        "two" => json!({ "q": request, "r": request }),
        "later" => json!({}),
        _ => json!({ "q": request }),
    };
    match state.as_str().filter(|_| kind != "for ever") {
        Some(_) => content(&json!([responses, state]).to_string()),
        None => json!({
            "resultType": "input_required", "requestState": "{\"n\": 1}\u{e4}", "inputRequests": requests,
        }),
    }
}

/// Returns the question that a call of `ask` puts to a person.
fn question(kind: &str) -> Value {
    match kind {
        "url" => json!({
            "mode": "url", "message": "Pay first.", "url": "https://pay.example.com/bill?n=7", "elicitationId": "e1",
        }),
        _ => json!({
            "mode": "form", "message": "Who are\u{200b} you?",
            "requestedSchema": {
                "type": "object", "required": ["name"],
                "properties": {
                    "name": { "type": "string", "minLength": 2, "description": "Your name" },
                    "age": { "type": "integer", "minimum": 18 },
                    "colour": { "type": "string", "enum": ["red", "green"], "default": "green" },
                },
            },
        }),
    }
}

fn library_list(is_of_prompts: bool, parameters: &Value) -> Value {
    match (is_of_prompts, parameters["cursor"].as_str()) {
        (true, _) => json!({ "prompts": [{
            "name": "greet", "description": "Greets.", "arguments": [{ "name": "whom", "required": true }],
        }] }),
        // Two pages.
        (false, None) => json!({
            "resources": [{ "uri": "note://one", "name": "one", "mimeType": "text/plain", "size": 5 }],
            "nextCursor": "2",
        }),
        (false, Some(_)) => json!({
            "resources": [{ "uri": "note://two", "name": "t\u{200b}wo", "description": "A\npicture." }],
        }),
    }
}

fn library_read(parameters: &Value) -> Option<Value> {
    let whom = parameters["arguments"]["whom"].as_str();
    Some(match (parameters["uri"].as_str(), parameters["name"].as_str()) {
        (Some("note://one" | "note://unlisted"), _) => {
            json!({ "contents": [{ "uri": "note://one", "mimeType": "text/plain", "text": "hello sk-very-secret-key" }] })
        }
        (Some("note://two"), _) => json!({ "contents": [
            { "uri": "note://two", "mimeType": "image/png", "blob": "iVBORw0KGgo=" },
            { "uri": "note://two/zip", "mimeType": "application/zip", "blob": "UEsDBAAA" },
        ] }),
        (_, Some("greet")) => json!({ "messages": [
            { "role": "user", "content": { "type": "text", "text": format!("Greet {}.", whom?) } },
            { "role": "assistant", "content": { "type": "text", "text": "Hello!" } },
        ] }),
        _ => return None,
    })
}

fn notify(method: &str, parameters: Value) {
    println!("{}", json!({ "jsonrpc": "2.0", "method": method, "params": parameters }));
}

fn content(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
