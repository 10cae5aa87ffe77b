//! Blacks out the secrets of the run, such as credentials that a tool was given, so that no transcript, log or prompt
//! holds them.

use archon_types::ToolResult;

use crate::guard::{Ended, Guard};

pub(crate) struct Secrets;

impl Guard for Secrets {
    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        ended.context.hide_secrets(result);
    }
}
