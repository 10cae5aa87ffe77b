//! The agent loop with its parts: models, hooks, checks, typed answers.

pub(crate) mod failures;
pub(crate) mod goal_checks;
pub(crate) mod hooks;
pub(crate) mod live;
pub(crate) mod own_code;
pub(crate) mod parallel;
pub(crate) mod settings;
pub(crate) mod side_questions;
pub(crate) mod typed_answers;
