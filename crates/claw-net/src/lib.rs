//! The guarded HTTP client.
//!
//! It reaches public addresses, and the [`Origin`]s that the configuration names; nothing else, whatever a
//! URL, a name's addresses or a redirect say:
//!
//! - The host of every URL is checked: if it is an address, that one, else every address of the name. A name
//!   is resolved once: the checked addresses are those connected to.
//! - Redirects are followed by hand, each checked like a first request. Another origin gets only harmless
//!   headers, and no body; a named origin is never reached by a redirect from another one.
//! - A compressed body is decompressed within the same size limit.
//! - The address on which this very process listens is never reached, even where an origin names it.
//! - No proxies, no cookies, no referrers. Every request has limits of time and size.

mod client;
mod decode;
mod error;
mod origin;
mod own_address;
mod public_address;
mod redirect;
mod request;
mod resolve;
mod response;
mod tls;

pub use bytes::Bytes;
pub use reqwest::Method;
pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use url::Url;

pub use client::{Client, Options};
pub use error::NetError;
pub use origin::{NotAnOrigin, Origin};
pub use public_address::{is_public, why_not_public};
pub use request::{Gate, Request, Times};
pub use resolve::{Lookup, system_lookup};
pub use response::Response;
