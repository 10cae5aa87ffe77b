//! Detects that a small model repeats itself: a model that always takes the most likely token can fall into a
//! loop, and does not leave the loop by itself.

use crate::vocabulary::Token;

/// The maximum length of a loop in tokens.
const LONGEST: usize = 24;
/// The minimum number of repetitions of a loop.
const TIMES: usize = 4;
/// The minimum length of the repeated text in tokens; shorter repetitions are ordinary text, for instance a
/// line of dashes.
const SHORTEST_RUN: usize = 24;

/// Returns true if the text ends in a loop.
pub(crate) fn goes_round(tokens: &[Token]) -> bool {
    (1..=LONGEST).any(|period| {
        let run = (period * TIMES).max(SHORTEST_RUN);
        tokens.len() >= run && {
            let tail = &tokens[tokens.len() - run..];
            tail.iter().zip(&tail[period..]).all(|(a, b)| a == b)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_round_detects_repetition_and_not_lists() {
        let circle: Vec<Token> =
            [7, 8, 9].into_iter().chain([1, 2, 3].into_iter().cycle().take(24)).collect();
        assert!(goes_round(&circle));
        assert!(!goes_round(&circle[..circle.len() - 1]), "it has not come often enough yet");
        let rows: Vec<Token> = (0..40).flat_map(|row| [1, 2, row]).collect();
        assert!(!goes_round(&rows));
        assert!(!goes_round(&[5; 20]));
        assert!(goes_round(&[5; 24]));
    }
}
