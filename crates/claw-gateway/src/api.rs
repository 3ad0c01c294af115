//! The table of routes: a path gets its handler and its entry in the OpenAPI document in one line.
//!
//! The entry is derived from the handler's own signature: [`Input`] describes an argument, [`Output`] a
//! result. So the two cannot disagree, and a route without an entry cannot be written.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body as HttpBody, Bytes};
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::handler::Handler;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use clawsmith::app::access::{Permission, Visitor};
use clawsmith::app::{App, Kind, Sessions};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Gateway;
use crate::admit::Who;
use crate::error::ApiError;
use crate::openapi::{Operation, Schemas};
use crate::request_layer::{Front, pass};

/// Requirement of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// No key: the answer is the same for everyone.
    Open,
    /// Any valid key. The handler checks further permissions by the request.
    Key,
    /// Any valid key, in the request or, if it has none, in the first frame of the WebSocket that it opens.
    Connect,
    /// A key with this permission.
    Needs(Permission),
}

/// An entry of the route table.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    /// Id of the operation: module and name of the handler, unless the group says otherwise.
    pub(crate) id: String,
    /// Adds the handler's arguments and results.
    pub(crate) describe: fn(&mut Operation, &mut Schemas),
}

/// The place of a service with a protocol of its own.
pub(crate) struct Mounted<'a> {
    pub(crate) path: &'static str,
    /// The methods that it answers.
    pub(crate) methods: &'a [Method],
}

/// A path, and the service that answers some of its methods.
struct ServedPath {
    path: &'static str,
    access: Access,
    service: MethodRouter<Gateway>,
}

/// The routes, as services and as a list.
pub(crate) struct Api {
    services: Vec<ServedPath>,
    pub(crate) routes: Vec<Route>,
    tag: &'static str,
    /// The first part of the ids of operations; `None` for the handler's module.
    ids: Option<&'static str>,
}

impl Api {
    pub(crate) fn new() -> Self {
        Self { services: Vec::new(), routes: Vec::new(), tag: "", ids: None }
    }

    /// Names the group of the routes that follow.
    pub(crate) fn group(&mut self, tag: &'static str) -> &mut Self {
        (self.tag, self.ids) = (tag, None);
        self
    }

    /// Sets the first part of the ids of the group's operations, for a handler's module with another name.
    pub(crate) fn ids(&mut self, ids: &'static str) -> &mut Self {
        self.ids = Some(ids);
        self
    }

    /// Adds a route: method and path as in `GET /v1/tools`, its access, a summary, and the handler.
    pub(crate) fn on<H, T>(
        &mut self,
        what: &'static str,
        access: Access,
        summary: &'static str,
        handler: H,
    ) -> &mut Self
    where
        H: Handler<T, Gateway, Future = Answering> + Described<T>,
        T: 'static,
    {
        let (method, path) = what.split_once(' ').unwrap_or(("GET", what));
        let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        let id = std::any::type_name::<H>().rsplitn(3, "::").collect::<Vec<_>>();
        let id = match &id[..] {
            [name, module, ..] => format!("{}.{name}", self.ids.unwrap_or(module)),
            _ => path.to_owned(),
        };
        let answer = move |request, gateway| handler.clone().call(request, gateway);
        let handler = ErasedHandler { answer: Arc::new(answer) };
        self.services.push(ServedPath { path, access, service: on(filter, handler) });
        self.routes.push(Route { method, path, tag: self.tag, summary, access, id, describe: H::describe });
        self
    }

    /// The services as a router, each behind the checks of its access.
    pub(crate) fn router(self, gateway: &Gateway) -> Router<Gateway> {
        let mut router = Router::new();
        for ServedPath { path, access, service } in self.services {
            let front = Front { gateway: gateway.clone(), path: Some(path), access };
            router = router.route(path, service.layer(from_fn_with_state(front, pass)));
        }
        router
    }

    /// Adds a service with a protocol of its own at one path.
    pub(crate) fn mount(
        &mut self,
        Mounted { path, methods }: Mounted<'_>,
        access: Access,
        summary: &'static str,
        service: MethodRouter<Gateway>,
    ) -> &mut Self {
        self.services.push(ServedPath { path, access, service });
        for method in methods {
            let id = format!("{}.serve.{}", path.trim_start_matches('/'), method.as_str().to_lowercase());
            let (method, tag) = (method.clone(), self.tag);
            let describe = |operation: &mut Operation, _: &mut Schemas| {
                operation.reply(StatusCode::OK, "The protocol's answer.", None);
            };
            self.routes.push(Route { method, path, tag, summary, access, id, describe });
        }
        self
    }
}

