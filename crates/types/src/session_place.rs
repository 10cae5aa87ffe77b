//! Where in a conversation a run begins that several agents work on.

use crate::Origin;

/// Where a plan or a team begins: the run that it goes on from, and what its agents should know beside the goal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionPlace {
    /// The run that it goes on from, or its caller.
    pub origin: Origin,
    /// How many runs of the session went before: part of the run's display name.
    pub earlier: usize,
    /// What the agents read beside the goal: what the project says, what is remembered, what was said before. It is
    /// kept in the log, so that whoever resumes the run needs nothing else.
    pub background: String,
}

impl SessionPlace {
    /// A place of which nothing more is known.
    pub fn new(origin: Origin) -> Self {
        Self { origin, earlier: 0, background: String::new() }
    }
}
