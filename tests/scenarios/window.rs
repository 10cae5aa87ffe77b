//! The acceptance scenarios of a context window that is full, or was fuller than the service allows.

use std::sync::Arc;

use archon::{
    Provider,
    react_loop::{Fallback, replay},
    types::{
        BoxStream, CancellationToken, Capabilities, CompactionLevel, ContextConfig, Message, ModelEvent,
        OutcomeStatus, ProviderError, RecordBody, Request, ResultTokens, TokenCounter, TokenEstimate,
        ToolResultStatus,
    },
};
use archon_testkit::FnProvider;
use serde_json::json;

use crate::shared::stage::{Show, Stage, call, reads};

fn levels(show: &Show) -> Vec<CompactionLevel> {
    let level = |body: RecordBody| match body {
        RecordBody::Compacted(compaction) => Some(compaction.level),
        _ => None,
    };
    show.bodies().into_iter().filter_map(level).collect()
}

/// Works for 30 turns with long results; after that the service refuses `refused` requests in a row.
async fn refused(refused: usize) -> (archon::Outcome, Show) {
    let stage = Stage::new(move |n, _| match n {
        0..30 => call(&format!("c{n}"), "look", json!({ "n": n })),
        n if n < 30 + refused => vec![Err(ProviderError::ContextOverflow("prompt is too long".into()))],
        _ => FnProvider::text("done"),
    });
    let (look, _) =
        reads("look", |_, arguments| Ok(format!("{} {}", arguments["n"], "word ".repeat(200)).into()));
    stage.with(|b| b.tool(look)).play("Look at everything.").await
}

// spec: A-36, C-07
#[tokio::test]
async fn context_overflow_is_trimmed_truncated_and_force_trimmed() {
    use CompactionLevel::{ForceTrim, Trim, TruncateAll};
    let steps = [Trim, TruncateAll, ForceTrim];
    for n in 1..=3 {
        let (outcome, show) = refused(n).await;
        assert_eq!(
            (outcome.status, outcome.last_text().unwrap_or_default()),
            (OutcomeStatus::Finished, "done"),
            "{n}"
        );
        assert_eq!(levels(&show), steps[..n]);
        let requests = show.model.requests();
        assert_eq!(requests.len(), 31 + n, "one try after each step");
        assert!(requests[30..].windows(2).all(|pair| pair[1].messages.len() <= pair[0].messages.len()));
    }
    let (outcome, show) = refused(usize::MAX - 30).await;
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.error.as_deref(), Some("Conversation too long, please start a new conversation"));
    assert_eq!((levels(&show), show.model.requests().len()), (steps.to_vec(), 34));
}

// spec: A-52, C-11
#[tokio::test]
async fn at_96_percent_every_tool_is_blocked_and_the_model_concludes() {
    let mut context = ContextConfig::new(10_000);
    (context.system_prompt_tokens, context.trigger, context.max_tool_result_share) = (0, 2.0, 1_000.0);
    let all = 1_000_000;
    context.tool_result_max_tokens =
        ResultTokens { normal: all, moderate: all, aggressive: all, critical: all };
    let stage = Stage::new(|n, request| match n {
        0 => call("c0", "look", json!({})),
        1 => {
            let both = ["c1", "c2"].map(|id| archon::types::ToolCall::new(id, "look", json!({ "at": id })));
            FnProvider::calls(both.to_vec())
        }
        _ => {
            let last = request.messages.iter().last().unwrap().text();
            assert!(last.starts_with("CRITICAL"), "{last}");
            FnProvider::text("This is what I know.")
        }
    });
    let (look, runs) = reads("look", |_, _| Ok("word ".repeat(7_120).into()));
    let (outcome, show) = stage.with(|b| b.tool(look).context(Some(context))).play("Look.").await;
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "This is what I know.")
    );
    assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 1, "neither of the two ran");
    let blocked = &show.results()[1..];
    assert_eq!(blocked.len(), 2);
    for text in blocked {
        assert!(
            text.starts_with("CRITICAL CONTEXT LIMIT: 96% used.\nTool execution has been BLOCKED"),
            "{text}"
        );
    }
    let refused = show.bodies().into_iter().filter(
        |b| matches!(b, RecordBody::ToolCallRefused { result, .. } if result.status == ToolResultStatus::Error),
    );
    assert_eq!(refused.count(), 2);
}

/// A model that says how large its window is.
struct Small(FnProvider, u64);

impl Provider for Small {
    fn id(&self) -> &str {
        "small"
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        self.0.stream(request, cancel)
    }

    fn capabilities(&self, _: &str) -> Capabilities {
        let mut can = Capabilities::default();
        can.context_window = Some(self.1);
        can
    }
}

// spec: C-01, ER-09
#[tokio::test]
async fn a_fallback_is_sent_no_more_than_its_own_window_holds() {
    for (window, compactions) in [(4_000, 1), (1_000_000, 0)] {
        let stage = Stage::new(|n, _| match n {
            0..20 => call(&format!("c{n}"), "look", json!({ "n": n })),
            _ => vec![Err(ProviderError::Auth("revoked".into()))],
        });
        let standby = FnProvider::new(|_, _| FnProvider::text("done"));
        let small: Arc<dyn Provider> = Arc::new(Small(standby.clone(), window));
        let (look, _) =
            reads("look", |_, arguments| Ok(format!("{} {}", arguments["n"], "word ".repeat(200)).into()));
        let mut context = ContextConfig::new(100_000);
        context.system_prompt_tokens = 0;
        let stage =
            stage.with(|b| b.tool(look).context(Some(context)).fallback_provider(Fallback::new(small, "m2")));
        let (outcome, show) = stage.play("Look at everything.").await;
        assert_eq!(
            (outcome.status, outcome.last_text().unwrap_or_default()),
            (OutcomeStatus::Finished, "done")
        );
        assert_eq!(levels(&show).len(), compactions, "{window}");
        let count = |m: &Arc<Message>| TokenEstimate.count_message(m);
        let sent: u64 = standby.requests()[0].messages.iter().map(count).sum();
        assert!(sent <= window, "{sent}");
        assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
    }
}
