//! Guard: counts each finished call.

use archon_types::ToolResult;

use crate::guard::{Ended, Guard};

pub(crate) struct Statistics;

impl Guard for Statistics {
    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        let (worked, retries) = (!result.is_error(), ended.tried.attempts.saturating_sub(1));
        ended.statistics.count(&ended.tool.spec.name, ended.execution, worked, retries);
    }
}
