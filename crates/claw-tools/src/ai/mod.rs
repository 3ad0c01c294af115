//! `ai`: models and similar services that take no part in the conversation.

mod openai_compat_call;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<openai_compat_call::OpenaiCompatCall>()];
