//! A server's request for input: a form, or an address that a person should open. It becomes a question, and the
//! answer becomes the response of the protocol.

use archon_types::{Answer, ApprovalRequest, Json, QuestionKind};
use rmcp::model::{ClientCapabilities, ElicitRequestParams, ElicitationCapability};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::{
    form::Form,
    text::{MESSAGE, plain},
};

/// Maximum length of an address, in characters.
const ADDRESS: usize = 2_048;

/// A server's request for input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Input {
    /// Fields that a person fills in.
    Form { message: String, form: Form },
    /// An address that a person opens. This program does not see what the person does there.
    Address { message: String, url: String },
}

/// The tool during whose call the server asks, for the text of the question.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) server: &'a str,
    /// The tool's name on the server.
    pub(crate) tool: &'a str,
    /// The tool's name for models.
    pub(crate) name: &'a str,
}

impl Input {
    /// Reads a request.
    ///
    /// # Errors
    /// The request cannot be shown to a person unchanged.
    pub(crate) fn new(request: &ElicitRequestParams) -> Result<Self, String> {
        match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                Ok(Self::Form { message: plain(message.trim(), MESSAGE), form: Form::new(requested_schema)? })
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                if host(url).is_none() {
                    return Err(
                        "it asks to open an address that is not one of the web, is too long, or hides \
                                where it leads"
                            .to_owned(),
                    );
                }
                Ok(Self::Address { message: plain(message.trim(), MESSAGE), url: url.clone() })
            }
            _ => Err("it asks for input of a kind that this version does not know".to_owned()),
        }
    }

    /// Makes the question for a person. `problems` are the problems with the last answer. The question stores
    /// `state`, so that it comes back with the answer.
    pub(crate) fn question(
        &self,
        id: String,
        asker: Asker<'_>,
        problems: &[String],
        state: Json,
    ) -> ApprovalRequest {
        let again = match problems.is_empty() {
            true => String::new(),
            false => format!("That does not fit: {}.\n", problems.join("; ")),
        };
        let by = format!("MCP server `{}` (tool `{}`)", asker.server, plain(asker.tool, 100));
        let mut details = json!({ "tool": asker.name, "server": asker.server, "message": self.message() });
        let (text, is_yes_or_no) = match self {
            Self::Form { message, form } if form.is_empty() => (format!("{by} asks: {message}"), true),
            Self::Form { message, form } => {
                details["missing"] = form.missing();
                let lines: Vec<String> = form.lines().collect();
                (format!("{by} asks: {message}\n{}\n{NO_SECRETS}", lines.join("\n")), false)
            }
            Self::Address { message, url } => {
                details["url"] = url.as_str().into();
                let host = host(url).unwrap_or_default();
                let text = format!(
                    "{by} asks you to open an address: {message}\n{url}\nIt leads to {host}. It was not opened: open \
                     it yourself if you trust it, and say yes; a no declines."
                );
                (text, true)
            }
        };
        let mut question = ApprovalRequest::of_tool(id, again + &text, details, state);
        if is_yes_or_no {
            question.kind = QuestionKind::Consent;
            question.options = ["approve", "cancel"].map(str::to_owned).into();
            question.allow_modification = false;
        }
        question
    }

    /// Returns the message of the server.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Form { message, .. } | Self::Address { message, .. } => message,
        }
    }

    /// Returns the response to the server. `given` has the values of earlier answers; the values of this
    /// answer are added to them, or replace them.
    ///
    /// # Errors
    /// The problems with the answer.
    pub(crate) fn response(
        &self,
        answer: &Answer,
        given: &mut Map<String, Json>,
    ) -> Result<Json, Vec<String>> {
        let form = match (answer, self) {
            (Answer::Cancel { .. }, _) => return Ok(json!({ "action": "decline" })),
            (Answer::Expired | Answer::Withdrawn { .. }, _) => return Ok(cancelled()),
            (Answer::Approve | Answer::Trust { .. }, Self::Address { .. }) => {
                return Ok(json!({ "action": "accept" }));
            }
            (_, Self::Address { .. }) => return Err(vec!["the answer is a yes or a no".to_owned()]),
            (_, Self::Form { form, .. }) => form,
        };
        let values = match answer {
            Answer::Edit { arguments: Json::Object(values) } => values.clone(),
            Answer::Reply { text } => form.read(text).map_err(|why| vec![why])?,
            Answer::Approve | Answer::Trust { .. } => Map::new(),
            _ => return Err(vec!["the answer has no values".to_owned()]),
        };
        given.extend(values);
        form.check(given).map(|content| json!({ "action": "accept", "content": content })).inspect_err(|_| {
            // Only what fits is kept for the next answer.
            given.retain(|name, value| form.takes(name, value));
        })
    }
}

