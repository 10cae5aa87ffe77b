//! Takes the secrets that a run holds out of everything that is kept or shown.
//!
//! One [`Redactor`] is handed down with the [`Context`](crate::Context) of a run. It learns the keys of the providers
//! that the run asks, and the credentials that its tools are given. It looks for each secret in these forms:
//!
//! - as it is, and escaped as in JSON,
//! - in base64, wherever in the encoded bytes it begins, in the standard and in the URL alphabet, padded or not,
//! - percent-encoded as URLs and forms are, with hex digits in upper and in lower case,
//! - in hex, in upper and in lower case.
//!
//! Other disguises are not found: a part of a secret, one that was encoded twice, reversed or spelt out. Secrets of
//! fewer than [`SHORTEST`](Redactor::SHORTEST) bytes are not looked for, because they would take out ordinary words.

mod forms;
mod records;
mod stream;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{AssistantMessage, Json, RecordBody, Secret, ToolResult};

use forms::Forms;

pub use stream::RedactedStream;

/// What stands in place of a secret.
pub(crate) const HIDDEN: &str = "****";

/// How many secrets that expire are remembered; older ones have expired.
const MOST_EXPIRING: usize = 8;

/// Knows secrets, and replaces each by `****` wherever it stands. Clones share what they know.
#[derive(Clone, Default)]
pub struct Redactor(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    secrets: Vec<Secret>,
    /// The newest first.
    expiring: VecDeque<Secret>,
    /// Whose secrets count here, too.
    others: Arc<Vec<Redactor>>,
    /// Grows when a secret comes or goes.
    changes: u64,
    built: Option<Built>,
}

/// The forms of all secrets.
struct Built {
    /// [`CHANGES`] when they were last found to be up to date.
    checked_at: u64,
    /// The changes here and in the others that they hold.
    changes: u64,
    forms: Arc<Forms>,
}

/// How often any redactor of this process changed. While it stands still, forms that were looked at are up to date:
/// every streamed delta asks for them.
static CHANGES: AtomicU64 = AtomicU64::new(0);

fn changes_of_all() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

impl Redactor {
    /// The fewest bytes of a secret that is looked for.
    pub const SHORTEST: usize = 8;

    /// Looks for this secret from here on.
    pub fn add(&self, secret: &Secret) {
        let mut known = self.known();
        if is_long_enough(secret) && !known.secrets.contains(secret) {
            known.secrets.push(secret.clone());
            known.changed();
        }
    }

    /// Looks for this secret until eight more came in this way: for tokens that expire and are replaced.
    pub fn add_expiring(&self, secret: &Secret) {
        let mut known = self.known();
        if is_long_enough(secret) && !known.expiring.contains(secret) {
            known.expiring.truncate(MOST_EXPIRING - 1);
            known.expiring.push_front(secret.clone());
            known.changed();
        }
    }

    /// Looks for every text in these credentials, but for those whose name says that they are no secret, such as
    /// `user` or `scope`.
    pub fn add_credentials(&self, credentials: &Json) {
        match credentials {
            Json::String(text) => self.add(&Secret::from(text.as_str())),
            Json::Array(items) => items.iter().for_each(|item| self.add_credentials(item)),
            Json::Object(entries) => {
                let closed = entries.iter().filter(|(name, _)| !OPEN.contains(&name.as_str()));
                closed.for_each(|(_, value)| self.add_credentials(value));
            }
            _ => {}
        }
    }

    /// Looks for the secrets of another one as well, also for those that it learns later.
    pub fn include(&self, other: &Self) {
        let mut more = other.known().others.to_vec();
        // Before each call of a model, and mostly it is here already.
        if more.is_empty() && self.known().others.iter().any(|known| Arc::ptr_eq(&known.0, &other.0)) {
            return;
        }
        more.push(other.clone());
        let mut known = self.known();
        for other in more {
            let is_new = |known: &Self| !Arc::ptr_eq(&known.0, &other.0);
            if is_new(self) && known.others.iter().all(is_new) {
                Arc::make_mut(&mut known.others).push(other);
                known.changed();
            }
        }
    }

