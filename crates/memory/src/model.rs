//! One question to a model, and its answer as a value.

use std::sync::Arc;

use archon_types::{
    CancellationToken, Encoded, Json, MemoryError, Message, ModelEvent, Provider, Request, RequestOptions,
    ResponseFormat, Timestamp,
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

    /// The answer's text.
    pub(crate) async fn ask(
        &self,
        instructions: &str,
        question: String,
        format: Option<(&str, Json)>,
        now: Timestamp,
    ) -> Result<String, MemoryError> {
        let mut request = Request::new(&self.name, vec![Message::user(question, now)]);
        request.system = Some(Arc::new(Encoded::new(instructions.to_owned())));
        let mut options = RequestOptions::default();
        options.temperature = Some(0.0);
        options.response_format =
            format.map(|(name, schema)| ResponseFormat { name: name.to_owned(), schema });
        request.options = Arc::new(options);
        let mut stream = self.provider.stream(request, CancellationToken::new());
        while let Some(event) = stream.next().await {
            match event {
                Ok(ModelEvent::Done(answer)) => return Ok(answer.text()),
                Ok(_) => {}
                Err(error) => return Err(self.failed(error.to_string())),
            }
        }
        Err(self.failed("its stream ended without an answer".to_owned()))
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

    fn failed(&self, problem: String) -> MemoryError {
        MemoryError::Model { model: self.name.clone(), problem }
    }
}
