//! The error of an answer.

use archon_types::RunError;

/// An answer was refused. The text is for the person who answers, and has no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The secret of a key is too short, so it could be guessed.
    #[error(
        "the secret for answers has fewer than 16 bytes: take a random text, for instance the output of \
         `openssl rand -hex 32`"
    )]
    WeakKey,
    /// The token was not made with this key, or is for the other way to answer: by link or by mail.
    #[error("this link or reply is not valid: open the link of the newest notification")]
    Token,
    /// The token has expired: the question has expired, or has no deadline and was asked more than seven days ago.
    #[error("question {question} has expired, which counts as a no: this answer changes nothing")]
    Expired {
        /// The id of the question.
        question: String,
    },
    /// The question is not open any more.
    #[error("question {question} was answered before, or its run has ended: this answer changes nothing")]
    Answered {
        /// The id of the question.
        question: String,
    },
    /// The question has other arguments than when it was sent.
    #[error("question {question} was changed since it was sent: open the link of the newest notification")]
    Changed {
        /// The id of the question.
        question: String,
    },
    /// The question does not offer the answer.
    #[error("question {question} cannot be answered with {answer:?} here; it offers: {options}")]
    NotOffered {
        /// The id of the question.
        question: String,
        /// The name of the answer, as in "trust".
        answer: &'static str,
        /// The answers that the question offers, separated by commas.
        options: String,
    },
    /// A reply came from another sender than the person who was asked.
    #[error(
        "the reply to question {question} is not from the person who was asked: reply from that mail address"
    )]
    Sender {
        /// The id of the question.
        question: String,
    },
    /// The mail server that is trusted does not confirm the sender of a reply.
    #[error(
        "the mail server did not confirm the sender of the reply to question {question} (DMARC): answer by the link, or \
         repair the mail settings of the sender's domain"
    )]
    Unconfirmed {
        /// The id of the question.
        question: String,
    },
    /// The words of a reply are no clear answer.
    #[error(
        "the reply to question {question} is not clear: write only yes or no above the quoted text; after a no, you can \
         give a reason in the next lines"
    )]
    Unclear {
        /// The id of the question.
        question: String,
    },
    /// The run service failed.
    #[error(transparent)]
    Runs(#[from] RunError),
}
