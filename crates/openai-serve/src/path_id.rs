//! The id in the path of a request.

use axum::{
    extract::{FromRequestParts, Path},
    http::{StatusCode, request::Parts},
    response::Response,
};

use crate::error::ApiError;

/// The id of a path such as `/v1/responses/{id}`. An id that is not UTF-8 is refused in the form of the endpoints.
pub(crate) struct PathId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(error) => {
                let message = format!(
                    "The id in the path cannot be read: {error}; send an id of a response or a model."
                );
                Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_id", message).into_response())
            }
        }
    }
}
