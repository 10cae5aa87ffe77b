//! Tests of whole documents, with a server on this machine that records what arrives.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod auth;
mod declared;
mod documents;
mod large_document;
mod mutated;
mod pages;
mod petstore;
mod random_calls;
mod sign_in;
mod support;
