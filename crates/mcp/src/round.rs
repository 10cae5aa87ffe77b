//! The input that a server of revision 2026-07-28 requests during a call of a tool. The server answers the call
//! with its requests for input, and gets the input when the call is repeated. The state between these two
//! requests is stored with the question to the person, so that another process can continue the call.

use std::collections::{BTreeMap, VecDeque};

use archon_types::{Answer, ApprovalRequest, Json, Redactor};
use rmcp::model::{CallToolRequestParams, InputRequest, InputRequiredResult};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::{
    input::{Asker, Input, cancelled},
    text::plain,
};

/// Maximum number of rounds of questions in a call.
pub(crate) const ROUNDS: u32 = 5;
/// Maximum number of unusable answers to one question. After the last one, the server is told that the question
/// was cancelled.
pub(crate) const USELESS: u32 = 5;
/// Maximum number of requests for input in one round.
const INPUTS: usize = 5;
/// Maximum sizes of a server's state, and of a whole round, in bytes.
const STATE: usize = 32 << 10;
const LARGEST: usize = 96 << 10;

/// A round of questions: the requests for input in one result of a call, with the answers so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// The hash of the definition of the tool that asks.
    pub(crate) hash: String,
    /// Number of the round in the call, from 1.
    pub(crate) number: u32,
    /// Data of the server, which are sent back to the server unchanged.
    state: Option<String>,
    /// The requests without a response. A person is asked about the first one.
    open: VecDeque<(String, Input)>,
    responses: BTreeMap<String, Json>,
    /// Valid values for the first request, from answers that were not valid as a whole.
    given: Map<String, Json>,
    /// Number of unusable answers to the first request.
    useless: u32,
}

impl Round {
    /// Reads a server's requests for input.
    ///
    /// # Errors
    /// A request cannot be shown to a person unchanged, or the round cannot be stored.
    pub(crate) fn new(
        number: u32,
        hash: &str,
        asked: InputRequiredResult,
        redactor: &Redactor,
    ) -> Result<Self, String> {
        if number > ROUNDS {
            return Err(format!("it asked for input more than {ROUNDS} times in one call"));
        }
        let requests = asked.input_requests.unwrap_or_default();
        if requests.len() > INPUTS {
            return Err(format!("it asks for more than {INPUTS} inputs at once"));
        }
        if let Some(state) = &asked.request_state {
            if state.len() > STATE {
                return Err(format!(
                    "its data for the question (`requestState`) is larger than {} KiB",
                    STATE >> 10
                ));
            }
            if redactor.clean(state.clone()) != *state {
                return Err(
                    "its data for the question (`requestState`) has a secret in it, so it cannot be kept"
                        .to_owned(),
                );
            }
        }
        let input = |(key, request): (String, InputRequest)| match request {
            InputRequest::Elicitation(request) => Ok((key, Input::new(&request.params)?)),
            _ => Err("it asks for a model's answer or for folders, which were not offered".to_owned()),
        };
        let open = requests.into_iter().map(input).collect::<Result<VecDeque<_>, String>>()?;
        let round = Self {
            hash: hash.to_owned(),
            number,
            state: asked.request_state,
            open,
            responses: BTreeMap::new(),
            given: Map::new(),
            useless: 0,
        };
        if round.to_json().to_string().len() > LARGEST {
            return Err(format!("its questions are larger than {} KiB", LARGEST >> 10));
        }
        Ok(round)
    }

    /// Reads the round that is stored in a question.
    pub(crate) fn of(question: &ApprovalRequest) -> Option<Self> {
        serde_json::from_value(question.tool_state.clone()).ok()
    }

    fn to_json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Takes a person's answer to the first request, and returns the problems with it. After a no, or without an
    /// answer in time, the other requests are not put to the person any more.
    pub(crate) fn answered(&mut self, answer: &Answer) -> Vec<String> {
        let Some((key, input)) = self.open.pop_front() else { return Vec::new() };
        let response = match input.response(answer, &mut self.given) {
            Ok(response) => response,
            Err(_) if self.useless + 1 >= USELESS => cancelled(),
            Err(problems) => {
                self.useless += 1;
                self.open.push_front((key, input));
                return problems;
            }
        };
        if response["action"] != "accept" {
            self.responses.extend(self.open.drain(..).map(|(key, _)| (key, cancelled())));
        }
        self.responses.insert(key, response);
        (self.given, self.useless) = (Map::new(), 0);
        Vec::new()
    }

    /// Returns the question for a person; `None` if every request has its response.
    pub(crate) fn question(
        &self,
        id: impl FnOnce() -> String,
        asker: Asker<'_>,
        problems: &[String],
    ) -> Option<ApprovalRequest> {
        let (_, input) = self.open.front()?;
        Some(input.question(id(), asker, problems, self.to_json()))
    }

