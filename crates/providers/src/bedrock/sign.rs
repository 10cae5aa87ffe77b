//! Signs requests for Amazon (SigV4) with Amazon's own crate; the time is an input.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html>. Besides method, address and body,
//! only the content type, the host, the time and a session token are signed.

use std::time::{Duration, SystemTime};

use archon_types::{ProviderError, Secret, Timestamp};
use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4,
};
use reqwest::{
    Request,
    header::{CONTENT_TYPE, HeaderName},
};

use super::credentials::AwsCredentials;
use crate::http::sensitive;

/// The name of the service in signatures.
const SERVICE: &str = "bedrock";

/// Adds the signature headers to the request.
pub(super) fn sign_request(
    request: &mut Request,
    credentials: &AwsCredentials,
    region: &str,
    now: Timestamp,
) -> Result<(), ProviderError> {
    // These errors cannot contain a secret, but their texts would not help either.
    let cannot = |what: &str| ProviderError::Auth(format!("the request cannot be signed: {what}").into());
    let identity = Credentials::new(
        credentials.access_key_id.as_str(),
        credentials.secret_access_key.expose().as_str(),
        credentials.session_token.as_ref().map(|token| token.expose().clone()),
        None,
        "archon",
    )
    .into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(SERVICE)
        .time(SystemTime::UNIX_EPOCH + Duration::from_millis(now.as_millis()))
        .settings(SigningSettings::default())
        .build()
        .map_err(|_| cannot("a setting is missing"))?
        .into();
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let headers = content_type.map(|value| (CONTENT_TYPE.as_str(), value));
    let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
    let url = request.url().as_str();
    let signable =
        SignableRequest::new(request.method().as_str(), url, headers.into_iter(), SignableBody::Bytes(body));
    let signable = signable.map_err(|_| cannot("its method, address or content type is invalid"))?;
    let signed = sign(signable, &params).map_err(|_| cannot("the credentials contain invalid characters"))?;
    let (instructions, _) = signed.into_parts();
    for (name, value) in instructions.headers() {
        let name: HeaderName = name.parse().map_err(|_| cannot("a header name is invalid"))?;
        let value = sensitive(&Secret::from(value));
        request.headers_mut().insert(name, value.ok_or_else(|| cannot("a header value is invalid"))?);
    }
    Ok(())
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
