//! Errors as programs read them: a status, a code, what happened and what to try.
//!
//! Paths that other programs know from OpenAI answer in OpenAI's shape, all others as `application/problem+json`.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use clawsmith::app::{self, Kind};
use clawsmith::{Refusal, Step};
use serde_json::json;

/// A request that failed.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    /// A word that a program can compare.
    code: &'static str,
    what: String,
    hint: Option<String>,
    retry_after: Option<Duration>,
    /// More for programs, beside the above.
    details: Option<serde_json::Value>,
    is_openai: bool,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { status, code, what, hint: None, retry_after: None, details: None, is_openai: false }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", what)
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    /// Adds what to try.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn details(mut self, details: serde_json::Value) -> Self {
        self.details = Some(details);
        self
    }

    /// As it is told in a frame of a WebSocket.
    pub(crate) fn frame(&self) -> serde_json::Value {
        json!({ "code": self.code, "detail": self.what, "hint": self.hint, "details": self.details })
    }

    /// The same in OpenAI's shape.
    #[must_use]
    pub(crate) fn into_openai(mut self) -> Self {
        self.is_openai = true;
        self
    }
}

impl From<app::Error> for ApiError {
    fn from(error: app::Error) -> Self {
        let (status, code) = match error.kind() {
            Kind::Invalid => (StatusCode::BAD_REQUEST, "invalid_request"),
            Kind::Refused => (StatusCode::FORBIDDEN, "forbidden"),
            Kind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            Kind::Conflict => (StatusCode::CONFLICT, "conflict"),
            Kind::Failed => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        };
        if status == StatusCode::SERVICE_UNAVAILABLE {
            tracing::error!(%error, "a request failed");
        }
        // Causes may name files and addresses of this machine.
        let new = Self::new(status, code, error.message());
        match error.advice().filter(|_| status != StatusCode::SERVICE_UNAVAILABLE) {
            Some(advice) => new.hint(advice),
            None => new,
        }
    }
}

impl From<&Refusal> for ApiError {
    fn from(refusal: &Refusal) -> Self {
        let (status, code) = match refusal.step {
            Step::Find => (StatusCode::NOT_FOUND, "unknown_tool"),
            Step::Authorise => (StatusCode::FORBIDDEN, "tool_not_allowed"),
            Step::Limit => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
            Step::Validate => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_arguments"),
            Step::Judge => (StatusCode::FORBIDDEN, "refused"),
            Step::Record => (StatusCode::CONFLICT, "not_recorded"),
        };
        Self {
            hint: refusal.advice.clone(),
            retry_after: refusal.retry_after,
            details: refusal.details.as_deref().cloned(),
            ..Self::new(status, code, refusal.reason.clone())
        }
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), "invalid_request", rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = if self.is_openai {
            let kind = match self.status {
                StatusCode::UNAUTHORIZED => "authentication_error",
                StatusCode::FORBIDDEN => "permission_error",
                StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
                status if status.is_server_error() => "server_error",
                _ => "invalid_request_error",
            };
            let message = match &self.hint {
                Some(hint) => format!("{}; {hint}", self.what),
                None => self.what,
            };
            json!({ "error": { "message": message, "type": kind, "param": null, "code": self.code } })
        } else {
            let mut problem = json!({
                "type": "about:blank",
                "title": self.status.canonical_reason(),
                "status": self.status.as_u16(),
                "code": self.code,
                "detail": self.what,
            });
            if let Some(hint) = self.hint {
                problem["hint"] = hint.into();
            }
            if let Some(details) = self.details {
                problem["details"] = details;
            }
            problem
        };
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        if !self.is_openai {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(after) = self.retry_after {
            headers.insert(header::RETRY_AFTER, after.as_secs().max(1).into());
        }
        response
    }
}

/// Whether a path answers in OpenAI's shape.
pub(crate) fn is_openai(path: &str) -> bool {
    ["/v1/chat/", "/v1/models", "/v1/responses"].iter().any(|known| path.starts_with(known))
}

pub(crate) async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::not_found(format!("there is nothing at `{}`", uri.path()))
        .hint("see docs/gateway.md for the paths")
}

pub(crate) async fn no_such_method(uri: Uri) -> ApiError {
    let what = format!("`{}` does not take this method", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", what)
}
