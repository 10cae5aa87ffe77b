//! The signature of a request, as the specification Standard Webhooks describes it.

use archon_types::Secret;
use axum::http::HeaderMap;
use data_encoding::BASE64;
use hmac_sha256::HMAC;

/// The most bytes of the id of a request.
const LONGEST_ID: usize = 256;

/// A request with the headers of a signature.
pub(super) struct Signed<'a> {
    pub(super) id: &'a str,
    /// The time of the request, in seconds since the Unix epoch.
    pub(super) seconds: u64,
    time: &'a str,
    signatures: &'a str,
    body: &'a [u8],
}

impl<'a> Signed<'a> {
    /// Reads the headers; `None` if one is missing, there twice, or has another form.
    pub(super) fn read(headers: &'a HeaderMap, body: &'a [u8]) -> Option<Self> {
        let one = |name| {
            let mut values = headers.get_all(name).iter();
            let value = values.next()?.to_str().ok()?;
            values.next().is_none().then_some(value)
        };
        let id = one("webhook-id").filter(|id| !id.is_empty() && id.len() <= LONGEST_ID)?;
        let time = one("webhook-timestamp")?;
        Some(Self { id, seconds: time.parse().ok()?, time, signatures: one("webhook-signature")?, body })
    }

    /// Returns true if one of the signatures is of this key.
    pub(super) fn is_by(&self, key: &[u8]) -> bool {
        let mut text = format!("{}.{}.", self.id, self.time).into_bytes();
        text.extend_from_slice(self.body);
        let signatures = self.signatures.split(' ').filter_map(|signature| signature.strip_prefix("v1,"));
        signatures
            .filter_map(|signature| <[u8; 32]>::try_from(BASE64.decode(signature.as_bytes()).ok()?).ok())
            .any(|signature| HMAC::verify(&text, key, &signature))
    }

    /// Returns the text that tells requests apart. A service that sends an event again sets another time.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.seconds, self.id)
    }
}

/// Returns the bytes of a secret; `None` if it is not base64.
pub(super) fn key(secret: &Secret<String>) -> Option<Vec<u8>> {
    let text = secret.expose().trim();
    BASE64.decode(text.strip_prefix("whsec_").unwrap_or(text).as_bytes()).ok()
}
