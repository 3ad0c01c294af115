//! Builds an answer from the pieces of a stream.

use claw_core::CallId;
use claw_core::message::{Args, Part, Seal, Wanted};
use claw_core::port::{Ear, Piece, Stop};
use claw_core::store::Tokens;
use serde_json::{Map, Value};
use smol_str::{SmolStr, format_smolstr};

/// Collects pieces and passes them on to a listener.
pub(crate) struct Gather<'a> {
    ear: &'a dyn Ear,
    parts: Vec<Open>,
    pub(crate) tokens: Tokens,
    pub(crate) stop: Option<Stop>,
}

enum Open {
    Text(String),
    Thinking { text: String, seal: Option<Seal> },
    Call(OpenCall),
}

struct OpenCall {
    /// The provider's key for the call while it streams.
    key: u64,
    id: String,
    tool: String,
    args: String,
    seal: Option<Seal>,
    heard: bool,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(ear: &'a dyn Ear) -> Self {
        Self { ear, parts: Vec::new(), tokens: Tokens::default(), stop: None }
    }

    pub(crate) fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.ear.hear(Piece::Text(piece));
        match self.parts.last_mut() {
            Some(Open::Text(text)) => text.push_str(piece),
            _ => self.parts.push(Open::Text(piece.to_owned())),
        }
    }

    pub(crate) fn thinking(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.ear.hear(Piece::Thinking(piece));
        match self.parts.last_mut() {
            Some(Open::Thinking { text, seal: None }) => text.push_str(piece),
            _ => self.parts.push(Open::Thinking { text: piece.to_owned(), seal: None }),
        }
    }

    /// Adds a seal to the last thought, to be sent back to the provider; starts an empty thought if the last
    /// part is none.
    pub(crate) fn seal_thinking(&mut self, new: Seal) {
        match self.parts.last_mut() {
            Some(Open::Thinking { seal: Some(seal), .. }) if seal.provider == new.provider => {
                seal.value.push_str(&new.value);
            }
            Some(Open::Thinking { seal: seal @ None, .. }) => *seal = Some(new),
            _ => self.parts.push(Open::Thinking { text: String::new(), seal: Some(new) }),
        }
    }

    /// Adds a thought that is only a seal.
    pub(crate) fn sealed(&mut self, seal: Seal) {
        self.parts.push(Open::Thinking { text: String::new(), seal: Some(seal) });
    }

    /// Begins a call.
    pub(crate) fn call(&mut self, key: u64, id: &str, tool: &str, seal: Option<Seal>) {
        let (id, tool) = (id.to_owned(), tool.to_owned());
        let heard = !tool.is_empty();
        if heard {
            self.ear.hear(Piece::Call { tool: &tool });
        }
        self.parts.push(Open::Call(OpenCall { key, id, tool, args: String::new(), seal, heard }));
    }

    /// The id of the last call with this key.
    pub(crate) fn call_of(&self, key: u64) -> Option<&str> {
        self.parts.iter().rev().find_map(|part| match part {
            Open::Call(call) if call.key == key => Some(call.id.as_str()),
            _ => None,
        })
    }

    /// Sets the name of a call that began without one.
    pub(crate) fn name(&mut self, key: u64, tool: &str) {
        let ear = self.ear;
        if let Some((call, _)) = self.find(key)
            && !call.heard
            && !tool.is_empty()
        {
            call.tool = tool.to_owned();
            call.heard = true;
            ear.hear(Piece::Call { tool });
        }
    }

    /// Adds to a call's arguments; returns `false` if there is no such call.
    pub(crate) fn args(&mut self, key: u64, piece: &str) -> bool {
        let ear = self.ear;
        let Some((call, last)) = self.find(key) else { return false };
        call.args.push_str(piece);
        // The listener knows only the last call.
        if last && call.heard && !piece.is_empty() {
            ear.hear(Piece::Args(piece));
        }
        true
    }

    fn find(&mut self, key: u64) -> Option<(&mut OpenCall, bool)> {
        let last = self.parts.len().checked_sub(1)?;
        self.parts.iter_mut().enumerate().rev().find_map(|(at, part)| match part {
            Open::Call(call) if call.key == key => Some((call, at == last)),
            _ => None,
        })
    }

    /// The parts, the stop reason, and the tokens.
    pub(crate) fn finish(self) -> (Vec<Part>, Stop, Tokens) {
        let said = self.stop.unwrap_or(Stop::Done);
        let calls = self.parts.iter().any(|part| matches!(part, Open::Call(_)));
        let stop = match said {
            Stop::Length => Stop::Length,
            Stop::Refused => Stop::Refused,
            // Some providers stop with "done" although there are calls, and some the other way round.
            Stop::Done | Stop::Calls if calls => Stop::Calls,
            Stop::Done | Stop::Calls => Stop::Done,
        };
        let cut = stop == Stop::Length;
        let parts = self.parts.into_iter().map(|part| match part {
            Open::Text(text) => Part::Text { text },
            Open::Thinking { text, seal } => Part::Thinking { text, seal },
            Open::Call(call) => Part::Call(call.close(cut)),
        });
        (parts.collect(), stop, self.tokens)
    }
}

impl OpenCall {
    fn close(self, cut: bool) -> Wanted {
        let call = CallId::new();
        let model_id =
            if self.id.is_empty() { format_smolstr!("call_{call}") } else { SmolStr::from(self.id) };
        Wanted { call, model_id, tool: self.tool, args: read(self.args, cut), seal: self.seal }
    }
}

/// Parses the arguments of a call. Some models send nothing instead of `{}`, and some write their JSON as a
/// JSON string.
fn read(text: String, cut: bool) -> Args {
    if text.trim().is_empty() && !cut {
        return Args::Json(Value::Object(Map::new()));
    }
    match serde_json::from_str(&text) {
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(value @ Value::Object(_)) => Args::Json(value),
            _ => Args::Json(Value::String(inner)),
        },
        Ok(value) => Args::Json(value),
        Err(error) => Args::Broken { cut: cut || error.is_eof(), text },
    }
}
