//! A store that counts the reads and writes that go through it, and passes all of them on.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::graph::{Entity, GraphSource};
use claw_core::port::{MemoryOwner, MemoryReader, Owner, Stat, UnixMillis, Version};
use claw_core::skill::SkillFile;
use claw_core::store::*;
use claw_core::tool::Digest;
use claw_core::{
    AccessRequestId, AgentId, ApprovalId, ArtifactId, CallId, EntityId, JobId, KeyId, ProcessId, RuleId,
    ServerName, SessionKey, SkillName, TenantId, ToolName, UndoId, UserId,
};
use serde_json::{Map, Value};
use tokio::sync::{broadcast, watch};

/// Counts the calls of each method, by its name.
pub(crate) struct CountingStore {
    store: Arc<dyn Store>,
    counts: Mutex<HashMap<&'static str, usize>>,
}

impl CountingStore {
    pub(crate) fn over(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, counts: Mutex::default() })
    }

    /// Returns how often a method was called since the last look at it.
    pub(crate) fn take(&self, method: &str) -> usize {
        self.counts.lock().unwrap().remove(method).unwrap_or(0)
    }

    fn count(&self, method: &'static str) {
        *self.counts.lock().unwrap().entry(method).or_default() += 1;
    }
}

impl Changes for CountingStore {
    fn changes(&self, of: Topic) -> watch::Receiver<u64> {
        self.store.changes(of)
    }
}

impl Streams for CountingStore {
    fn say(&self, within: &Owner, source: Source, voice: Voice, text: &str) {
        self.store.say(within, source, voice, text);
    }

    fn said(&self, within: &Owner, source: Source) {
        self.store.said(within, source);
    }

    fn so_far(&self, within: &Owner) -> Vec<Delta> {
        self.store.so_far(within)
    }

    fn listen(&self, within: &Owner) -> broadcast::Receiver<Delta> {
        self.store.listen(within)
    }
}

/// Implements the methods of these traits: each is counted and passed on. `@` marks those that do not wait.
macro_rules! counted {
    ($($trait:ident {
        $($name:ident($($arg:ident: $type:ty),*) -> $returned:ty;)*
        $(@ $plain:ident($plain_arg:ident: $plain_type:ty) -> $plain_returned:ty;)*
    })*) => { $(
        #[async_trait]
        impl $trait for CountingStore {
            $(async fn $name(&self, $($arg: $type),*) -> $returned {
                self.count(stringify!($name));
                $trait::$name(&*self.store, $($arg),*).await
            })*
            $(fn $plain(&self, $plain_arg: $plain_type) -> $plain_returned {
                $trait::$plain(&*self.store, $plain_arg)
            })*
        }
    )* };
}

