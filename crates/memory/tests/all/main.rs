//! What the memories promise.

mod store;
mod support;
