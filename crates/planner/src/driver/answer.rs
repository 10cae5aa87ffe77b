//! Makes the answer of a plan from the results of its subtasks, and checks the answer against its schema.

use archon_run::Recorded;
use archon_types::{CommandId, PlanError, PlanRecord, RecordBody, json_in};

use crate::{
    Conclusion, ConclusionQuestion, LastResults, calls,
    following::{Following, Happened, Run, plan},
};

impl Following {
    pub(super) async fn conclude(&mut self, run: &mut Run, command: CommandId) -> Recorded {
        run.record(plan(PlanRecord::AnswerStarted { command })).await?;
        let (parts, task) = (self.parts.clone(), run.machine.task());
        let background = run.machine.background().to_owned();
        let output_format = run.machine.output_format().cloned();
        let invalid_output = run.machine.last_problems();
        let invalid_output = invalid_output.map(|(answer, problems)| (answer.to_owned(), problems.to_vec()));
        let mut context = run.context().clone();
        context.cancel = run.stop().clone();
        let budget = run.machine.remaining_budget();
        let is_spent = budget.tokens == 0 || budget.cost_micros == Some(0);
        let concluded = async move {
            if is_spent {
                // All subtasks are done, and their results can be the answer at no further cost.
                return Happened::Concluded(command, Ok(LastResults::of(&task)));
            }
            let mut question = ConclusionQuestion::new(&task, budget);
            (question.background, question.output_format) = (&background, output_format.as_ref());
            if let Some((answer, problems)) = &invalid_output {
                question = question.after(answer, problems);
            }
            Happened::Concluded(command, parts.conclude.conclude(question, &context).await)
        };
        run.spawn(concluded, move || {
            let panicked = PlanError::Unreadable { problem: "it panicked".to_owned() };
            Happened::Concluded(command, Err(panicked))
        });
        Ok(())
    }

    pub(super) async fn concluded(
        &mut self,
        run: &mut Run,
        command: CommandId,
        concluded: Result<Conclusion, PlanError>,
    ) -> Recorded {
        let task = run.machine.task();
        let conclusion = match concluded {
            Ok(conclusion) => conclusion,
            // Without a conclusion, the results of the last subtasks are the answer.
            Err(error) => {
                tracing::warn!(run = %run.context().run, %error, "the final answer could not be composed");
                let results = LastResults::of(&task);
                let format = run.machine.output_format();
                if format.is_some_and(|format| !format.problems(&json_in(&results.answer)).is_empty()) {
                    let problem = match &error {
                        PlanError::Model(error) => error.to_string(),
                        error => format!("{error} ({})", error.advice()),
                    };
                    let failure = error.kind();
                    return run.record(plan(PlanRecord::AnswerFailed { command, problem, failure })).await;
                }
                results
            }
        };
        let Conclusion { answer, citations, spent } = conclusion;
        let cite = |id| run.machine.nodes().find(|node| node.subtask.id == id).map(calls::citation);
        let citations = citations.into_iter().filter_map(cite).collect();
        if run.machine.output_format().is_none() {
            self.parts.remember(&task, &answer).await;
        }
        run.record(plan(PlanRecord::AnswerFinished { command, answer, citations, spent })).await
    }

    pub(super) async fn check_output(&mut self, run: &mut Run, answer: &str) -> Recorded {
        let problems = run.machine.output_format().map(|format| format.problems(answer)).unwrap_or_default();
        if problems.is_empty() {
            self.parts.remember(&run.machine.task(), answer).await;
        }
        run.record(vec![RecordBody::OutputChecked { problems }]).await
    }
}
