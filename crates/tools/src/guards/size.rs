//! Guard: limits the size and nesting depth of arguments.

use crate::{
    arguments::{is_deeper_than, size_within},
    guard::{Guard, Inspection, Verdict},
};

pub(crate) struct Size;

impl Guard for Size {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let options = inspection.options;
        // Depth first, because the size is measured recursively.
        if is_deeper_than(inspection.arguments(), options.max_argument_depth) {
            return Verdict::refuse(
                "arguments_too_deep",
                format!(
                    "The arguments for '{}' are nested deeper than {} levels. The tool was not run. Send a flatter \
                     value.",
                    inspection.call.name, options.max_argument_depth
                ),
            );
        }
        match size_within(inspection.arguments(), options.max_argument_bytes) {
            Some(bytes) => {
                inspection.argument_bytes = bytes;
                Verdict::Pass
            }
            None => Verdict::refuse(
                "arguments_too_large",
                format!(
                    "The arguments for '{}' are larger than {} bytes. The tool was not run. Send less, or put the \
                     data into a file and send its path.",
                    inspection.call.name, options.max_argument_bytes
                ),
            ),
        }
    }
}
