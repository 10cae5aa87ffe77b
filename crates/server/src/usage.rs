//! The use of runs: tokens, money and the performance of tools, folded from their logs.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    AgentId, Record, RecordBody, RunFilter, RunHead, RunId, RunStarted, RunStatus, SessionId, Spending,
    TenantId, Usage,
};
use archon_views::Performance;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    reply::{Reply, json},
    request::Call,
};

/// The default and the maximum number of runs that are added up.
const RUNS: (usize, usize) = (50, 500);

/// The use of one run.
#[derive(Debug, PartialEq, Serialize)]
struct RunUsage {
    run: RunId,
    agent: Option<AgentId>,
    model: Option<String>,
    status: RunStatus,
    turns: u32,
    /// The tokens of the run's own model calls.
    usage: Usage,
    /// The cost of the run's own model calls in millionths of a currency unit; null if the model has no price.
    cost_micros: Option<u64>,
    /// The tokens and the money of its child runs.
    child_spending: Spending,
    /// True if the numbers come from the run's outcome; false if they are the sums of the answers so far.
    is_final: bool,
}

pub(crate) async fn of_run(mut call: Call) -> Reply {
    let run = call.run().await?;
    let head = call.runs().get(&run).await?;
    let records = call.runs().records(&run, None).await?.records;
    json(StatusCode::OK, &RunUsage::of(&head, &records))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageQuery {
    session: Option<SessionId>,
    tenant: Option<TenantId>,
    /// The number of runs to add up; the runs that were written last are used.
    limit: Option<usize>,
}

/// Adds up the usage of the runs that match a filter. The usage of child runs is included in the run that
/// called them.
pub(crate) async fn of_runs(call: Call) -> Reply {
    let query: UsageQuery = call.query()?;
    let limit = query.limit.unwrap_or(RUNS.0).clamp(1, RUNS.1);
    let mut filter = RunFilter::all().top_level().limit(limit);
    (filter.session, filter.tenant) = (query.session, query.tenant);
    let heads = call.runs().list(&filter).await?;
    let is_cut = heads.len() == limit;
    let (mut rows, mut total) = (Vec::with_capacity(heads.len()), Spending::default());
    let mut performance = Performance::default();
    for head in heads {
        let records = match call.runs().records(&head.run_id, None).await {
            // Deleted meanwhile.
            Err(error) if error.http_status() == 404 => continue,
            salvaged => salvaged?.records,
        };
        let row = RunUsage::of(&head, &records);
        performance.add_run(&records);
        total += row.spending();
        rows.push(row);
    }
    let performance = performance.summary();
    json(
        StatusCode::OK,
        &json!({ "runs": rows, "total": total, "performance": performance, "is_cut": is_cut }),
    )
}

impl RunUsage {
    fn of(head: &RunHead, records: &[Arc<Record>]) -> Self {
        let started = RunStarted::of(records);
        let price = started.and_then(|started| started.config.price);
        let mut all = Self {
            run: head.run_id.clone(),
            agent: started.map(|started| started.agent.clone()),
            model: started.map(|started| started.config.model.clone()).filter(|model| !model.is_empty()),
            status: head.status,
            turns: 0,
            usage: Usage::default(),
            cost_micros: price.map(|_| 0),
            child_spending: Spending::default(),
            is_final: false,
        };
        let mut children = HashMap::new();
        for record in records {
            all.is_final = false;
            match &record.body {
                RecordBody::ModelCallFinished { message, .. } => {
                    all.turns += 1;
                    all.add(&message.usage, price.map(|price| price.cost(&message.usage)));
                }
                RecordBody::Summarized(summary) => {
                    all.add(&summary.usage, price.map(|price| price.cost(&summary.usage)));
                }
                RecordBody::GoalChecked(verdict) => {
                    all.add(&verdict.usage, price.map(|price| price.cost(&verdict.usage)));
                }
                RecordBody::LeaseSettled { call, spent, .. } => {
                    // A second record for the same call replaces the first.
                    children.insert(*call, *spent);
                    all.child_spending = Spending::default();
                    children.values().for_each(|spent| all.child_spending += *spent);
                }
                RecordBody::RunFinished(outcome) => {
                    (all.turns, all.usage, all.cost_micros) =
                        (outcome.turns, outcome.usage, outcome.cost_micros);
                    (all.child_spending, all.is_final) = (outcome.child_spending, true);
                }
                _ => {}
            }
        }
        all
    }

    fn add(&mut self, usage: &Usage, cost: Option<u64>) {
        self.usage += *usage;
        if let (Some(sum), Some(cost)) = (&mut self.cost_micros, cost) {
            *sum = sum.saturating_add(cost);
        }
    }

    /// Returns the tokens and the money of the run and its child runs.
    fn spending(&self) -> Spending {
        let mut all = Spending::new(self.usage.total(), self.cost_micros.unwrap_or_default());
        all += self.child_spending;
        all
    }
}
