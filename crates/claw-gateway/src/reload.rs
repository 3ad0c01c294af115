//! Reloading the configuration: on SIGHUP, and when its file has changed. A broken file keeps the old one, and `/ready`,
//! `/v1/configuration`, the metrics and the log say so.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use clawsmith::app::reload::{ConfigurationStatus, ConfigurationWatch};
use tokio::sync::Notify;

use crate::Gateway;
use crate::api::{Json, Visit};
use crate::error::ApiError;

/// How often the files are looked at. A change holds after two looks.
const LOOK: Duration = Duration::from_millis(500);

/// Where the configuration is reloaded from, and when.
#[derive(Debug, Clone, Default)]
pub struct ReloadOptions {
    /// The file that `--config` names; `None` looks for it as at the start.
    pub file: Option<PathBuf>,
    /// Rings when it is to be reloaded whether or not it has changed.
    pub now: Arc<Notify>,
}

/// Reloads the configuration until the gateway ends.
pub(crate) async fn watch(gateway: Gateway, options: ReloadOptions) {
    let mut files = ConfigurationWatch::new(gateway.app().setup());
    loop {
        let is_asked = tokio::select! {
            () = gateway.ending().cancelled() => return,
            () = options.now.notified() => true,
            () = tokio::time::sleep(LOOK) => false,
        };
        if !files.has_changed() && !is_asked {
            continue;
        }
        let reloaded = gateway.sessions().reload_from(&gateway.app(), options.file.as_deref()).await;
        let noted = reloaded.map(|(app, needs_restart)| {
            gateway.set_app(app);
            needs_restart
        });
        gateway.0.configuration.lock().unwrap_or_else(PoisonError::into_inner).note(&noted);
    }
}

/// The configuration that the gateway runs with.
pub(crate) fn status(gateway: &Gateway) -> ConfigurationStatus {
    gateway.0.configuration.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub(crate) async fn show(visit: Visit) -> Result<Json<ConfigurationStatus>, ApiError> {
    visit.gateway.app().may_read_policy(visit.visitor())?;
    Ok(Json(status(&visit.gateway)))
}
