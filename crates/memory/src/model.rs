//! One question to a model, and its answer as a value.

use std::sync::Arc;

use archon_types::{
    ApiErrorKind, CancellationToken, Encoded, Json, MemoryError, Message, ModelEvent, Provider,
    ProviderError, Request, RequestOptions, ResponseFormat, StopReason, Timestamp,
};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;

/// A model that is asked about memories.
#[derive(Clone)]
pub(crate) struct Model {
    provider: Arc<dyn Provider>,
    name: String,
}

impl Model {
    pub(crate) fn new(provider: Arc<dyn Provider>, name: impl Into<String>) -> Self {
        Self { provider, name: name.into() }
    }

    /// The answer's text. A service that refuses the question with its format is asked once more without.
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
            let ended = || "its stream ended without an answer".to_owned();
            self.failed(error.map_or_else(ended, |error| error.to_string()))
        })
    }

    /// The text of one answer. No error: the stream ended without one.
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
                        format!("the model gave no answer: {why}").into(),
                    )));
                }
                Ok(ModelEvent::Done(answer)) => return Ok(answer.text()),
                Ok(_) => {}
                Err(error) => return Err(Some(error)),
            }
        }
        Err(None)
    }

    /// The answer as a value of a schema. Models without schemas put JSON into prose or a code block, so the outermost
    /// braces count.
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
        value.map_err(|error| self.failed(format!("its answer is not of the schema: {error}")))
    }

    pub(crate) fn failed(&self, problem: String) -> MemoryError {
        MemoryError::Model { model: self.name.clone(), problem }
    }
}
