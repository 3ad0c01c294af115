//! The ids that all players of a round share, so that they collide.

use claw_core::port::UnixMillis;
use claw_core::store::{NewApproval, NewJob, NewMessage, Role};
use claw_core::{CallId, JobId, MessageId, SessionKey, TenantId};
use serde_json::json;
use smol_str::SmolStr;

use super::Random;
use crate::fixture;

const JOBS: usize = 10;
const MESSAGES: usize = 10;
const CALLS: usize = 10;

/// The time at which every approval of every world expires.
pub const EXPIRY: UnixMillis = UnixMillis(fixture::NOW.0 + 300_000);

/// The tenant, sessions and ids of one round.
#[derive(Debug, Clone)]
pub struct World {
    /// The tenant that owns the data.
    pub tenant: TenantId,
    /// The lane of its jobs.
    pub lane: SmolStr,
    /// The tenant's sessions.
    pub sessions: Vec<SessionKey>,
    /// Jobs that anyone may accept.
    pub jobs: Vec<NewJob>,
    /// Messages that anyone may send.
    pub messages: Vec<NewMessage>,
    /// The calls that any player may begin; every other one needs an approval.
    pub calls: Vec<CallId>,
}

impl World {
    /// Creates the world of this seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::part(seed, 0);
        let name = format!("round-{seed:016x}");
        let mut world = Self {
            tenant: fixture::tenant(&name),
            lane: name.into(),
            sessions: ["cli:one", "cli:two"].map(fixture::session).to_vec(),
            jobs: Vec::new(),
            messages: Vec::new(),
            calls: Vec::new(),
        };
        for _ in 0..JOBS {
            let job = world.job(&mut random);
            world.jobs.push(job);
        }
        for _ in 0..MESSAGES {
            let session = random.pick(&world.sessions).expect("there are sessions").clone();
            let message = world.message(random.id(), session, Role::User);
            world.messages.push(message);
        }
        world.calls = (0..CALLS).map(|_| random.id()).collect();
        world
    }

    /// A new job of this world.
    pub fn job(&self, random: &mut Random) -> NewJob {
        let session = if random.one_in(3) { None } else { random.pick(&self.sessions).cloned() };
        let id: JobId = random.id();
        NewJob {
            id,
            tenant: self.tenant.clone(),
            lane: self.lane.clone(),
            session,
            priority: random.below(3) as i16,
            payload: json!({ "for": id }),
            accepted: UnixMillis(0),
            visible: UnixMillis(random.below(200) as i64),
            max_attempts: 1 + random.below(4) as u16,
            lineage: None,
        }
    }

    /// A message of this world.
    pub fn message(&self, id: MessageId, session: SessionKey, role: Role) -> NewMessage {
        let (tenant, content) = (self.tenant.clone(), json!({ "of": id }));
        NewMessage { id, tenant, session, role, content, at: UnixMillis(7) }
    }

    /// Returns the approval request of a call at this time. However often it is made, it expires at
    /// [`EXPIRY`].
    pub fn question(&self, call: CallId, asked: UnixMillis) -> NewApproval {
        let tenant = self.tenant.clone();
        NewApproval { tenant, asked, expires: EXPIRY, ..fixture::question(call, "ls") }
    }

    /// Returns whether a call needs an approval.
    pub fn is_asked(&self, call: CallId) -> bool {
        self.calls.iter().position(|known| *known == call).is_some_and(|place| place % 2 == 0)
    }
}
