//! Keeps a memory small by eviction, merging and purging.

use std::time::Duration;

use archon::{memory::EvictionLimits, types::Timestamp};
use jiff::{civil::Date, tz::TimeZone};
use serde_json::json;

use super::{Of, for_each_page, memories::not_forgotten, open};
use crate::{app::App, config::Span, exit::Exit, failure::Failure};

#[derive(Clone, Copy, Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct LimitFlags {
    /// The maximum number of notes, turns and summaries
    #[arg(long, value_name = "N")]
    most: Option<usize>,
    /// Forget memories that were stored, and last used, longer ago than this: 90d, 12h
    #[arg(long, value_name = "TIME")]
    older_than: Option<Span>,
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct PurgeFlags {
    /// The day, as 2026-01-31, in the time zone of this machine
    #[arg(long, value_name = "DATE")]
    before: Date,
    /// Only count the memories that would be forgotten
    #[arg(long)]
    dry_run: bool,
}

impl LimitFlags {
    pub(super) async fn evict(self, app: &App, of: &Of) -> Result<Exit, Failure> {
        let memory = open(app, &of.collection).await?;
        let mut limits = EvictionLimits::default();
        limits.entries = self.most;
        limits.age = self.older_than.map(|span| Duration::from_millis(span.0));
        let forgotten = memory.evict(&limits).await?;
        app.item(&json!({"too_old": forgotten.aged, "too_many": forgotten.evicted}), || {
            format!("{} too old, {} too many: forgotten", forgotten.aged, forgotten.evicted)
        });
        Ok(Exit::Finished)
    }
}

pub(super) async fn merge(app: &App, of: &Of) -> Result<Exit, Failure> {
    let gone = open(app, &of.collection).await?.merge_similar().await?;
    app.item(&json!({"merged": gone}), || format!("{gone} merged into others"));
    Ok(Exit::Finished)
}

impl PurgeFlags {
    pub(super) async fn purge(self, app: &App, of: &Of) -> Result<Exit, Failure> {
        let memory = open(app, &of.collection).await?;
        let before = start_of(self.before)?;
        if self.dry_run {
            let mut filter = not_forgotten();
            filter.until = Some(before);
            let mut would = 0;
            for_each_page(&memory, filter, |page| would += page.entries.len()).await?;
            app.item(&json!({"would_forget": would}), || format!("{would} would be forgotten"));
            return Ok(Exit::Finished);
        }
        let gone = memory.purge(before).await?;
        app.item(&json!({"forgotten": gone}), || format!("{gone} forgotten"));
        Ok(Exit::Finished)
    }
}

/// Returns the time at which a day begins in the local time zone.
fn start_of(day: Date) -> Result<Timestamp, Failure> {
    let start = day.to_zoned(TimeZone::system()).ok();
    let millis = start.and_then(|start| u64::try_from(start.timestamp().as_millisecond()).ok());
    let wrong = || Failure::usage(format!("{day} is before 1970"), "give a later day");
    millis.map(Timestamp::from_millis).ok_or_else(wrong)
}
