//! What one caller may call, as it was told to the model.
//!
//! An offer is made from today's decision and kept for a turn. A call must be in it *and* in the decision of
//! the moment it is made: hidden is forbidden, and so is what was taken away since.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use claw_core::ToolName;
use claw_core::port::Hit;
use claw_core::search::SearchIndex;
use claw_core::store::ToolSettings;
use claw_core::tool::dialect::{self, Dialect};
use claw_core::tool::{Caller, Digest, Effects, Facts, Meta, Need, Spec, Unavailable};
use serde_json::Value;

use crate::registry::{Built, Context, Entry, Registry, Version};

use crate::settings;

/// What to make an offer from, beyond the caller.
#[derive(Default)]
pub struct OfferOptions {
    /// What the session was offered before, in that order. It stays first, so that prompts stay the same.
    pub previous: Vec<ToolName>,
    /// How often the agent has used each tool; decides who stays when the token budget is short.
    pub uses: HashMap<ToolName, u64>,
    /// How many tokens the listed tools may cost together; `None` for no limit.
    pub token_budget: Option<usize>,
}

/// The tools that a caller may call. Cheap to clone; clones share what was found by searching.
#[derive(Clone)]
pub struct Offer(pub(crate) Arc<OfferParts>);

pub(crate) struct OfferParts {
    pub(crate) caller: Arc<Caller>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) made_from: MadeFrom,
    pub(crate) tools: Vec<Offered>,
    /// Every name and alias.
    names: HashMap<String, usize>,
    /// Positions in the order in which the model was told of them.
    told: Mutex<Vec<usize>>,
    /// Allowed by the policy and not usable here.
    unavailable: Vec<(Arc<Meta>, String)>,
}

/// Which executor, registry and policy an offer was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeFrom {
    /// The executor and the registry, by where they are: they live as long as the offer.
    pub(crate) executor: usize,
    pub(crate) registry: usize,
    pub(crate) tools: Version,
    pub(crate) policy: u64,
}

/// One tool of an offer.
pub(crate) struct Offered {
    pub(crate) entry: Arc<Entry>,
    /// What the policy left of its ceiling.
    pub(crate) effects: Effects,
    built: OnceLock<Result<Arc<Built>, Unavailable>>,
    /// The tool that is registered in place of `entry` by now, as the last call found it.
    successor: ArcSwapOption<Successor>,
    /// As the last call had it.
    place: ArcSwapOption<Place>,
    state: AtomicU8,
}

/// A tool that was registered in place of an offered one.
struct Successor {
    entry: Arc<Entry>,
    built: Result<Arc<Built>, Unavailable>,
}

/// Where and for whom a tool's calls run: the same for all calls of one offer, while no settings change.
pub(crate) struct Place {
    pub(crate) facts: Arc<Facts>,
    /// Of the caller and of all the above: an approval binds it.
    pub(crate) digest: Digest,
    /// The stored settings that it was made with.
    stored: Arc<ToolSettings>,
}

/// Where an offered tool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// The model was sent it.
    Listed,
    /// It can be found by searching.
    Deferred,
    /// It has nothing to do yet.
    Dormant,
    /// It was listed before and has been taken away; it stays in the prompt and is refused.
    Withdrawn,
}

impl Offered {
    pub(crate) fn new(entry: Arc<Entry>, effects: Effects, state: State) -> Self {
        let (built, successor) = (OnceLock::new(), ArcSwapOption::empty());
        let (place, state) = (ArcSwapOption::empty(), AtomicU8::new(state as u8));
        Self { entry, effects, built, successor, place, state }
    }

    /// The tool for this caller, made once per offer.
    pub(crate) fn make(&self, context: &Context<'_>) -> Result<Arc<Built>, Unavailable> {
        self.built.get_or_init(|| self.entry.build(context)).clone()
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Listed,
            1 => State::Deferred,
            2 => State::Dormant,
            _ => State::Withdrawn,
        }
    }

    fn name(&self) -> &ToolName {
        &self.entry.meta.name
    }
}

