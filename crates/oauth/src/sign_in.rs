//! The sign-in of a person: with a device code, or with a code that the browser brings back.

use archon_types::{CredentialKey, CredentialStore, Secret};
use oauth2::{
    AuthorizationCode, CsrfToken, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl,
    StandardDeviceAuthorizationResponse,
};

use crate::{error::OAuthError, service::OAuth, tokens::Tokens};

/// A sign-in with a device code. A person finishes it at [`address`](Self::address), on any device.
pub struct DeviceSignIn(StandardDeviceAuthorizationResponse);

impl DeviceSignIn {
    /// Returns the address that the person opens.
    pub fn address(&self) -> &str {
        self.0.verification_uri().as_str()
    }

    /// Returns the code that the person types at [`address`](Self::address).
    pub fn code(&self) -> &str {
        self.0.user_code().secret()
    }
}

/// A sign-in that a person has to finish in a browser.
pub struct CodeSignIn {
    address: String,
    state: CsrfToken,
    verifier: PkceCodeVerifier,
    redirect: RedirectUrl,
}

impl CodeSignIn {
    /// Returns the address that the person opens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the state, by which a server finds this sign-in when the browser comes back.
    pub fn state(&self) -> &str {
        self.state.secret()
    }
}

archon_types::debug_fields!(DeviceSignIn);
archon_types::debug_fields!(CodeSignIn);

impl OAuth {
    /// Begins a sign-in with a device code. Show the person [`DeviceSignIn::address`] and [`DeviceSignIn::code`].
    ///
    /// # Errors
    /// The service has no device address, refuses, or cannot be reached.
    pub async fn begin_device(&self) -> Result<DeviceSignIn, OAuthError> {
        let client = self.client()?.set_device_authorization_url(self.device_url()?);
        let send = |request| self.send(request);
        let request = client.exchange_device_code().add_scopes(self.scopes());
        Ok(DeviceSignIn(request.request_async(&send).await.map_err(|error| self.failure(error))?))
    }

    /// Waits until the person has signed in, and stores the tokens.
    ///
    /// # Errors
    /// The person refused, the code has expired, the service cannot be reached, or the store failed.
    pub async fn finish_device(
        &self,
        sign_in: DeviceSignIn,
        store: &dyn CredentialStore,
        key: &CredentialKey,
    ) -> Result<(), OAuthError> {
        let (client, send) = (self.client()?, |request| self.send(request));
        let sleep = |pause| self.clock.sleep_until(self.clock.now() + pause);
        let request = client.exchange_device_access_token(&sign_in.0);
        let answer = request.request_async(&send, sleep, None).await.map_err(|error| self.failure(error))?;
        self.store(Tokens::of(&answer, self.clock.now()), store, key).await
    }

    /// Begins a sign-in with a browser. The service sends the browser back to the address `redirect`, with a code and
    /// the state.
    ///
    /// # Errors
    /// The service has no sign-in address, or `redirect` is no URL.
    pub fn begin_code(&self, redirect: &str) -> Result<CodeSignIn, OAuthError> {
        let wrong =
            |error: oauth2::url::ParseError| self.wrong_address("redirect address", &error.to_string());
        let redirect = RedirectUrl::new(redirect.to_owned()).map_err(wrong)?;
        let client = self.client()?.set_auth_uri(self.sign_in_url()?).set_redirect_uri(redirect.clone());
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let request = client.authorize_url(CsrfToken::new_random).add_scopes(self.scopes());
        let (address, state) = request.set_pkce_challenge(challenge).url();
        Ok(CodeSignIn { address: address.into(), state, verifier, redirect })
    }

    /// Exchanges the code that the browser brought back for tokens, and stores them. `state` is the state that came
    /// with the code.
    ///
    /// # Errors
    /// The state is that of another sign-in, the service refuses or cannot be reached, or the store failed.
    pub async fn finish_code(
        &self,
        sign_in: CodeSignIn,
        (code, state): (Secret, &str),
        store: &dyn CredentialStore,
        key: &CredentialKey,
    ) -> Result<(), OAuthError> {
        if sign_in.state() != state {
            return Err(OAuthError::OtherSignIn { service: self.service.name.clone() });
        }
        let client = self.client()?.set_redirect_uri(sign_in.redirect);
        let send = |request| self.send(request);
        let request = client.exchange_code(AuthorizationCode::new(code.expose().clone()));
        let request = request.set_pkce_verifier(sign_in.verifier);
        let answer = request.request_async(&send).await.map_err(|error| self.failure(error))?;
        self.store(Tokens::of(&answer, self.clock.now()), store, key).await
    }
}
