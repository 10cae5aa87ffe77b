//! Guard: asks the tool for a preview of the change, for the person who must approve it. The tool may also
//! refuse the call here, for instance to overwrite a file that was not read.

use archon_types::{ToolError, ToolResult, metadata};

use crate::{
    execute::contain,
    guard::{Guard, Inspection, Verdict},
};

pub(crate) struct Preview;

impl Guard for Preview {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let Some(tool) = &inspection.tool else { return Verdict::Pass };
        match contain(|| tool.tool.preview(inspection.arguments(), inspection.run)) {
            Ok(Ok(preview)) => {
                inspection.preview = preview;
                Verdict::Pass
            }
            Ok(Err(error)) => Verdict::Refuse(Box::new(refused(error))),
            Err(panic) => {
                // A preview is optional: without one the call is judged by its arguments.
                tracing::error!(target: "archon::tools", tool = %inspection.call.name, "a preview panicked: {panic}");
                Verdict::Pass
            }
        }
    }
}

fn refused(error: ToolError) -> ToolResult {
    let code = error.code();
    ToolResult::from(error).with_metadata(metadata::ERROR_TYPE, code)
}
