//! The store trait over these statements, for both databases.

/// Implements [`GraphStore`](claw_core::store::GraphStore) for a backend. `$skip` is the SQL suffix that
/// locks rows and skips locked ones.
macro_rules! graph_store {
    ($store:ty, look: $look:ident, write: $write:ident, failed: $failed:path, skip: $skip:literal) => {
        const CLAIM: &str = concat!(
            "UPDATE documents SET graph_after = $3, graph_tries = graph_tries + 1 WHERE id IN (
                 SELECT id FROM documents WHERE text IS NOT NULL AND shelf = 'memory'
                 AND (graphed IS NULL OR graphed <> version) AND graph_after <= $1 AND at <= $2
                 ORDER BY graph_tries, id LIMIT $4",
            $skip,
            ") RETURNING tenant, agent, for_user, path, version, graph_tries - 1, text"
        );

        #[async_trait::async_trait]
        impl GraphStore for $store {
            async fn keep_facts(
                &self,
                from: &FactsFrom,
                facts: NewFacts,
                at: UnixMillis,
            ) -> Result<KeptFacts, StoreError> {
                let mut facts = checked(facts)?;
                let mut transaction = self.$write(WRITE).await?;
                let (owner, before, run) = match from {
                    FactsFrom::Person(owner) => {
                        (hold_owner(&mut transaction, owner).await?, BTreeSet::new(), None)
                    }
                    FactsFrom::Document { key, version, .. } => {
                        let stands: Option<(Option<uuid::Uuid>, bool)> = query_as(
                            "UPDATE documents SET graphed = $6, graph_after = 0, graph_tries = 0, graph_error = NULL
                             WHERE tenant = $1 AND agent = $2 AND for_user = $3 AND shelf = $4 AND path = $5
                             AND version = $6 AND text IS NOT NULL RETURNING run, untrusted",
                        )
                        .bind(key.tenant.as_str())
                        .bind(document_rules::agent(key.agent.as_ref()))
                        .bind(document_rules::user(key.user.as_ref()))
                        .bind(key.shelf.name())
                        .bind(&key.path)
                        .bind(row::number(*version))
                        .fetch_optional(&mut *transaction)
                        .await
                        .map_err($failed(WRITE))?;
                        let Some((run, untrusted)) = stands else {
                            transaction.commit().await.map_err($failed(WRITE))?;
                            return Ok(KeptFacts { is_stale: true, ..KeptFacts::default() });
                        };
                        if untrusted {
                            distrust(&mut facts);
                        }
                        let (tenant, agent, user) = (key.tenant.clone(), key.agent.clone(), key.user.clone());
                        let owner = hold_owner(&mut transaction, &GraphOwner { tenant, agent, user }).await?;
                        (owner, unsay(&mut transaction, owner, &key.path).await?, run)
                    }
                };
                let desk = desk(from, owner, run, at);
                let mut kept = KeptFacts::default();
                for new in &facts.entities {
                    let (id, is_new) =
                        keep_entity(&mut transaction, &desk, &new.said, new.source.as_ref()).await?;
                    if is_new {
                        kept.added += 1;
                        kept.doubtful += pair_up(&mut transaction, &desk, id, &new.said).await?;
                    } else {
                        kept.merged += 1;
                    }
                    kept.entities.push(id);
                }
                for new in &facts.relations {
                    let mut ends = [EntityId::from_bytes([0; 16]); 2];
                    for (which, wanted) in ends.iter_mut().zip([new.source, new.target]) {
                        *which = match wanted {
                            RelationEnd::New(at) => end(&kept.entities, at)?,
                            RelationEnd::Known(id) => known_end(&mut transaction, &desk, id).await?,
                        };
                    }
                    // Two names of one thing are no relation.
                    if ends[0] != ends[1] {
                        let [source, target] = &ends.map(|end| end.to_string());
                        let ends = Ends { source, target };
                        keep_relation(&mut transaction, &desk, ends, &new.said, new.place.as_ref()).await?;
                        kept.relations += 1;
                    }
                }
                settle(&mut transaction, &desk.tenant, owner, &before).await?;
                transaction.commit().await.map_err($failed(WRITE))?;
                Ok(kept)
            }

            async fn sweep_facts(&self, limit: usize) -> Result<u64, StoreError> {
                let mut looking = self.$look(READ).await?;
                let waits: bool = query_scalar("SELECT EXISTS (SELECT 1 FROM graph_entities WHERE words < 0)")
                    .fetch_one(&mut *looking)
                    .await
                    .map_err($failed(READ))?;
                let gone: Vec<i64> = query_scalar(
                    "SELECT id FROM documents WHERE text IS NULL AND graphed IS NOT NULL ORDER BY id LIMIT $1",
                )
                .bind(row::number(limit))
                .fetch_all(&mut *looking)
                .await
                .map_err($failed(READ))?;
                looking.commit().await.map_err($failed(READ))?;
                let mut worded = u64::from(waits);
                while worded > 0 {
                    let mut transaction = self.$write(WRITE).await?;
                    worded = word(&mut transaction).await?;
                    transaction.commit().await.map_err($failed(WRITE))?;
                }
                let mut swept = 0;
                for document in gone {
                    let mut transaction = self.$write(WRITE).await?;
                    let found: Option<(String, String, String, String)> = query_as(
                        "UPDATE documents SET graphed = NULL WHERE id = $1 AND text IS NULL AND graphed IS NOT NULL
                         RETURNING tenant, agent, for_user, path",
                    )
                    .bind(document)
                    .fetch_optional(&mut *transaction)
                    .await
                    .map_err($failed(WRITE))?;
                    if let Some((tenant, agent, user, path)) = found {
                        let owner = GraphOwner {
                            tenant: row::word("a document's tenant", &tenant)?,
                            agent: document_rules::agent_of(&agent)?,
                            user: document_rules::user_of(&user)?,
                        };
                        let owner = hold_owner(&mut transaction, &owner).await?;
                        let facts = unsay(&mut transaction, owner, &path).await?;
                        settle(&mut transaction, &tenant, owner, &facts).await?;
                        swept += 1;
                    }
                    transaction.commit().await.map_err($failed(WRITE))?;
                }
                Ok(swept)
            }

            async fn entities(&self, asked: &EntityQuery) -> Result<Vec<FoundEntity>, StoreError> {
                let written = asked.text.as_deref().map(words::asked_as_written).unwrap_or_default();
                let wanted: Vec<String> = written.iter().map(|(word, _)| word.clone()).collect();
                if asked.limit == 0 || asked.text.is_some() && wanted.is_empty() {
                    return Ok(Vec::new());
                }
                let mut looking = self.$look(READ).await?;
                let owners = owners_of(&mut looking, &asked.reader).await?;
                let found = match &asked.text {
                    None => listed(&mut looking, &owners, asked).await?,
                    Some(_) => searched(&mut looking, &owners, asked, wanted).await?,
                };
                looking.commit().await.map_err($failed(READ))?;
                let told = |entity: Entity| {
                    let words = words::matched(&written, &rank::text_of(&entity.said));
                    FoundEntity { entity, words }
                };
                Ok(found.into_iter().map(told).collect())
            }

            async fn entities_in(
                &self,
                reader: &MemoryReader,
                places: &[(MemoryOwner, GraphSource)],
                as_of: Option<UnixMillis>,
            ) -> Result<Vec<Entity>, StoreError> {
                let mut looking = self.$look(READ).await?;
                let owners = owners_of(&mut looking, reader).await?;
                let (mut found, mut seen) = (Vec::new(), HashSet::new());
                for (whose, place) in places {
                    for (owner, _) in owners.iter().filter(|(_, owner)| owner == whose) {
                        let mut facts: Vec<String> = query_scalar(
                            "SELECT DISTINCT fact FROM graph_mentions WHERE owner = $1 AND path = $2
                             AND first_line <= $4 AND last_line >= $3 AND is_relation = $5 ORDER BY fact LIMIT 50",
                        )
                        .bind(owner)
                        .bind(&place.path)
                        .bind(row::number(place.start_line))
                        .bind(row::number(place.end_line))
                        .bind(false)
                        .fetch_all(&mut *looking)
                        .await
                        .map_err($failed(READ))?;
                        facts.retain(|fact| seen.insert(fact.clone()));
                        found.extend(load(&mut looking, *owner, *whose, &facts, as_of).await?);
                    }
                }
                looking.commit().await.map_err($failed(READ))?;
                Ok(found)
            }

            async fn walk_graph(&self, asked: &GraphWalk) -> Result<Walked, StoreError> {
                let mut looking = self.$look(READ).await?;
                let mut walked = Walked::default();
                for (owner, whose) in owners_of(&mut looking, &asked.reader).await? {
                    walk(&mut looking, owner, whose, asked, &mut walked).await?;
                }
                looking.commit().await.map_err($failed(READ))?;
                Ok(walked)
            }

            async fn forget_entity(&self, owner: &GraphOwner, id: EntityId) -> Result<bool, StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                let owner = hold_owner(&mut transaction, owner).await?;
                let removed = remove_entity(&mut transaction, owner, &id.to_string()).await?;
                transaction.commit().await.map_err($failed(WRITE))?;
                Ok(removed)
            }

            async fn merge_entities(
                &self,
                owner: &GraphOwner,
                keep: EntityId,
                gone: EntityId,
            ) -> Result<(), StoreError> {
                if keep == gone {
                    let why = "an entity is not merged with itself; name two".to_owned();
                    return Err(StoreError::Refused { what: WRITE, why });
                }
                let mut transaction = self.$write(WRITE).await?;
                let tenant = owner.tenant.as_str();
                let owner = hold_owner(&mut transaction, owner).await?;
                for id in [keep, gone] {
                    let there: i64 =
                        query_scalar("SELECT count(*) FROM graph_entities WHERE owner = $1 AND id = $2")
                            .bind(owner)
                            .bind(id.to_string())
                            .fetch_one(&mut *transaction)
                            .await
                            .map_err($failed(WRITE))?;
                    if there == 0 {
                        return Err(no_entity(id));
                    }
                }
                let (keep, gone) = (keep.to_string(), gone.to_string());
                for sql in [
                    "UPDATE graph_mentions SET fact = $2 WHERE owner = $1 AND fact = $3",
                    "UPDATE graph_relations SET source = $2 WHERE owner = $1 AND source = $3",
                    "UPDATE graph_relations SET target = $2 WHERE owner = $1 AND target = $3",
                    "DELETE FROM graph_entities WHERE owner = $1 AND id = $3 AND id <> $2",
                ] {
                    query(sql)
                        .bind(owner)
                        .bind(&keep)
                        .bind(&gone)
                        .execute(&mut *transaction)
                        .await
                        .map_err($failed(WRITE))?;
                }
                unite_relations(&mut transaction, tenant, owner, &keep).await?;
                settle_entity(&mut transaction, tenant, owner, &keep).await?;
                transaction.commit().await.map_err($failed(WRITE))
            }

            async fn part_entities(
                &self,
                owner: &GraphOwner,
                one: EntityId,
                other: EntityId,
            ) -> Result<bool, StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                let owner = hold_owner(&mut transaction, owner).await?;
                let (one, other) = ordered(one, other);
                let parted = query("UPDATE graph_pairs SET apart = $4 WHERE owner = $1 AND one = $2 AND other = $3")
                    .bind(owner)
                    .bind(one)
                    .bind(other)
                    .bind(true)
                    .execute(&mut *transaction)
                    .await
                    .map_err($failed(WRITE))?;
                transaction.commit().await.map_err($failed(WRITE))?;
                Ok(parted.rows_affected() > 0)
            }

            async fn entity_pairs(
                &self,
                reader: &MemoryReader,
                limit: usize,
            ) -> Result<Vec<EntityPair>, StoreError> {
                let mut looking = self.$look(READ).await?;
                let mut pairs = Vec::new();
                for (owner, whose) in owners_of(&mut looking, reader).await? {
                    let rows: Vec<(String, String, f64)> = query_as(
                        "SELECT one, other, likeness FROM graph_pairs WHERE owner = $1 AND apart = $2
                         ORDER BY likeness DESC, one, other LIMIT $3",
                    )
                    .bind(owner)
                    .bind(false)
                    .bind(row::number(limit))
                    .fetch_all(&mut *looking)
                    .await
                    .map_err($failed(READ))?;
                    for (one, other, likeness) in rows {
                        let mut both = load(&mut looking, owner, whose, &[one, other], None).await?.into_iter();
                        if let (Some(one), Some(other)) = (both.next(), both.next()) {
                            pairs.push(EntityPair { one, other, likeness });
                        }
                    }
                }
                looking.commit().await.map_err($failed(READ))?;
                pairs.sort_by(|one, other| other.likeness.total_cmp(&one.likeness));
                pairs.truncate(limit);
                Ok(pairs)
            }

            async fn claim_unextracted(
                &self,
                now: UnixMillis,
                quiet: UnixMillis,
                lease: Duration,
                limit: usize,
            ) -> Result<Vec<ExtractionWork>, StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                let rows: Vec<(String, String, String, String, i64, i64, Vec<u8>)> = query_as(CLAIM)
                    .bind(now.0)
                    .bind(quiet.0)
                    .bind(now.0.saturating_add(row::number(lease.as_millis())))
                    .bind(row::number(limit))
                    .fetch_all(&mut *transaction)
                    .await
                    .map_err($failed(WRITE))?;
                transaction.commit().await.map_err($failed(WRITE))?;
                rows.into_iter()
                    .map(|(tenant, agent, user, path, version, tries, text)| {
                        work((tenant, agent, user, path), version, tries, text)
                    })
                    .collect()
            }

            async fn mark_unextracted(&self, tenant: &TenantId) -> Result<u64, StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                // No document has version 0. One that was never extracted waits already.
                let marked = query(
                    "UPDATE documents SET graphed = CASE WHEN graphed IS NULL THEN NULL ELSE 0 END,
                         graph_after = 0, graph_tries = 0, graph_error = NULL
                     WHERE tenant = $1 AND shelf = 'memory' AND text IS NOT NULL",
                )
                .bind(tenant.as_str())
                .execute(&mut *transaction)
                .await
                .map_err($failed(WRITE))?;
                transaction.commit().await.map_err($failed(WRITE))?;
                Ok(marked.rows_affected())
            }

            async fn fail_extraction(
                &self,
                work: &ExtractionWork,
                error: &str,
                next: UnixMillis,
            ) -> Result<(), StoreError> {
                let key = &work.key;
                let mut transaction = self.$write(WRITE).await?;
                query(
                    "UPDATE documents SET graph_error = $7, graph_after = $8
                     WHERE tenant = $1 AND agent = $2 AND for_user = $3 AND shelf = $4 AND path = $5 AND version = $6",
                )
                .bind(key.tenant.as_str())
                .bind(document_rules::agent(key.agent.as_ref()))
                .bind(document_rules::user(key.user.as_ref()))
                .bind(key.shelf.name())
                .bind(&key.path)
                .bind(row::number(work.version))
                .bind(error.replace('\0', "\u{fffd}"))
                .bind(next.0)
                .execute(&mut *transaction)
                .await
                .map_err($failed(WRITE))?;
                transaction.commit().await.map_err($failed(WRITE))
            }

            async fn graph_state(&self, tenant: &TenantId) -> Result<GraphState, StoreError> {
                let mut looking = self.$look(READ).await?;
                let (entities, relations, doubtful, extracted, unextracted): (i64, i64, i64, i64, i64) = query_as(
                    "SELECT (SELECT count(*) FROM graph_entities WHERE tenant = $1),
                         (SELECT count(*) FROM graph_relations WHERE tenant = $1),
                         (SELECT count(*) FROM graph_pairs WHERE tenant = $1 AND apart = $2),
                         (SELECT count(*) FROM documents WHERE tenant = $1 AND text IS NOT NULL AND graphed = version),
                         (SELECT count(*) FROM documents WHERE tenant = $1 AND text IS NOT NULL AND shelf = 'memory'
                             AND (graphed IS NULL OR graphed <> version))",
                )
                .bind(tenant.as_str())
                .bind(false)
                .fetch_one(&mut *looking)
                .await
                .map_err($failed(READ))?;
                let rows: Vec<(String, String, String, String, i64, i64, String)> = query_as(
                    "SELECT tenant, agent, for_user, path, graph_tries, graph_after, graph_error FROM documents
                     WHERE tenant = $1 AND graph_error IS NOT NULL AND text IS NOT NULL
                     ORDER BY graph_tries DESC, id LIMIT 10",
                )
                .bind(tenant.as_str())
                .fetch_all(&mut *looking)
                .await
                .map_err($failed(READ))?;
                looking.commit().await.map_err($failed(READ))?;
                let failure = |(tenant, agent, user, path, tries, next, error)| {
                    failure((tenant, agent, user, path), tries, next, error)
                };
                Ok(GraphState {
                    entities: row::count(entities)?,
                    relations: row::count(relations)?,
                    doubtful: row::count(doubtful)?,
                    extracted: row::count(extracted)?,
                    unextracted: row::count(unextracted)?,
                    failures: rows.into_iter().map(failure).collect::<Result<_, _>>()?,
                })
            }
        }
    };
}

pub(crate) use graph_store;
