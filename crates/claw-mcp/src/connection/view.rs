//! A connection as people see it.

use claw_core::port::UnixMillis;
use claw_core::{AgentId, UserId};
use schemars::JsonSchema;
use serde::Serialize;

use super::reconnect::QUICK_ATTEMPTS;
use super::{Connection, ConnectionState};

/// The state of a connection, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionStatus {
    /// No call has needed it yet.
    Idle,
    /// It is being made.
    Connecting,
    /// It is up.
    Connected,
    /// The last attempt failed, and the next comes within a minute.
    Waiting,
    /// Many attempts in a row failed, and the next ones come every five minutes.
    Failed,
}

/// A connection of this process to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionView {
    /// The agent with values of its own that the connection is for; `None` if agents share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The user whose login it uses; `None` if one login serves all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// The state.
    pub state: ConnectionStatus,
    /// The protocol version that both sides speak, while it is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Failed attempts in a row.
    pub attempts: u32,
    /// The cause of the last failure; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The time of the next attempt, in milliseconds since 1970; a call may want one earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_try: Option<UnixMillis>,
}

impl Connection {
    /// Returns the connection for display; `None` if it was given up.
    pub(crate) fn view(&self) -> Option<ConnectionView> {
        if self.is_closed() {
            return None;
        }
        let mut view = ConnectionView {
            agent: self.target.agent.clone(),
            user: self.target.user.clone(),
            state: ConnectionStatus::Idle,
            protocol: None,
            attempts: 0,
            reason: None,
            next_try: None,
        };
        let state = self.now.borrow().state.clone();
        match state {
            ConnectionState::Closed => return None,
            ConnectionState::Idle => {}
            ConnectionState::Connecting => view.state = ConnectionStatus::Connecting,
            ConnectionState::Ready { protocol } => {
                (view.state, view.protocol) = (ConnectionStatus::Connected, Some(protocol));
            }
            ConnectionState::Waiting { attempts, why, next_try } => {
                let slow = attempts > QUICK_ATTEMPTS;
                view.state = if slow { ConnectionStatus::Failed } else { ConnectionStatus::Waiting };
                (view.attempts, view.reason, view.next_try) = (attempts, Some(why), Some(next_try));
            }
        }
        Some(view)
    }
}
