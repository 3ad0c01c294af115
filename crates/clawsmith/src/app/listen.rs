//! The addresses a gateway may listen on: loopback, others with TLS, or others for named proxies.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

pub use claw_core::own_listen_addresses::OwnListener;

use super::{Error, Setup};

/// An address that may be listened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// The address and port.
    pub address: SocketAddr,
    /// The certificate to speak TLS with; `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The only addresses from which connections are accepted; `None` means all.
    pub peers: Option<Vec<IpAddr>>,
}

/// Files of a certificate, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by its chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Setup {
    /// Returns how to listen on this address, or on the configured one. Keys never cross an open network:
    /// without TLS the address must be a loopback one, or connections are accepted from named proxies alone.
    pub fn listening(&self, address: Option<SocketAddr>) -> Result<Listening, Error> {
        let config = &self.config().gateway;
        let address = address.unwrap_or(config.listen);
        let beside = self.loaded.found.as_ref().and_then(|found| found.path.parent());
        let beside = self.around.directory.join(beside.unwrap_or(Path::new("")));
        let tls = config
            .tls
            .as_ref()
            .map(|tls| TlsFiles { certificate: beside.join(&tls.certificate), key: beside.join(&tls.key) });
        if tls.is_some() || address.ip().is_loopback() {
            return Ok(Listening { address, tls, peers: None });
        }
        if config.proxies.is_empty() {
            let what =
                format!("`{address}` is not a loopback address, and without TLS others could read API keys");
            return Err(Error::invalid(what).hint(
                "set `gateway.tls`, or listen on 127.0.0.1 behind a proxy with TLS on this machine; list a \
                 proxy on another machine in `gateway.proxies`",
            ));
        }
        let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
        let peers = config.proxies.iter().copied().chain(loopback).collect();
        Ok(Listening { address, tls: None, peers: Some(peers) })
    }
}
