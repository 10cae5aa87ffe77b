//! What reaches tasks and questions from outside of the program: answers by link and mail, over real
//! runs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "from_outside/answers.rs"]
mod answers;
#[path = "from_outside/world.rs"]
mod world;
