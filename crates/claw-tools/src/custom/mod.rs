//! Custom tools: a stored definition as a tool that the executor runs.
//!
//! A [`Template`] is checked when the tool is defined and filled in one pass when it is called.
//! [`CustomTool`] plans what the filled template does and runs exactly that. This module reads no store and
//! opens no secret: the application passes it the values.

mod check;
mod code_positions;
mod fill;
mod http_template;
mod lexer;
mod names;
mod parameters;
mod template;
mod tool;

pub use self::check::{DefinitionError, check};
pub use self::fill::FillError;
pub use self::names::taken;
pub use self::parameters::ALLOW_DASH;
pub use self::template::{Template, TemplateError};
pub use self::tool::{CustomTool, CustomToolSecrets, missing_grants};

#[cfg(test)]
mod tests;
