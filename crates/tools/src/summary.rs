//! Texts that go to a file, summed up by somebody who can read.

use std::{pin::pin, time::Duration};

use archon_types::{BoxFuture, ToolContext, ToolResult};
use futures_util::future::{Either, select};

use crate::{arguments::clip, output};

/// Says in a few words what is in a text, for a model that will see these words in its place.
pub trait Summarizer: Send + Sync {
    /// The words, or why there are none. The future is dropped when the call is cancelled, or after 30 seconds.
    fn sum_up<'a>(&'a self, text: &'a str, context: &'a ToolContext)
    -> BoxFuture<'a, Result<String, String>>;
}

/// How long somebody may take to sum a text up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Characters of a summary.
const LONGEST: usize = 2_000;

/// Puts a summary in the place of the text's beginning, which stays if there is none.
pub(crate) async fn replace(
    summarizer: &dyn Summarizer,
    text: String,
    result: &mut ToolResult,
    context: &ToolContext,
) {
    let clock = &context.run.clock;
    let cancelled = pin!(context.run.cancel.cancelled());
    let too_late = select(clock.sleep_until(clock.now() + PATIENCE), cancelled);
    let said = match select(summarizer.sum_up(&text, context), too_late).await {
        Either::Left((said, _)) => said,
        Either::Right(_) => Err("it took too long, or the call was cancelled".to_owned()),
    };
    match (said, &mut result.data_file) {
        (Ok(said), Some(file)) if !said.trim().is_empty() => {
            file.summary = clip(said.trim(), LONGEST);
            result.content = vec![output::stored(file).into()];
        }
        (Err(why), _) => {
            tracing::warn!(target: "archon::tools", tool = %context.tool_name, "a text was not summed up: {why}");
        }
        _ => {}
    }
}
