//! The journal of the agents of a builder. It is opened when the first agent is built, and clones of the
//! builder share it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{Journal, JournalError};

/// A journal, or the path of a journal.
#[derive(Clone)]
pub(crate) enum Runs {
    Given(Arc<dyn Journal>),
    #[cfg_attr(
        not(any(feature = "jsonl", feature = "sqlite")),
        expect(dead_code, reason = "no journal has a place")
    )]
    At(Arc<Place>),
}

pub(crate) struct Place {
    path: PathBuf,
    open: Open,
    opened: Mutex<Option<Arc<dyn Journal>>>,
}

type Open = fn(&Path) -> Result<Arc<dyn Journal>, JournalError>;

impl Runs {
    #[cfg(any(feature = "jsonl", feature = "sqlite"))]
    pub(crate) fn at(path: &Path, open: Open) -> Self {
        Self::At(Arc::new(Place { path: path.to_owned(), open, opened: Mutex::default() }))
    }

    /// Returns the journal, which is opened if needed.
    pub(crate) fn opened(&self) -> Result<Arc<dyn Journal>, JournalError> {
        let place = match self {
            Self::Given(journal) => return Ok(journal.clone()),
            Self::At(place) => place,
        };
        let mut opened = place.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(journal) = &*opened {
            return Ok(journal.clone());
        }
        let journal = (place.open)(&place.path)?;
        *opened = Some(journal.clone());
        Ok(journal)
    }
}
