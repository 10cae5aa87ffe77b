//! Limits the server to runs of its own folder. The rules and flags of the server are for this folder; a run of another
//! folder would get them in place of the rules of its own `archon.toml`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon::{
    AgentSource, RunError,
    types::{BoxFuture, Record, RecordBody, RunAgent, RunStarted, TeamRecord},
};

use crate::{app::App, recorded::Recorded, toolset};

/// Builds the agent of a run only if the run began in the server's folder, or in no folder.
pub(super) struct OwnFolder {
    recorded: Recorded,
    folder: Option<PathBuf>,
}

impl OwnFolder {
    pub(super) fn new(app: &App) -> Self {
        Self { recorded: Recorded::new(app), folder: toolset::folder(app) }
    }
}

impl AgentSource for OwnFolder {
    fn agent_of<'a>(
        &'a self,
        records: &'a [Arc<Record>],
    ) -> BoxFuture<'a, Result<Arc<dyn RunAgent>, RunError>> {
        let is_other = |folder: &&str| self.folder.as_deref() != Some(Path::new(folder));
        match folders(records).find(is_other) {
            Some(folder) => {
                let error = RunError::OtherFolder { folder: folder.to_owned() };
                Box::pin(std::future::ready(Err(error)))
            }
            None => self.recorded.agent_of(records),
        }
    }
}

/// Returns the folders that the log of a run names: that of the run, and those of the agents of its team.
fn folders(records: &[Arc<Record>]) -> impl Iterator<Item = &str> {
    let of_team = records.iter().filter_map(|record| match &record.body {
        RecordBody::Team(record) => match &**record {
            TeamRecord::Inputs { agents, .. } => Some(agents),
            _ => None,
        },
        _ => None,
    });
    let own = RunStarted::of(records).map(|started| &started.config);
    own.into_iter().chain(of_team.flat_map(BTreeMap::values)).filter_map(|config| config.workspace.as_deref())
}
