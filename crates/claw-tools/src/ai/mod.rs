//! `ai`: models and their like that are no part of the conversation.

mod openai_compat_call;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<openai_compat_call::OpenaiCompatCall>()];
