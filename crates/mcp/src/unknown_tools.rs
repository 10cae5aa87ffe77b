//! A tool that stands for the tools of a server that is not connected and has no pins.

use std::{sync::Arc, time::Duration};

use archon_types::{BoxFuture, Json, Tool, ToolContext, ToolError, ToolResult, ToolSource, ToolSpec};

use crate::{
    McpError, connection,
    known_tools::KnownTools,
    supervise::{Server, State},
    text::plain,
    tool::{annotations, with_time_to_ask},
};

/// Maximum time that a search or a call waits for a server.
const WAIT: Duration = Duration::from_secs(10);
/// Maximum number of characters of the reason that a model reads.
const REASON: usize = 300;

/// A tool that stands for all tools of a server while they are not known. It is a source for the search of
/// tools, which finds them once the server has answered.
pub(crate) struct UnknownTools {
    spec: ToolSpec,
    server: Arc<Server>,
}

impl UnknownTools {
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        let name = format!("{}__*", server.name);
        let about = format!("All tools of the MCP server {}, which is not connected.", server.name);
        let mut annotations = with_time_to_ask(annotations(&server.settings, "*"), &server.options);
        annotations.deferrable = true;
        let spec = ToolSpec::new(name, about, Json::Null).with_annotations(annotations);
        Self { spec, server: server.clone() }
    }
}

impl Tool for UnknownTools {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, _: Json, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        let text = format!("Error: `{}` stands for several tools; call one of them.", self.spec.name);
        Box::pin(async move { Ok(ToolResult::error(text)) })
    }

    fn source(&self) -> Option<&dyn ToolSource> {
        Some(self)
    }
}

impl ToolSource for UnknownTools {
    fn name(&self) -> &str {
        &self.server.name
    }

    fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, String> {
        let state = self.server.state();
        let tools = KnownTools::of(&self.server, &state).tools;
        let failed = |error: &McpError| plain(&format!("phase {}: {}", error.phase, error.problem), REASON);
        match state {
            _ if !tools.is_empty() => {}
            State::Ready(ready) if !ready.judged.held.is_empty() => {
                return Err("its tools are held back until a person agrees to them".to_owned());
            }
            State::Ready(_) => {}
            State::Connecting(None) => {
                return Err("it has not answered yet; a search for its name waits for it".to_owned());
            }
            State::Connecting(Some(error)) | State::Down { error, .. } => return Err(failed(&error)),
            State::Closed => return Err("it was closed".to_owned()),
        }
        Ok(tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect())
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let settled = Box::pin(self.server.settled());
            connection::within(&*self.server.options.clock, WAIT, settled).await;
        })
    }
}
