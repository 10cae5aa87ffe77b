//! Pillars from outside: a model and an approver that this workspace knows nothing of, given to the builder as trait
//! objects. docs/pillars.md has all of them. `cargo run -p archon-agents --example swap_a_pillar`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::sync::Arc;

use archon::{
    Archon, Provider, RandomIds, SystemClock,
    store::InMemoryJournal,
    types::{
        AskLater, AssistantMessage, CancellationToken, Clock, Content, ModelEvent, ProviderError, Request,
        StopReason,
    },
};
use futures_util::{StreamExt, stream::BoxStream};

/// A model that says how many messages it was sent.
struct Counting;

impl Provider for Counting {
    fn id(&self) -> &str {
        "counting"
    }

    fn stream(
        &self,
        request: Request,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let text = format!("You sent {} message(s).", request.messages.len());
        let answer = AssistantMessage {
            content: vec![Content::text(text)],
            stop_reason: StopReason::Stop,
            model: request.model,
            provider: "counting".to_owned(),
            timestamp: SystemClock.now(),
            ..AssistantMessage::default()
        };
        futures_util::stream::iter([Ok(ModelEvent::Start), Ok(ModelEvent::Done(Box::new(answer)))]).boxed()
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let agent = Archon::builder()
        .provider(Arc::new(Counting), "any")
        .journal(Arc::new(InMemoryJournal::new()))
        .approver(AskLater)
        .clock(Arc::new(SystemClock))
        .ids(Arc::new(RandomIds))
        .build()?;
    println!("{}", agent.run("Hello").await?.into_text()?);
    Ok(())
}
