//! Calls tools for a person who agrees to everything.

use std::sync::Arc;

use archon_testkit::{RealClock, SeededIds};
use archon_types::{
    Answer, AnsweredQuestion, ApprovalRequest, CallId, CommandId, Context, Decision, FnApprover, Json, Tool,
    ToolContext, ToolError, ToolQuestions, ToolResult,
};

/// Calls a tool, and agrees to everything that its server asks for, with the defaults.
pub(crate) async fn result_of(tool: &dyn Tool, arguments: Json) -> Result<ToolResult, ToolError> {
    let mut answered = None;
    loop {
        match tool.call(arguments.clone(), &context(tool, answered)).await {
            Err(ToolError::Suspended(question)) => {
                eprintln!("{}", question.action_summary);
                let answer = Answer::Approve;
                answered = Some(Arc::new(AnsweredQuestion { request: *question, answer }));
            }
            ended => return ended,
        }
    }
}

fn context(tool: &dyn Tool, answered: Option<Arc<AnsweredQuestion>>) -> ToolContext {
    let mut run =
        Context::new("run".into(), "session".into(), Arc::new(RealClock::new()), Arc::new(SeededIds::new(1)));
    let call = CallId::new(CommandId(0), 0);
    let agrees = FnApprover::new(|_: ApprovalRequest| async { Decision::Now(Answer::Approve) });
    let questions = ToolQuestions::new(run.run.clone(), true, [(call, answered)]);
    run.tool_questions = Some(Arc::new(questions.with_approver(Some(Arc::new(agrees)), "main")));
    let mut context = ToolContext::new(run, "call".into(), tool.spec().name.clone());
    context.call = Some(call);
    context
}
