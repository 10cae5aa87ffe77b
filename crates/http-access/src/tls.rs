//! TLS: the certificate and the key of a server, and its encrypted connections.

use std::{convert::Infallible, error::Error, fmt, sync::Arc};

use archon_types::CancellationToken;
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    service::Service,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        Error as LibraryError, ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{Error as PemError, PemObject},
        },
    },
};

use crate::connections::{ConnectionOptions, Listener, serve_with_handshake};

/// The protocols that a client may choose. A client that wants others only is refused in the handshake.
const PROTOCOLS: [&[u8]; 1] = [b"http/1.1"];

/// The certificate of a server with its private key. Cloning is cheap.
///
/// ```no_run
/// use archon_http_access::TlsIdentity;
///
/// # fn load() -> Result<TlsIdentity, Box<dyn std::error::Error>> {
/// let identity = TlsIdentity::from_pem(&std::fs::read("server.pem")?, &std::fs::read("server.key")?)?;
/// # Ok(identity)
/// # }
/// ```
#[derive(Clone)]
pub struct TlsIdentity {
    acceptor: TlsAcceptor,
}

impl TlsIdentity {
    /// Creates the identity from the contents of two PEM files. `certificate` has the certificate of the server,
    /// followed by the intermediate certificates. The second file has the private key, without a password. Both may
    /// be the same file. The period for which the certificate is valid is not checked, because clients check it.
    ///
    /// # Errors
    /// A file has no certificate or no key, cannot be read, or the key is not that of the first certificate.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| TlsError::Certificate(problem(&error).to_owned()))?;
        if certificates.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            PemError::NoItemsFound => TlsError::NoKey,
            error => TlsError::Key(problem(&error).to_owned()),
        })?;
        let unusable = |error: LibraryError| match error {
            LibraryError::InconsistentKeys(_) => TlsError::KeyMismatch,
            LibraryError::InvalidCertificate(_) => TlsError::Certificate(error.to_string()),
            error => TlsError::Key(error.to_string()),
        };
        // Named here, because another part of the program may have chosen no default, or another one.
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(unusable)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)) })
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity(****)")
    }
}

/// The reason why a certificate and a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The first file has no certificate.
    #[error(
        "the certificate file has no certificate: it must have a line \
         `-----BEGIN CERTIFICATE-----` for each certificate, that of the server first"
    )]
    NoCertificate,
    /// The second file has no private key, or only one with a password.
    #[error(
        "the key file has no private key: it must have a line `-----BEGIN PRIVATE KEY-----`, and the key must \
         have no password"
    )]
    NoKey,
    /// The private key does not belong to the server's certificate.
    #[error(
        "the private key does not belong to the certificate of the server: use the key that the certificate was \
         made with, and put the certificate of the server first in its file"
    )]
    KeyMismatch,
    /// The certificate is damaged.
    #[error("the certificate cannot be read ({0}): get it again, in the format PEM")]
    Certificate(String),
    /// The key is damaged, or its kind is not supported.
    #[error(
        "the private key cannot be used ({0}): it must be an RSA, ECDSA or Ed25519 key in the format PEM"
    )]
    Key(String),
}

/// Serves clients as [`serve_connections`](crate::serve_connections), over TLS. The handshake is part of the work of a
/// connection, and limited by [`ConnectionOptions::handshake`]; a client that fails it does not delay
/// other clients.
pub async fn serve_tls_connections<L, S, B>(
    listener: L,
    identity: &TlsIdentity,
    service: S,
    options: &ConnectionOptions,
    end: &CancellationToken,
) where
    L: Listener,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    serve_with_handshake(listener, |stream| identity.acceptor.accept(stream), service, options, end).await;
}

/// Describes the damage of a PEM file. The library's own error is not used, because it shows lines of the file, which
/// may be secret.
fn problem(error: &PemError) -> &'static str {
    match error {
        PemError::MissingSectionEnd { .. } => "a section has no line `-----END …-----`",
        PemError::IllegalSectionStart { .. } => "a line `-----BEGIN …-----` is damaged",
        PemError::Base64Decode(_) => "a section is not base64",
        _ => "it is no PEM file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by tests/tls/make.sh.
    const CERTIFICATE: &[u8] = include_bytes!("../tests/tls/localhost.pem");
    const KEY: &[u8] = include_bytes!("../tests/tls/localhost.key");
    const OTHER_KEY: &[u8] = include_bytes!("../tests/tls/other.key");

    fn error(certificate: &[u8], key: &[u8]) -> TlsError {
        TlsIdentity::from_pem(certificate, key).unwrap_err()
    }

    #[test]
    fn from_pem_takes_a_certificate_and_its_key_also_from_one_file() {
        let both = [CERTIFICATE, KEY].concat();
        for (certificate, key) in [(CERTIFICATE, KEY), (&both[..], &both[..])] {
            let identity = TlsIdentity::from_pem(certificate, key).unwrap();
            assert_eq!(format!("{identity:?}"), "TlsIdentity(****)");
        }
    }

    #[test]
    fn from_pem_names_the_file_and_the_problem() {
        assert_eq!(error(b"", KEY), TlsError::NoCertificate);
        assert_eq!(error(KEY, KEY), TlsError::NoCertificate);
        assert_eq!(error(CERTIFICATE, b""), TlsError::NoKey);
        assert_eq!(error(CERTIFICATE, CERTIFICATE), TlsError::NoKey);
        assert_eq!(error(CERTIFICATE, OTHER_KEY), TlsError::KeyMismatch);
        let locked = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        assert_eq!(error(CERTIFICATE, locked), TlsError::NoKey);
        let certificate = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(error(certificate, KEY), TlsError::Certificate(_)));
        let key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert!(matches!(error(CERTIFICATE, key), TlsError::Key(_)));
    }

    #[test]
    fn from_pem_error_shows_nothing_of_a_damaged_key() {
        let cut = KEY.split_at(KEY.len() / 2).0;
        let text = error(CERTIFICATE, cut).to_string();
        assert!(text.contains("a section has no line"), "{text}");
    }
}
