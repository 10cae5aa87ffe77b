//! The check of a token, and the answer.

use std::{sync::Arc, time::Duration};

use archon_types::{Answer, AnswerRuns, ApprovalRequest, Clock, PendingApproval};

use crate::{
    error::AnswerError,
    key::AnswerKey,
    ticket::{Ticket, Way},
    words,
};

/// The time for which the token of a question without a deadline is valid.
const USUAL_TIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Makes the tokens with which people answer questions. Checks the token of an answer, and passes the answer on to the
/// run service. A clone shares everything.
///
/// ```
/// use archon_answers::{AnswerError, Answers};
/// use archon_types::Answer;
///
/// /// Answers with the token of a link, for instance in a chat program that has buttons.
/// async fn press_yes(answers: &Answers, token: &str) -> String {
///     match answers.answer(token, Answer::Approve).await {
///         Ok(question) => format!("Agreed: {}", question.request.action_summary),
///         Err(AnswerError::Runs(error)) => format!("Try again later: {error}"),
///         Err(refused) => refused.to_string(),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Answers {
    runs: Arc<dyn AnswerRuns>,
    key: AnswerKey,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Answers {
    /// Creates a value that answers the questions of `runs`, with tokens that `key` makes and checks.
    pub fn new(runs: Arc<dyn AnswerRuns>, key: AnswerKey, clock: Arc<dyn Clock>) -> Self {
        Self { runs, key, clock }
    }

    /// Returns a token with which a person can answer a question by a link. It is valid until the question expires; if
    /// the question has no end, until seven days after it was asked.
    pub fn token(&self, question: &PendingApproval, person: &str) -> String {
        self.token_for(Way::Link, question, person)
    }

    /// Returns the open question that the token is for.
    ///
    /// # Errors
    /// The token is not valid or has expired, the question is not open any more or was changed, or the run service
    /// failed.
    pub async fn question(&self, token: &str) -> Result<PendingApproval, AnswerError> {
        self.open_question(&self.ticket(token, Way::Link)?).await
    }

    /// Answers the question that the token is for, and resumes its run. Returns the question.
    ///
    /// # Errors
    /// As [`question`](Self::question); and [`AnswerError::NotOffered`] if the question does not offer the answer. A
    /// lasting permission ([`Answer::Trust`]) is always refused in this way.
    pub async fn answer(&self, token: &str, answer: Answer) -> Result<PendingApproval, AnswerError> {
        let ticket = self.ticket(token, Way::Link)?;
        self.answer_with(&ticket, |_| Ok(answer)).await
    }

    /// Answers the question that a link's token is for, with the words of the person: for instance a reply in a chat in
    /// which the question has its link. The words may be only `yes` or `no`, with a reason after a `no`; or any text,
    /// if the question asks for words. Returns the question.
    ///
    /// # Errors
    /// As [`answer`](Self::answer); and [`AnswerError::Unclear`] for words that are no clear answer.
    pub async fn answer_in_words(&self, token: &str, text: &str) -> Result<PendingApproval, AnswerError> {
        let ticket = self.ticket(token, Way::Link)?;
        self.answer_with(&ticket, |question| words::answer_in(text, question)).await
    }

    pub(crate) fn token_for(&self, way: Way, question: &PendingApproval, person: &str) -> String {
        let end = question.request.expires_at.unwrap_or(question.created_at + USUAL_TIME);
        Ticket::new(way, question, person, end).to_token(&self.key)
    }

    pub(crate) fn ticket(&self, token: &str, way: Way) -> Result<Ticket, AnswerError> {
        Ticket::open(token, &self.key).filter(|ticket| ticket.way == way).ok_or(AnswerError::Token)
    }

    async fn open_question(&self, ticket: &Ticket) -> Result<PendingApproval, AnswerError> {
        let question = || ticket.question.clone();
        if ticket.end <= self.clock.now_for_others() {
            return Err(AnswerError::Expired { question: question() });
        }
        let open = self.runs.questions(None).await?;
        let is_meant =
            |open: &PendingApproval| open.run == ticket.run && open.request.request_id == ticket.question;
        match open.into_iter().find(is_meant) {
            None => Err(AnswerError::Answered { question: question() }),
            Some(open) if !ticket.is_for(&open.request) => Err(AnswerError::Changed { question: question() }),
            Some(open) => Ok(open),
        }
    }

    /// Answers the question of a ticket with the answer that `choose` finds for it.
    pub(crate) async fn answer_with(
        &self,
        ticket: &Ticket,
        choose: impl FnOnce(&ApprovalRequest) -> Result<Answer, AnswerError>,
    ) -> Result<PendingApproval, AnswerError> {
        let question = self.open_question(ticket).await?;
        let answer = choose(&question.request)?;
        must_be_offered(&question.request, &answer)?;
        let Ticket { run, person, way, .. } = ticket;
        if !self.runs.answer(&ticket.question, answer).await? {
            return Err(AnswerError::Answered { question: ticket.question.clone() });
        }
        tracing::info!(target: "archon::answers", %run, question = ticket.question, person, ?way, "an answer");
        Ok(question)
    }
}

fn must_be_offered(question: &ApprovalRequest, answer: &Answer) -> Result<(), AnswerError> {
    let has = |option: &str| question.options.iter().any(|offered| offered == option);
    let (answer, is_offered) = match answer {
        Answer::Approve => ("approve", has("approve")),
        Answer::Edit { .. } => ("edit", question.allow_modification && has("edit")),
        Answer::Cancel { .. } => ("cancel", true),
        Answer::Reply { .. } => ("reply", has("reply")),
        Answer::Trust { .. } => ("trust", false),
        _ => ("expired", false),
    };
    match is_offered {
        true => Ok(()),
        false => {
            let options = question.options.iter().filter(|option| *option != "trust").cloned();
            let (question, options) = (question.request_id.clone(), options.collect::<Vec<_>>().join(", "));
            Err(AnswerError::NotOffered { question, answer, options })
        }
    }
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}
