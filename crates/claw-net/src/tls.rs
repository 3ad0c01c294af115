//! The settings of TLS, made once: the certificates of this machine take a megabyte, and every client needs them.

use std::sync::{Arc, OnceLock};

use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;

use crate::error::NetError;

/// Returns the settings; connections are verified as this machine verifies them.
pub(crate) fn config() -> Result<ClientConfig, NetError> {
    static MADE: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(made) = MADE.get() {
        return Ok(made.clone());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_platform_verifier())
        .map_err(|error| NetError::NoClient { reason: error.to_string() })?;
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(MADE.get_or_init(|| config).clone())
}
