//! The OpenAPI document: assembled from the table of routes and the schemas of the types that handlers take and return.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::{HeaderName, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::MethodRouter;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::api::{Access, Output, Replied, Route};
use crate::error::{OpenAiError, Problem, is_openai};
use crate::{routes, ws};

/// The document as it is served.
static DOCUMENT: LazyLock<String> =
    LazyLock::new(|| document(&routes::table(MethodRouter::new()).routes).to_string());

/// Schemas of requests and of answers.
pub(crate) struct Schemas {
    /// Requests: as they are read. Each is whole in itself, so that its names meet none of the answers'.
    taken: SchemaGenerator,
    /// The schemas of answers, as they are serialized. Named ones are shared.
    shown: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings
        };
        let mut whole = settings();
        whole.inline_subschemas = true;
        Self { taken: whole.into_generator(), shown: settings().for_serialize().into_generator() }
    }

    /// Returns the schema of a type in requests.
    pub(crate) fn taken<T: JsonSchema>(&mut self) -> Value {
        self.taken.subschema_for::<T>().to_value()
    }

    /// Returns the schema of a type in answers.
    pub(crate) fn shown<T: JsonSchema>(&mut self) -> Value {
        self.shown.subschema_for::<T>().to_value()
    }
}

/// The entry of a route, while it is being written.
pub(crate) struct Operation {
    path: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    replies: BTreeMap<String, Value>,
    extra: Map<String, Value>,
}

impl Operation {
    /// Adds the name at this place in the path.
    pub(crate) fn path_name(&mut self, place: usize, schema: Value) {
        let names = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let name = names.clone().nth(place).unwrap_or_default();
        self.parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }

    /// Adds the fields of a query.
    pub(crate) fn query(&mut self, schema: Value) {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let mut field = field.clone();
            let description = field.as_object_mut().and_then(|field| field.remove("description"));
            without_null(&mut field);
            let mut parameter = json!({
                "name": name, "in": "query", "required": required.contains(&name.as_str()), "schema": field,
            });
            if let Some(description) = description {
                parameter["description"] = description;
            }
            self.parameters.push(parameter);
        }
    }

    /// Adds a header that a request may have.
    pub(crate) fn header(&mut self, name: &str, description: &str) {
        self.parameters.push(json!({
            "name": name, "in": "header", "required": false, "description": description,
            "schema": { "type": "string" },
        }));
    }

    /// Adds a JSON body.
    pub(crate) fn body(&mut self, schema: Value) {
        self.body =
            Some(json!({ "required": true, "content": { "application/json": { "schema": schema } } }));
    }

    /// Adds an answer: JSON if it has a schema.
    pub(crate) fn reply(&mut self, status: StatusCode, description: &str, schema: Option<Value>) {
        let mut reply = json!({ "description": description });
        if let Some(schema) = schema {
            reply["content"] = json!({ "application/json": { "schema": schema } });
        }
        self.replies.insert(status.as_str().to_owned(), reply);
    }

    /// Adds a content of another type to an answer.
    pub(crate) fn also(&mut self, status: StatusCode, mime: &str, schema: Value) {
        let reply = self
            .replies
            .entry(status.as_str().to_owned())
            .or_insert_with(|| json!({ "description": "Done." }));
        reply["content"][mime] = json!({ "schema": schema });
    }

    /// Adds the answer to a request that fails.
    pub(crate) fn fault(&mut self, schemas: &mut Schemas) {
        let (mime, schema) = match is_openai(self.path) {
            true => ("application/json", schemas.shown::<OpenAiError>()),
            false => ("application/problem+json", schemas.shown::<Problem>()),
        };
        let fault =
            json!({ "description": "The request failed.", "content": { mime: { "schema": schema } } });
        self.replies.insert("default".to_owned(), fault);
    }

    /// Adds a field of our own.
    pub(crate) fn extra(&mut self, name: &str, value: Value) {
        self.extra.insert(name.to_owned(), value);
    }
}

/// Removes `null` from a query field: it is present or absent, never `null`.
fn without_null(field: &mut Value) {
    if let Some(types) = field.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            field["type"] = only;
        }
    }
    if let Some(kinds) = field.get_mut("anyOf").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind["type"] != "null");
        if let [only] = &kinds[..] {
            *field = only.clone();
        }
    }
    if let Some(values) = field.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
}

