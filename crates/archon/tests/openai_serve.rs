//! Agents as models of the OpenAI endpoints, with real runs and a scripted model.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "openai_serve/chat.rs"]
mod chat;
#[path = "openai_serve/desk.rs"]
mod desk;
#[path = "openai_serve/going_away.rs"]
mod going_away;
#[path = "openai_serve/outer_router.rs"]
mod outer_router;
#[path = "openai_serve/responses.rs"]
mod responses;
#[path = "openai_serve/site.rs"]
mod site;
