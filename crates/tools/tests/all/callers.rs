//! Permission levels of callers, statistics of tools during calls, and texts that are summarized.

use std::{sync::Arc, time::Duration};

use archon_testkit::VirtualClock;
use archon_tools::{CallRate, EngineOptions, Summarizer, ToolEngine};
use archon_types::{
    BoxFuture, Context, OutputLevel, Tool, ToolAnnotations, ToolContext, ToolError, ToolInvocationRequest,
    ToolResult,
};
use serde_json::json;

use crate::fixture::{context, context_at, engine, spec, tool};

fn writes() -> Arc<dyn Tool> {
    let mut annotations = ToolAnnotations::default();
    annotations.permissions = vec!["fs_write".to_owned()];
    tool(spec("writes").with_annotations(annotations), |_| async { Ok("written".into()) })
}

async fn as_level(options: EngineOptions, level: &str) -> String {
    let mut request = ToolInvocationRequest::new("r1", "writes", json!({}));
    request.permission_level = level.to_owned();
    engine([writes()]).with_options(options).invoke(request, &context()).await.text()
}

// spec: AP-14, TE-37
#[tokio::test]
async fn caller_level_limits_the_granted_permissions() {
    let granted = || {
        EngineOptions::default()
            .granting(["fs_write"])
            .with_level("editor", ["fs_write"])
            .with_level("guest", [""; 0])
    };
    assert_eq!(as_level(granted(), "default").await, "written");
    assert_eq!(as_level(granted(), "editor").await, "written");
    let refused = "Error: Tool 'writes' needs the permission fs_write, which callers of the level 'LEVEL' do not have. It \
                   was not run. Go on without it, or ask the person for another level.";
    for level in ["guest", "stranger", ""] {
        assert_eq!(as_level(granted(), level).await, refused.replace("LEVEL", level));
    }
    assert_eq!(
        as_level(granted().with_level("default", [""; 0]), "default").await,
        refused.replace("LEVEL", "default")
    );
    // A level gives nothing that is not granted.
    let nothing = EngineOptions::default().with_level("editor", ["fs_write"]);
    assert!(as_level(nothing, "editor").await.contains("fs_write, which was not granted"));
}

// spec: OB-11
#[tokio::test]
async fn calls_under_way_and_calls_that_wait_are_counted_while_they_do() {
    let clock = VirtualClock::new();
    let options = EngineOptions::default().limiting("slow", CallRate::new(1, Duration::from_secs(10)));
    let slow = tool(spec("slow"), |context| async move {
        context.run.clock.sleep_until(context.run.clock.now() + Duration::from_secs(5)).await;
        Ok(ToolResult::success("done"))
    });
    let engine = engine([slow]).with_options(options);
    let run = context_at(Arc::new(clock.clone()));
    let call = |engine: ToolEngine, run: Context| async move {
        engine.execute_tool_call("slow", json!({}), &run).await
    };
    let (first, second) = (call(engine.clone(), run.clone()), call(engine.clone(), run));
    let counts = || {
        let usage = engine.usage().remove("slow").unwrap_or_default();
        (usage.running, usage.waiting, usage.stats.total_calls)
    };
    assert_eq!(counts(), (0, 0, 0));
    let watched = async {
        // The first's work and its limit, and the second's turn.
        clock.until_asleep(3).await;
        assert_eq!(counts(), (1, 1, 0));
        clock.advance(Duration::from_secs(10));
        clock.until_asleep(2).await;
        assert_eq!(counts().2, 1);
        clock.advance(Duration::from_secs(5));
    };
    let ((first, second), ()) =
        futures_util::future::join(futures_util::future::join(first, second), watched).await;
    assert_eq!((first.text().as_str(), second.text().as_str()), ("done", "done"));
    assert_eq!(counts(), (0, 0, 2));
}

// spec: OB-11
#[tokio::test]
async fn a_call_that_is_dropped_is_no_longer_under_way() {
    let forever = tool(spec("forever"), |_| std::future::pending::<Result<ToolResult, ToolError>>());
    let engine = engine([forever]);
    let (run, call) = (context(), json!({}));
    let mut call = Box::pin(engine.execute_tool_call("forever", call, &run));
    assert!(call.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
    assert_eq!(engine.usage()["forever"].running, 1);
    drop(call);
    assert_eq!(engine.usage()["forever"].running, 0);
}

/// Counts the words, or fails, or never ends.
struct Words(&'static str);

impl Summarizer for Words {
    fn sum_up<'a>(&'a self, text: &'a str, _: &'a ToolContext) -> BoxFuture<'a, Result<String, String>> {
        match self.0 {
            "counts" => Box::pin(async move { Ok(format!("{} words", text.split_whitespace().count())) }),
            "fails" => Box::pin(async { Err("no model".to_owned()) }),
            _ => Box::pin(std::future::pending()),
        }
    }
}

async fn stored(says: &'static str, way: &'static str) -> ToolResult {
    let folder = tempfile::tempdir().unwrap();
    let long = tool(spec("long"), move |_| async move { Ok(says.repeat(20_000).into()) });
    let mut request = ToolInvocationRequest::new("r1", "long", json!({}));
    request.output_level = Some(OutputLevel::Full);
    request.storage_dir = Some(folder.path().display().to_string());
    let run = context_at(Arc::new(VirtualClock::jumping()));
    engine([long]).with_summarizer(Arc::new(Words(way))).invoke(request, &run).await
}

// spec: TE-16
#[tokio::test]
async fn stored_large_result_is_summarized_by_the_summarizer() {
    let summary = |result: &ToolResult| result.data_file.as_ref().unwrap().summary.clone();
    let counted = stored("word ", "counts").await;
    assert_eq!(summary(&counted), "20000 words");
    assert!(counted.text().ends_with("\n\nData summary: 20000 words"), "{}", counted.text());
    for way in ["fails", "hangs"] {
        assert_eq!(summary(&stored("word ", way).await), "word ".repeat(40), "{way}: its beginning stays");
    }
    // Of a list it is known what is in it.
    let list: &'static str = Box::leak(format!("[{}1]", "1,".repeat(40_000)).into_boxed_str());
    let folder = tempfile::tempdir().unwrap();
    let listing = tool(spec("list"), move |_| async move { Ok(list.into()) });
    let mut request = ToolInvocationRequest::new("r1", "list", json!({}));
    request.output_level = Some(OutputLevel::Full);
    request.storage_dir = Some(folder.path().display().to_string());
    let result =
        engine([listing]).with_summarizer(Arc::new(Words("counts"))).invoke(request, &context()).await;
    assert_eq!(summary(&result), "List with 40001 items. First item keys: N/A");
}
