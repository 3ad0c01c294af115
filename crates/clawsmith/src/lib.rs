//! clawsmith
