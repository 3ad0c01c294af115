//! `[limits.rate]`: the rate limits of a session and of a user. [`rate_window`](crate::rate_window) counts.

use claw_core::tool::Cost;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sessions whose limits a user's calls may use up together, however many sessions the user names.
pub const USER_SESSIONS: u16 = 8;

/// Calls that one session may make in any 60 seconds; 0 means no limit. All sessions of a user together may make
/// eight times as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RateConfig {
    /// Calls of any kind. Default 600.
    pub total: u16,
    /// Calls that answer from memory. Default 600.
    pub light: u16,
    /// Calls that touch files or a process. Default 240.
    pub normal: u16,
    /// Calls that take long, cost money or start agents. Default 30.
    pub heavy: u16,
}

impl Default for RateConfig {
    fn default() -> Self {
        Self { total: 600, light: 600, normal: 240, heavy: 30 }
    }
}

impl RateConfig {
    /// No limit at all.
    pub const UNLIMITED: Self = Self { total: 0, light: 0, normal: 0, heavy: 0 };

    /// The limits of all sessions of one user together: those of [`USER_SESSIONS`] sessions.
    #[must_use]
    pub const fn of_user(&self) -> Self {
        Self {
            total: self.total.saturating_mul(USER_SESSIONS),
            light: self.light.saturating_mul(USER_SESSIONS),
            normal: self.normal.saturating_mul(USER_SESSIONS),
            heavy: self.heavy.saturating_mul(USER_SESSIONS),
        }
    }

    /// The limit of one class.
    pub const fn of(&self, cost: Cost) -> u16 {
        match cost {
            Cost::Light => self.light,
            Cost::Normal => self.normal,
            Cost::Heavy => self.heavy,
        }
    }
}
