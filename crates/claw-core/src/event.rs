//! Every event the system emits.
