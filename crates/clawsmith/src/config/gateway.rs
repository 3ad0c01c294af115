//! `[gateway]`: the address of `clawsmith serve`, its certificate and its proxies.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The address of `clawsmith serve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// The address and port that it listens on: a loopback address, unless `tls` is set or `proxies` are named.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// The host names of the gateway, besides loopback ones: a request with another `Host` or `Origin` is
    /// refused.
    pub hosts: Vec<String>,
    /// Further names that a request may use for an agent in `model`, each with the agent's id.
    pub aliases: BTreeMap<String, String>,
    /// The certificate for TLS. Left out: plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// The addresses of proxies on other machines that terminate TLS. Without `tls`, connections to a
    /// non-loopback address are accepted from these alone.
    #[schemars(with = "Vec<String>")]
    pub proxies: Vec<IpAddr>,
    /// The most requests that one API key may have open at a time in one gateway, streams included; more are answered with 429.
    #[schemars(range(min = 1, max = 100_000))]
    pub requests_per_key: u32,
    /// The most WebSocket connections that one API key may have open at a time in one gateway; more are answered with 429.
    #[schemars(range(min = 1, max = 100_000))]
    pub websockets_per_key: u32,
    /// Seconds that requests and runs have to finish when the gateway is told to stop. A run that takes longer is parked;
    /// the next start, or another gateway on the same store, resumes it at once.
    #[schemars(range(max = 3600))]
    pub drain_secs: u32,
}

/// The certificate of the gateway. Relative paths start from the directory of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate in PEM, followed by its chain.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7373)),
            hosts: Vec::new(),
            aliases: BTreeMap::new(),
            tls: None,
            proxies: Vec::new(),
            requests_per_key: 1000,
            websockets_per_key: 100,
            drain_secs: 10,
        }
    }
}