/// The answer of a handler, while it is made.
type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler of any signature. All routes have this one type, so that axum's services around a handler are compiled once and
/// not once per route.
#[derive(Clone)]
struct ErasedHandler {
    answer: Arc<dyn Fn(Request, Gateway) -> Answering + Send + Sync>,
}

impl Handler<(), Gateway> for ErasedHandler {
    type Future = Answering;

    fn call(self, request: Request, gateway: Gateway) -> Answering {
        (self.answer)(request, gateway)
    }
}

/// A handler whose arguments and result can be described.
pub(crate) trait Described<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

macro_rules! described {
    ($($input:ident),*) => {
        impl<F, Reply, M, $($input: Input,)* R: Output> Described<(M, $($input,)*)> for F
        where
            F: FnOnce($($input,)*) -> Reply,
            Reply: Future<Output = R>,
        {
            fn describe(operation: &mut Operation, schemas: &mut Schemas) {
                $($input::describe(operation, schemas);)*
                R::describe(operation, schemas);
            }
        }
    };
}

described!();
described!(A);
described!(A, B);
described!(A, B, C);
described!(A, B, C, D);
described!(A, B, C, D, E);

/// An argument of a handler.
pub(crate) trait Input {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// The result of a handler.
pub(crate) trait Output {
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// A request with a good key: the visitor, and the application of the visitor's tenant.
pub(crate) struct Visit {
    pub(crate) gateway: Gateway,
    pub(crate) who: Who,
}

impl Visit {
    /// The application of the visitor's tenant.
    pub(crate) fn app(&self) -> App {
        self.gateway.app().of_tenant(&self.who.0.tenant)
    }

    pub(crate) fn visitor(&self) -> &Visitor {
        &self.who.0
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        self.gateway.sessions()
    }

    pub(crate) fn may(&self, permission: Permission) -> Result<(), ApiError> {
        self.who.may(permission)
    }
}

impl FromRequestParts<Gateway> for Visit {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        let who = Who::from_request_parts(parts, gateway).await?;
        Ok(Self { gateway: gateway.clone(), who })
    }
}

impl Input for Visit {}
impl Input for axum::extract::State<Gateway> {}
impl Input for HeaderMap {}
impl<E> Input for Result<axum::extract::ws::WebSocketUpgrade, E> {}

/// The parameter of a path. An invalid value is answered as not found.
pub(crate) struct Path<T>(pub(crate) T);

/// Two names in a path.
pub(crate) struct Path2<A, B>(pub(crate) A, pub(crate) B);

async fn names(parts: &mut Parts) -> Result<Vec<String>, ApiError> {
    let names = <RawPathParams as FromRequestParts<()>>::from_request_parts(parts, &()).await;
    let names = names.map_err(|error| ApiError::invalid(error.body_text()))?;
    Ok(names.iter().map(|(_, value)| value.to_owned()).collect())
}

fn named<T: FromStr>(name: Option<&String>) -> Result<T, ApiError> {
    let name = name.map_or("", String::as_str);
    let shown: String = name.chars().take(100).collect();
    name.parse().map_err(|_| ApiError::not_found(format!("there is nothing named `{shown}` here")))
}

impl<T: FromStr> FromRequestParts<Gateway> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Gateway) -> Result<Self, ApiError> {
        Ok(Self(named(names(parts).await?.first())?))
    }
}

impl<A: FromStr, B: FromStr> FromRequestParts<Gateway> for Path2<A, B> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Gateway) -> Result<Self, ApiError> {
        let names = names(parts).await?;
        Ok(Self(named(names.first())?, named(names.get(1))?))
    }
}

impl<T: JsonSchema> Input for Path<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.path_name(0, schemas.taken::<T>());
    }
}

impl<A: JsonSchema, B: JsonSchema> Input for Path2<A, B> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.path_name(0, schemas.taken::<A>());
        operation.path_name(1, schemas.taken::<B>());
    }
}

/// The fields of a query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Gateway> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Gateway) -> Result<Self, ApiError> {
        let query = axum::extract::Query::try_from_uri(&parts.uri)?;
        Ok(Self(query.0))
    }
}

