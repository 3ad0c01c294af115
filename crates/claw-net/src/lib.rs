//! The guarded HTTP client.
//!
//! It reaches public addresses, and the [`Origin`]s that configuration names; nothing else, whatever a URL, a name's
//! addresses or a redirect say:
//!
//! - The host of every URL is checked where it is an address, and every address that a name has where it is not. A
//!   name is resolved once: what was checked is what is connected to.
//! - Redirects are followed by hand, each checked like a first request. Another origin gets none of the headers but
//!   harmless ones, and no body; a named origin is never reached by way of another one.
//! - A body that was compressed is decompressed within the same limit of size.
//! - The address on which this very process listens is never reached, even where an origin names it.
//! - No proxies, no cookies, no referrers. Every request has limits of time and size.

mod address;
mod client;
mod decode;
mod error;
mod origin;
mod own;
mod request;
mod resolve;
mod response;

pub use bytes::Bytes;
pub use reqwest::Method;
pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use url::Url;

pub use address::{is_public, why_not_public};
pub use client::{Client, Options};
pub use error::NetError;
pub use origin::{NotAnOrigin, Origin};
pub use own::{OwnListener, own_ports};
pub use request::{Gate, Request, Times};
pub use resolve::{Lookup, system_lookup};
pub use response::Response;
