//! The caller of a mounted router: a router behind the checks of a server.

use std::sync::Arc;

use crate::{
    access::{Scope, Token},
    role::Role,
};

/// The holder of the access token of a request. [`Server::guarded`](crate::Server::guarded) adds this value to
/// the extensions of each request that it admits.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Token>);

impl Caller {
    pub(crate) fn new(token: Arc<Token>) -> Self {
        Self(token)
    }

    /// Returns the name of the token.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the role of the token.
    pub fn role(&self) -> Role {
        self.0.role
    }

    /// Returns the runs and memories that the token reaches. A mounted router must use this scope to start or
    /// show runs. A start counts for [`TokenLimits::starts_per_hour`](crate::TokenLimits::starts_per_hour); a
    /// start above that limit fails with [`RunError::TooManyStarts`](archon_types::RunError::TooManyStarts).
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }
}
