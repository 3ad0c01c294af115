//! TLS: the certificate and key of two files.

use std::sync::Arc;

use clawsmith::app::Error;
use clawsmith::app::listen::TlsFiles;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Reads a certificate and its key.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, Error> {
    let TlsFiles { certificate, key } = files;
    let unusable = |what: &str, file: &std::path::Path| {
        Error::invalid(format!("`{}` is not a usable {what} in PEM format", file.display()))
            .hint("see `gateway.tls` in docs/gateway.md")
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<CertificateDer<'static>>, _>>)
        .map_err(|error| unusable("certificate", certificate).because(error))?;
    if chain.is_empty() {
        return Err(unusable("certificate", certificate));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable("key", key).because(error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| unusable("certificate with this key", certificate).because(error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
