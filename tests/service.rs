//! The handle for runs of every kind.

pub(crate) mod cancelled_elsewhere;
pub(crate) mod failed_runs;
pub(crate) mod run_service;
pub(crate) mod starting;
pub(crate) mod tenant_runs;
