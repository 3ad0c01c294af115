//! An offer: the tools that one caller may call, as the model was told.
//!
//! An offer is made from the current decision and kept for a turn. A call must be in the offer *and* in the
//! decision at the time of the call: hidden tools are forbidden, and so are those removed since.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use claw_core::ToolName;
use claw_core::port::{Hit, Scope};
use claw_core::store::ToolSettings;
use claw_core::tool::{Caller, Digest, Effects, Facts, Meta, Need, Spec, Unavailable};
use claw_schema::dialect::Dialect;
use serde_json::Value;

use crate::guard::FileRules;
use crate::registry::{Built, Context, Entry, Registry, Version};
use crate::settings;

/// Options for making an offer.
#[derive(Default)]
pub struct OfferOptions {
    /// Tools that the session was offered before, in that order. They stay first, so that prompts stay the
    /// same.
    pub previous: Vec<ToolName>,
    /// Number of times the agent has used each tool; decides which stay listed when the token budget is
    /// short.
    pub uses: HashMap<ToolName, u64>,
    /// Token budget of the listed tools together; `None` for no limit.
    pub token_budget: Option<usize>,
}

/// The tools that a caller may call. Cheap to clone; clones share the tools found by searching.
#[derive(Clone)]
pub struct Offer(pub(crate) Arc<OfferParts>);

pub(crate) struct OfferParts {
    pub(crate) caller: Arc<Caller>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) made_from: MadeFrom,
    pub(crate) tools: Vec<Offered>,
    /// Every name and alias.
    names: HashMap<String, usize>,
    /// Indices of the listed tools, in order.
    told: Mutex<Vec<usize>>,
    /// Allowed by the policy but not usable here.
    unavailable: Vec<(Arc<Meta>, String)>,
}

/// The versions of executor, registry and policy that an offer was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeFrom {
    /// The addresses of executor and registry, which live as long as the offer.
    pub(crate) executor: usize,
    pub(crate) registry: usize,
    pub(crate) tools: Version,
    pub(crate) policy: u64,
}

/// A tool of an offer.
pub(crate) struct Offered {
    pub(crate) entry: Arc<Entry>,
    /// The tool's effects that the policy allows.
    pub(crate) effects: Effects,
    built: OnceLock<Result<Arc<Built>, Unavailable>>,
    /// The tool that has replaced `entry` in the registry, as the last call found it.
    successor: ArcSwapOption<Successor>,
    /// The place of the last call.
    place: ArcSwapOption<CallPlace>,
    state: AtomicU8,
}

/// A tool that has replaced an offered one in the registry.
struct Successor {
    entry: Arc<Entry>,
    built: Result<Arc<Built>, Unavailable>,
}

/// The circumstances of a tool's calls: the same for all calls of one offer, as long as the settings stay the
/// same.
pub(crate) struct CallPlace {
    pub(crate) facts: Arc<Facts>,
    /// Digest of the caller and the facts: an approval is bound to it.
    pub(crate) digest: Digest,
    /// The stored settings that the facts were made with.
    stored: Arc<ToolSettings>,
    /// The files that calls may reach without any grant, by the rules that were last applied.
    scope: ArcSwapOption<RuledScope>,
}

/// The files that calls may reach by these rules.
struct RuledScope {
    rules: Arc<FileRules>,
    scope: Arc<Scope>,
}

impl CallPlace {
    /// Returns the files that calls may reach by these rules, made by `make` unless they are known.
    pub(crate) fn scope(&self, rules: &Arc<FileRules>, make: impl FnOnce() -> Scope) -> Arc<Scope> {
        if let Some(known) = self.scope.load().as_ref().filter(|known| Arc::ptr_eq(&known.rules, rules)) {
            return Arc::clone(&known.scope);
        }
        let scope = Arc::new(make());
        let known = RuledScope { rules: Arc::clone(rules), scope: Arc::clone(&scope) };
        self.scope.store(Some(Arc::new(known)));
        scope
    }
}