/// Assembles the document of these routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let (mut paths, mut tags) = (Map::new(), Vec::new());
    let mut schemas = Schemas::new();
    for route in routes {
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        entry[route.method.as_str().to_lowercase()] = operation(route, &mut schemas);
        if !tags.contains(&route.tag) {
            tags.push(route.tag);
        }
    }
    let tags: Vec<Value> = tags.iter().map(|tag| json!({ "name": tag })).collect();
    let websocket = ws::frames::schemas(&mut schemas);
    let mut definitions = schemas.shown.take_definitions(true);
    definitions.extend(websocket);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Clawsmith",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Agents and tools over HTTP. Every call passes the same steps: decided by policy, rate limited, \
                            validated, approved, recorded, run in a sandbox, scrubbed.",
        },
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": { "key": {
                "type": "http", "scheme": "bearer",
                "description": "An API key; create one with `clawsmith api-keys create`. A request acts as the key's user or, with \
                                the scope `users:act`, as the user of the same tenant whom the header `x-clawsmith-user` names.",
            } },
        },
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut operation = Operation {
        path: route.path,
        parameters: Vec::new(),
        body: None,
        replies: BTreeMap::new(),
        extra: Map::new(),
    };
    (route.describe)(&mut operation, schemas);
    let Operation { parameters, body, mut replies, extra, .. } = operation;
    let description = match route.access {
        Access::Open => "Needs no key.".to_owned(),
        Access::Key => "Needs a key; further permissions depend on the request.".to_owned(),
        Access::Connect => {
            "Needs a key: in the header `Authorization` or, where a client cannot set it, in the first frame \
                            (`connect`), within 5 seconds."
                .to_owned()
        }
        Access::Needs(permission) => {
            let (scope, role) = permission.needs();
            format!("Needs the scope `{scope}` and the role `{role}`.")
        }
    };
    let mut entry = json!({
        "operationId": route.id, "tags": [route.tag], "summary": route.summary, "description": description,
    });
    match route.access {
        Access::Open => entry["security"] = json!([]),
        Access::Key | Access::Connect | Access::Needs(_) => {
            entry["security"] = match route.access {
                Access::Connect => json!([{ "key": [] }, {}]),
                _ => json!([{ "key": [] }]),
            };
            let fault = match replies.get("default") {
                Some(fault) => fault["content"].clone(),
                None => json!({ "application/problem+json": { "schema": schemas.shown::<Problem>() } }),
            };
            replies.insert("401".to_owned(), json!({ "description": "No valid API key.", "content": fault }));
        }
    }
    if !parameters.is_empty() {
        entry["parameters"] = parameters.into();
    }
    if let Some(body) = body {
        entry["requestBody"] = body;
    }
    entry["responses"] = json!(replies);
    for (name, value) in extra {
        entry[name] = value;
    }
    entry
}

/// The document itself, which is not described further.
pub(crate) struct Described;

impl Output for Described {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.reply(StatusCode::OK, "The document.", Some(json!({ "type": "object" })));
    }
}

pub(crate) async fn show() -> Replied<Described> {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response().into()
}

/// The content policy of the page that shows the document: nothing is loaded from elsewhere, and only its own
/// files run.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// A file of the page.
pub(crate) struct PageFile;

impl Output for PageFile {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.also(StatusCode::OK, "text/html", json!({ "type": "string" }));
        operation.also(StatusCode::OK, "text/javascript", json!({ "type": "string" }));
        operation.also(StatusCode::OK, "text/css", json!({ "type": "string" }));
    }
}

type Page = Replied<PageFile>;

fn file(mime: &'static str, text: &'static str) -> Page {
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, mime),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response().into()
}

pub(crate) async fn page() -> Page {
    file("text/html; charset=utf-8", include_str!("openapi/page.html"))
}

pub(crate) async fn script() -> Page {
    file("text/javascript; charset=utf-8", include_str!("openapi/page.js"))
}

pub(crate) async fn style() -> Page {
    file("text/css; charset=utf-8", include_str!("openapi/page.css"))
}

#[cfg(test)]
mod tests;
