//! Tables of states: their names and what may follow what.

use archon_views::{RoundStatus, ToolExecutionState};
use expect_test::expect;

use crate::support::{names, transitions};

// spec: TE-56
#[test]
fn tool_execution_states() {
    use ToolExecutionState::{
        Completed, Executing, Failed, Idle, ProcessingResult, RequestingPermission, Validating,
    };
    let all = [Idle, Validating, RequestingPermission, Executing, ProcessingResult, Completed, Failed];
    names(&all, "IDLE VALIDATING REQUESTING_PERMISSION EXECUTING PROCESSING_RESULT COMPLETED FAILED");
    transitions(
        &all,
        ToolExecutionState::may_become,
        &expect![[r#"
            Idle -> Validating
            Validating -> RequestingPermission Executing Failed
            RequestingPermission -> Executing Failed
            Executing -> RequestingPermission ProcessingResult Failed
            ProcessingResult -> Completed
            Completed ->
            Failed -> Completed
        "#]],
    );
}

// spec: T-34
#[test]
fn round_statuses_are_lower_case_words() {
    use RoundStatus::{Completed, Error, InProgress, Pending};
    names(&[Pending, InProgress, Completed, Error], "pending in_progress completed error");
}