impl<T: JsonSchema> Input for Query<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.query(schemas.taken::<T>());
    }
}

/// A JSON body.
pub(crate) struct Body<T>(pub(crate) T);

/// Returns whether a request's `Content-Type` is `application/json`, or a kind of it such as `application/scim+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = kind.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

impl<T: DeserializeOwned> FromRequest<Gateway> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request<HttpBody>, gateway: &Gateway) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let bytes = Bytes::from_request(request, gateway).await?;
        // Fields are named: a list of their values would be taken for them.
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            return Err(ApiError::invalid("the body is a list; send a JSON object"));
        }
        if !is_json {
            let what = "the body is not JSON by its `Content-Type`";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request", what)
                .hint("send `Content-Type: application/json`"));
        }
        match serde_json::from_slice(&bytes) {
            Ok(body) => Ok(Self(body)),
            // Read again, slower, to tell which field is wrong.
            Err(_) => Ok(Self(axum::Json::from_bytes(&bytes)?.0)),
        }
    }
}

impl<T: JsonSchema> Input for Body<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.body(schemas.taken::<T>());
    }
}

/// The version that a change is based on: the header `If-Match` with the `ETag` of the row that was read.
pub(crate) struct IfMatch(pub(crate) Option<u64>);

impl IfMatch {
    /// Converts the error of a change: if the row has another version than the given one, the precondition
    /// failed.
    pub(crate) fn failed(&self, error: clawsmith::app::Error) -> ApiError {
        match (self.0, error.kind()) {
            (Some(_), Kind::Conflict) => {
                ApiError::new(StatusCode::PRECONDITION_FAILED, "stale", error.message())
                    .hint("read it again, and base your change on that version")
            }
            _ => error.into(),
        }
    }
}

impl FromRequestParts<Gateway> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Gateway) -> Result<Self, ApiError> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else { return Ok(Self(None)) };
        let version = value.to_str().ok().and_then(|text| text.trim().trim_matches('"').parse().ok());
        let wrong = || ApiError::invalid("`If-Match` is not the `ETag` of an answer, such as `\"3\"`");
        version.map(|version| Self(Some(version))).ok_or_else(wrong)
    }
}

impl Input for IfMatch {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.header(
            "If-Match",
            "The `ETag` of the version that you read; the request is refused with 412 if the version has \
             changed.",
        );
    }
}

/// A JSON answer.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(text) => {
                ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
            }
            // The answer says why.
            Err(_) => axum::Json(self.0).into_response(),
        }
    }
}

impl<T: JsonSchema> Output for Json<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.reply(StatusCode::OK, "Done.", Some(schemas.shown::<T>()));
    }
}

/// A JSON answer about something new.
pub(crate) struct Created<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, axum::Json(self.0)).into_response()
    }
}

impl<T: JsonSchema> Output for Created<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.reply(StatusCode::CREATED, "Created.", Some(schemas.shown::<T>()));
    }
}

/// A JSON answer about a row that has a version, which is its `ETag`.
pub(crate) struct Versioned<T>(pub(crate) Option<u64>, pub(crate) T);

impl<T: Serialize> IntoResponse for Versioned<T> {
    fn into_response(self) -> Response {
        let mut response = axum::Json(self.1).into_response();
        let tag = self.0.and_then(|version| format!("\"{version}\"").parse().ok());
        if let Some(tag) = tag {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

impl<T: JsonSchema> Output for Versioned<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.reply(StatusCode::OK, "Done. `ETag` is the row's version.", Some(schemas.shown::<T>()));
    }
}

/// An answer without a body.
pub(crate) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl Output for NoContent {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.reply(StatusCode::NO_CONTENT, "Done.", None);
    }
}

/// An answer of several shapes, which `D` describes.
pub(crate) struct Replied<D>(Response, PhantomData<D>);

impl<D> From<Response> for Replied<D> {
    fn from(response: Response) -> Self {
        Self(response, PhantomData)
    }
}

impl<D> IntoResponse for Replied<D> {
    fn into_response(self) -> Response {
        self.0
    }
}

impl<D: Output> Output for Replied<D> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        D::describe(operation, schemas);
    }
}

impl<T: Output> Output for Result<T, ApiError> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        T::describe(operation, schemas);
        operation.fault(schemas);
    }
}
