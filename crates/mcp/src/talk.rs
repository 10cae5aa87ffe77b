//! Questions of a server of a revision before 2026-07-28 during a call. The call stays open while a person
//! answers, so neither the call nor the question survives this process.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use archon_types::{Answer, Clock, Json, ToolContext};
use futures_util::future::{Either, select};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Map;

use crate::{
    input::{Asker, Input},
    person_time::PersonTime,
    round::{ROUNDS, USELESS},
    supervise::Server,
    text::plain,
};

/// Maximum time for a person's answer while a call is open.
pub(crate) const ANSWER: Duration = Duration::from_secs(30 * 60);

/// The questions of a server during one call.
pub(crate) struct Talk {
    pub(crate) context: ToolContext,
    pub(crate) server: Arc<Server>,
    /// The name of the tool on the server.
    pub(crate) tool: String,
    pub(crate) person_time: Arc<PersonTime>,
    questions: Mutex<u32>,
    /// Notes for the model about questions without an answer.
    notes: Mutex<Vec<String>>,
}

impl Talk {
    pub(crate) fn new(context: ToolContext, server: Arc<Server>, tool: String) -> Self {
        let person_time = Arc::default();
        Self { context, server, tool, person_time, questions: Mutex::default(), notes: Mutex::default() }
    }

    /// Returns the notes about questions without an answer.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a request for input to the person, and returns the answer for the server.
    pub(crate) async fn reply(&self, request: ElicitRequestParams) -> ElicitResult {
        match self.response(&request).await {
            Ok(response) => {
                let cancel = ElicitResult::new(ElicitationAction::Cancel);
                serde_json::from_value(response).unwrap_or(cancel)
            }
            Err(why) => {
                let why = self.server.redactor.clean(why);
                let note = format!("(The server asked for input during the call. It was not given: {why}.)");
                self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
                ElicitResult::new(ElicitationAction::Cancel)
            }
        }
    }

    /// Returns the response, or the reason why there is none.
    async fn response(&self, request: &ElicitRequestParams) -> Result<Json, String> {
        if self.count() > ROUNDS {
            return Err(format!("it asked more than {ROUNDS} times"));
        }
        let input = Input::new(request)?;
        let message = plain(input.message(), 200);
        if !self.context.can_ask_now() {
            return Err(format!("nobody can be asked while this call runs; the question was '{message}'"));
        }
        let (mut given, mut problems) = (Map::new(), Vec::new());
        for _ in 0..USELESS {
            let Some(answer) = self.answer(&input, &problems).await else {
                return Err(format!("nobody answered; the question was '{message}'"));
            };
            match input.response(&answer, &mut given) {
                Ok(response) => return Ok(response),
                Err(found) => problems = found,
            }
        }
        Err(format!("{USELESS} answers did not fit: {}", problems.join("; ")))
    }

    fn count(&self) -> u32 {
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        *questions += 1;
        *questions
    }

    async fn answer(&self, input: &Input, problems: &[String]) -> Option<Answer> {
        let context = &self.context;
        let asker = Asker { server: &self.server.name, tool: &self.tool, name: &context.tool_name };
        let id = context.run.ids.fresh("question");
        let mut question = input.question(id, asker, problems, Json::Bool(true));
        question.action_summary = self.server.redactor.clean(question.action_summary);
        self.server.redactor.clean_json(&mut question.details);
        let clock: &dyn Clock = &*self.server.options.clock;
        let waits = Waits::begin(&self.person_time, clock);
        let limit = clock.sleep_until(clock.now() + ANSWER);
        let answer = match select(pin!(context.ask_now(question)), limit).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => None,
        };
        drop(waits);
        answer
    }
}

/// A period in which a person is asked. It ends when this value is dropped, for instance because the call is
/// cancelled.
struct Waits<'t> {
    time: &'t PersonTime,
    clock: &'t dyn Clock,
}

impl<'t> Waits<'t> {
    fn begin(time: &'t PersonTime, clock: &'t dyn Clock) -> Self {
        time.begin(clock.now());
        Self { time, clock }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.time.end(self.clock.now());
    }
}
