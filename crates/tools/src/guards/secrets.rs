//! Guard: redacts the run's secrets, such as credentials that a tool was given, so that they are in no log or
//! prompt.

use archon_types::ToolResult;

use crate::guard::{Ended, Guard};

pub(crate) struct Secrets;

impl Guard for Secrets {
    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        ended.context.hide_secrets(result);
    }
}
