//! The replacement without the feature `triggers`: a database of tasks is a file like others.

use std::sync::Arc;

use super::{TaskTraces, texts::Texts};
use crate::{app::App, failure::Failure};

pub(super) fn is_file(_: &str) -> bool {
    false
}

#[allow(clippy::unused_async, reason = "as with the feature")]
pub(super) async fn find(_: &App, _: &Arc<Texts>) -> Result<TaskTraces, Failure> {
    Ok(TaskTraces::default())
}

#[allow(clippy::unused_async, reason = "as with the feature")]
pub(super) async fn present(_: &App, _: TaskTraces) -> Result<TaskTraces, Failure> {
    Ok(TaskTraces::default())
}

#[allow(clippy::unused_async, reason = "as with the feature")]
pub(super) async fn erase(_: &App, _: &TaskTraces) -> Vec<String> {
    Vec::new()
}
