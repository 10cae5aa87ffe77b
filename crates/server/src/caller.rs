//! The token of a request to a router that is mounted behind the checks of a server.

use std::sync::Arc;

use crate::{
    access::{Scope, Token},
    role::Role,
};

/// The holder of the access token of a request that passed [`Server::guarded`](crate::Server::guarded): an extension of
/// the request.
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

    /// Returns the runs and memories that the token reaches. A mounted router that starts or shows runs uses no others.
    /// A start counts for [`TokenLimits::starts_per_hour`](crate::TokenLimits::starts_per_hour), and is refused beyond it
    /// with [`RunError::TooManyStarts`](archon_types::RunError::TooManyStarts).
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }
}
