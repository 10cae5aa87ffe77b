//! `archon triggers publish`: an event for the tasks.

use archon::{
    SystemClock,
    triggers::{TriggerEngine, TriggerEvent},
    types::{Clock as _, Json},
};
use serde_json::json;

use crate::{app::App, failure::Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct PublishArgs {
    /// The source, such as shop
    source: String,
    /// The type, such as order.created
    #[arg(value_name = "TYPE")]
    kind: String,
    /// The data, as JSON
    #[arg(default_value = "null")]
    data: String,
    /// The id of the event: a second one with the same source and id starts nothing [default: a new one]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The tenant whose tasks may take the event [default: local]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl PublishArgs {
    /// Publishes the event, and reports the tasks that take it.
    pub(super) async fn run(self, app: &App, engine: &TriggerEngine) -> Result<(), Failure> {
        let data: Json = serde_json::from_str(&self.data).map_err(|error| {
            Failure::usage(format!("the data are not JSON: {error}"), "write them as '{\"sum\": 120}'")
        })?;
        let now = SystemClock.now();
        let id = self.id.unwrap_or_else(|| format!("by-hand-{}", now.as_millis()));
        let mut event = TriggerEvent::new(id, self.source, self.kind, data).at(now);
        event.tenant = self.tenant.map(Into::into);
        let tasks = engine.publish(&event).await?;
        let text = match &tasks[..] {
            [] => "no active task takes the event".to_owned(),
            tasks => {
                format!("taken by {}", tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
        };
        app.report(&json!({ "event": event.id, "tasks": tasks }), text);
        Ok(())
    }
}