impl Offer {
    pub(crate) fn new(
        caller: Arc<Caller>,
        registry: Arc<Registry>,
        made_from: MadeFrom,
        tools: Vec<Offered>,
        unavailable: Vec<(Arc<Meta>, String)>,
    ) -> Self {
        let mut names = HashMap::with_capacity(tools.len() * 2);
        for (at, tool) in tools.iter().enumerate() {
            for alias in tool.entry.meta.aliases.iter() {
                names.entry(alias.to_owned()).or_insert(at);
            }
        }
        // Real names go before aliases.
        for (at, tool) in tools.iter().enumerate() {
            names.insert(tool.name().to_string(), at);
        }
        let told = told_of(&tools);
        let parts =
            OfferParts { caller, registry, made_from, tools, names, told: Mutex::new(told), unavailable };
        Self(Arc::new(parts))
    }

    /// Who may call.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.0.caller
    }

    /// The tools as the model is told of them, in a stable order: those of before, then new ones.
    pub fn names(&self) -> Vec<ToolName> {
        self.told().iter().map(|at| self.0.tools[*at].name().clone()).collect()
    }

    /// How many tools the model is told of.
    pub fn len(&self) -> usize {
        self.told().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is known of each listed tool.
    pub fn metas(&self) -> Vec<Arc<Meta>> {
        self.told().iter().map(|at| Arc::clone(&self.0.tools[*at].entry.meta)).collect()
    }

    /// What the model is sent of each tool. A tool that cannot be made is left out and told to `observe`.
    pub fn specs(&self, mut observe: impl FnMut(&Meta, &Unavailable)) -> Vec<Spec> {
        let told = self.told();
        let specs = told.iter().filter_map(|at| {
            let tool = &self.0.tools[*at];
            match self.built(tool) {
                Ok(built) => Some(built.spec.clone()),
                Err(error) => {
                    observe(&tool.entry.meta, &error);
                    None
                }
            }
        });
        specs.collect()
    }

    /// The tools in the form that a provider's API takes.
    pub fn render(&self, dialect: Dialect) -> Vec<Value> {
        self.specs(|_, _| {}).iter().map(|spec| dialect.tool(spec)).collect()
    }

    /// Whether a tool of this name is in the offer and no call of it does more than read.
    pub fn only_reads(&self, name: &str) -> bool {
        self.find(name).is_some_and(|tool| tool.entry.meta.effects.read_only())
    }

    /// What is known of one tool, by its name or an alias.
    pub fn meta(&self, name: &str) -> Option<&Arc<Meta>> {
        self.find(name).map(|tool| &tool.entry.meta)
    }

    /// Tools that the policy allows and that cannot be used here, with the reason. A factory that fails while the
    /// offer is used joins them.
    pub fn unavailable(&self) -> Vec<(Arc<Meta>, String)> {
        let failed = self.0.tools.iter().filter_map(|tool| {
            let why = tool.built.get()?.as_ref().err()?;
            Some((Arc::clone(&tool.entry.meta), why.0.clone()))
        });
        self.0.unavailable.iter().cloned().chain(failed).collect()
    }

    /// How many tools can be found by searching.
    pub fn deferred(&self) -> usize {
        self.0.tools.iter().filter(|tool| tool.state() == State::Deferred).count()
    }

    /// What the listed tools cost in tokens: counted for built-in tools, estimated for others.
    pub fn tokens(&self) -> usize {
        self.told().iter().map(|at| self.tokens_of(&self.0.tools[*at])).sum()
    }

    /// Keeps listed what fits in `budget`: what was offered before, then the most used, then by name. The
    /// rest can be found by searching.
    pub(crate) fn fit(self, budget: usize, previous: &[ToolName], uses: &HashMap<ToolName, u64>) -> Self {
        if self.tokens() <= budget {
            return self;
        }
        let search = self.0.tools.iter().position(|tool| tool.entry.meta.needs.contains(&Need::Catalogue));
        let mut spent = search.map_or(0, |at| self.tokens_of(&self.0.tools[at]));
        let mut order: Vec<usize> = (0..self.0.tools.len()).collect();
        order.sort_by_key(|at| {
            let name = self.0.tools[*at].name();
            (!previous.contains(name), Reverse(uses.get(name).copied().unwrap_or(0)), name)
        });
        for at in order {
            let tool = &self.0.tools[at];
            if tool.state() != State::Listed {
                continue;
            }
            let cost = self.tokens_of(tool);
            if spent + cost > budget && !previous.contains(tool.name()) {
                tool.state.store(State::Deferred as u8, Ordering::Release);
            } else {
                spent += cost;
            }
        }
        if let Some(search) = search.map(|at| &self.0.tools[at])
            && matches!(search.state(), State::Dormant | State::Deferred)
        {
            search.state.store(State::Listed as u8, Ordering::Release);
        }
        *self.told() = told_of(&self.0.tools);
        self
    }

    fn tokens_of(&self, tool: &Offered) -> usize {
        match tool.entry.meta.tokens {
            Some(counted) => counted as usize,
            None => self
                .built(tool)
                .map_or(0, |built| dialect::estimate_tokens(&Dialect::Default.tool(&built.spec))),
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Offered> {
        self.0.names.get(name).map(|at| &self.0.tools[*at])
    }

    /// Where this tool's calls run now, over these stored settings.
    pub(crate) fn place(&self, tool: &Offered, stored: &Arc<ToolSettings>) -> Arc<Place> {
        let last = tool.place.load();
        if let Some(place) = last.as_ref().filter(|place| Arc::ptr_eq(&place.stored, stored)) {
            return Arc::clone(place);
        }
        let caller = &self.0.caller;
        let facts = settings::lay_over(caller.facts(tool.name().as_str()), stored.get(tool.name()));
        let who = (&caller.tenant, &caller.agent, caller.user.as_ref(), &caller.session);
        let digest = Digest::of(&(who, &facts));
        let (facts, stored) = (Arc::new(facts), Arc::clone(stored));
        let place = Arc::new(Place { facts, digest, stored });
        tool.place.store(Some(Arc::clone(&place)));
        place
    }

    pub(crate) fn built(&self, tool: &Offered) -> Result<Arc<Built>, Unavailable> {
        tool.make(&self.context())
    }

    /// The tool that is registered `now` under the name of an offered one, for this caller.
    pub(crate) fn successor(&self, tool: &Offered, now: &Arc<Entry>) -> Result<Arc<Built>, Unavailable> {
        if Arc::ptr_eq(now, &tool.entry) {
            return self.built(tool);
        }
        if let Some(known) = tool.successor.load().as_ref().filter(|known| Arc::ptr_eq(&known.entry, now)) {
            return known.built.clone();
        }
        let built = now.build(&self.context());
        let known = Successor { entry: Arc::clone(now), built: built.clone() };
        tool.successor.store(Some(Arc::new(known)));
        built
    }

    fn context(&self) -> Context<'_> {
        Context { caller: &self.0.caller, world: self.0.registry.world() }
    }

    /// Makes a deferred or dormant tool callable and tells the model of it. It only ever grows.
    pub(crate) fn activate(&self, name: &str) -> bool {
        let Some(&at) = self.0.names.get(name) else { return false };
        let tool = &self.0.tools[at];
        let mut told = self.told();
        if !matches!(tool.state(), State::Deferred | State::Dormant) {
            return false;
        }
        tool.state.store(State::Listed as u8, Ordering::Release);
        told.push(at);
        true
    }

    /// The deferred tools that fit a query best; they become callable.
    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let deferred: Vec<_> = self.0.tools.iter().filter(|tool| tool.state() == State::Deferred).collect();
        let texts = deferred.iter().map(|tool| (tool.name().as_str(), tool.entry.meta.about.as_str()));
        let mut hits = Vec::new();
        for at in SearchIndex::new(texts).best(query, limit, |_| true) {
            let Ok(built) = self.built(deferred[at]) else { continue };
            self.activate(deferred[at].name().as_str());
            hits.push(Hit {
                name: built.spec.name.clone(),
                about: built.spec.description.to_string(),
                parameters: Value::clone(&built.spec.parameters),
            });
        }
        hits
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told_of(tools: &[Offered]) -> Vec<usize> {
    (0..tools.len()).filter(|at| matches!(tools[*at].state(), State::Listed | State::Withdrawn)).collect()
}

impl std::fmt::Debug for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offer")
            .field("session", &self.0.caller.session)
            .field("tools", &self.names())
            .finish()
    }
}
