//! Strategies that choose among branches by their numbers alone; `judge.rs` asks a model.

use archon_types::{
    BoxFuture, BranchResult, Context, Evaluation, EvaluationError, EvaluationStrategy, Verdict,
};

/// Takes the only branch there is, and refuses more: for code that is written for several
/// configurations and given one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transparent;

impl EvaluationStrategy for Transparent {
    fn name(&self) -> &str {
        "transparent"
    }

    fn evaluate<'a>(
        &'a self,
        evaluation: Evaluation<'a>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Verdict, EvaluationError>> {
        ready(self.accepts(evaluation.branches.len()).map(|()| Verdict::select(0)))
    }

    fn accepts(&self, branches: usize) -> Result<(), EvaluationError> {
        match branches {
            0 | 1 => Ok(()),
            _ => Err(EvaluationError::TooMany { strategy: self.name().to_owned(), max: 1, branches }),
        }
    }
}

/// Takes the first branch that has an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct PickFirst;

impl EvaluationStrategy for PickFirst {
    fn name(&self) -> &str {
        "pick_first"
    }

    fn evaluate<'a>(
        &'a self,
        _: Evaluation<'a>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Verdict, EvaluationError>> {
        ready(Ok(Verdict::select(0)))
    }
}

/// Takes the branch that used the fewest tokens; of equal ones the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenEfficient;

impl EvaluationStrategy for TokenEfficient {
    fn name(&self) -> &str {
        "token_efficient"
    }

    fn evaluate<'a>(
        &'a self,
        evaluation: Evaluation<'a>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Verdict, EvaluationError>> {
        ready(Ok(Verdict::select(smallest(evaluation.branches, tokens))))
    }
}

/// Takes the branch that used the most tokens; of equal ones the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Elaborate;

impl EvaluationStrategy for Elaborate {
    fn name(&self) -> &str {
        "elaborate"
    }

    fn evaluate<'a>(
        &'a self,
        evaluation: Evaluation<'a>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Verdict, EvaluationError>> {
        ready(Ok(Verdict::select(smallest(evaluation.branches, |branch| std::cmp::Reverse(tokens(branch))))))
    }
}

fn tokens(branch: &BranchResult) -> u64 {
    branch.outcome.usage.total()
}

fn smallest<K: Ord>(branches: &[BranchResult], key: impl Fn(&BranchResult) -> K) -> usize {
    // Of equal keys `min_by_key` takes the first.
    (0..branches.len()).min_by_key(|at| key(&branches[*at])).unwrap_or(0)
}

fn ready<'a>(verdict: Result<Verdict, EvaluationError>) -> BoxFuture<'a, Result<Verdict, EvaluationError>> {
    Box::pin(std::future::ready(verdict))
}
