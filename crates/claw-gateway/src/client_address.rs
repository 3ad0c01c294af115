//! The address that a request comes from. What a header says of it is believed from named proxies alone.

use std::net::IpAddr;

use axum::Router;
use axum::http::{HeaderMap, Request};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

/// The other end of a request's connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The routes, for the requests of one connection.
pub(crate) struct OfPeer {
    pub(crate) routes: TowerToHyperService<Router>,
    pub(crate) peer: Peer,
}

impl Service<Request<Incoming>> for OfPeer {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        self.routes.call(request)
    }
}

/// Returns the address of the client: the peer, or where that is a named proxy, the last address in `X-Forwarded-For` that
/// is not one. A list that cannot be read says nothing: the address is the proxy's.
pub(crate) fn address(peer: Peer, proxies: &[IpAddr], headers: &HeaderMap) -> IpAddr {
    if !proxies.contains(&peer.0) {
        return peer.0;
    }
    let lists = headers.get_all("x-forwarded-for").iter().rev();
    for list in lists {
        let Ok(list) = list.to_str() else { return peer.0 };
        for word in list.rsplit(',') {
            let Ok(address) = word.trim().parse::<IpAddr>() else { return peer.0 };
            let address = address.to_canonical();
            if !proxies.contains(&address) {
                return address;
            }
        }
    }
    peer.0
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(peer: &str, forwarded: &[&'static str], expected: &str) {
        let proxies = ["10.0.0.2".parse().unwrap(), "10.0.0.3".parse().unwrap()];
        let mut headers = HeaderMap::new();
        for list in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_static(list));
        }
        let found = address(Peer(peer.parse().unwrap()), &proxies, &headers);
        assert_eq!(found.to_string(), expected, "{peer} {forwarded:?}");
    }

    #[test]
    fn a_forwarded_address_is_believed_from_named_proxies_alone() {
        check("10.0.0.2", &["203.0.113.9"], "203.0.113.9");
        check("10.0.0.2", &["198.51.100.1, 203.0.113.9"], "203.0.113.9");
        check("10.0.0.2", &["203.0.113.9, 10.0.0.3"], "203.0.113.9");
        check("10.0.0.2", &["1.1.1.1", "203.0.113.9"], "203.0.113.9");
        check("10.0.0.2", &["::ffff:203.0.113.9"], "203.0.113.9");
        check("10.0.0.2", &["203.0.113.9, nonsense"], "10.0.0.2");
        check("10.0.0.2", &[], "10.0.0.2");
        check("10.0.0.2", &["10.0.0.3"], "10.0.0.2");
        check("192.0.2.1", &["203.0.113.9"], "192.0.2.1");
        check("127.0.0.1", &["203.0.113.9"], "127.0.0.1");
    }
}
