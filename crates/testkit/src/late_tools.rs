//! A source of tools that become known late or never, for tests of code that lists, searches and calls tools.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use archon_types::{
    BoxFuture, Json, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSource, ToolSpec,
};

/// A tool `NAME__*` that stands for the tools of a server which is still starting. See [`Tool::source`].
///
/// ```
/// use archon_testkit::LateTools;
/// use archon_types::ToolSource;
///
/// let late = LateTools::silent("github", Vec::new());
/// assert!(late.tools().is_err());
/// late.answer();
/// assert!(late.tools().is_ok());
/// ```
pub struct LateTools {
    spec: ToolSpec,
    name: String,
    tools: Vec<Arc<dyn Tool>>,
    answers_a_wait: bool,
    has_answered: AtomicBool,
    waits: AtomicUsize,
}

impl LateTools {
    /// Creates a source whose tools become known when a caller first waits for them. The names of the tools must
    /// begin with `NAME__`.
    pub fn new(name: &str, tools: Vec<Arc<dyn Tool>>) -> Arc<Self> {
        Self::create(name, tools, true)
    }

    /// Creates a source whose tools become known only with [`answer`](Self::answer), even if callers wait for them.
    pub fn silent(name: &str, tools: Vec<Arc<dyn Tool>>) -> Arc<Self> {
        Self::create(name, tools, false)
    }

    fn create(name: &str, tools: Vec<Arc<dyn Tool>>, answers_a_wait: bool) -> Arc<Self> {
        let mut annotations = ToolAnnotations::destructive();
        annotations.deferrable = true;
        let spec = ToolSpec::new(format!("{name}__*"), format!("All tools of {name}."), Json::Null);
        Arc::new(Self {
            spec: spec.with_annotations(annotations),
            name: name.to_owned(),
            tools,
            answers_a_wait,
            has_answered: AtomicBool::new(false),
            waits: AtomicUsize::new(0),
        })
    }

    /// Makes the tools known.
    pub fn answer(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Returns how many times callers waited for the tools.
    pub fn waits(&self) -> usize {
        self.waits.load(Ordering::Relaxed)
    }
}

impl Tool for LateTools {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, _: Json, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async { Ok(ToolResult::error("it is not one tool")) })
    }

    fn source(&self) -> Option<&dyn ToolSource> {
        Some(self)
    }
}

impl ToolSource for LateTools {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, String> {
        match self.has_answered.load(Ordering::Relaxed) {
            true => Ok(self.tools.clone()),
            false => Err("it has not answered yet".to_owned()),
        }
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        if self.answers_a_wait {
            self.answer();
        }
        Box::pin(async {})
    }
}
