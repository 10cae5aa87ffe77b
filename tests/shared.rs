//! The stage, and the wire, that several groups of tests use.

pub(crate) mod stage;
pub(crate) mod wire;
