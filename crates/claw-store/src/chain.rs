//! The hash chain of the ledger, apart from where it is kept.
