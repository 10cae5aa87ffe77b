//! Guard: runs the guards of the application ([`CallGuard`](crate::CallGuard)).

use archon_types::ToolResult;

use crate::{
    GuardedCall,
    guard::{Ended, Guard, Inspection, Verdict},
};

pub(crate) struct Own;

impl Guard for Own {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let Some(tool) = &inspection.tool else { return Verdict::Pass };
        for guard in inspection.guards {
            let (arguments, subject) = (inspection.arguments(), inspection.subject());
            let call = GuardedCall { tool: &tool.spec, arguments, subject, run: inspection.run };
            if let Err(why) = guard.before(&call) {
                return Verdict::refuse("guard_refused", why);
            }
        }
        Verdict::Pass
    }

    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        for guard in ended.guards {
            guard.after(&ended.tool.spec, &ended.context.run, result);
        }
    }
}
