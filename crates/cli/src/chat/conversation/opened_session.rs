//! Reads the session of a conversation when the conversation is opened, or when it switches to another session.

use std::sync::Arc;

use archon::{
    Runs,
    types::{Record, RunConfig, RunError, RunFilter, RunHead, SessionId, StartRuns},
};
use tokio::sync::mpsc::UnboundedSender;

use super::answers::is_of_question;
use crate::{
    app::App,
    chat::{
        events::Update,
        history_of_session::{self, History},
    },
    failure::Failure,
};

/// The session with which a conversation begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// A new session.
    New,
    /// The session of the run that was written last.
    Last,
    /// The session with this id, which may be new.
    Named(SessionId),
}

impl Which {
    /// Returns the id of the session; `None` for a new one.
    ///
    /// # Errors
    /// No run has a session, or the log of the newest run is damaged.
    pub(crate) async fn find(&self, runs: &Runs) -> Result<Option<SessionId>, Failure> {
        match self {
            Self::New => Ok(None),
            Self::Named(session) => Ok(Some(session.clone())),
            Self::Last => {
                let head = runs.list(&RunFilter::all().top_level().limit(1)).await?.pop();
                let Some(head) = head else { return Err(RunError::NothingToContinue.into()) };
                if head.problem.is_some() {
                    runs.records(&head.run_id, None).await?.whole()?;
                }
                head.session.map(Some).ok_or_else(|| RunError::NothingToContinue.into())
            }
        }
    }
}

/// A session as it was read.
pub(super) struct Found {
    pub(super) session: Option<SessionId>,
    pub(super) history: History,
}

impl Found {
    pub(super) async fn read(app: &App, which: &Which) -> Result<Self, Failure> {
        let reading = app.runs()?;
        let session = which.find(&reading).await?;
        let history = match &session {
            Some(session) => history_of_session::read(&reading, session).await?,
            None => History::default(),
        };
        Ok(Self { session, history })
    }

    pub(super) fn show(mut self, updates: &UnboundedSender<Update>) {
        let session = self.session.map(Update::Session);
        let damage = self.history.damage.take().map(Update::Failed);
        let history = Update::History(Box::new(self.history));
        for update in session.into_iter().chain(damage).chain([history]) {
            // A screen that is gone needs no news.
            let _ = updates.send(update);
        }
    }
}

/// The state from which a conversation goes on.
pub(super) struct Beginning {
    pub(super) session: Option<SessionId>,
    pub(super) newest: Option<RunHead>,
    /// The configuration of the last run. The tools that it defined stay defined.
    pub(super) last: Option<RunConfig>,
    /// The sequence number of the last record of the newest run.
    pub(super) after: Option<u64>,
    /// The first record of the newest run, and the records of its questions.
    pub(super) questions: Vec<Arc<Record>>,
}

impl Beginning {
    pub(super) fn of(Found { session, history }: &Found) -> Self {
        Self {
            session: session.clone(),
            newest: history.newest.clone(),
            last: history.last_config(),
            after: history.last_seq(),
            questions: history.newest_records().into_iter().filter(|record| is_of_question(record)).collect(),
        }
    }
}
