//! Roles of tokens, and the rights that each has.

use serde::Serialize;

/// The role of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// Sees which runs there are, their status, and what they use.
    Viewer,
    /// Also reads logs, and works with runs: starts, steers, cancels, answers, resumes and forks them.
    Operator,
    /// Has every right.
    Admin,
    /// Sees what a viewer sees, and reads logs. It changes nothing.
    Auditor,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Admin, Self::Auditor];

    /// Returns the name of the role, as in JSON, such as `viewer`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Auditor => "auditor",
        }
    }

    /// Returns true if the role has the right.
    pub const fn has(self, right: Right) -> bool {
        match right {
            Right::Monitor => true,
            Right::ReadLogs => !matches!(self, Self::Viewer),
            Right::Operate => matches!(self, Self::Operator | Self::Admin),
            Right::Administer => matches!(self, Self::Admin),
        }
    }

    /// Returns the rights of the role.
    pub fn rights(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.has(*right))
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A right that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Right {
    /// To see which runs there are, their status, and what they use.
    Monitor,
    /// To read what was said and done: logs, sessions, questions and memories.
    ReadLogs,
    /// To start, steer, cancel, resume and fork runs, and to answer their questions.
    Operate,
    /// To delete runs and tasks.
    Administer,
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 4] = [Self::Monitor, Self::ReadLogs, Self::Operate, Self::Administer];

    /// Returns the name of the right, as in JSON, such as `read_logs`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::ReadLogs => "read_logs",
            Self::Operate => "operate",
            Self::Administer => "administer",
        }
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
