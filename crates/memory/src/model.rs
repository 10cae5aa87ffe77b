//! Asks a model one question and parses the answer.

use std::sync::Arc;

use archon_types::{
    ApiErrorKind, CancellationToken, Encoded, Json, MemoryError, Message, ModelEvent, Provider,
    ProviderError, Request, RequestOptions, ResponseFormat, StopReason, Timestamp,
};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;

/// The instruction in every prompt for a summary, which lists the facts that the summary must keep.
pub(crate) const KEEP_FACTS: &str =
    "Keep every name, number, date, URL and every explicit instruction of the user.";

/// A model that answers questions about memories.
#[derive(Clone)]
pub(crate) struct Model {
    provider: Arc<dyn Provider>,
    name: String,
}

impl Model {
    pub(crate) fn new(provider: Arc<dyn Provider>, name: impl Into<String>) -> Self {
        Self { provider, name: name.into() }
    }

    /// Returns the text of the answer. If the provider refuses the request with a response format, the
    /// request is sent again without it.
    pub(crate) async fn ask(
        &self,
        instructions: &str,
        question: String,
        format: Option<(&str, Json)>,
        now: Timestamp,
    ) -> Result<String, MemoryError> {
        let format = format.map(|(name, schema)| ResponseFormat { name: name.to_owned(), schema });
        let has_format = format.is_some();
        let answer = match self.answer(instructions, question.clone(), format, now).await {
            Err(Some(error)) if has_format && error.refusal() == Some(ApiErrorKind::InvalidRequest) => {
                self.answer(instructions, question, None, now).await
            }
            answer => answer,
        };
        answer.map_err(|error| {
            let ended = || "the stream ended without an answer".to_owned();
            self.failed(error.map_or_else(ended, |error| error.to_string()))
        })
    }

    /// Returns the text of one answer. `Err(None)` means that the stream ended without an answer.
    async fn answer(
        &self,
        instructions: &str,
        question: String,
        format: Option<ResponseFormat>,
        now: Timestamp,
    ) -> Result<String, Option<ProviderError>> {
        let mut request = Request::new(&self.name, vec![Message::user(question, now)]);
        request.system = Some(Arc::new(Encoded::new(instructions.to_owned())));
        let mut options = RequestOptions::default();
        options.temperature = Some(0.0);
        options.response_format = format;
        request.options = Arc::new(options);
        let mut stream = self.provider.stream(request, CancellationToken::new());
        while let Some(event) = stream.next().await {
            match event {
                Ok(ModelEvent::Done(answer))
                    if matches!(answer.stop_reason, StopReason::Refusal | StopReason::Error) =>
                {
                    let why = answer.error_message.clone().unwrap_or_else(|| answer.text());
                    return Err(Some(ProviderError::Other(
                        format!("the model refused or failed: {why}").into(),
                    )));
                }
                Ok(ModelEvent::Done(answer)) => return Ok(answer.text()),
                Ok(_) => {}
                Err(error) => return Err(Some(error)),
            }
        }
        Err(None)
    }

    /// Returns the answer parsed as JSON of a schema. Models without structured output put JSON into prose
    /// or a code block, so the text between the outermost braces is parsed.
    pub(crate) async fn ask_for<T: DeserializeOwned>(
        &self,
        instructions: &str,
        question: String,
        (name, schema): (&str, Json),
        now: Timestamp,
    ) -> Result<T, MemoryError> {
        let instructions = format!("{instructions}\nAnswer with JSON of this schema only: {schema}");
        let text = self.ask(&instructions, question, Some((name, schema)), now).await?;
        let json = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
        let value = serde_json::from_str(json.unwrap_or(&text));
        value.map_err(|error| self.failed(format!("its answer does not match the schema: {error}")))
    }

    pub(crate) fn failed(&self, problem: String) -> MemoryError {
        MemoryError::Model { model: self.name.clone(), problem }
    }
}
