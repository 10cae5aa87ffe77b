//! Tokens in the credential store, and their refresh.

use std::time::Duration;

use archon_types::{CredentialKey, CredentialStore, Credentials, Json, Secret, Timestamp, ToolError};
use oauth2::{RefreshToken, TokenResponse as _, basic::BasicTokenResponse};
use serde::{Deserialize, Serialize};

use crate::{error::OAuthError, service::OAuth};

/// A token that ends within this time is refreshed.
const EARLY: Duration = Duration::from_secs(60);

/// The tokens of an account, as they are stored.
#[derive(Deserialize, Serialize)]
pub(crate) struct Tokens {
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    /// The end of the access token; `None` if the service did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_at: Option<Timestamp>,
}

impl Tokens {
    pub(crate) fn of(answer: &BasicTokenResponse, now: Timestamp) -> Self {
        Self {
            access_token: answer.access_token().secret().clone(),
            refresh_token: answer.refresh_token().map(|token| token.secret().clone()),
            ends_at: answer.expires_in().map(|time| now + time),
        }
    }

    fn is_valid(&self, now: Timestamp) -> bool {
        self.ends_at.is_none_or(|end| end > now + EARLY)
    }

    fn to_json(&self) -> Secret<Json> {
        Secret::new(serde_json::to_value(self).unwrap_or_default())
    }
}

impl OAuth {
    /// Returns the access token of an account for a request of a tool. A token that ends soon is refreshed and stored first.
    ///
    /// # Errors
    /// [`ToolError::NotFound`] if no such account is connected, or its sign-in has ended, with a text that tells the model to
    /// ask the user to connect it; [`ToolError::Failed`] if the service or the store failed.
    pub async fn token(&self, credentials: &Credentials, account: &str) -> Result<Secret, ToolError> {
        let tokens = self.stored(credentials, account).await?;
        if tokens.is_valid(self.clock.now()) {
            return Ok(Secret::from(tokens.access_token));
        }
        let turn = self.turn_of(credentials.tenant(), account);
        let _turn = turn.lock().await;
        // Another call may have refreshed it meanwhile.
        let tokens = self.stored(credentials, account).await?;
        if tokens.is_valid(self.clock.now()) {
            return Ok(Secret::from(tokens.access_token));
        }
        let Some(refresh_token) = tokens.refresh_token else { return Err(self.ended(account)) };
        let refreshed = match self.refresh(refresh_token).await {
            Ok(refreshed) => refreshed,
            Err(OAuthError::Refused { .. }) => return Err(self.ended(account)),
            Err(error) => return Err(ToolError::Failed(error.to_string())),
        };
        credentials.save(&self.service.name, account, refreshed.to_json()).await?;
        Ok(Secret::from(refreshed.access_token))
    }

    async fn stored(&self, credentials: &Credentials, account: &str) -> Result<Tokens, ToolError> {
        let stored = credentials.account(&self.service.name, account).await?;
        Tokens::deserialize(stored.expose()).map_err(|_| self.ended(account))
    }

    async fn refresh(&self, token: String) -> Result<Tokens, OAuthError> {
        let (client, send, token) = (self.client()?, |request| self.send(request), RefreshToken::new(token));
        let answer = client.exchange_refresh_token(&token).request_async(&send).await;
        let mut tokens = Tokens::of(&answer.map_err(|error| self.failure(error))?, self.clock.now());
        // A service that gives no new refresh token keeps the old one.
        tokens.refresh_token.get_or_insert_with(|| token.secret().clone());
        Ok(tokens)
    }

    fn ended(&self, account: &str) -> ToolError {
        let service = &self.service.name;
        ToolError::NotFound(format!(
            "The sign-in of the '{service}' account '{account}' has ended. Tell the user to connect their '{service}' \
             account again, and go on without it until then."
        ))
    }

    pub(crate) async fn store(
        &self,
        tokens: Tokens,
        store: &dyn CredentialStore,
        key: &CredentialKey,
    ) -> Result<(), OAuthError> {
        Ok(store.save(key, tokens.to_json()).await?)
    }
}
