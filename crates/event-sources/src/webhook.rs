//! Web hooks: a name, secrets and limits for each service that sends events.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use archon_types::{Secret, TenantId, Timestamp, TokenBucket};

mod door;
mod signature;

pub use door::WebhookDoor;
use signature::Signed;

/// The longest difference between the time of a request and the time of its arrival.
const WINDOW: Duration = Duration::from_secs(5 * 60);

/// The fewest bytes of a secret.
const SHORTEST: usize = 16;

/// The settings of a service that sends events. The events have its name as source, so a task takes them with a pattern
/// such as `shop.*`.
///
/// A request is signed as [Standard Webhooks](https://www.standardwebhooks.com) describes: the headers `webhook-id`,
/// `webhook-timestamp` in seconds, and `webhook-signature`, `v1,` with an HMAC-SHA256 in base64 over `ID.TIMESTAMP.BODY`. A
/// [`WebhookChannel`](https://docs.rs/archon-notify) of another program sends such requests.
///
/// ```
/// use archon_event_sources::{Webhook, WebhookError};
/// use archon_types::Secret;
///
/// fn shop(secret: &Secret) -> Result<Webhook, WebhookError> {
///     Ok(Webhook::new("shop", secret)?.tenant("anna").with_max_bytes(16 * 1024).with_requests_per_minute(600))
/// }
/// ```
#[derive(Debug)]
pub struct Webhook {
    name: String,
    keys: Vec<Secret<Vec<u8>>>,
    tenant: Option<TenantId>,
    max_bytes: usize,
    per_minute: u32,
}

/// A web hook cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The secret is not base64, or too short.
    #[error(
        "the secret of the web hook {name} is not base64 of at least 16 bytes: copy it from the service again"
    )]
    Secret {
        /// The name of the web hook.
        name: String,
    },
    /// The name cannot be part of an address and of a pattern.
    #[error("the name {0:?} of a web hook cannot be used: use 1 to 64 letters, digits, `-` and `_`")]
    Name(String),
}

/// The number of requests to a web hook since the program started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookCounts {
    /// Taken: the event was published.
    pub taken: u64,
    /// Refused: the signature is missing or wrong.
    pub wrong_signature: u64,
    /// Refused: the time of the request is too far from now, or the same request came before.
    pub replayed: u64,
    /// Refused: the body has too many bytes.
    pub too_large: u64,
    /// Refused: too many requests in a minute.
    pub too_fast: u64,
    /// Refused: the body is not JSON, or did not arrive in time.
    pub unreadable: u64,
    /// Not taken now: the event could not be stored. The service sends it again.
    pub not_stored: u64,
}

impl Webhook {
    /// Creates the web hook of a service, with the secret that the service shows: base64, with or without `whsec_` in front.
    ///
    /// # Errors
    /// The name or the secret cannot be used.
    pub fn new(name: impl Into<String>, secret: &Secret<String>) -> Result<Self, WebhookError> {
        let name = name.into();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            return Err(WebhookError::Name(name));
        }
        let hook = Self { name, keys: Vec::new(), tenant: None, max_bytes: 64 * 1024, per_minute: 60 };
        hook.also(secret)
    }

    /// Also accepts requests that are signed with this secret, for the time in which the service changes from one
    /// secret to another.
    ///
    /// # Errors
    /// The secret cannot be used.
    pub fn also(mut self, secret: &Secret<String>) -> Result<Self, WebhookError> {
        match signature::key(secret).filter(|key| key.len() >= SHORTEST) {
            Some(key) => self.keys.push(Secret::new(key)),
            None => return Err(WebhookError::Secret { name: self.name }),
        }
        Ok(self)
    }

    /// Sets the tenant whose tasks get the events; by default `local`.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<TenantId>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets the most bytes of the body of a request. Default 64 KiB, which is also the most bytes of the data of an
    /// event.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the most requests in a minute; those without a valid signature do not count. Default 60.
    #[must_use]
    pub fn with_requests_per_minute(mut self, requests: u32) -> Self {
        self.per_minute = requests;
        self
    }
}

/// A web hook in use.
struct Hook {
    hook: Webhook,
    state: Mutex<HookState>,
}

struct HookState {
    counts: WebhookCounts,
    requests: TokenBucket,
    /// The requests of the last minutes by their signed text, with the time at which they can be forgotten: then their own
    /// time is too old.
    seen: BTreeMap<String, Timestamp>,
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    WrongSignature,
    Replayed,
    TooLarge,
    TooFast(Duration),
    Unreadable,
    NotStored,
}

impl Hook {
    fn new(hook: Webhook, now: Timestamp) -> Self {
        let requests = TokenBucket::new(hook.per_minute, Duration::from_secs(60), now);
        let state = HookState { counts: WebhookCounts::default(), requests, seen: BTreeMap::new() };
        Self { hook, state: Mutex::new(state) }
    }

