//! Resolution of names, checked before connecting.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::own_address::is_this_machine;
use crate::public_address::why_not_public;

/// Returns the addresses of a name.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Returns the system's resolver.
pub fn system_lookup() -> Lookup {
    Arc::new(|name| {
        async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    })
}

/// Resolves the addresses that the client connects to. There is no second lookup between check and use.
pub(crate) struct Resolver {
    pub(crate) lookup: Lookup,
    /// True to accept public addresses alone.
    pub(crate) guarded: bool,
    /// This process listens on the port of the URL, so no address of this machine passes.
    pub(crate) at_own_port: bool,
}

/// The reason why a name could not be resolved.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Unresolved {
    /// One of its addresses is not public. Its other addresses do not matter: an honest name does not mix
    /// them.
    #[error("`{host}` is at {address}, which is {why}")]
    NotPublic { host: String, address: IpAddr, why: &'static str },
    /// One of its addresses, with the URL's port, is where this process listens.
    #[error("`{host}` leads to this gateway itself")]
    OwnAddress { host: String },
    #[error("`{host}` has no address: {reason}")]
    NoAddress { host: String, reason: String },
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (lookup, guarded, at_own_port) = (self.lookup.clone(), self.guarded, self.at_own_port);
        Box::pin(async move {
            let found = match lookup(host.clone()).await {
                Ok(found) if found.is_empty() => {
                    return Err(Unresolved::NoAddress {
                        host,
                        reason: "the name server returned none".into(),
                    }
                    .into());
                }
                Ok(found) => found,
                Err(error) => return Err(Unresolved::NoAddress { host, reason: error.to_string() }.into()),
            };
            if at_own_port && found.iter().any(|address| is_this_machine(*address)) {
                return Err(Unresolved::OwnAddress { host }.into());
            }
            if guarded {
                let near = found.iter().find_map(|address| Some((*address, why_not_public(*address)?)));
                if let Some((address, why)) = near {
                    return Err(Unresolved::NotPublic { host, address, why }.into());
                }
            }
            // The client takes the port from the URL.
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
