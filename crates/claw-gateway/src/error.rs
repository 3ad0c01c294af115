//! Errors for programs: a status, a code, what happened and what to try.
//!
//! Paths that other programs know from OpenAI answer in OpenAI's shape, all others as `application/problem+json`.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use clawsmith::app::{self, Kind};
use clawsmith::{Refusal, Step};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::request_body::{TooSlow, is_too_slow};

/// A request that failed, as `application/problem+json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`.
    r#type: &'static str,
    /// The status in words.
    title: Option<&'static str>,
    /// The status.
    status: u16,
    /// A code that a program can compare.
    code: &'static str,
    /// The problem, with values.
    detail: String,
    /// The advice: what to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The setting by which an operator would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<String>,
    /// More for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
}

/// A request that failed, in OpenAI's shape.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OpenAiError {
    error: OpenAiFault,
}

/// An error in OpenAI's form.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OpenAiFault {
    /// The problem, and what to try.
    message: String,
    r#type: &'static str,
    param: Option<String>,
    /// A code that a program can compare.
    code: &'static str,
}

/// A request that failed.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    status: StatusCode,
    /// A code that a program can compare.
    code: &'static str,
    what: String,
    hint: Option<String>,
    setting: Option<String>,
    retry_after: Option<Duration>,
    /// Further details for programs; boxed, since few errors have them.
    details: Option<Box<Value>>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { status, code, what, hint: None, setting: None, retry_after: None, details: None }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", what)
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    /// Adds a hint: what to try.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the time to wait before a retry.
    #[must_use]
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Names the setting by which an operator would allow it.
    #[must_use]
    pub(crate) fn setting(mut self, setting: &str) -> Self {
        self.setting = Some(setting.to_owned());
        self
    }

    #[must_use]
    pub(crate) fn details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Returns the error as a WebSocket frame.
    pub(crate) fn frame(&self) -> Value {
        let usual = match self.status {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::NOT_FOUND => {
                Some("`/openapi.json` has the methods and their parameters".to_owned())
            }
            _ => self.advice(),
        };
        let hint = self.hint.clone().or(usual);
        let mut frame =
            json!({ "code": self.code, "detail": self.what, "hint": hint, "details": self.details });
        if let Some(setting) = &self.setting {
            frame["setting"] = json!(setting);
        }
        frame
    }

    /// The hint or, if there is none, the one that fits every request of this kind.
    fn advice(&self) -> Option<String> {
        let usual = match self.status {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                "`/docs` shows the fields of each request"
            }
            StatusCode::NOT_FOUND => "to list what exists, use `GET` on the path above it",
            StatusCode::FORBIDDEN if self.code == "forbidden" => {
                "use a key that may do this, or ask an administrator"
            }
            StatusCode::METHOD_NOT_ALLOWED => "`/docs` lists the methods of each path",
            StatusCode::PAYLOAD_TOO_LARGE => "send a smaller body, or the same in several requests",
            _ => return self.hint.clone(),
        };
        Some(self.hint.clone().unwrap_or_else(|| usual.to_owned()))
    }

    /// The answer in OpenAI's shape.
    fn openai(self) -> Response {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let message = match &self.advice() {
            Some(hint) => format!("{}; {hint}", self.what),
            None => self.what.clone(),
        };
        let error = OpenAiFault { message, r#type: kind, param: None, code: self.code };
        self.head((self.status, Json(OpenAiError { error })).into_response())
    }

    fn head(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(after) = self.retry_after {
            headers.insert(header::RETRY_AFTER, after.as_secs().max(1).into());
        }
        response
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
            setting: refusal.setting.clone(),
            retry_after: refusal.retry_after,
            details: refusal.details.clone(),
            ..Self::new(status, code, refusal.reason.clone())
        }
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), "invalid_request", rejection.body_text())
    }
}

impl From<BytesRejection> for ApiError {
    fn from(rejection: BytesRejection) -> Self {
        if is_too_slow(&rejection) {
            return Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", TooSlow.to_string());
        }
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
        let problem = Problem {
            r#type: "about:blank",
            title: self.status.canonical_reason(),
            status: self.status.as_u16(),
            code: self.code,
            detail: self.what.clone(),
            hint: self.advice(),
            setting: self.setting.clone(),
            details: self.details.as_deref().cloned(),
        };
        let mut response = self.head((self.status, Json(problem)).into_response());
        let mime = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, mime);
        // The path decides the shape in the end.
        response.extensions_mut().insert(self);
        response
    }
}

/// Gives errors of OpenAI's paths the form that its clients know, wherever they come from, and forbids
/// clients to guess another content type.
pub(crate) fn shape(mut response: Response, is_openai: bool) -> Response {
    if is_openai && let Some(error) = response.extensions_mut().remove::<ApiError>() {
        response = error.openai();
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Returns whether a path answers in OpenAI's form.
pub(crate) fn is_openai(path: &str) -> bool {
    ["/v1/chat/completions", "/v1/models", "/v1/responses"].iter().any(|known| path.starts_with(known))
}

pub(crate) async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::not_found(format!("there is nothing at `{}`", uri.path())).hint("`/docs` lists all paths")
}

pub(crate) async fn no_such_method(uri: Uri) -> ApiError {
    let what = format!("`{}` does not support this method", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", what)
}
