//! The reason of a refusal, as text.

use archon_types::Answer;

/// Returns the reason of an answer that is not an approval.
pub(super) fn refusal(answer: &Answer) -> String {
    match answer {
        Answer::Cancel { reason } | Answer::Withdrawn { reason } if reason.is_empty() => {
            "no reason was given".to_owned()
        }
        Answer::Cancel { reason } | Answer::Withdrawn { reason } => reason.clone(),
        Answer::Expired => "nobody answered in time".to_owned(),
        _ => "the answer was not a yes".to_owned(),
    }
}
