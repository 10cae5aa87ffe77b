//! Guard: writes a line about each finished call into the application's log.

use archon_types::ToolResult;

use crate::{
    guard::{Ended, Guard},
    guards::facts::millis,
    log,
};

pub(crate) struct Log;

impl Guard for Log {
    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        let context = ended.context;
        let (call, run) = (context.tool_call_id.as_str(), context.run.run.as_str());
        log::finished(
            &context.tool_name,
            call,
            run,
            ended.started_before.saturating_add(ended.tried.attempts),
            millis(ended.execution),
            result,
        );
    }
}
