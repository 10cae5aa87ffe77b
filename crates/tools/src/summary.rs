//! Summaries of texts that are stored in a file.

use std::{pin::pin, time::Duration};

use archon_types::{BoxFuture, ToolContext, ToolResult};
use futures_util::future::{Either, select};

use crate::{arguments::clip, output};

/// Summarizes large text results, which are stored in a file; the model reads the summary in place of the text.
///
/// ```
/// use archon_tools::Summarizer;
/// use archon_types::{BoxFuture, ToolContext};
///
/// /// Keeps the first line.
/// struct FirstLine;
///
/// impl Summarizer for FirstLine {
///     fn sum_up<'a>(
///         &'a self,
///         text: &'a str,
///         _context: &'a ToolContext,
///     ) -> BoxFuture<'a, Result<String, String>> {
///         let line = text.lines().next().unwrap_or_default().to_owned();
///         Box::pin(std::future::ready(Ok(line)))
///     }
/// }
/// ```
pub trait Summarizer: Send + Sync {
    /// Returns the summary, of which the first 2,000 characters are used, or the reason why there is none.
    /// The future is dropped when the call is cancelled, or after 30 seconds; then, or after an error, the
    /// model reads the beginning of the text.
    fn sum_up<'a>(&'a self, text: &'a str, context: &'a ToolContext)
    -> BoxFuture<'a, Result<String, String>>;
}

/// Time limit of a summary.
const LIMIT: Duration = Duration::from_secs(30);

/// Maximum number of characters of a summary.
const LONGEST: usize = 2_000;

/// Replaces the beginning of a stored text, which stands in the result, by a summary of the text. If there is
/// no summary, the beginning stays.
pub(crate) async fn replace(
    summarizer: &dyn Summarizer,
    text: String,
    result: &mut ToolResult,
    context: &ToolContext,
) {
    let clock = &context.run.clock;
    let cancelled = pin!(context.run.cancel.cancelled());
    let too_late = select(clock.sleep_until(clock.now() + LIMIT), cancelled);
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