    /// Decides if a request is one of the service, is new, and does not come too fast.
    fn admit(&self, signed: &Signed<'_>, now: Timestamp) -> Result<(), Refusal> {
        if !self.hook.keys.iter().any(|key| signed.is_by(key.expose())) {
            return Err(Refusal::WrongSignature);
        }
        // The time is signed, so only the service can have set it.
        let at = Timestamp::from_millis(signed.seconds.saturating_mul(1_000));
        if now.since(at) > WINDOW || at.since(now) > WINDOW {
            return Err(Refusal::Replayed);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.seen.retain(|_, until| *until >= now);
        if state.seen.contains_key(&signed.name()) {
            return Err(Refusal::Replayed);
        }
        state.requests.take(now).map_err(|next| Refusal::TooFast(next.since(now)))?;
        state.seen.insert(signed.name(), at + WINDOW);
        Ok(())
    }

    /// Counts the end of a request. One that could not be stored may come again.
    fn count(&self, result: Result<(), Refusal>, signed: Option<&Signed<'_>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Err(Refusal::NotStored), Some(signed)) = (result, signed) {
            state.seen.remove(&signed.name());
        }
        let counts = &mut state.counts;
        let count = match result {
            Ok(()) => &mut counts.taken,
            Err(Refusal::WrongSignature) => &mut counts.wrong_signature,
            Err(Refusal::Replayed) => &mut counts.replayed,
            Err(Refusal::TooLarge) => &mut counts.too_large,
            Err(Refusal::TooFast(_)) => &mut counts.too_fast,
            Err(Refusal::Unreadable) => &mut counts.unreadable,
            Err(Refusal::NotStored) => &mut counts.not_stored,
        };
        *count += 1;
    }

    fn counts(&self) -> WebhookCounts {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).counts
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use data_encoding::BASE64;
    use hmac_sha256::HMAC;

    use super::*;

    const KEY: &[u8] = b"the key of the shop";

    fn hook(per_minute: u32) -> Hook {
        let secret = Secret::from(format!("whsec_{}", BASE64.encode(KEY)));
        let hook = Webhook::new("shop", &secret).unwrap().with_requests_per_minute(per_minute);
        Hook::new(hook, at(1_000))
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn headers(id: &str, seconds: u64, body: &[u8], key: &[u8]) -> HeaderMap {
        let mut text = format!("{id}.{seconds}.").into_bytes();
        text.extend_from_slice(body);
        let signature = format!("v1a,AAAA v1,{}", BASE64.encode(&HMAC::mac(&text, key)));
        let pairs = [
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", signature),
        ];
        pairs.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn admit(hook: &Hook, headers: &HeaderMap, body: &[u8], now: u64) -> Result<(), Refusal> {
        let signed = Signed::read(headers, body).ok_or(Refusal::WrongSignature)?;
        hook.admit(&signed, at(now))
    }

    // spec: TR-04
    #[test]
    fn admit_takes_a_signed_request_once_and_only_near_its_time() {
        let hook = hook(60);
        let request = headers("msg_1", 1_000, b"{}", KEY);
        assert_eq!(admit(&hook, &request, b"{ }", 1_000), Err(Refusal::WrongSignature));
        assert_eq!(
            admit(&hook, &headers("msg_1", 1_000, b"{}", b"another key"), b"{}", 1_000),
            Err(Refusal::WrongSignature)
        );
        assert_eq!(admit(&hook, &request, b"{}", 1_300), Ok(()));
        assert_eq!(admit(&hook, &request, b"{}", 1_300), Err(Refusal::Replayed));
        // The service sends the event again, with the time of the new try.
        assert_eq!(admit(&hook, &headers("msg_1", 1_301, b"{}", KEY), b"{}", 1_301), Ok(()));
        for now in [1_301, 699] {
            let request = headers("msg_2", 1_000, b"{}", KEY);
            assert_eq!(admit(&hook, &request, b"{}", now), Err(Refusal::Replayed), "{now}");
        }
        // Another time than the signed one.
        let mut moved = headers("msg_3", 1_000, b"{}", KEY);
        moved.insert("webhook-timestamp", "1301".parse().unwrap());
        assert_eq!(admit(&hook, &moved, b"{}", 1_301), Err(Refusal::WrongSignature));
        let mut twice = headers("msg_4", 1_301, b"{}", KEY);
        twice.append("webhook-id", "msg_5".parse().unwrap());
        assert_eq!(admit(&hook, &twice, b"{}", 1_301), Err(Refusal::WrongSignature));
    }

    #[test]
    fn admit_refuses_signed_requests_beyond_the_limit_and_forgets_old_ones() {
        let hook = hook(2);
        let send = |id: &str, now: u64| admit(&hook, &headers(id, now, b"{}", KEY), b"{}", now);
        for _ in 0..10 {
            let forged = headers("msg_0", 1_000, b"{}", b"another key");
            assert_eq!(admit(&hook, &forged, b"{}", 1_000), Err(Refusal::WrongSignature));
        }
        assert_eq!((send("a", 1_000), send("b", 1_000)), (Ok(()), Ok(())), "forged requests use nothing up");
        assert_eq!(send("c", 1_000), Err(Refusal::TooFast(Duration::from_secs(30))));
        assert_eq!(send("c", 1_030), Ok(()));
        assert_eq!(send("d", 1_400), Ok(()));
        let seen = hook.state.lock().unwrap().seen.len();
        assert_eq!(seen, 1, "requests whose time is over are refused for that");
    }

    #[test]
    fn new_web_hook_with_a_name_or_a_secret_that_cannot_be_used_is_refused() {
        let good = Secret::from(BASE64.encode(KEY));
        assert_eq!(Webhook::new("a.b", &good).err(), Some(WebhookError::Name("a.b".to_owned())));
        for secret in ["", "whsec_", "c2hvcnQ=", "no base64!"] {
            let refused = Webhook::new("shop", &Secret::from(secret)).err();
            assert_eq!(refused, Some(WebhookError::Secret { name: "shop".to_owned() }), "{secret}");
        }
        assert!(Webhook::new("shop", &good).unwrap().also(&good).is_ok());
    }
}
