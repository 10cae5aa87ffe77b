//! Flags of several commands for existing runs.

use super::{AllowFlags, ModelFlags, ToolFlags};
use crate::config::Settings;

/// Flags for an existing run; all other settings come from its log.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RecordedFlags {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    allow: AllowFlags,
}

impl RecordedFlags {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = super::settings(&self.model, &self.tools);
        self.allow.apply(&mut settings);
        settings
    }
}
