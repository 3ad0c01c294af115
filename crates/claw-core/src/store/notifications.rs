//! Notifications of changes: listeners are woken, and read the rows again.
//!
//! A topic's number rises after a change was committed, on any node. It may rise without reason, and once for
//! several changes, but it never misses one; a cache drops its entries when the number rises.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::port::Owner;

/// The topics of change notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// An approval, or a remembered rule.
    Approvals,
    /// A job may have become claimable, or has a cancel request.
    Work,
    /// A session has a new message or event.
    Sessions,
    /// A tenant, a user, a role or an API key.
    Access,
    /// An agent.
    Agents,
    /// The settings of a tool.
    Settings,
    /// A context file or a memory document.
    Documents,
    /// A sealed secret or a credentialed program.
    Secrets,
    /// A background process.
    Processes,
    /// An MCP server, a grant, a tool of one or a request for access.
    Mcp,
    /// A custom tool.
    Tools,
    /// A published skill, its grants, or an acceptance of a workspace skill.
    Skills,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Self; 12] = [
        Self::Approvals,
        Self::Work,
        Self::Sessions,
        Self::Access,
        Self::Agents,
        Self::Settings,
        Self::Documents,
        Self::Secrets,
        Self::Processes,
        Self::Mcp,
        Self::Tools,
        Self::Skills,
    ];

    /// Returns the topic as a word, as nodes send it to each other.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Work => "work",
            Self::Sessions => "sessions",
            Self::Access => "access",
            Self::Agents => "agents",
            Self::Settings => "settings",
            Self::Documents => "documents",
            Self::Secrets => "secrets",
            Self::Processes => "processes",
            Self::Mcp => "mcp",
            Self::Tools => "tools",
            Self::Skills => "skills",
        }
    }

    /// Returns the topic of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.name() == word)
    }
}

/// Announces changes.
pub trait Changes: Send + Sync {
    /// Returns a number that rises when something of this topic changes, on this or another node.
    fn changes(&self, of: Topic) -> watch::Receiver<u64>;
}

/// A notifier for each topic, for stores within one process.
#[derive(Debug, Default)]
pub struct Bells([watch::Sender<u64>; Topic::ALL.len()]);

impl Bells {
    /// Wakes the listeners of this topic.
    pub fn ring(&self, topic: Topic) {
        self.of(topic).send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Wakes all listeners: a change may have been missed.
    pub fn ring_all(&self) {
        Topic::ALL.into_iter().for_each(|topic| self.ring(topic));
    }

    /// Subscribes to this topic.
    pub fn listen(&self, topic: Topic) -> watch::Receiver<u64> {
        self.of(topic).subscribe()
    }

    /// Returns the number of this topic, which rises with each change.
    pub fn count(&self, topic: Topic) -> u64 {
        *self.of(topic).borrow()
    }

    /// Returns whether any topic has a listener.
    pub fn is_heard(&self) -> bool {
        self.0.iter().any(|bell| bell.receiver_count() > 0)
    }

    fn of(&self, topic: Topic) -> &watch::Sender<u64> {
        &self.0[topic as usize]
    }
}

/// A notifier for each session that has listeners. Other sessions take no memory.
#[derive(Debug, Default)]
pub struct SessionBells(Mutex<Listened>);

#[derive(Debug, Default)]
struct Listened {
    bells: HashMap<Owner, watch::Sender<u64>>,
    /// The number of notifiers at which those without listeners are removed next.
    sweep_at: usize,
}

/// The fewest notifiers that are worth sweeping.
const SWEEP: usize = 32;

impl SessionBells {
    /// Subscribes to one session.
    pub fn listen(&self, of: &Owner) -> watch::Receiver<u64> {
        let mut listened = self.lock();
        if listened.bells.len() >= listened.sweep_at.max(SWEEP) {
            listened.bells.retain(|_, bell| bell.receiver_count() > 0);
            listened.sweep_at = listened.bells.len() * 2;
        }
        listened.bells.entry(of.clone()).or_default().subscribe()
    }

    /// Wakes the listeners of one session.
    pub fn ring(&self, of: &Owner) {
        let mut listened = self.lock();
        let Some(bell) = listened.bells.get(of) else { return };
        if bell.receiver_count() == 0 {
            listened.bells.remove(of);
        } else {
            bell.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Wakes the listeners of every session: a change may have been missed.
    pub fn ring_all(&self) {
        for session in self.sessions() {
            self.ring(&session);
        }
    }

    /// Returns the sessions that have listeners.
    pub fn sessions(&self) -> Vec<Owner> {
        let mut listened = self.lock();
        listened.bells.retain(|_, bell| bell.receiver_count() > 0);
        listened.bells.keys().cloned().collect()
    }

    /// Returns whether any session has a listener.
    pub fn is_heard(&self) -> bool {
        self.lock().bells.values().any(|bell| bell.receiver_count() > 0)
    }

    fn lock(&self) -> MutexGuard<'_, Listened> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bells, SWEEP, SessionBells, Topic};
    use crate::id::{SessionKey, TenantId};
    use crate::port::Owner;

    fn owner(n: usize) -> Owner {
        Owner { tenant: TenantId::main(), session: SessionKey::new(format!("cli:{n}")).unwrap() }
    }

    #[test]
    fn a_session_bell_rings_for_its_session_alone() {
        let bells = SessionBells::default();
        let (mut one, two) = (bells.listen(&owner(1)), bells.listen(&owner(2)));
        bells.ring(&owner(1));
        bells.ring(&owner(3));
        assert!(one.has_changed().unwrap() && !two.has_changed().unwrap());
        one.mark_unchanged();
        bells.ring_all();
        assert!(one.has_changed().unwrap() && two.has_changed().unwrap());
    }

    #[test]
    fn sessions_without_listeners_take_no_memory() {
        let bells = SessionBells::default();
        let kept = bells.listen(&owner(0));
        for n in 1..100 * SWEEP {
            drop(bells.listen(&owner(n)));
        }
        assert!(bells.lock().bells.len() <= SWEEP, "{}", bells.lock().bells.len());
        drop(bells.listen(&owner(1)));
        bells.ring(&owner(1));
        assert!(!bells.lock().bells.contains_key(&owner(1)));
        assert_eq!(bells.sessions(), [owner(0)]);
        assert!(bells.is_heard());
        drop(kept);
        assert!(!bells.is_heard() && bells.sessions().is_empty());
    }

    #[test]
    fn a_topic_is_named_and_found_by_its_name() {
        for topic in Topic::ALL {
            assert_eq!(Topic::named(topic.name()), Some(topic));
        }
        assert_eq!(Topic::named("nothing"), None);
    }

    #[test]
    fn a_bell_rings_for_its_topic_alone() {
        let bells = Bells::default();
        assert!(!bells.is_heard());
        for topic in Topic::ALL {
            let listening: Vec<_> = Topic::ALL.into_iter().map(|topic| bells.listen(topic)).collect();
            bells.ring(topic);
            for (heard, of) in listening.iter().zip(Topic::ALL) {
                assert_eq!(heard.has_changed().unwrap(), of == topic);
            }
        }
    }
}
