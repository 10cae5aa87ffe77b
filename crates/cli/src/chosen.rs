//! A chosen model, and the names of models that run in this process.

use std::sync::Arc;

use archon::types::Provider;

/// The prefix of the name of a model that runs in this process.
pub(crate) const PREFIX: &str = "local:";

/// A provider with the first key, and the same provider once for each further key.
pub(crate) type Connected = (Arc<dyn Provider>, Vec<Arc<dyn Provider>>);

/// A model that is ready for calls.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// The provider. Its id and the model's name, joined by a colon, choose the same model again.
    pub(crate) provider: Arc<dyn Provider>,
    /// The same provider with further keys, in the order in which to try them.
    pub(crate) keys: Vec<Arc<dyn Provider>>,
    pub(crate) model: String,
    /// The reason for the choice, for people.
    pub(crate) why: String,
}

impl Chosen {
    pub(crate) fn new((provider, keys): Connected, model: impl Into<String>, why: String) -> Self {
        Self { provider, keys, model: model.into(), why }
    }
}