/// Returns the response for a question without an answer.
pub(crate) fn cancelled() -> Json {
    json!({ "action": "cancel" })
}

/// Returns the capabilities of a client that puts questions to a person.
pub(crate) fn asking() -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    let elicitation = ElicitationCapability::new().with_form(Default::default()).with_url(Default::default());
    capabilities.elicitation = Some(elicitation);
    capabilities
}

/// Returns the host of a web address; `None` if the address hides from a person where it leads.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let host = rest.split(['/', '?', '#', '\\']).next()?;
    let is_readable = url.len() <= ADDRESS && url.bytes().all(|b| b.is_ascii_graphic());
    (is_readable && !host.is_empty() && !host.contains('@')).then_some(host)
}

const NO_SECRETS: &str = "Give no password, key or other secret: a server must not ask for one in a form.";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    const ASKER: Asker<'_> = Asker { server: "fake", tool: "ask", name: "fake__ask" };

    fn input(request: Json) -> Result<Input, String> {
        Input::new(&serde_json::from_value(request).unwrap())
    }

    fn form() -> Input {
        let schema = json!({
            "type": "object", "required": ["name"],
            "properties": { "name": { "type": "string", "minLength": 2 }, "age": { "type": "integer" } },
        });
        input(json!({ "mode": "form", "message": "Who are\u{200b} you?", "requestedSchema": schema }))
            .unwrap()
    }

    fn address(url: &str) -> Result<Input, String> {
        input(json!({ "mode": "url", "message": "Pay first.", "url": url, "elicitationId": "e" }))
    }

    #[test]
    fn question_names_server_message_and_fields_and_warns_of_secrets() {
        let question = form().question("q1".to_owned(), ASKER, &["`age` is old".to_owned()], json!({}));
        let text = &question.action_summary;
        assert!(text.starts_with(
            "That does not fit: `age` is old.\nMCP server `fake` (tool `ask`) asks: Who are you?\n"
        ));
        assert!(
            text.contains("- name: text of at least 2 characters\n") && text.ends_with(NO_SECRETS),
            "{text}"
        );
        let missing = question.details["missing"].as_array().unwrap();
        assert!(missing.iter().any(|field| field["name"] == "age"), "{missing:?}");
        assert_eq!((question.kind, question.is_of_tool()), (QuestionKind::Input, true));
    }

    #[test]
    fn question_about_an_address_shows_all_of_it_and_its_host_and_takes_a_yes_or_no() {
        let pay = address("https://pay.example.com/bill?n=7").unwrap();
        let question = pay.question("q1".to_owned(), ASKER, &[], json!({}));
        let text = &question.action_summary;
        assert!(
            text.contains("Pay first.\nhttps://pay.example.com/bill?n=7\nIt leads to pay.example.com."),
            "{text}"
        );
        assert_eq!(
            (question.kind, question.options),
            (QuestionKind::Consent, vec!["approve".to_owned(), "cancel".to_owned()])
        );
        let response = |answer| pay.response(&answer, &mut Map::new());
        assert_eq!(response(Answer::Approve), Ok(json!({ "action": "accept" })));
        assert!(response(Answer::Reply { text: "ok".to_owned() }).is_err());
    }

    #[test]
    fn new_refuses_an_address_that_hides_where_it_leads() {
        let long = format!("https://example.com/{}", "x".repeat(ADDRESS));
        for url in [
            "file:///etc/passwd",
            "javascript:x",
            "https://bank.com@evil.com",
            "https://b\u{430}nk.com",
            "https:///",
            &long,
        ] {
            assert!(address(url).unwrap_err().contains("open an address"), "{url}");
        }
    }

    #[test]
    fn response_is_decline_for_a_no_and_cancel_without_an_answer() {
        let response = |answer| form().response(&answer, &mut Map::new()).unwrap()["action"].clone();
        assert_eq!(response(Answer::Cancel { reason: "no".to_owned() }), "decline");
        assert_eq!(response(Answer::Expired), "cancel");
        assert_eq!(response(Answer::Withdrawn { reason: "no".to_owned() }), "cancel");
    }

    #[test]
    fn response_keeps_the_values_that_fit_until_the_others_fit_too() {
        let mut given = Map::new();
        let edit = |arguments: Json| Answer::Edit { arguments };
        let problems =
            form().response(&edit(json!({ "name": "Ann", "age": "old" })), &mut given).unwrap_err();
        assert_eq!(problems, ["`age` must be a whole number"]);
        let response = form().response(&edit(json!({ "age": "20" })), &mut given);
        assert_eq!(response, Ok(json!({ "action": "accept", "content": { "name": "Ann", "age": 20 } })));
    }
}
