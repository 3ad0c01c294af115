use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use claw_core::AgentId;
use claw_core::store::StoreError;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;

const REDIRECT: &str = "http://127.0.0.1:1/done";
const CLIENT_SECRET: &str = "of-the-client-5a1c";
/// The addresses at which an MCP server names its authorization server, and at which that one describes itself.
const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const METADATA: &str = "/.well-known/oauth-authorization-server";

/// Secrets in memory, whose changes are counted.
struct MemorySecrets {
    sealed: Mutex<HashMap<String, String>>,
    changes: watch::Sender<u64>,
}

#[async_trait]
impl McpSecrets for MemorySecrets {
    async fn secret(
        &self,
        _: &TenantId,
        _: Option<&AgentId>,
        name: &SecretName,
    ) -> Result<Option<SecretString>, StoreError> {
        Ok(self.sealed.lock().unwrap().get(name.as_str()).cloned().map(SecretString::from))
    }

    async fn seal(
        &self,
        _: &TenantId,
        name: &SecretName,
        value: Option<&SecretString>,
    ) -> Result<(), StoreError> {
        let (mut sealed, name) = (self.sealed.lock().unwrap(), name.as_str().to_owned());
        match value {
            Some(value) => drop(sealed.insert(name, value.expose_secret().to_owned())),
            None => drop(sealed.remove(&name)),
        }
        drop(sealed);
        self.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }
}

/// A host on loopback: an MCP server at `/mcp` that wants a login, and an authorization server if it says so. It keeps the
/// requests that it gets, and gives tokens to all who ask.
struct Host {
    name: &'static str,
    base: String,
    pages: Mutex<HashMap<String, Value>>,
    got: Mutex<Vec<String>>,
}

impl Host {
    async fn start(name: &'static str) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let host = Arc::new(Self { name, base, pages: Mutex::default(), got: Mutex::default() });
        let router: Router = Router::new().fallback(answer).with_state(Arc::clone(&host));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        host
    }

    fn publish(&self, path: &str, document: Value) {
        self.pages.lock().unwrap().insert(path.to_owned(), document);
    }

    /// Names an authorization server for its MCP server.
    fn names(&self, server: &str) {
        let about = json!({ "resource": format!("{}/mcp", self.base), "authorization_servers": [server] });
        self.publish(RESOURCE, about);
    }

    /// Describes an authorization server of this issuer, whose endpoints are here.
    fn describes(&self, path: &str, issuer: &str) {
        let base = &self.base;
        let about = json!({
            "issuer": issuer, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        });
        self.publish(path, about);
    }

    /// Returns the number of requests that contain a text.
    fn got(&self, text: &str) -> usize {
        self.got.lock().unwrap().iter().filter(|request| request.contains(text)).count()
    }

    /// Checks that no part of a login was sent here.
    #[track_caller]
    fn check_got_nothing(&self) {
        for part in ["/token", "Basic", "code=", "code_verifier", "refresh-", "access-", CLIENT_SECRET] {
            assert_eq!(self.got(part), 0, "{part}: {:?}", self.got.lock().unwrap());
        }
    }
}

