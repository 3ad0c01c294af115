//! Requests and notifications that a server sends to us.
#![expect(deprecated, reason = "servers of older protocols log by notifications")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use claw_core::tool::Progress;
use rmcp::ClientHandler;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, LoggingMessageNotificationParam, NumberOrString,
    ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::NotificationContext;
use tokio::sync::Notify;

/// The client side of one connection. Sampling, roots and elicitation are not offered: a server gets nothing
/// from us but the content of calls.
#[derive(Clone, Default)]
pub(crate) struct Watcher(Arc<Shared>);

#[derive(Default)]
struct Shared {
    server: String,
    progress: Mutex<HashMap<NumberOrString, Progress>>,
    changed: Notify,
}

impl Watcher {
    pub(crate) fn new(server: &str) -> Self {
        Self(Arc::new(Shared { server: server.to_owned(), ..Shared::default() }))
    }

    /// Passes the progress of a request on until the guard is dropped.
    pub(crate) fn follow(&self, token: &ProgressToken, progress: Progress) -> Following {
        self.progress().insert(token.0.clone(), progress);
        Following { watcher: self.clone(), token: token.0.clone() }
    }

    /// Waits until the server announces changed tools.
    pub(crate) async fn tools_changed(&self) {
        self.0.changed.notified().await;
    }

    pub(crate) fn note_change(&self) {
        self.0.changed.notify_one();
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, HashMap<NumberOrString, Progress>> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the passing on of progress when it is dropped.
pub(crate) struct Following {
    watcher: Watcher,
    token: NumberOrString,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.watcher.progress().remove(&self.token);
    }
}

impl ClientHandler for Watcher {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let listener = self.progress().get(&params.progress_token.0).cloned();
        let Some(listener) = listener else { return };
        let share = match params.total {
            Some(total) => format!("{}/{total}", params.progress),
            None => params.progress.to_string(),
        };
        match params.message {
            Some(message) => listener.tell(&format!("{share} {message}\n")),
            None => listener.tell(&format!("{share}\n")),
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text: String = params.data.to_string().chars().take(1_000).collect();
        tracing::debug!(server = %self.0.server, level = ?params.level, "{text}");
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note_change();
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("clawsmith", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(ClientCapabilities::default(), us);
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }
}
