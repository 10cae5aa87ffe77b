//! What the code that `#[tool]` writes leans on. Not part of the public interface.
//!
//! A function may return anything that turns into a result, or else anything that serialises. Rust
//! has no "or else" between traits, but it looks for methods on `T` before it looks on `&T`: each
//! pair of traits below has the same method, the preferred one implemented for the wrapper and the
//! other for a reference to it.

use std::cell::Cell;
use std::fmt::Display;

use serde::de::DeserializeOwned;

pub use crate::action_summary::summary;
pub use archon_types::{
    BoxFuture, Context, Effect, Json, Preview, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult,
    ToolSpec,
};
pub use {schemars, serde};

/// The spec of a tool whose arguments are `A`.
pub fn spec<A: schemars::JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec::new(name, description, crate::schema_of::<A>())
}

/// Reads arguments that passed the schema. The types may still be narrower than the schema can say.
///
/// # Errors
/// [`ToolError::InvalidArgs`] with serde's reason.
pub fn arguments<A: DeserializeOwned>(arguments: Json) -> Result<A, ToolError> {
    serde_json::from_value(arguments).map_err(|e| ToolError::InvalidArgs(format!("Invalid arguments: {e}")))
}

/// What a function returned.
pub struct Returned<T>(Cell<Option<T>>);

impl<T> Returned<T> {
    /// Wraps it.
    pub fn new(value: T) -> Self {
        Self(Cell::new(Some(value)))
    }
}

/// Preferred: the value turns into a result by itself.
pub trait IntoResultDirectly {
    /// The result.
    fn take_result(&self) -> Result<ToolResult, ToolError>;
}

impl<T: Into<ToolResult>> IntoResultDirectly for Returned<T> {
    fn take_result(&self) -> Result<ToolResult, ToolError> {
        Ok(self.0.take().map(Into::into).unwrap_or_default())
    }
}

/// Otherwise: the model reads the value as JSON.
pub trait IntoResultFromJson {
    /// The result.
    fn take_result(&self) -> Result<ToolResult, ToolError>;
}

impl<T: serde::Serialize> IntoResultFromJson for &Returned<T> {
    fn take_result(&self) -> Result<ToolResult, ToolError> {
        let json = match self.0.take() {
            Some(value) => serde_json::to_string(&value),
            None => return Ok(ToolResult::default()),
        };
        match json {
            // `()` says no more than that the function came back.
            Ok(text) if size_of::<T>() == 0 && text == "null" => Ok(ToolResult::success("Done.")),
            Ok(text) => Ok(ToolResult::success(text)),
            Err(e) => Err(ToolError::Failed(format!("The result cannot be written as JSON: {e}"))),
        }
    }
}

/// The error that a function returned.
pub struct Failed<E>(Cell<Option<E>>);

impl<E> Failed<E> {
    /// Wraps it.
    pub fn new(error: E) -> Self {
        Self(Cell::new(Some(error)))
    }
}

/// Preferred: the error turns into a tool error by itself.
pub trait IntoErrorDirectly {
    /// The error.
    fn take_error(&self) -> ToolError;
}

impl<E: Into<ToolError>> IntoErrorDirectly for Failed<E> {
    fn take_error(&self) -> ToolError {
        self.0.take().map_or(ToolError::Cancelled, Into::into)
    }
}

/// Otherwise: the model reads what the error displays, with its causes where `{:#}` shows them. For errors that are no
/// `std::error::Error`, or that cannot leave their thread.
pub trait IntoErrorFromText {
    /// The error.
    fn take_error(&self) -> ToolError;
}

impl<E: Display> IntoErrorFromText for &Failed<E> {
    fn take_error(&self) -> ToolError {
        self.0.take().map_or(ToolError::Cancelled, |e| ToolError::Failed(format!("{e:#}")))
    }
}
