//! The tasks of a server: it starts their runs, and shows them to the holders of tokens.

use archon::{
    Runs,
    server::{AllowedHosts, Scope, axum::Router},
    types::CancellationToken,
};

use crate::{app::App, failure::Failure};

/// The probes that the conditions of tasks read; nothing in a build without tasks.
#[cfg(feature = "triggers")]
pub(super) type TaskParts = archon::triggers::TriggerParts;
#[cfg(not(feature = "triggers"))]
pub(super) type TaskParts = ();

/// The channels and sources of the settings; nothing in a build without tasks.
pub(super) struct SettledTasks(#[cfg(feature = "triggers")] crate::tasks::served::Settled);

/// The tasks in the data folder; nothing in a build without them.
pub(super) struct Tasks(#[cfg(feature = "triggers")] crate::tasks::served::Served);

#[cfg(feature = "triggers")]
impl SettledTasks {
    /// Reads the channels and the sources of events of the settings.
    ///
    /// # Errors
    /// [`Failure`] if a channel or a source of events cannot be used.
    pub(super) fn read(app: &App) -> Result<Self, Failure> {
        Ok(Self(crate::tasks::served::Settled::read(app)?))
    }

    /// Opens the tasks. `url` is the address of the server for the links of questions.
    ///
    /// # Errors
    /// [`Failure`] if a file of the tasks cannot be used.
    pub(super) fn open(
        self,
        app: &App,
        runs: &Runs,
        parts: TaskParts,
        url: Option<&str>,
    ) -> Result<Tasks, Failure> {
        Ok(Tasks(self.0.open(app, runs, parts, url)?))
    }
}

#[cfg(feature = "triggers")]
impl Tasks {
    /// Returns the engine that starts the runs of the tasks.
    #[cfg(feature = "skills")]
    pub(super) fn engine(&self) -> &archon::triggers::TriggerEngine {
        &self.0.engine
    }

    /// Lets a token reach the tasks and the notifications of its tenant. A token without a tenant reaches all tasks,
    /// and the notifications of the tenant `local`.
    pub(super) fn add_to(&self, scope: Scope, tenant: Option<&str>) -> Scope {
        self.0.add_to(scope, tenant)
    }

    /// Adds the routes of web hooks and of the page on which people answer; they take no access token.
    pub(super) fn mount(&self, router: Router, hosts: AllowedHosts) -> Router {
        router.merge(self.0.routes(hosts))
    }

    /// Starts the runs of the tasks until the server ends.
    pub(super) async fn serve(self, app: App, end: CancellationToken) {
        self.0.serve(app, end).await;
    }
}

#[cfg(not(feature = "triggers"))]
#[expect(clippy::unnecessary_wraps, reason = "the build with tasks may fail here")]
impl SettledTasks {
    pub(super) fn read(_: &App) -> Result<Self, Failure> {
        Ok(Self())
    }

    pub(super) fn open(self, _: &App, _: &Runs, _: TaskParts, _: Option<&str>) -> Result<Tasks, Failure> {
        Ok(Tasks())
    }
}

#[cfg(not(feature = "triggers"))]
impl Tasks {
    pub(super) fn add_to(&self, scope: Scope, _: Option<&str>) -> Scope {
        scope
    }

    pub(super) fn mount(&self, router: Router, _: AllowedHosts) -> Router {
        router
    }

    pub(super) async fn serve(self, _: App, end: CancellationToken) {
        end.cancelled().await;
    }
}
