//! `automation`: tools about time.

mod datetime;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<datetime::DateTime>()];