counted! {
    AccessStore {
        add_tenant(tenant: Tenant) -> Result<bool, StoreError>;
        tenant(id: &TenantId) -> Result<Option<Tenant>, StoreError>;
        tenants() -> Result<Vec<Tenant>, StoreError>;
        change_tenant(id: &TenantId, change: TenantChange) -> Result<Option<Tenant>, StoreError>;
        add_user(user: User) -> Result<bool, StoreError>;
        user(tenant: &TenantId, id: &UserId) -> Result<Option<User>, StoreError>;
        users(tenant: &TenantId) -> Result<Vec<User>, StoreError>;
        change_user(tenant: &TenantId, id: &UserId, change: UserChange) -> Result<Option<User>, StoreError>;
        add_key(key: NewKey) -> Result<bool, StoreError>;
        keys(tenant: &TenantId) -> Result<Vec<Key>, StoreError>;
        revoke_key(tenant: &TenantId, id: KeyId, at: UnixMillis) -> Result<Option<Key>, StoreError>;
        authenticate(hash: &Digest, now: UnixMillis) -> Result<Option<Admitted>, StoreError>;
    }
    AgentStore {
        agent(tenant: &TenantId, id: &AgentId) -> Result<Option<Agent>, StoreError>;
        agents(tenant: &TenantId) -> Result<Vec<Agent>, StoreError>;
        put_agent(tenant: &TenantId, id: &AgentId, write: AgentWrite, at: UnixMillis) -> Result<Agent, StoreError>;
        remove_agent(tenant: &TenantId, id: &AgentId, seen: u64, at: UnixMillis) -> Result<(), StoreError>;
    }
    Approvals {
        request(new: NewApproval) -> Result<Approval, StoreError>;
        approval(tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError>;
        pending(tenant: &TenantId, now: UnixMillis) -> Result<Vec<Approval>, StoreError>;
        answer(tenant: &TenantId, id: ApprovalId, answer: Answer) -> Result<Approval, StoreError>;
        take_values(tenant: &TenantId, id: ApprovalId) -> Result<Option<Map<String, Value>>, StoreError>;
        close(tenant: &TenantId, id: ApprovalId, state: ApprovalState) -> Result<Approval, StoreError>;
    }
    Blobs {
        put_blob(tenant: &TenantId, blob: &NewBlob, at: UnixMillis) -> Result<(), StoreError>;
        blob(tenant: &TenantId, digest: &Digest) -> Result<Option<Blob>, StoreError>;
        blob_card(tenant: &TenantId, digest: &Digest) -> Result<Option<BlobCard>, StoreError>;
    }
    CustomTools {
        custom_tool(place: &CustomToolPlace) -> Result<Option<StoredCustomTool>, StoreError>;
        put_custom_tool(tool: &StoredCustomTool, seen: Option<u64>) -> Result<u64, StoreError>;
        enable_custom_tool(place: &CustomToolPlace, enabled: bool, at: UnixMillis) -> Result<bool, StoreError>;
        remove_custom_tool(place: &CustomToolPlace, seen: Option<u64>) -> Result<bool, StoreError>;
        custom_tools(tenant: &TenantId) -> Result<Vec<StoredCustomTool>, StoreError>;
    }
    Documents {
        document(key: &DocumentKey) -> Result<Option<Document>, StoreError>;
        write_document(key: &DocumentKey, write: DocumentWrite<'_>) -> Result<u64, StoreError>;
        put_document(key: &DocumentKey, text: &str, seen: Option<u64>, at: UnixMillis) -> Result<u64, StoreError>;
        remove_document(key: &DocumentKey, seen: u64, at: UnixMillis) -> Result<(), StoreError>;
        documents(tenant: &TenantId, agent: Option<&AgentId>, user: Option<&UserId>, shelf: Shelf) -> Result<Vec<DocumentCard>, StoreError>;
        mark_unindexed(tenant: &TenantId) -> Result<u64, StoreError>;
        unindexed(limit: usize) -> Result<Vec<DocumentCard>, StoreError>;
        index_document(key: &DocumentKey, version: u64, passages: Vec<Passage>) -> Result<bool, StoreError>;
        search_passages(query: &PassageQuery) -> Result<Vec<FoundPassage>, StoreError>;
        passages_near(places: &[PassagePlace], limit: usize) -> Result<Vec<Vec<FoundPassage>>, StoreError>;
    }
    SealedValues {
        not_sealed_by(key: SealKeyId, table: SealedTable, after: Option<&SealedPlace>, limit: usize) -> Result<Vec<SealedRow>, StoreError>;
        reseal(values: &[Resealed]) -> Result<u64, StoreError>;
        key_use() -> Result<Vec<KeyUse>, StoreError>;
        changed_since(mark: SealedMark) -> Result<SealedChanges, StoreError>;
    }
    GraphStore {
        keep_facts(from: &FactsFrom, facts: NewFacts, at: UnixMillis) -> Result<KeptFacts, StoreError>;
        sweep_facts(limit: usize) -> Result<u64, StoreError>;
        entities(query: &EntityQuery) -> Result<Vec<FoundEntity>, StoreError>;
        entities_in(reader: &MemoryReader, places: &[(MemoryOwner, GraphSource)], as_of: Option<UnixMillis>) -> Result<Vec<Entity>, StoreError>;
        walk_graph(walk: &GraphWalk) -> Result<Walked, StoreError>;
        forget_entity(owner: &GraphOwner, id: EntityId) -> Result<bool, StoreError>;
        merge_entities(owner: &GraphOwner, keep: EntityId, gone: EntityId) -> Result<(), StoreError>;
        part_entities(owner: &GraphOwner, one: EntityId, other: EntityId) -> Result<bool, StoreError>;
        entity_pairs(reader: &MemoryReader, limit: usize) -> Result<Vec<EntityPair>, StoreError>;
        claim_unextracted(now: UnixMillis, quiet: UnixMillis, lease: Duration, limit: usize) -> Result<Vec<ExtractionWork>, StoreError>;
        mark_unextracted(tenant: &TenantId) -> Result<u64, StoreError>;
        fail_extraction(work: &ExtractionWork, error: &str, next: UnixMillis) -> Result<(), StoreError>;
        graph_state(tenant: &TenantId) -> Result<GraphState, StoreError>;
    }
    ArtifactIndex {
        put_artifact(kept: KeptArtifact) -> Result<(), StoreError>;
        artifact(owner: &Owner, id: ArtifactId) -> Result<Option<KeptArtifact>, StoreError>;
        artifacts(owner: &Owner, limit: usize) -> Result<Vec<KeptArtifact>, StoreError>;
        prune_artifacts(before: UnixMillis, bytes: u64) -> Result<Vec<KeptArtifact>, StoreError>;
    }
    Ledger {
        refuse(record: Record) -> Result<(), StoreError>;
        begin_call(record: Record) -> Result<(), StoreError>;
        finish_call(record: Record) -> Result<(), StoreError>;
        fate(tenant: &TenantId, call: CallId) -> Result<Option<Outcome>, StoreError>;
        recent(tenant: &TenantId, limit: usize) -> Result<Vec<Entry>, StoreError>;
        entries(tenant: &TenantId, page: &EntryPage) -> Result<Vec<(u64, Entry)>, StoreError>;
        tally(tenant: &TenantId, session: &SessionKey) -> Result<Tally, StoreError>;
    }
    McpStore {
        mcp_servers(tenant: &TenantId) -> Result<Vec<McpServer>, StoreError>;
        put_mcp_server(tenant: &TenantId, server: &McpServer, at: UnixMillis) -> Result<(), StoreError>;
        remove_mcp_server(tenant: &TenantId, name: &ServerName) -> Result<bool, StoreError>;
        mcp_grants(tenant: &TenantId) -> Result<Vec<McpGrant>, StoreError>;
        mcp_access(tenant: &TenantId, server: &ServerName, agent: &AgentId, user: Option<&UserId>) -> Result<Option<McpAccess>, StoreError>;
        put_mcp_grant(tenant: &TenantId, grant: &McpGrant, at: UnixMillis) -> Result<(), StoreError>;
        remove_mcp_grant(tenant: &TenantId, server: &ServerName, subject: &McpSubject) -> Result<bool, StoreError>;
        mcp_tools(tenant: &TenantId) -> Result<Vec<McpTool>, StoreError>;
        list_mcp_tools(tenant: &TenantId, server: &ServerName, listed: &BTreeMap<String, Value>, at: UnixMillis) -> Result<Vec<McpTool>, StoreError>;
        accept_mcp_tool(tenant: &TenantId, tool: &McpTool, at: UnixMillis) -> Result<bool, StoreError>;
        mcp_requests(tenant: &TenantId) -> Result<Vec<McpRequest>, StoreError>;
        add_mcp_request(tenant: &TenantId, request: &McpRequest) -> Result<(), StoreError>;
        review_mcp_request(tenant: &TenantId, id: AccessRequestId, review: &McpReview) -> Result<McpRequest, StoreError>;
    }
    Offers {
        offered(tenant: &TenantId, session: &SessionKey) -> Result<Vec<ToolName>, StoreError>;
        set_offered(tenant: &TenantId, session: &SessionKey, tools: &[ToolName]) -> Result<(), StoreError>;
        count_tool_uses(tenant: &TenantId, agent: &AgentId, uses: &[(ToolName, u64)]) -> Result<(), StoreError>;
        tool_uses(tenant: &TenantId, agent: &AgentId) -> Result<HashMap<ToolName, u64>, StoreError>;
    }
    Memories {
        claim_unembedded(model: &str, now: UnixMillis, lease: Duration, limit: usize) -> Result<Vec<EmbeddingWork>, StoreError>;
        embeddings(tenant: &TenantId, model: &str, hashes: &[PassageHash]) -> Result<Vec<(PassageHash, Vec<f32>)>, StoreError>;
        put_embeddings(tenant: &TenantId, model: &str, vectors: &[(PassageHash, Vec<f32>)], at: UnixMillis) -> Result<(), StoreError>;
        embed_document(key: &DocumentKey, version: u64, model: &str) -> Result<EmbeddingDone, StoreError>;
        fail_embedding(key: &DocumentKey, version: u64, error: &str, next: UnixMillis) -> Result<(), StoreError>;
        similar_passages(query: &SimilarQuery) -> Result<Vec<SimilarPassage>, StoreError>;
        memory_state(tenant: &TenantId, model: Option<&str>) -> Result<MemoryState, StoreError>;
    }
    Processes {
        begin_process(new: NewProcess) -> Result<(), StoreError>;
        end_process(tenant: &TenantId, id: ProcessId, end: ProcessEnd, at: UnixMillis) -> Result<Option<Process>, StoreError>;
        process(tenant: &TenantId, id: ProcessId) -> Result<Option<Process>, StoreError>;
        processes(tenant: &TenantId, session: &SessionKey) -> Result<Vec<Process>, StoreError>;
        lose_processes(worker: &Worker, at: UnixMillis) -> Result<Vec<Process>, StoreError>;
    }
    Programs {
        program(place: &ProgramPlace) -> Result<Option<Program>, StoreError>;
        put_program(program: &Program) -> Result<(), StoreError>;
        enable_program(place: &ProgramPlace, enabled: bool, at: UnixMillis) -> Result<bool, StoreError>;
        remove_program(place: &ProgramPlace) -> Result<bool, StoreError>;
        programs(tenant: &TenantId) -> Result<Vec<ProgramCard>, StoreError>;
    }
    Queue {
        enqueue(job: NewJob) -> Result<(), StoreError>;
        claim(claim: Claim) -> Result<Option<(Job, Lease)>, StoreError>;
        extend(lease: &Lease, until: UnixMillis) -> Result<Lease, StoreError>;
        finish_job(lease: &Lease) -> Result<(), StoreError>;
        fail_job(lease: &Lease, failure: Failure) -> Result<JobState, StoreError>;
        reclaim(worker: &Worker, now: UnixMillis) -> Result<Vec<JobId>, StoreError>;
        release(tenant: &TenantId, job: JobId, now: UnixMillis) -> Result<bool, StoreError>;
        wake(tenant: &TenantId, job: JobId) -> Result<bool, StoreError>;
        cancel_requests(jobs: &[JobId]) -> Result<Vec<JobId>, StoreError>;
        job(tenant: &TenantId, id: JobId) -> Result<Option<Job>, StoreError>;
        jobs(tenant: &TenantId, filter: &JobFilter) -> Result<Vec<Job>, StoreError>;
        open_jobs_of(tenant: &TenantId, user: Option<&UserId>) -> Result<u64, StoreError>;
        lanes(tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError>;
    }
    Rules {
        put_rule(new: NewRule) -> Result<(), StoreError>;
        answer_with_rule(tenant: &TenantId, id: ApprovalId, answer: Answer, rule: NewRule) -> Result<Approval, StoreError>;
        rules(tenant: &TenantId, agent: &AgentId, session: &SessionKey, now: UnixMillis) -> Result<Vec<Rule>, StoreError>;
        all_rules(tenant: &TenantId) -> Result<Vec<Rule>, StoreError>;
        revoke_rule(tenant: &TenantId, id: RuleId, at: UnixMillis) -> Result<Rule, StoreError>;
        use_rule(tenant: &TenantId, id: RuleId, now: UnixMillis) -> Result<Rule, StoreError>;
    }
    Runs {
        park(lease: &Lease, parking: Parking) -> Result<JobState, StoreError>;
        cancel(tenant: &TenantId, job: JobId, cancel: Cancel) -> Result<Cancelled, StoreError>;
    }
    Secrets {
        secret(place: &SecretPlace) -> Result<Option<Sealed>, StoreError>;
        put_secret(place: &SecretPlace, value: &Sealed, at: UnixMillis) -> Result<(), StoreError>;
        remove_secret(place: &SecretPlace) -> Result<bool, StoreError>;
        secrets(tenant: &TenantId) -> Result<Vec<SecretCard>, StoreError>;
    }
    SeenIndex {
        seen_file(owner: &Owner, place: &Digest) -> Result<Option<Version>, StoreError>;
        saw_file(owner: &Owner, place: &Digest, version: &Version, at: UnixMillis) -> Result<(), StoreError>;
    }
    Conversations {
        accept_from(party: &Party, message: NewMessage, job: NewJob) -> Result<Accepted, StoreError>;
        accept_after(last: JobId, party: &Party, message: NewMessage, job: NewJob) -> Result<Accepted, StoreError>;
        conversations(tenant: &TenantId, circle: &Circle, page: &ConversationPage) -> Result<Vec<Conversation>, StoreError>;
        conversation(tenant: &TenantId, circle: &Circle, session: &SessionKey) -> Result<Option<Conversation>, StoreError>;
        said_in(tenant: &TenantId, circle: &Circle, session: &SessionKey, page: MessagePage) -> Result<Option<Vec<Message>>, StoreError>;
        rename_conversation(tenant: &TenantId, circle: &Circle, session: &SessionKey, title: Option<&str>) -> Result<bool, StoreError>;
        fork_conversation(tenant: &TenantId, circle: &Circle, session: &SessionKey, fork: Fork<'_>) -> Result<bool, StoreError>;
        remove_conversation(tenant: &TenantId, circle: &Circle, session: &SessionKey) -> Result<bool, StoreError>;
        mark_untrusted(tenant: &TenantId, session: &SessionKey, at: UnixMillis) -> Result<(), StoreError>;
        is_untrusted(tenant: &TenantId, session: &SessionKey) -> Result<bool, StoreError>;
    }
    SessionLog {
        accept_message(message: NewMessage, job: NewJob) -> Result<Accepted, StoreError>;
        say_in_run(lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError>;
        take_waiting(lease: &Lease, priority: i16) -> Result<usize, StoreError>;
        summarise(lease: &Lease, of: &Owner, summary: Summary) -> Result<(), StoreError>;
        summary(tenant: &TenantId, session: &SessionKey) -> Result<Option<Summary>, StoreError>;
        finish_run(lease: &Lease, finish: Finish) -> Result<Finished, StoreError>;
        log_event(tenant: &TenantId, session: &SessionKey, at: UnixMillis, event: SessionEventBody) -> Result<u64, StoreError>;
        log_events(events: Vec<NewEvent>) -> Result<(), StoreError>;
        messages(tenant: &TenantId, session: &SessionKey, after: u64, limit: usize) -> Result<Vec<Message>, StoreError>;
        events(tenant: &TenantId, session: &SessionKey, after: u64, limit: usize) -> Result<Vec<SessionEvent>, StoreError>;
        feed(tenant: &TenantId, after: u64, limit: usize) -> Result<Vec<FeedEvent>, StoreError>;
        feed_end(tenant: &TenantId) -> Result<u64, StoreError>;
        @ session_changes(of: &Owner) -> watch::Receiver<u64>;
    }
    SettingsStore {
        settings_of(layer: &Layer, tool: &ToolName) -> Result<Option<StoredSettings>, StoreError>;
        settings(layer: &Layer) -> Result<Vec<StoredSettings>, StoreError>;
        put_settings(layer: &Layer, tool: &ToolName, settings: Settings, at: UnixMillis) -> Result<(), StoreError>;
        remove_settings(layer: &Layer, tool: &ToolName) -> Result<bool, StoreError>;
        tool_settings(tenant: &TenantId) -> Result<ToolSettings, StoreError>;
    }
    SkillStore {
        publish_skill(new: NewSkillVersion) -> Result<StoredSkill, StoreError>;
        stored_skills(tenant: &TenantId) -> Result<Vec<StoredSkill>, StoreError>;
        stored_skill(tenant: &TenantId, name: &SkillName) -> Result<Option<StoredSkill>, StoreError>;
        skill_versions(tenant: &TenantId, name: &SkillName) -> Result<Vec<SkillVersion>, StoreError>;
        skill_files(tenant: &TenantId, name: &SkillName, version: u64) -> Result<Vec<SkillFile>, StoreError>;
        change_skill(tenant: &TenantId, name: &SkillName, change: SkillChange) -> Result<Option<StoredSkill>, StoreError>;
        grant_skill(tenant: &TenantId, name: &SkillName, grant: SkillGrant) -> Result<Option<StoredSkill>, StoreError>;
        revoke_skill(tenant: &TenantId, name: &SkillName, grantee: &SkillGrantee) -> Result<bool, StoreError>;
        remove_skill(tenant: &TenantId, name: &SkillName) -> Result<bool, StoreError>;
        accept_skill(tenant: &TenantId, accepted: AcceptedSkill) -> Result<(), StoreError>;
        accepted_skills(tenant: &TenantId) -> Result<Vec<AcceptedSkill>, StoreError>;
        forget_skill(tenant: &TenantId, name: &SkillName) -> Result<u64, StoreError>;
        use_skill(owner: &Owner, used: SkillUse) -> Result<(), StoreError>;
        end_skills(owner: &Owner, run: Option<JobId>) -> Result<(), StoreError>;
        skill_uses(owner: &Owner) -> Result<Vec<SkillUse>, StoreError>;
    }
    UndoIndex {
        record_undo(new: NewUndo) -> Result<(), StoreError>;
        withdraw_undo(tenant: &TenantId, id: UndoId) -> Result<(), StoreError>;
        undo(tenant: &TenantId, id: UndoId) -> Result<Option<Undo>, StoreError>;
        undos(tenant: &TenantId, filter: &UndoFilter, limit: usize) -> Result<Vec<Undo>, StoreError>;
        mark_undone(tenant: &TenantId, id: UndoId, at: UnixMillis) -> Result<bool, StoreError>;
        prune_undo(before: UnixMillis, bytes: u64) -> Result<Vec<Digest>, StoreError>;
        unnamed_undo(blobs: &[Digest]) -> Result<Vec<Digest>, StoreError>;
    }
    UsageLog {
        record_usage(new: NewUsage) -> Result<(), StoreError>;
        usage(tenant: &TenantId, filter: &UsageFilter) -> Result<Usage, StoreError>;
        usage_lines(tenant: &TenantId, filter: &UsageFilter) -> Result<Vec<UsageLine>, StoreError>;
        last_usage(tenant: &TenantId, session: &SessionKey) -> Result<Option<NewUsage>, StoreError>;
        spent(tenant: &TenantId, spender: Spender<'_>, since: UnixMillis) -> Result<i64, StoreError>;
    }
    WorkspaceFiles {
        file_stat(tenant: &TenantId, path: &str) -> Result<Option<Stat>, StoreError>;
        file(tenant: &TenantId, path: &str) -> Result<Option<(Stat, Vec<u8>)>, StoreError>;
        file_contents(tenant: &TenantId, paths: &[String]) -> Result<Vec<(String, Vec<u8>)>, StoreError>;
        files_below(tenant: &TenantId, directory: &str, limit: usize) -> Result<Vec<(String, Stat)>, StoreError>;
        put_file(change: &FileChange<'_>, bytes: &[u8]) -> Result<Stat, FileError>;
        put_directory(change: &FileChange<'_>) -> Result<(), FileError>;
        remove_file(change: &FileChange<'_>) -> Result<(), FileError>;
    }
}
