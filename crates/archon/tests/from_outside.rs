//! What reaches tasks and questions from outside of the program: answers by link and mail, web hooks, files and a bus. Over
//! real runs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "from_outside/answers.rs"]
mod answers;
#[path = "from_outside/sources.rs"]
mod sources;
#[path = "from_outside/world.rs"]
mod world;
