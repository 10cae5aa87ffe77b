//! Runs Python with monty, an interpreter in pure Rust that does no I/O and pauses at each external call.
//!
//! Only texts pass between the program and this module. Values become JSON inside of the program, so that the memory
//! limit counts the JSON, too: nested lists that share their items are small as values, and may be huge as JSON.

mod source;
mod tracker;

use std::{borrow::Cow, rc::Rc};

use archon_types::Json;
use monty::{FunctionCall, MontyRun, RunProgress};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyException, MontyObject, NameLookupResult, PrintWriter,
    PrintWriterCallback,
};

use crate::{
    CodeOptions,
    exact_json::exact_json,
    host::{Host, Refused},
    outcome::{Failed, Value},
};
use source::Source;
use tracker::Tracker;

type Progress = RunProgress<Tracker>;

/// Runs a program to its end and returns the value of its last expression.
pub(crate) fn run(code: &str, options: &CodeOptions, host: &Rc<Host>) -> Result<Option<Value>, Failed> {
    let source = Source::new(code, host.functions.iter().map(|function| function.name.as_str()));
    let thrown = |e: MontyException| Failed::Thrown { line: source.line_of(&e), text: e.summary() };
    let names = vec![source::CALL.to_owned()];
    let program = MontyRun::new(source.text.clone(), source::FILE, names, CompileOptions::default());
    let call = MontyObject::Function { name: source::CALL.to_owned(), docstring: None };
    let tracker = Tracker::new(host.meter.clone(), options.recursion);
    let mut writer = Writer(host);
    let begun =
        program.and_then(|program| program.start(vec![call], tracker, PrintWriter::Callback(&mut writer)));
    let mut progress = begun.map_err(thrown)?;
    loop {
        if host.meter.check_limits().is_err() {
            // The meter knows the reason.
            return Ok(None);
        }
        let print = PrintWriter::Callback(&mut writer);
        let next = match progress {
            Progress::Complete(MontyObject::String(text)) => return Ok(Value::parse(text)),
            Progress::Complete(_) => return Ok(None),
            Progress::FunctionCall(call) => {
                let Some(result) = answer(&call, host) else { return Ok(None) };
                call.resume(result, print)
            }
            Progress::NameLookup(lookup) => lookup.resume(NameLookupResult::Undefined, print),
            Progress::OsCall(call) => {
                let what: &'static str = (&call.function_call).into();
                call.resume(absent(what), print)
            }
            Progress::ResolveFutures(_) => {
                let text = "the program waits for something that never comes".to_owned();
                return Err(Failed::Thrown { line: None, text });
            }
        };
        progress = next.map_err(thrown)?;
    }
}

/// Answers a call of a function outside of the program; returns `None` if the program was stopped.
fn answer(call: &FunctionCall<Tracker>, host: &Host) -> Option<ExtFunctionResult> {
    if call.function_name != source::CALL {
        // The program calls a name that it never defined.
        return Some(ExtFunctionResult::NotFound(call.function_name.clone()));
    }
    let [MontyObject::String(name), MontyObject::String(arguments)] = call.args.as_slice() else {
        return Some(exception(ExcType::TypeError, "this function takes a name and arguments as JSON"));
    };
    let place = host.functions.iter().position(|function| function.name == *name);
    let Some(place) = place else {
        return Some(exception(ExcType::NameError, format!("there is no function '{name}'")));
    };
    if let Err(text) = host.check_size(name, arguments) {
        return Some(exception(ExcType::ValueError, text));
    }
    let read =
        parts(arguments).and_then(|(by_place, named)| host.functions[place].arguments(by_place, named));
    let arguments = match read {
        Ok(arguments) => arguments,
        Err(text) => return Some(exception(ExcType::TypeError, text)),
    };
    match host.call(place, arguments) {
        Ok(value) => Some(MontyObject::String(value.to_string()).into()),
        Err(Refused::Failed(failure)) => {
            let class = match failure.kind.as_str() {
                "permission_denied" => ExcType::PermissionError,
                _ => ExcType::RuntimeError,
            };
            Some(exception(class, format!("{name}: {}", failure.text)))
        }
        Err(Refused::Stopped) => None,
    }
}

/// Splits the arguments of a call, which are JSON, into positional and named ones.
fn parts(arguments: &str) -> Result<(Vec<Json>, serde_json::Map<String, Json>), String> {
    match exact_json(arguments)? {
        Json::Array(both) => match <[Json; 2]>::try_from(both) {
            Ok([Json::Array(by_place), Json::Object(named)]) => Ok((by_place, named)),
            _ => Err("a list and an object are needed".to_owned()),
        },
        _ => Err("a list is needed".to_owned()),
    }
}

fn absent(what: &str) -> ExtFunctionResult {
    let text = format!("{what}: there are no files, no environment and no clock here");
    exception(ExcType::PermissionError, text)
}

fn exception(class: ExcType, text: impl Into<String>) -> ExtFunctionResult {
    MontyException::new(class, Some(text.into())).into()
}

/// Passes what the program prints to the host.
struct Writer<'h>(&'h Host);

impl PrintWriterCallback for Writer<'_> {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.0.write(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.0.write(end.encode_utf8(&mut [0; 4]));
        Ok(())
    }
}
