//! Runs JavaScript with QuickJS, which has its own heap and stack and an interrupt handler that can end the
//! program.
//!
//! A function that is a tool blocks the program's thread until its call has ended, so programs need no
//! `await` for it. An `await` does no harm.

use std::rc::Rc;

use archon_types::Json;
use rquickjs::{
    Array, BigInt, CatchResultExt, CaughtError, Context, Ctx, Exception, Function, Object, Promise, Runtime,
    Value as Js, context::EvalOptions, promise::PromiseState,
};

use crate::{
    CodeOptions,
    exact_json::exact_json,
    host::{Host, Refused},
    outcome::{Failed, Value},
};

/// File name of the program in messages and stack traces.
const FILE: &str = "program.js";
const BEFORE: &str = include_str!("javascript/before.js");
/// Number of bytes of QuickJS's stack for each nested call.
const STACK_PER_CALL: usize = 4 << 10;
const STACK_TO_BEGIN: usize = 256 << 10;

/// Runs a program to its end and returns the value of its last expression.
pub(crate) fn run(code: &str, options: &CodeOptions, host: &Rc<Host>) -> Result<Option<Value>, Failed> {
    let broken = |e: rquickjs::Error| Failed::Broken(e.to_string());
    let runtime = Runtime::new().map_err(broken)?;
    // QuickJS reads 0 as no limit.
    runtime.set_memory_limit(options.memory.max(1));
    runtime
        .set_max_stack_size(options.recursion.saturating_mul(STACK_PER_CALL).saturating_add(STACK_TO_BEGIN));
    let meter = host.meter.clone();
    runtime.set_interrupt_handler(Some(Box::new(move || meter.check_limits().is_err())));
    let context = Context::full(&runtime).map_err(broken)?;
    context.with(|ctx| {
        let value_of = prepared(&ctx, host).catch(&ctx).map_err(|e| failed(e, None))?;
        let value = evaluated(&ctx, code, host).catch(&ctx).map_err(|e| failed(e, Some(&value_of)))?;
        display_value(&value_of, value).catch(&ctx).map_err(|e| failed(e, Some(&value_of)))
    })
}

/// Defines the program's globals and returns the function that shows a value as text.
fn prepared<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> rquickjs::Result<Function<'js>> {
    let writer = host.clone();
    let write = Function::new(ctx.clone(), move |text: String| writer.write(&text))?;
    let names = Array::new(ctx.clone())?;
    for (place, function) in host.functions.iter().enumerate() {
        names.set(place, function.name.as_str())?;
    }
    let caller = host.clone();
    // The closure must not hold JavaScript values: QuickJS's garbage collector would not see them, so they
    // would leak.
    let call = Function::new(ctx.clone(), move |ctx: Ctx<'js>, place: usize, arguments: String| {
        called(&ctx, &caller, place, &arguments)
    })?;
    let begin: Function<'js> = ctx.eval(BEFORE)?;
    begin.call((write, call, names))
}

/// Runs the program and returns the value of its last expression; a promise is awaited.
fn evaluated<'js>(ctx: &Ctx<'js>, code: &str, host: &Host) -> rquickjs::Result<Js<'js>> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.promise = true;
    options.filename = Some(FILE.to_owned());
    let program: Promise<'js> = ctx.eval_with_options(code, options)?;
    // QuickJS wraps the value in an object when `await` is allowed.
    let ended: Object<'js> = settled(&program, host)?;
    let value: Js<'js> = ended.get("value")?;
    match value.as_promise() {
        Some(promise) => settled(promise, host),
        None => Ok(value),
    }
}

/// Runs pending jobs until the promise is resolved or rejected.
fn settled<'js, T: rquickjs::FromJs<'js>>(promise: &Promise<'js>, host: &Host) -> rquickjs::Result<T> {
    let ctx = promise.ctx();
    while promise.state() == PromiseState::Pending {
        if host.meter.check_limits().is_err() {
            return Err(Exception::throw_internal(ctx, "interrupted"));
        }
        if !ctx.execute_pending_job() {
            return Err(Exception::throw_message(ctx, "the program waits for something that never comes"));
        }
    }
    promise.result().unwrap_or(Err(rquickjs::Error::Unknown))
}

