//! Support for the code that `#[tool]` generates. Not part of the public interface.
//!
//! A tool's function may return a value that converts into a result, or else a value that can be
//! serialised. Rust has no "or else" between traits, but method lookup tries `T` before `&T`: each pair of
//! traits below has the same method, the preferred one implemented for the wrapper and the other for a
//! reference to it.

use std::cell::Cell;
use std::fmt::Display;

use serde::de::DeserializeOwned;

pub use crate::action_summary::summary;
pub use archon_types::{
    BoxFuture, Context, Effect, Json, Preview, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult,
    ToolSpec,
};
pub use {schemars, serde};

/// Makes the spec of a tool whose arguments are `A`.
pub fn spec<A: schemars::JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec::new(name, description, crate::schema_of::<A>())
}

/// Parses arguments that match the tool's schema. Parsing can still fail, because the types of the function
/// may accept less than the schema.
///
/// # Errors
/// [`ToolError::InvalidArgs`] with serde's message.
pub fn arguments<A: DeserializeOwned>(arguments: Json) -> Result<A, ToolError> {
    serde_json::from_value(arguments).map_err(|e| ToolError::InvalidArgs(format!("Invalid arguments: {e}")))
}

/// The value that a tool's function returned.
pub struct Returned<T>(Cell<Option<T>>);

impl<T> Returned<T> {
    /// Wraps the value that a function returned.
    pub fn new(value: T) -> Self {
        Self(Cell::new(Some(value)))
    }
}

/// Converts the value of a tool's function into a result by `Into<ToolResult>`. This trait is preferred to
/// [`IntoResultFromJson`] where both apply.
pub trait IntoResultDirectly {
    /// Takes the wrapped value and returns the tool result that is made of it.
    fn take_result(&self) -> Result<ToolResult, ToolError>;
}

impl<T: Into<ToolResult>> IntoResultDirectly for Returned<T> {
    fn take_result(&self) -> Result<ToolResult, ToolError> {
        Ok(self.0.take().map(Into::into).unwrap_or_default())
    }
}

/// Converts the value of a tool's function into a result as JSON, if it has no conversion of its own.
pub trait IntoResultFromJson {
    /// Takes the wrapped value and returns the tool result that is made of it.
    fn take_result(&self) -> Result<ToolResult, ToolError>;
}

impl<T: serde::Serialize> IntoResultFromJson for &Returned<T> {
    fn take_result(&self) -> Result<ToolResult, ToolError> {
        let json = match self.0.take() {
            Some(value) => serde_json::to_string(&value),
            None => return Ok(ToolResult::default()),
        };
        match json {
            // `()` becomes a short text.
            Ok(text) if size_of::<T>() == 0 && text == "null" => Ok(ToolResult::success("Done.")),
            Ok(text) => Ok(ToolResult::success(text)),
            Err(e) => Err(ToolError::Failed(format!("The result cannot be written as JSON: {e}"))),
        }
    }
}

/// The error that a tool's function returned.
pub struct Failed<E>(Cell<Option<E>>);

impl<E> Failed<E> {
    pub fn new(error: E) -> Self {
        Self(Cell::new(Some(error)))
    }
}

/// Converts a function's error into a tool error by `Into`. This trait is preferred to [`IntoErrorFromText`]
/// where both apply.
pub trait IntoErrorDirectly {
    /// Takes the wrapped error and returns the tool error that is made of it.
    fn take_error(&self) -> ToolError;
}

impl<E: Into<ToolError>> IntoErrorDirectly for Failed<E> {
    fn take_error(&self) -> ToolError {
        self.0.take().map_or(ToolError::Cancelled, Into::into)
    }
}

/// Converts any other error: the model reads the error's text, with its causes if `{:#}` shows them. For
/// errors that do not implement `std::error::Error`, or are not `Send`.
pub trait IntoErrorFromText {
    /// Takes the wrapped error and returns the tool error that is made of it.
    fn take_error(&self) -> ToolError;
}

impl<E: Display> IntoErrorFromText for &Failed<E> {
    fn take_error(&self) -> ToolError {
        self.0.take().map_or(ToolError::Cancelled, |e| ToolError::Failed(format!("{e:#}")))
    }
}
