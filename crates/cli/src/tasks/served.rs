//! The tasks of `archon serve`, with their channels and their sources of events.

use std::sync::Arc;

use archon::{
    Runs,
    answers::AnswerPage,
    event_sources::WebhookDoor,
    server::{AllowedHosts, Scope, axum::Router},
    triggers::{TriggerEngine, TriggerParts},
    types::CancellationToken,
};

use super::{
    channels::{self, Live, Opened},
    delivery::Delivery,
    sources::{EventSources, World},
};
use crate::{app::App, failure::Failure};

/// The channels and sources of the settings, before the server has an address.
pub(crate) struct Settled {
    channels: Vec<Opened>,
    live: Live,
    sources: EventSources,
}

/// The tasks, before the server serves them.
pub(crate) struct Served {
    pub(crate) engine: TriggerEngine,
    delivery: Delivery,
    sources: EventSources,
    door: Option<WebhookDoor>,
    live: Live,
}

impl Settled {
    /// Reads the channels and the sources of the settings.
    ///
    /// # Errors
    /// [`Failure`] if one of them cannot be used.
    pub(crate) fn read(app: &App) -> Result<Self, Failure> {
        let live = Live::of(app);
        Ok(Self { channels: channels::open(app, &live)?, live, sources: EventSources::open(app)? })
    }

    /// Opens the tasks. `parts` has the probes that conditions read. `url` is the address of the server for the links
    /// of questions.
    ///
    /// # Errors
    /// [`Failure`] if a file of the data folder cannot be used.
    pub(crate) fn open(
        mut self,
        app: &App,
        runs: &Runs,
        parts: TriggerParts,
        url: Option<&str>,
    ) -> Result<Served, Failure> {
        let delivery = Delivery::open(app, runs, url, self.channels)?;
        let engine = super::engine(app, Arc::new(runs.clone()), parts, delivery.channels())?;
        // Set once, here.
        let _ = delivery.engine.set(engine.clone());
        let door = self.sources.take_door(&engine);
        Ok(Served { engine, delivery, sources: self.sources, door, live: self.live })
    }
}

impl Served {
    /// Lets a token reach the tasks and the notifications of its tenant. A token without a tenant reaches all tasks,
    /// and the notifications of the tenant `local`.
    pub(crate) fn add_to(&self, scope: Scope, tenant: Option<&str>) -> Scope {
        let scope = scope.with_tasks(match tenant {
            Some(tenant) => Arc::new(self.engine.for_tenant(tenant)),
            None => Arc::new(self.engine.clone()),
        });
        self.live.add_to(scope, tenant)
    }

    /// Returns the routes of web hooks and of the page on which people answer. They take no access token, and have
    /// checks of their own.
    pub(crate) fn routes(&self, hosts: AllowedHosts) -> Router {
        let page = AnswerPage::new(self.delivery.answers.clone(), hosts).router();
        match &self.door {
            Some(door) => page.merge(door.router()),
            None => page,
        }
    }

    /// Starts runs, sends notifications and publishes events until the server ends. While another server works on the
    /// same data folder, this one waits: two of them would share the tasks and the outbox so that a notification is
    /// never sent, and read the same replies.
    pub(crate) async fn serve(self, app: App, end: CancellationToken) {
        let Self { engine, delivery, sources, door, .. } = self;
        let world = World { app, engine, delivery: Arc::new(delivery), end };
        let hold = tokio::select! {
            hold = world.delivery.hold(&world.app) => hold,
            () = world.end.cancelled() => return,
        };
        let _hold = match hold {
            Ok(hold) => hold,
            Err(failure) => {
                let line = failure.line();
                world.app.output.warn_again(format!("no task starts, and no notification is sent: {line}"));
                return;
            }
        };
        let publishing = sources.serve(door, world.clone());
        let delivering = world.delivery.serve(&world.app, world.end.clone());
        tokio::join!(start_runs(&world), delivering, publishing);
    }
}

async fn start_runs(world: &World) {
    if let Err(error) = world.engine.serve(world.end.clone()).await {
        let failure = Failure::from(error);
        let line = failure.line();
        world.app.output.warn_again(format!("no task starts any more: {line}; start the server again"));
    }
}