fn display_value<'js>(value_of: &Function<'js>, value: Js<'js>) -> rquickjs::Result<Option<Value>> {
    let text: Option<String> = value_of.call((value,))?;
    Ok(text.and_then(Value::parse))
}

/// Calls the function with the index `place`; its arguments are JSON.
fn called<'js>(ctx: &Ctx<'js>, host: &Host, place: usize, arguments: &str) -> rquickjs::Result<Js<'js>> {
    let Some(function) = host.functions.get(place) else {
        return Err(Exception::throw_reference(ctx, "there is no such function"));
    };
    host.check_size(&function.name, arguments).map_err(|text| Exception::throw_range(ctx, &text))?;
    let arguments = exact_json(arguments).map_err(|text| Exception::throw_type(ctx, &text))?;
    match host.call(place, arguments) {
        Ok(value) => value_from(ctx, &value),
        Err(Refused::Failed(failure)) => {
            Err(Exception::throw_message(ctx, &format!("{}: {}", function.name, failure.text)))
        }
        Err(Refused::Stopped) => Err(Exception::throw_internal(ctx, "interrupted")),
    }
}

/// Converts a function's result into a JavaScript value. Integers above 2^53 - 1 become a BigInt.
fn value_from<'js>(ctx: &Ctx<'js>, value: &Json) -> rquickjs::Result<Js<'js>> {
    Ok(match value {
        Json::Null => Js::new_null(ctx.clone()),
        Json::Bool(is) => Js::new_bool(ctx.clone(), *is),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) if whole.unsigned_abs() <= EXACT => Js::new_number(ctx.clone(), whole as f64),
            (Some(whole), _) => BigInt::from_i64(ctx.clone(), whole)?.into_value(),
            (None, Some(whole)) => BigInt::from_u64(ctx.clone(), whole)?.into_value(),
            (None, None) => Js::new_float(ctx.clone(), number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => rquickjs::String::from_str(ctx.clone(), text)?.into_value(),
        Json::Array(items) => {
            let array = Array::new(ctx.clone())?;
            for (place, item) in items.iter().enumerate() {
                array.set(place, value_from(ctx, item)?)?;
            }
            array.into_value()
        }
        Json::Object(fields) => {
            let object = Object::new(ctx.clone())?;
            for (name, field) in fields {
                object.set(name.as_str(), value_from(ctx, field)?)?;
            }
            object.into_value()
        }
    })
}

/// The largest integer up to which a JavaScript number is exact: 2^53 - 1.
const EXACT: u64 = (1 << 53) - 1;

/// Converts what the program threw into a failure with its message and line.
fn failed<'js>(error: CaughtError<'js>, value_of: Option<&Function<'js>>) -> Failed {
    match error {
        CaughtError::Exception(exception) => {
            let name = exception.as_object().get::<_, String>("name").unwrap_or_else(|_| "Error".to_owned());
            let text = format!("{name}: {}", exception.message().unwrap_or_default());
            Failed::Thrown { line: exception.stack().as_deref().and_then(line_in), text }
        }
        CaughtError::Value(value) => {
            let shown = value_of.and_then(|value_of| display_value(value_of, value).ok()).flatten();
            let text = shown.map_or_else(|| "undefined".to_owned(), |value| value.text);
            Failed::Thrown { line: None, text: format!("uncaught: {text}") }
        }
        CaughtError::Error(error) => Failed::Thrown { line: None, text: error.to_string() },
    }
}

/// Finds the program's innermost line in a stack trace: `    at f (program.js:3:5)`.
fn line_in(stack: &str) -> Option<usize> {
    let (_, rest) = stack.split_once(&format!("{FILE}:"))?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}
