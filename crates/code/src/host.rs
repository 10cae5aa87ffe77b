//! The interface between a program and the outside: its output, and its calls of tools.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use archon_types::Json;
use tokio::sync::{mpsc, oneshot};

use crate::{
    functions::{Failure, Function},
    meter::Meter,
    outcome::Outcome,
    output::Output,
};

/// A message from the program's thread to the task that waits for the program.
#[derive(Debug)]
pub(crate) enum HostMessage {
    /// The program called a function.
    Call {
        function: usize,
        arguments: Json,
        answer: oneshot::Sender<Result<Json, Failure>>,
    },
    Ended(Outcome),
}

/// Everything outside of the program that its thread can use.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) meter: Rc<Meter>,
    pub(crate) functions: Arc<[Function]>,
    said: mpsc::UnboundedSender<HostMessage>,
    output: RefCell<Output>,
    calls: Cell<usize>,
    max_calls: usize,
    /// Most bytes of one call's arguments, as JSON.
    pub(crate) max_arguments: usize,
}

/// An error of [`Host::call`].
#[derive(Debug)]
pub(crate) enum Refused {
    /// An error that the program can catch.
    Failed(Failure),
    /// The program was stopped.
    Stopped,
}

impl Host {
    pub(crate) fn new(
        meter: Rc<Meter>,
        functions: Arc<[Function]>,
        said: mpsc::UnboundedSender<HostMessage>,
        options: &crate::CodeOptions,
    ) -> Self {
        Self {
            meter,
            functions,
            said,
            output: RefCell::new(Output::new(options.output)),
            calls: Cell::new(0),
            max_calls: options.calls,
            max_arguments: options.arguments,
        }
    }

    pub(crate) fn write(&self, text: &str) {
        self.output.borrow_mut().write(text);
    }

    /// Calls a function and blocks the program's thread until the result is there.
    pub(crate) fn call(&self, function: usize, arguments: Json) -> Result<Json, Refused> {
        self.meter.look().map_err(|_| Refused::Stopped)?;
        if self.calls.get() >= self.max_calls {
            return Err(Refused::Failed(Failure::new(
                "resource_error",
                format!("a program may make {} calls, and this one has made them", self.max_calls),
            )));
        }
        self.calls.set(self.calls.get() + 1);
        let (answer, answered) = oneshot::channel();
        // The receiver is gone once the tool call is over.
        self.said.send(HostMessage::Call { function, arguments, answer }).map_err(|_| Refused::Stopped)?;
        match answered.blocking_recv().map_err(|_| Refused::Stopped)? {
            Ok(value) => Ok(value),
            Err(failure) => Err(Refused::Failed(failure)),
        }
    }

    pub(crate) fn made_calls(&self) -> usize {
        self.calls.get()
    }

    pub(crate) fn take_output(&self) -> (String, usize) {
        self.output.replace(Output::new(0)).into_text()
    }
}

/// Parses JSON with exact integers. An integer that does not fit into 64 bits is an error; it is not rounded.
pub(crate) fn exact_json(text: &str) -> Result<Json, String> {
    if let Some(number) = numbers(text).find(|number| is_too_large(number)) {
        let shown: String = number.chars().take(40).collect();
        return Err(format!("the number {shown} does not fit into 64 bits; pass it as a text"));
    }
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn is_too_large(number: &str) -> bool {
    let is_whole = !number.contains(['.', 'e', 'E']);
    is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

/// Returns the numbers of a JSON text, without those inside of strings.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
            rest = &rest[at..];
            if let Some(inside) = rest.strip_prefix('"') {
                rest = after_text(inside);
                continue;
            }
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
            let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            rest = after;
            return Some(number);
        }
    })
}

/// Returns the rest after a string whose opening quote was already read.
fn after_text(text: &str) -> &str {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_are_exact_or_refused() {
        let text = r#"{"1\"2": [9007199254740993, -9223372036854775808, 18446744073709551615, 1e30, 1.5]}"#;
        let value = exact_json(text).unwrap();
        assert_eq!(value["1\"2"][0], json!(9_007_199_254_740_993_u64));
        assert_eq!(value["1\"2"][2], json!(u64::MAX));
        assert_eq!(value["1\"2"][3], json!(1e30));
        for large in ["18446744073709551616", "[-9223372036854775809]", r#"{"a": 1000000000000000000000}"#] {
            assert!(exact_json(large).unwrap_err().contains("64 bits"), "{large}");
        }
        assert_eq!(
            exact_json(r#""99999999999999999999999 \" 1""#),
            Ok(json!("99999999999999999999999 \" 1"))
        );
        for broken in ["", "\"", "\"\\", "-", "1 2", "[1", "NaN"] {
            assert!(exact_json(broken).is_err(), "{broken}");
        }
    }
}