async fn answer(State(host): State<Arc<Host>>, uri: Uri, headers: HeaderMap, body: String) -> Response {
    host.got.lock().unwrap().push(format!("{uri} {headers:?} {body}"));
    let page = host.pages.lock().unwrap().get(uri.path()).cloned();
    match (uri.path(), page) {
        ("/mcp", _) => {
            let challenge = format!("Bearer resource_metadata=\"{}{RESOURCE}\"", host.base);
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response()
        }
        ("/token", _) => {
            let name = host.name;
            axum::Json(json!({
                "access_token": format!("access-{name}"), "refresh_token": format!("refresh-{name}"),
                "token_type": "Bearer", "expires_in": 3600,
            }))
            .into_response()
        }
        (_, Some(page)) => axum::Json(page).into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The ways in which an MCP server takes the place of its authorization server.
#[derive(Debug, Clone, Copy)]
enum Lead {
    /// It publishes nothing: the endpoints of old servers without metadata are its own.
    Silent,
    /// It names itself.
    Itself,
    /// It names the issuer of before, with a token endpoint of its own.
    Forged,
}

const LEADS: [Lead; 3] = [Lead::Silent, Lead::Itself, Lead::Forged];

/// An MCP server, and a bank whose authorization server it names.
struct Setting {
    mcp: Arc<Host>,
    bank: Arc<Host>,
    secrets: Arc<MemorySecrets>,
    place: LoginPlace,
    endpoint: McpEndpoint,
}

impl Setting {
    async fn new() -> Self {
        let (mcp, bank) = (Host::start("mcp").await, Host::start("bank").await);
        let secrets = Arc::new(MemorySecrets { sealed: Mutex::default(), changes: watch::Sender::new(0) });
        let place = LoginPlace {
            secrets: Arc::clone(&secrets) as _,
            tenant: TenantId::main(),
            server: ServerName::new("s").unwrap(),
            user: None,
            refreshing: Arc::default(),
            changes: secrets.changes.subscribe(),
        };
        let oauth = McpOAuth { client_id: Some("client".to_owned()), ..McpOAuth::default() };
        let url = format!("{}/mcp", mcp.base);
        let endpoint = McpEndpoint { url, headers: Vec::new(), private: true, oauth: Some(oauth) };
        bank.describes(METADATA, &bank.base);
        let setting = Self { mcp, bank, secrets, place, endpoint };
        setting.lead_to_the_bank();
        setting
    }

    fn lead_to_the_bank(&self) {
        self.mcp.pages.lock().unwrap().clear();
        self.mcp.names(&self.bank.base);
    }

    fn lead_to_the_mcp_server(&self, how: Lead) {
        let mcp = &self.mcp;
        mcp.pages.lock().unwrap().clear();
        match how {
            Lead::Silent => {}
            Lead::Itself => {
                mcp.describes(METADATA, &mcp.base);
                mcp.names(&mcp.base);
            }
            Lead::Forged => {
                mcp.describes("/.well-known/forged", &self.bank.base);
                mcp.names(&format!("{}/.well-known/forged", mcp.base));
            }
        }
    }

    /// Begins a login; returns the address that the browser is sent to at its end.
    async fn begin(&self) -> String {
        let wish = LoginWish {
            redirect: REDIRECT.to_owned(),
            client_secret: Some(CLIENT_SECRET.to_owned().into()),
            ..LoginWish::default()
        };
        let url = self.place.begin(&self.endpoint, wish).await.unwrap();
        let state = url.split(['?', '&']).find_map(|pair| pair.strip_prefix("state=")).unwrap();
        format!("{REDIRECT}?code=of-ann&state={state}")
    }

    async fn log_in(&self) {
        let callback = self.begin().await;
        self.place.finish(&self.endpoint, &callback).await.unwrap();
    }

    async fn open(&self) -> Result<Arc<Login>, String> {
        self.place.open(&self.endpoint).await
    }

    /// Removes the authorization server from the stored login.
    fn store_an_older_login(&self) {
        let name = self.place.name(SecretKind::Login).unwrap();
        let mut sealed = self.secrets.sealed.lock().unwrap();
        let mut record: Value = serde_json::from_str(&sealed[name.as_str()]).unwrap();
        record["base"].as_object_mut().unwrap().remove("authorization_server").unwrap();
        sealed.insert(name.as_str().to_owned(), record.to_string());
    }
}

#[tokio::test]
async fn refuses_to_renew_a_login_at_a_server_that_takes_the_place_of_its_issuer() {
    for how in LEADS {
        let setting = Setting::new().await;
        setting.log_in().await;
        setting.lead_to_the_mcp_server(how);
        let why = setting.open().await.err().unwrap();
        assert!(why.contains("log in again with `clawsmith mcp login s`"), "{how:?}: {why}");
        setting.mcp.check_got_nothing();
        // The login is kept, and renewed where it was begun.
        setting.lead_to_the_bank();
        let login = setting.open().await.unwrap_or_else(|why| panic!("{how:?}: {why}"));
        assert_eq!(login.renewed("access-bank").await.unwrap(), "access-bank");
        assert_eq!(setting.bank.got("refresh_token=refresh-bank"), 1);
        setting.mcp.check_got_nothing();
    }
}

#[tokio::test]
async fn refuses_to_finish_a_login_at_another_server_than_the_one_it_was_begun_at() {
    for how in LEADS {
        let setting = Setting::new().await;
        let callback = setting.begin().await;
        setting.lead_to_the_mcp_server(how);
        let why = setting.place.finish(&setting.endpoint, &callback).await.unwrap_err().to_string();
        assert!(why.contains("log in again with `clawsmith mcp login s`"), "{how:?}: {why}");
        setting.mcp.check_got_nothing();
        assert!(setting.place.view().await.unwrap().is_none());
        let again = setting.place.finish(&setting.endpoint, &callback).await.unwrap_err().to_string();
        assert!(again.contains("no login was started"), "{how:?}: {again}");
    }
}

#[tokio::test]
async fn an_open_connection_sends_no_later_login_to_the_issuer_of_an_earlier_one() {
    let setting = Setting::new().await;
    setting.lead_to_the_mcp_server(Lead::Itself);
    setting.log_in().await;
    let earlier = setting.open().await.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(earlier.token().await.unwrap(), "access-mcp");
    setting.lead_to_the_bank();
    setting.log_in().await;
    setting.mcp.got.lock().unwrap().clear();
    for refused in ["access-mcp", "access-bank"] {
        let why = earlier.renewed(refused).await.unwrap_err();
        assert!(why.contains("log in again with `clawsmith mcp login s`"), "{why}");
    }
    setting.mcp.check_got_nothing();
    let later = setting.open().await.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(later.token().await.unwrap(), "access-bank");
}

#[tokio::test]
async fn releases_nothing_of_a_stored_login_without_its_authorization_server() {
    let setting = Setting::new().await;
    setting.log_in().await;
    setting.store_an_older_login();
    for lead in [None, Some(Lead::Silent)] {
        if let Some(how) = lead {
            setting.lead_to_the_mcp_server(how);
        }
        let why = setting.open().await.err().unwrap();
        assert!(why.contains("log in with `clawsmith mcp login s`"), "{why}");
        assert!(setting.place.view().await.unwrap().is_none());
        setting.mcp.check_got_nothing();
    }
}
