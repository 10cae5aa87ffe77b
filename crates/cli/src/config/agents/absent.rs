//! The replacement without the feature `skills`: no agent is in a file.

/// A file with an agent: there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AgentFile {}
