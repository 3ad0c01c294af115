//! Where a long piece of work is, for whoever shows it.

/// One step of a copy, a backup or a restoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Rows of a table are copied.
    Copied {
        /// Which table.
        table: &'a str,
        /// How many so far.
        rows: u64,
        /// Of how many.
        of: u64,
    },
    /// Rows of a table were compared.
    Compared {
        /// Which table.
        table: &'a str,
        /// How many so far.
        rows: u64,
        /// Of how many.
        of: u64,
    },
    /// A file is written.
    Written {
        /// How many bytes so far.
        bytes: u64,
        /// Of about how many.
        of: u64,
    },
    /// The file is checked for damage.
    Checking,
    /// The ledger's chains are verified.
    Chains,
}

/// Hears of each step.
pub type Tell<'a> = &'a mut (dyn FnMut(Progress<'_>) + Send);