    /// Returns the message of the first request, for the error of a call in which nobody can be asked.
    pub(crate) fn message(&self) -> String {
        self.open.front().map(|(_, input)| plain(input.message(), 200)).unwrap_or_default()
    }

    /// Returns the parameters of the repeated call.
    pub(crate) fn repeated(&self, mut call: CallToolRequestParams) -> CallToolRequestParams {
        if !self.responses.is_empty() {
            call = call.with_input_responses(self.responses.clone());
        }
        match &self.state {
            Some(state) => call.with_request_state(state.clone()),
            None => call,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    const ASKER: Asker<'_> = Asker { server: "fake", tool: "ask", name: "fake__ask" };

    fn form(message: &str) -> Json {
        let schema = json!({
            "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } },
        });
        json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } })
    }

    fn round(number: u32, asked: Json) -> Result<Round, String> {
        let redactor = Redactor::default();
        redactor.add(&"sk-very-secret-key".into());
        let mut result = json!({ "resultType": "input_required" });
        result.as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
        Round::new(number, "hash", serde_json::from_value(result).unwrap(), &redactor)
    }

    fn reply(text: &str) -> Answer {
        Answer::Reply { text: text.to_owned() }
    }

    fn parameters(round: &Round) -> Json {
        serde_json::to_value(round.repeated(CallToolRequestParams::new("ask"))).unwrap()
    }

    #[test]
    fn answered_asks_one_after_the_other_and_again_until_an_answer_fits() {
        let mut round = round(
            1,
            json!({ "inputRequests": { "a": form("first"), "b": form("second") }, "requestState": "s {1}" }),
        )
        .unwrap();
        let message = |round: &Round| {
            round.question(|| "q".to_owned(), ASKER, &[]).map(|q| q.details["message"].clone())
        };
        assert_eq!(message(&round), Some("first".into()));
        assert_eq!(round.answered(&reply("x")), ["`n` must be a whole number"]);
        // Another process.
        let question = round.question(|| "q".to_owned(), ASKER, &[]).unwrap();
        let mut round = Round::of(&question).unwrap();
        assert_eq!(message(&round), Some("first".into()));
        assert!(round.answered(&reply("1")).is_empty());
        assert_eq!(message(&round), Some("second".into()));
        assert!(round.answered(&reply("2")).is_empty());
        assert_eq!(message(&round), None);
        let accepted = |n: u32| json!({ "action": "accept", "content": { "n": n } });
        let expected = json!({
            "name": "ask", "requestState": "s {1}", "inputResponses": { "a": accepted(1), "b": accepted(2) },
        });
        assert_eq!(parameters(&round), expected);
    }

    #[test]
    fn answered_with_a_no_asks_nothing_more() {
        let asked = json!({ "inputRequests": { "a": form("first"), "b": form("second") } });
        let mut round = round(1, asked).unwrap();
        assert!(round.answered(&Answer::Cancel { reason: String::new() }).is_empty());
        assert!(round.question(|| "q".to_owned(), ASKER, &[]).is_none());
        let expected = json!({
            "name": "ask", "inputResponses": { "a": { "action": "decline" }, "b": { "action": "cancel" } },
        });
        assert_eq!(parameters(&round), expected);
    }

    #[test]
    fn answered_without_use_too_often_is_a_cancel() {
        let mut round = round(1, json!({ "inputRequests": { "a": form("first") } })).unwrap();
        for _ in 1..USELESS {
            assert_eq!(round.answered(&reply("x")).len(), 1);
        }
        assert!(round.answered(&reply("x")).is_empty());
        assert_eq!(parameters(&round)["inputResponses"], json!({ "a": { "action": "cancel" } }));
    }

    #[test]
    fn repeated_has_no_responses_if_nothing_was_asked() {
        let round = round(1, json!({ "requestState": "s" })).unwrap();
        assert_eq!(parameters(&round), json!({ "name": "ask", "requestState": "s" }));
    }

    #[test]
    fn new_refuses_what_cannot_be_asked_or_kept() {
        let many: Map<String, Json> = (0..6).map(|n| (n.to_string(), form("m"))).collect();
        for (number, asked, why) in [
            (6, json!({ "requestState": "s" }), "more than 5 times"),
            (1, json!({ "inputRequests": many }), "more than 5 inputs"),
            (1, json!({ "requestState": "x".repeat(STATE + 1) }), "larger than 32 KiB"),
            (1, json!({ "requestState": "a sk-very-secret-key" }), "has a secret in it"),
            (1, json!({ "inputRequests": { "a": { "method": "roots/list" } } }), "which were not offered"),
        ] {
            let problem = round(number, asked).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
    }
}
