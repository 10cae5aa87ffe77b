//! The certificate and the private key with which the server speaks TLS, from files.

use std::path::Path;

use archon::server::TlsIdentity;

use super::tokens::is_shared;
use crate::{config::ServeSettings, failure::Failure};

/// Reads the certificate and the key of the settings; `None` if there are none.
///
/// # Errors
/// [`Failure`] if one of them is missing, cannot be read or cannot be used, or if others can read the key.
pub(super) fn identity(settings: &ServeSettings) -> Result<Option<TlsIdentity>, Failure> {
    let (certificate, key) = match (&settings.tls_cert, &settings.tls_key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        (certificate, _) => {
            let missing = if certificate.is_none() { "tls_cert" } else { "tls_key" };
            let what = format!("[serve] has no `{missing}`, so the server has no TLS");
            return Err(Failure::usage(what, "set both `tls_cert` and `tls_key`, or neither"));
        }
    };
    if is_shared(key) {
        let what = format!("other users can read the private key {}", key.display());
        return Err(Failure::usage(what, format!("make it yours alone: chmod 600 {}", key.display())));
    }
    let identity = TlsIdentity::from_pem(&read(certificate)?, &read(key)?).map_err(|e| {
        let what = format!("cannot use {} with {}: {e}", certificate.display(), key.display());
        Failure::usage(what, "name a certificate and its private key in PEM: --tls-cert FILE --tls-key FILE")
    })?;
    Ok(Some(identity))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|e| Failure::unreadable(path, &e, "give the path of a PEM file that you can read"))
}
