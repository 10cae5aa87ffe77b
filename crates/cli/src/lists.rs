//! Lists that both commands and conversations print.

pub(crate) mod memories;
pub(crate) mod models;
pub(crate) mod sessions;
pub(crate) mod tools;
