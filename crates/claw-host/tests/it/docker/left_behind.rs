//! Soon.
pub(crate) fn own_if_asked() {}