    /// The text with every secret replaced.
    pub fn clean(&self, text: String) -> String {
        self.forms().cleaned(&text).unwrap_or(text)
    }

    /// As [`clean`](Self::clean); where the text was cut, as the character `cut` tells, the beginning of a secret is
    /// replaced, too, if it has four bytes or more.
    pub fn clean_cut(&self, text: String, cut: char) -> String {
        let forms = self.forms();
        let clean = forms.cleaned(&text).unwrap_or(text);
        if forms.is_empty() || !clean.contains(cut) {
            return clean;
        }
        let mut whole = String::with_capacity(clean.len());
        let mut pieces = clean.split(cut).peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                whole += piece;
                break;
            }
            match forms.open_end(piece.as_bytes()).filter(|at| piece.len() - at >= SHORTEST_CUT) {
                Some(at) => whole.extend([&piece[..at], HIDDEN]),
                None => whole += piece,
            }
            whole.push(cut);
        }
        whole
    }

    /// Replaces every secret in the texts of a JSON value and in the keys of its objects.
    pub fn clean_json(&self, value: &mut Json) {
        self.forms().clean_json(value);
    }

    /// Replaces every secret in what a model said: text, thinking and calls.
    pub fn clean_answer(&self, answer: &mut AssistantMessage) {
        self.forms().clean_answer(answer);
    }

    /// Replaces every secret in what a tool said, for the model, for people and for programs. Pictures stay.
    pub fn clean_result(&self, result: &mut ToolResult) {
        self.forms().clean_result(result);
    }

    /// Replaces every secret in what records bring from outside; the others follow from these. Whoever appends records
    /// by a [`LogAppender`](crate::LogAppender) need not call it.
    pub fn clean_records(&self, bodies: &mut [RecordBody]) {
        let forms = self.forms();
        if !forms.is_empty() {
            bodies.iter_mut().for_each(|body| forms.clean_record(body));
        }
    }

    /// Cleans one text that comes in pieces, so that a secret that is split over two of them is found.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream::new(self.clone())
    }

    fn forms(&self) -> Arc<Forms> {
        // Read first: what changes from here on is looked at again next time.
        let checked_at = changes_of_all();
        // Never two locks at once: which of two redactors includes the other is anybody's choice.
        let (others, own) = {
            let known = self.known();
            if let Some(built) = known.built.as_ref().filter(|built| built.checked_at == checked_at) {
                return built.forms.clone();
            }
            (known.others.clone(), known.changes)
        };
        let changes = others.iter().fold(own, |sum, other| sum + other.known().changes);
        if let Some(built) = self.known().built.as_mut().filter(|built| built.changes == changes) {
            built.checked_at = checked_at;
            return built.forms.clone();
        }
        let mut all = Vec::new();
        for known in std::iter::once(self).chain(&*others).map(Self::known) {
            all.extend(known.secrets.iter().chain(&known.expiring).cloned());
        }
        let forms = Arc::new(Forms::of(&all));
        self.known().built = Some(Built { checked_at, changes, forms: forms.clone() });
        forms
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn changed(&mut self) {
        self.changes += 1;
        CHANGES.fetch_add(1, Ordering::Release);
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// The fewest bytes of a secret's beginning that is replaced where a text was cut.
const SHORTEST_CUT: usize = 4;

/// The names of what credentials say that anybody may know. A run needs these words: it would not find the mail of the
/// person whom it works for if their address were a secret.
const OPEN: &[&str] = &[
    "account",
    "email",
    "expires_at",
    "login",
    "name",
    "region",
    "scheme",
    "scope",
    "scopes",
    "token_type",
    "type",
    "user",
    "username",
];

fn is_long_enough(secret: &Secret) -> bool {
    secret.expose().len() >= Redactor::SHORTEST
}

#[cfg(test)]
mod tests;
