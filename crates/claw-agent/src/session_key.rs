//! Session keys: one per agent, channel, chat and peer.

use claw_core::{AgentId, InvalidId, SessionKey};

/// The peer an agent talks with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer<'a> {
    /// One person; with several chats, one of them.
    Direct {
        /// The person.
        user: &'a str,
        /// The chat; `None` if there is only one.
        chat: Option<&'a str>,
    },
    /// Everyone in a group chat: they share one session.
    Group {
        /// The chat.
        chat: &'a str,
    },
}

/// Returns the key of an agent's session with this peer on this channel.
pub fn key(agent: &AgentId, channel: &str, peer: Peer<'_>) -> Result<SessionKey, InvalidId> {
    let channel = part(channel);
    let text = match peer {
        Peer::Direct { user, chat: None } => format!("agent:{agent}:{channel}:direct:{}", part(user)),
        Peer::Direct { user, chat: Some(chat) } => {
            format!("agent:{agent}:{channel}:direct:{}:{}", part(user), part(chat))
        }
        Peer::Group { chat } => format!("agent:{agent}:{channel}:group:{}", part(chat)),
    };
    SessionKey::new(text)
}

/// Escapes a part of a key: separators and characters that a key cannot hold are written as `%` and their
/// number, so that no part can be read as two.
fn part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for c in text.chars() {
        if c == ':' || c == '%' || c.is_control() || c.is_whitespace() {
            part.push_str(&format!("%{:x}", u32::from(c)));
        } else {
            part.push(c);
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use claw_core::AgentId;

    use super::{Peer, key};

    #[track_caller]
    fn check(channel: &str, peer: Peer<'_>, expected: &str) {
        let agent = AgentId::new("main").unwrap();
        assert_eq!(key(&agent, channel, peer).unwrap().as_str(), expected);
    }

    #[test]
    fn a_key_names_agent_channel_and_peer() {
        check("cli", Peer::Direct { user: "ann", chat: None }, "agent:main:cli:direct:ann");
        check("cli", Peer::Direct { user: "ann", chat: Some("notes") }, "agent:main:cli:direct:ann:notes");
        check("telegram", Peer::Group { chat: "-100" }, "agent:main:telegram:group:-100");
    }

    #[test]
    fn refuses_a_name_that_reads_as_another_conversation() {
        check("cli", Peer::Direct { user: "ann:notes", chat: None }, "agent:main:cli:direct:ann%3anotes");
        check("cli", Peer::Group { chat: "a b%20" }, "agent:main:cli:group:a%20b%2520");
        let agent = AgentId::new("main").unwrap();
        assert!(key(&agent, "cli", Peer::Group { chat: &"x".repeat(300) }).is_err());
    }
}
