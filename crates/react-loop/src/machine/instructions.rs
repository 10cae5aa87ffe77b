//! The system prompt: the agent's instructions, followed by the project's.

use std::sync::Arc;

use archon_types::{Encoded, RunConfig, ToolMode};

use super::ReactMachine;
use crate::text_mode;

impl ReactMachine {
    /// Returns the current instructions of the project.
    pub(crate) fn instructions(&self) -> &str {
        &self.instructions
    }

    pub(super) fn instructed(&mut self, text: &str) {
        let before = self.system.take();
        text.clone_into(&mut self.instructions);
        self.system = system(&self.config, &self.instructions);
        let text = |system: &Option<Arc<Encoded<String>>>| system.as_ref().map(|s| s.as_str().to_owned());
        self.window.instructed(text(&before).as_deref(), text(&self.system).as_deref());
    }
}

/// Returns the system prompt: the agent's own text, then the project's instructions. Without instructions,
/// returns the value of the configuration itself, so that its text is encoded only once.
pub(super) fn system(config: &RunConfig, instructions: &str) -> Option<Arc<Encoded<String>>> {
    let standing = match config.tool_mode {
        ToolMode::Text => Some(Arc::new(Encoded::new(text_mode::system_prompt(config)))),
        _ => config.system.clone(),
    };
    if instructions.trim().is_empty() {
        return standing;
    }
    let standing = standing.map(|standing| format!("{}\n\n", standing.as_str())).unwrap_or_default();
    Some(Arc::new(Encoded::new(format!("{standing}{HEAD}\n\n{}", instructions.trim()))))
}

const HEAD: &str = "# Instructions of this project";
