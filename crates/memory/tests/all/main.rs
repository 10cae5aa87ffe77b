//! What the memories promise.
