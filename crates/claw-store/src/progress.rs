//! The progress of a long operation, for display.

/// A step of a copy, a backup or a restoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Rows of a table are copied.
    Copied {
        /// The table's name.
        table: &'a str,
        /// The number of rows so far.
        rows: u64,
        /// Of how many.
        of: u64,
    },
    /// Rows of a table were compared.
    Compared {
        /// The table's name.
        table: &'a str,
        /// The number of rows so far.
        rows: u64,
        /// Of how many.
        of: u64,
    },
    /// A file is written.
    Written {
        /// The number of bytes so far.
        bytes: u64,
        /// Of about how many.
        of: u64,
    },
    /// The file is checked for damage.
    Checking,
    /// The ledger's chains are verified.
    Chains,
}

/// Is called for each step.
pub type Tell<'a> = &'a mut (dyn FnMut(Progress<'_>) + Send);
