//! Removes the secrets of a run from everything that is kept or shown.
//!
//! A [`Redactor`] is passed down with the [`Context`](crate::Context) of a run. It receives the keys of the
//! providers that the run uses, and the credentials that its tools get. Each secret is found in these forms:
//!
//! - as it is, and escaped as in JSON or in JSON within a JSON string,
//! - in base64, at any offset in the encoded bytes, in the standard and in the URL alphabet, with and without
//!   padding,
//! - percent-encoded as in URLs and HTML forms, with hex digits in upper and in lower case,
//! - in hex, in upper and in lower case.
//!
//! Other forms are not found: a part of a secret, or a secret that was reversed, spelt out, or encoded twice
//! in another way. Secrets of fewer than [`SHORTEST`](Redactor::SHORTEST) bytes are ignored, as ordinary
//! words may equal them.

mod forms;
mod messages;
mod stream;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Json, values::Secret};

pub(crate) use forms::Forms;

pub use stream::RedactedStream;

use super::{message::AssistantMessage, tool_result::ToolResult};

/// The text that replaces a secret.
pub(crate) const HIDDEN: &str = "****";

/// The maximum number of expiring secrets that a redactor remembers. The redactor assumes that older ones
/// have expired, and forgets them.
const MOST_EXPIRING: usize = 8;

/// Replaces known secrets in texts by `****`. Clones share their secrets.
#[derive(Clone, Default)]
pub struct Redactor(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    secrets: Vec<Secret>,
    /// Expiring secrets, the newest first.
    expiring: VecDeque<Secret>,
    /// The included redactors, whose secrets are replaced too.
    others: Arc<Vec<Redactor>>,
    /// The number of times that a secret or another redactor was added.
    changes: u64,
    built: Option<Built>,
}

/// The encoded forms of all secrets, as they were last computed.
struct Built {
    /// The value of [`CHANGES`] when the forms were last found to be current.
    checked_at: u64,
    /// The number of changes, of this redactor and of the included ones, that the forms take into account.
    changes: u64,
    forms: Arc<Forms>,
}

/// The number of times that a secret or a redactor was added to any redactor in this process. While this
/// number is unchanged, checked forms are still current. So the check, which runs for every streamed delta,
/// is cheap.
static CHANGES: AtomicU64 = AtomicU64::new(0);

fn changes_of_all() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

impl Redactor {
    /// The minimum length of a secret in bytes; shorter secrets are ignored.
    pub const SHORTEST: usize = 8;

    /// Adds a secret, which is then replaced in texts. A secret of fewer than [`SHORTEST`](Self::SHORTEST)
    /// bytes is ignored.
    pub fn add(&self, secret: &Secret) {
        let mut known = self.known();
        if is_long_enough(secret) && !known.secrets.contains(secret) {
            known.secrets.push(secret.clone());
            known.changed();
        }
    }

    /// Adds a secret that expires, such as a token. The redactor forgets it when eight newer expiring secrets
    /// were added.
    pub fn add_expiring(&self, secret: &Secret) {
        let mut known = self.known();
        if is_long_enough(secret) && !known.expiring.contains(secret) {
            known.expiring.truncate(MOST_EXPIRING - 1);
            known.expiring.push_front(secret.clone());
            known.changed();
        }
    }

    /// Adds every text in these credentials as a secret, except the values of fields with public data, such
    /// as `user` or `scope`.
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

    /// Includes the secrets of another redactor, also those that are added to it later.
    pub fn include(&self, other: &Self) {
        let mut more = other.known().others.to_vec();
        // Fast path: this is called before each model call, and the redactor is mostly included already.
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

    /// Returns the text with every secret replaced by `****`.
    pub fn clean(&self, text: String) -> String {
        self.forms().cleaned(&text).unwrap_or(text)
    }

    /// Does the same as [`clean`](Self::clean) for a shortened text: the character `cut` marks each place
    /// where text is missing. The beginning of a secret directly before `cut` is replaced too, if it has at
    /// least four bytes.
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

    /// Replaces every secret in the texts and numbers of a JSON value and in the keys of its objects.
    pub fn clean_json(&self, value: &mut Json) {
        self.forms().clean_json(value);
    }

    /// Replaces every secret in a model's answer: in its text, thinking, tool calls and error text.
    pub fn clean_answer(&self, answer: &mut AssistantMessage) {
        self.forms().clean_answer(answer);
    }

    /// Replaces every secret in a tool result, in the content for the model and in the fields for people and
    /// programs. The data of images and other media stays unchanged.
    pub fn clean_result(&self, result: &mut ToolResult) {
        self.forms().clean_result(result);
    }

    /// Returns a redactor for a text that arrives in pieces. It also finds a secret that is split over
    /// several pieces.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream::new(self.clone())
    }

    pub(crate) fn forms(&self) -> Arc<Forms> {
        // Read first, so that a later change is checked again next time.
        let checked_at = changes_of_all();
        // Never holds two locks at once, because redactors may include each other.
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

crate::debug_fields!(Redactor);

/// The minimum number of bytes of the beginning of a secret before a cut; a shorter beginning is not
/// replaced.
const SHORTEST_CUT: usize = 4;

/// The names of credential fields with public values. A run needs these values: it could not find a person's
/// mail if the person's address were a secret.
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
