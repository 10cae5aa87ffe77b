//! Tools: order, retries, credentials, agents as tools.

pub(crate) mod agent_tools;
pub(crate) mod call_order;
pub(crate) mod credentials;
pub(crate) mod execution;
pub(crate) mod retries;
pub(crate) mod sub_agents;
