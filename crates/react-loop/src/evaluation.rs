//! Evaluation strategies that choose a branch by numbers. The strategy in `judge.rs` asks a model.

use std::cmp::Reverse;

use archon_types::{
    BoxFuture, BranchResult, BranchVerdict, Context, Evaluation, EvaluationError, EvaluationStrategy,
};

/// Defines a strategy that looks only at the outcomes of the branches. `$select` returns the index of the
/// chosen branch; `$most` is the maximum number of branches.
macro_rules! by_numbers {
    ($(#[$doc:meta])* $strategy:ident, $name:literal, $select:expr $(, most $most:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $strategy;

        impl EvaluationStrategy for $strategy {
            fn name(&self) -> &str {
                $name
            }

            fn evaluate<'a>(
                &'a self,
                evaluation: Evaluation<'a>,
                _: &'a Context,
            ) -> BoxFuture<'a, Result<BranchVerdict, EvaluationError>> {
                let select: fn(&[BranchResult]) -> usize = $select;
                let branches = evaluation.branches;
                let verdict = self.accepts(branches.len()).map(|()| BranchVerdict::select(select(branches)));
                Box::pin(std::future::ready(verdict))
            }

            $(fn accepts(&self, branches: usize) -> Result<(), EvaluationError> {
                match branches <= $most {
                    true => Ok(()),
                    false => Err(EvaluationError::TooMany { strategy: $name.to_owned(), max: $most, branches }),
                }
            })?
        }
    };
}

by_numbers!(
    /// Chooses the only branch and refuses more than one, for code that is written for several branches
    /// but has one.
    Transparent, "transparent", |_| 0, most 1
);
by_numbers!(
    /// Chooses the first branch that has an answer.
    PickFirst, "pick_first", |_| 0
);
by_numbers!(
    /// Chooses the branch that used the fewest tokens; among equal branches, the first.
    TokenEfficient, "token_efficient", |branches| smallest(branches, tokens)
);
by_numbers!(
    /// Chooses the branch that used the most tokens; among equal branches, the first.
    Elaborate, "elaborate", |branches| smallest(branches, |branch| Reverse(tokens(branch)))
);

fn tokens(branch: &BranchResult) -> u64 {
    branch.outcome.usage.total()
}

fn smallest<K: Ord>(branches: &[BranchResult], key: impl Fn(&BranchResult) -> K) -> usize {
    // Among equal keys, `min_by_key` takes the first.
    (0..branches.len()).min_by_key(|at| key(&branches[*at])).unwrap_or(0)
}