/// The state of an offered tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// The model is sent it.
    Listed,
    /// It can be found with the search tool.
    Deferred,
    /// It is left out until there is something for it to do.
    Dormant,
    /// It was listed before and is no longer allowed; it stays in the prompt and is refused.
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
        // Names take precedence over aliases.
        for (at, tool) in tools.iter().enumerate() {
            names.insert(tool.name().to_string(), at);
        }
        let told = told_of(&tools);
        let parts =
            OfferParts { caller, registry, made_from, tools, names, told: Mutex::new(told), unavailable };
        Self(Arc::new(parts))
    }

    /// The caller.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.0.caller
    }

    /// The listed tools in a stable order: those offered before, then new ones.
    pub fn names(&self) -> Vec<ToolName> {
        self.told().iter().map(|at| self.0.tools[*at].name().clone()).collect()
    }

    /// Number of listed tools.
    pub fn len(&self) -> usize {
        self.told().len()
    }

    /// Returns whether no tool is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Metadata of the listed tools.
    pub fn metas(&self) -> Vec<Arc<Meta>> {
        self.told().iter().map(|at| Arc::clone(&self.0.tools[*at].entry.meta)).collect()
    }

    /// Specs of the listed tools. A tool that cannot be made is left out and reported to `observe`.
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

    /// Returns whether the offer has a tool of this name whose calls only read.
    pub fn only_reads(&self, name: &str) -> bool {
        self.find(name).is_some_and(|tool| tool.entry.meta.effects.read_only())
    }

    /// Metadata of a tool, by its name or an alias.
    pub fn meta(&self, name: &str) -> Option<&Arc<Meta>> {
        self.find(name).map(|tool| &tool.entry.meta)
    }

    /// Tools that the policy allows but that cannot be used here, with the reason. Includes tools whose
    /// factory has failed since.
    pub fn unavailable(&self) -> Vec<(Arc<Meta>, String)> {
        let failed = self.0.tools.iter().filter_map(|tool| {
            let why = tool.built.get()?.as_ref().err()?;
            Some((Arc::clone(&tool.entry.meta), why.0.clone()))
        });
        self.0.unavailable.iter().cloned().chain(failed).collect()
    }

    /// Number of tools that can be found with the search tool.
    pub fn deferred(&self) -> usize {
        self.0.tools.iter().filter(|tool| tool.state() == State::Deferred).count()
    }

    /// Token cost of the listed tools: counted for built-in tools, estimated for others.
    pub fn tokens(&self) -> usize {
        self.told().iter().map(|at| self.tokens_of(&self.0.tools[*at])).sum()
    }

    /// Keeps tools listed that fit in `budget`: first those offered before, then the most used, then by name.
    /// The others can be found with the search tool.
    pub(crate) fn fit(self, budget: usize, previous: &[ToolName], uses: &HashMap<ToolName, u64>) -> Self {
        if self.tokens() <= budget {
            return self;
        }
        let search = self.0.tools.iter().position(|tool| tool.entry.meta.needs.contains(&Need::Catalogue));
        let mut spent = search.map_or(0, |at| self.tokens_of(&self.0.tools[at]));
        let mut order: Vec<usize> = (0..self.0.tools.len()).collect();
        let previous: HashSet<&ToolName> = previous.iter().collect();
        order.sort_by_cached_key(|at| {
            let name = self.0.tools[*at].name();
            (!previous.contains(name), Reverse(uses.get(name).copied().unwrap_or(0)), name.clone())
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
            None => self.built(tool).map_or(0, |built| built.tokens()),
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Offered> {
        self.0.names.get(name).map(|at| &self.0.tools[*at])
    }

    /// The circumstances of this tool's calls now, with these stored settings.
    pub(crate) fn place(&self, tool: &Offered, stored: &Arc<ToolSettings>) -> Arc<CallPlace> {
        let last = tool.place.load();
        if let Some(place) = last.as_ref().filter(|place| Arc::ptr_eq(&place.stored, stored)) {
            return Arc::clone(place);
        }
        let caller = &self.0.caller;
        let facts = settings::lay_over(caller.facts(tool.name().as_str()), stored.get(tool.name()));
        let who = (&caller.tenant, &caller.agent, caller.user.as_ref(), &caller.session);
        let digest = Digest::of(&(who, &facts));
        let (facts, stored) = (Arc::new(facts), Arc::clone(stored));
        let place = Arc::new(CallPlace { facts, digest, stored, scope: ArcSwapOption::empty() });
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

    /// Lists a deferred or dormant tool, so that it can be called. The list only grows.
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

    /// The deferred tools that match a query best; they become callable.
    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let index = self.0.registry.search_index();
        let deferred = |name: &ToolName| {
            let found = self.find(name.as_str()).filter(|tool| tool.state() == State::Deferred);
            found.and_then(|tool| self.built(tool).ok()).is_some_and(|built| built.validator().is_ok())
        };
        let mut hits = Vec::new();
        for name in index.best(query, limit, deferred) {
            let Some(Ok(built)) = self.find(name.as_str()).map(|tool| self.built(tool)) else { continue };
            self.activate(name.as_str());
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
