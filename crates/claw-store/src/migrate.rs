//! Migrations, paired for both dialects, applied at start under a lock.
