//! Two drawings of a run, computed from its log: its timeline, and the graph of its plan or team.

use archon_views::{RunGraph, Timeline};
use axum::http::StatusCode;
use serde::Deserialize;

use crate::{
    reply::{Reply, json},
    request::Call,
};

/// The default and the maximum number of spans of a timeline.
const SPANS: (usize, usize) = (5_000, 100_000);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimelineQuery {
    /// The number of spans to return; the spans that began last are returned.
    last: Option<usize>,
}

pub(crate) async fn timeline(mut call: Call) -> Reply {
    let run = call.run().await?;
    let TimelineQuery { last } = call.query()?;
    let records = call.runs().records(&run, None).await?.records;
    json(StatusCode::OK, &Timeline::of(&records).newest(last.unwrap_or(SPANS.0).clamp(1, SPANS.1)))
}

pub(crate) async fn graph(mut call: Call) -> Reply {
    let run = call.run().await?;
    let records = call.runs().records(&run, None).await?.records;
    json(StatusCode::OK, &RunGraph::of(&records))
}
