//! `archon chat`: a conversation on the terminal. `archon` without a command begins one, too.

use archon::types::SessionId;

use super::{AgentFlags, AllowFlags, MemoryFlags, ModelFlags, SessionFlags, ToolFlags};
use crate::{
    app::App,
    chat::{self, Opening, Which},
    config::Settings,
    exit::Exit,
    failure::Failure,
};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    pub(super) agent: AgentFlags,
    #[command(flatten)]
    allow: AllowFlags,
    #[command(flatten)]
    session: SessionFlags,
    #[command(flatten)]
    memory: MemoryFlags,
    /// Read and print plain lines, as for a screen reader; also without this flag if input or output is no
    /// terminal, or the terminal is too small or too simple
    #[arg(long)]
    plain: bool,
}

impl ChatArgs {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = super::settings(&self.model, &self.tools);
        self.agent.apply(&mut settings);
        self.allow.apply(&mut settings);
        self.memory.vectors.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let which = match self.session.session {
            Some(name) => Which::Named(SessionId::new(name)),
            None if self.session.go_on => Which::Last,
            None => Which::New,
        };
        chat::open(app, Opening { which, memory: self.memory.memory }, self.plain).await
    }
}
