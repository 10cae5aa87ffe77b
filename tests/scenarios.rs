//! The acceptance scenarios of the specification.

pub(crate) mod agents;
pub(crate) mod one_agent;
pub(crate) mod plan_approvals;
pub(crate) mod plan_scenarios;
pub(crate) mod plan_world;
pub(crate) mod results;
pub(crate) mod team_bus;
pub(crate) mod tools;
pub(crate) mod window;
