//! The tasks of a server: it starts their runs, and shows them to the holders of tokens.

#[cfg(feature = "triggers")]
use std::sync::Arc;

use archon::{Runs, server::Scope, types::CancellationToken};

use crate::{app::App, failure::Failure};

/// The tasks in the data folder; nothing in a build without them.
#[derive(Clone)]
pub(super) struct Tasks {
    #[cfg(feature = "triggers")]
    engine: archon::triggers::TriggerEngine,
}

#[cfg(feature = "triggers")]
impl Tasks {
    /// # Errors
    /// [`Failure`] if the file of the tasks or a channel cannot be used.
    pub(super) fn open(app: &App, runs: &Runs) -> Result<Self, Failure> {
        let channels = crate::tasks::channels::open(app)?;
        Ok(Self { engine: crate::tasks::engine(app, Arc::new(runs.clone()), channels)? })
    }

    /// Returns the engine.
    #[cfg(feature = "skills")]
    pub(super) fn engine(&self) -> &archon::triggers::TriggerEngine {
        &self.engine
    }

    /// Adds the tasks to the scope of a token: all of them, or those of its tenant.
    pub(super) fn add_to(&self, scope: Scope, tenant: Option<&str>) -> Scope {
        scope.with_tasks(match tenant {
            Some(tenant) => Arc::new(self.engine.for_tenant(tenant)),
            None => Arc::new(self.engine.clone()),
        })
    }

    /// Starts the runs of the tasks until the server ends.
    pub(super) async fn serve(self, app: App, end: CancellationToken) {
        if let Err(error) = self.engine.serve(end).await {
            let failure = Failure::from(error);
            app.output
                .warn_again(format!("no task starts any more: {}; start the server again", failure.line()));
        }
    }
}

#[cfg(not(feature = "triggers"))]
impl Tasks {
    #[expect(clippy::unnecessary_wraps, reason = "the build with tasks may fail here")]
    pub(super) fn open(_: &App, _: &Runs) -> Result<Self, Failure> {
        Ok(Self {})
    }

    pub(super) fn add_to(&self, scope: Scope, _: Option<&str>) -> Scope {
        scope
    }

    pub(super) async fn serve(self, _: App, end: CancellationToken) {
        end.cancelled().await;
    }
}
