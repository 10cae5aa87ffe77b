//! Checks a team and its plan before a run.

use std::collections::{BTreeMap, BTreeSet};

use archon_types::{AgentId, Member, PlanError, SubTaskId, Task, TeamRole};

/// A problem with a team's configuration, found before a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TeamProblem {
    /// Two members, or a member and the lead, have the same id.
    #[error("the id {id} is used twice among the members and the lead of the team")]
    TwoMembers {
        /// The duplicate id.
        id: AgentId,
    },
    /// Two roles have the same name.
    #[error("two roles have the name {role}")]
    TwoRoles {
        /// The duplicate name.
        role: String,
    },
    /// A member has a role that the team does not define.
    #[error("the member {member} has the role {role}, which the team does not define")]
    UnknownRole {
        /// Id of the member.
        member: AgentId,
        /// Name of the undefined role.
        role: String,
    },
    /// A role needs a tool that no member with this role has.
    #[error("the role {role} needs the tool {tool}, which no member with that role has")]
    UnknownTool {
        /// Name of the role.
        role: String,
        /// Name of the missing tool.
        tool: String,
    },
    /// A role that the team needs, such as the reviewer's, has no member, and the team has no lead.
    #[error("no member has the role {role}, and the team has no lead")]
    NoMember {
        /// Name of the role without a member.
        role: String,
    },
    /// The team has no members and no lead.
    #[error("the team has no members and no lead")]
    Empty,
}

impl TeamProblem {
    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> String {
        match self {
            Self::TwoMembers { id } => format!("give one of the two another id than {id}"),
            Self::TwoRoles { role } => format!("keep one of the two roles {role}"),
            Self::UnknownRole { role, .. } => format!("define the role {role}, or give the member another"),
            Self::UnknownTool { role, tool } => {
                format!("give a member with the role {role} the tool {tool}, or take it out of the role")
            }
            Self::NoMember { role } => format!("add a member with the role {role}, or a lead"),
            Self::Empty => "add a member".to_owned(),
        }
    }
}

/// Returns all problems of a team's configuration. If the team has no lead, each role in `needed` must
/// have a member.
pub fn check_team(
    roles: &[TeamRole],
    members: &[Member],
    lead: Option<&AgentId>,
    needed: &[String],
) -> Vec<TeamProblem> {
    let mut problems = Vec::new();
    let mut ids: BTreeSet<&AgentId> = lead.into_iter().collect();
    for member in members {
        if !ids.insert(&member.id) {
            problems.push(TeamProblem::TwoMembers { id: member.id.clone() });
        }
        for role in member.roles.iter().filter(|name| !roles.iter().any(|role| role.name == **name)) {
            problems.push(TeamProblem::UnknownRole { member: member.id.clone(), role: role.clone() });
        }
    }
    let mut names = BTreeSet::new();
    for role in roles {
        if !names.insert(&role.name) {
            problems.push(TeamProblem::TwoRoles { role: role.name.clone() });
        }
        let has = |member: &Member, tool| member.roles.contains(&role.name) && member.tools.contains(tool);
        for tool in role.tools.iter().filter(|tool| !members.iter().any(|member| has(member, tool))) {
            problems.push(TeamProblem::UnknownTool { role: role.name.clone(), tool: tool.clone() });
        }
    }
    for role in needed.iter().filter(|_| lead.is_none()) {
        if !members.iter().any(|member| member.roles.contains(role)) {
            problems.push(TeamProblem::NoMember { role: role.clone() });
        }
    }
    if members.is_empty() && lead.is_none() {
        problems.push(TeamProblem::Empty);
    }
    problems
}

/// Returns the roles that a plan names, without duplicates.
pub fn roles_of(task: &Task) -> Vec<String> {
    let named: BTreeSet<_> = task.subtasks.iter().filter_map(|subtask| subtask.rules.role.clone()).collect();
    named.into_iter().collect()
}

/// Returns true if a plan names at least two roles, so that it needs a team.
pub fn needs_team(task: &Task) -> bool {
    roles_of(task).len() >= 2
}

/// Checks that a team can follow a plan: no duplicate id, no loop subtask, no unknown dependency, no cycle.
pub(crate) fn check_plan(task: &Task) -> Result<(), String> {
    let mut ids: BTreeSet<&SubTaskId> = BTreeSet::new();
    if let Some(twice) = task.subtasks.iter().find(|subtask| !ids.insert(&subtask.id)) {
        return Err(format!("the subtask {} is in the plan twice", twice.id));
    }
    if let Some(subtask) = task.subtasks.iter().find(|subtask| subtask.rules.each.is_some()) {
        return Err(format!("the subtask {} is a loop, which a team does not follow", subtask.id));
    }
    for subtask in &task.subtasks {
        if let Some(needed) = subtask.dependencies().iter().find(|needed| !ids.contains(needed)) {
            let id = &subtask.id;
            return Err(format!("the subtask {id} depends on {needed}, which the plan does not have"));
        }
    }
    match cycle(task) {
        path if path.is_empty() => Ok(()),
        path => Err(PlanError::Cycle { path }.to_string()),
    }
}

/// Returns a cycle among the subtasks; empty if there is none. The first and the last id are the same, and
/// each subtask depends on the one before it.
fn cycle(task: &Task) -> Vec<SubTaskId> {
    let subtasks = task.subtasks.iter();
    let mut waits: BTreeMap<&SubTaskId, Vec<&SubTaskId>> =
        subtasks.map(|subtask| (&subtask.id, subtask.dependencies().iter().collect())).collect();
    while let Some(free) = waits.iter().find(|(_, needed)| needed.is_empty()).map(|(id, _)| *id) {
        waits.remove(free);
        waits.values_mut().for_each(|needed| needed.retain(|other| *other != free));
    }
    let mut way: Vec<&SubTaskId> = Vec::new();
    let mut next = waits.keys().next().copied();
    // Each of these subtasks waits for another one of them, so the path comes back to itself.
    while let Some(at) = next.filter(|at| !way.contains(at)) {
        way.push(at);
        next = waits[at].first().copied();
    }
    way.drain(..way.iter().position(|at| Some(*at) == next).unwrap_or(0));
    way.reverse();
    let first = (0..way.len()).min_by_key(|place| way[*place]).unwrap_or(0);
    way.rotate_left(first);
    way.iter().chain(way.first()).map(|id| (*id).clone()).collect()
}
