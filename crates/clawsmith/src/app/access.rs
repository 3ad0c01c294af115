//! Access over a network: the owner of a key, its permissions, and the caller of its calls.
//!
//! A front end shows a key to the [`Door`] and gets a [`Visitor`]. One table, [`Permission::needs`], says
//! what a visitor may do; [`App::caller_of`](super::App::caller_of), never the request, decides as whom a visitor calls.

mod authenticate;
mod key_rate;
mod keys;
mod open_requests;
mod permission;
mod users;
mod visitor;

pub use authenticate::Door;
pub use keys::{KeyRequest, is_good};
pub use open_requests::{Full, Place, PlaceKind};
pub use permission::Permission;
pub use visitor::{CallPlace, CallerWish, Visitor};

/// The channel of calls that come over a network.
pub const CHANNEL: &str = "http";
