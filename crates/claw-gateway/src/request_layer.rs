//! The way of a request to its handler, and of the answer back: origin, key, permission, the form of errors, metrics.
//!
//! One layer does all of it. Each layer of a route is cloned and boxed for every request, together with those below it, so
//! that one layer for each check would cost more than the checks.

use std::borrow::Cow;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use clawsmith::app::access::Place;

use crate::api::Access;
use crate::error::ApiError;
use crate::metrics::method_name;
use crate::{Gateway, admit, error, request_body};

/// A route as its requests come to it.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) gateway: Gateway,
    /// The path as the table has it; `None` for requests that no route takes.
    pub(crate) path: Option<&'static str>,
    pub(crate) access: Access,
}

impl Front {
    /// Checks a request before its handler; returns the place that it holds until it is answered.
    async fn check(&self, request: &mut Request) -> Result<Option<Place>, ApiError> {
        admit::check_origin(&self.gateway, request)?;
        match self.access {
            Access::Open => return Ok(None),
            // The handler asks for a key, and with it for the user to act for.
            Access::Connect if admit::has_no_key(request.headers()) => {
                return match admit::acted_for(request.headers())? {
                    None => Ok(None),
                    Some(_) => Err(admit::no_key()),
                };
            }
            Access::Connect | Access::Key | Access::Needs(_) => {}
        }
        let peer = request.extensions().get().copied();
        let (who, place) = admit::admit(&self.gateway, request.headers(), peer).await?;
        if let Access::Needs(permission) = self.access {
            who.may(permission)?;
        }
        request.extensions_mut().insert(who);
        Ok(Some(place))
    }
}

/// Takes a request to its handler.
pub(crate) async fn pass(State(front): State<Front>, request: Request, next: Next) -> Response {
    let (began, method) = (Instant::now(), method_name(request.method()));
    let path = match (front.path, request.extensions().get::<MatchedPath>()) {
        (Some(path), _) => Cow::Borrowed(path),
        // A path of the table, with a method that it does not have.
        (None, Some(path)) => Cow::Owned(path.as_str().to_owned()),
        (None, None) => Cow::Borrowed("none"),
    };
    let is_openai = error::is_openai(request.uri().path());
    let mut request = request_body::limit(request);
    let response = match front.check(&mut request).await {
        Ok(place) => admit::held(next.run(request).await, place),
        Err(error) => error.into_response(),
    };
    let response = error::shape(response, is_openai);
    front.gateway.0.metrics.observe(method, path, response.status(), began.elapsed());
    response
}
