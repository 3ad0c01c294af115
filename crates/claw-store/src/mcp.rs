//! MCP servers, grants, tools and requests: one implementation for both databases.
//!
//! The rows are JSON texts with keys beside them, so the statements are the same in both dialects. A
//! transaction that changes a server's rows first locks the server's own row; SQLite has one writer and needs
//! no lock.

use claw_core::store::StoreError;
use claw_core::{AccessRequestId, ServerName};

pub(crate) const WRITE: &str = "could not write the MCP server's data";
pub(crate) const READ: &str = "could not read the MCP servers";

/// Returns the error for an unknown server.
pub(crate) fn no_server(name: &ServerName) -> StoreError {
    let why = format!("there is no MCP server `{name}`; `clawsmith mcp list` lists all servers");
    StoreError::Refused { what: "unknown MCP server", why }
}

/// Returns the error for an unknown request.
pub(crate) fn no_request(id: AccessRequestId) -> StoreError {
    let why = format!("there is no request `{id}`; `clawsmith mcp requests` lists all requests");
    StoreError::Refused { what: "unknown request", why }
}

/// The request was answered before.
pub(crate) fn reviewed_before(id: AccessRequestId, approved: bool) -> StoreError {
    let how = if approved { "approved" } else { "rejected" };
    let why = format!("request `{id}` was {how} before; change the grant instead");
    StoreError::Refused { what: "could not review the request", why }
}

/// Implements [`McpStore`](claw_core::store::McpStore) for a backend. `$lock` is the SQL suffix that locks a
/// row. The backend has `access`, which returns what `read_access` reads, and `mcp_changed`, which announces a
/// change.
macro_rules! mcp_store {
    ($store:ty, read: $read:ident, write: $write:ident, failed: $failed:path, lock: $lock:literal) => {
        use std::collections::BTreeMap;

        use claw_core::port::UnixMillis;
        use claw_core::store::{
            McpAccess, McpGrant, McpRequest, McpReview, McpServer, McpStore, McpSubject, McpTool, StoreError, compare_tools,
        };
        use claw_core::{AccessRequestId, AgentId, ServerName, TenantId, UserId};
        use serde_json::Value;
        use sqlx::{query, query_as, query_scalar};

        use crate::mcp::{READ, WRITE, no_request, no_server, reviewed_before};
        use crate::row;

        const PUT_GRANT: &str = "INSERT INTO mcp_grants (tenant, server, subject, body, at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant, server, subject) DO UPDATE SET body = excluded.body, at = excluded.at";
        const PUT_TOOL: &str = "INSERT INTO mcp_tools (tenant, server, name, body, at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant, server, name) DO UPDATE SET body = excluded.body, at = excluded.at";
        const SERVER: &str = concat!("SELECT body FROM mcp_servers WHERE tenant = $1 AND name = $2", $lock);
        const ACCESS: &str = "SELECT s.body, g.body FROM mcp_servers s
             LEFT JOIN mcp_grants g ON g.tenant = s.tenant AND g.server = s.name AND g.subject IN ($3, $4)
             WHERE s.tenant = $1 AND s.name = $2 ORDER BY g.subject";
        const TOOLS: &str = "SELECT body FROM mcp_tools WHERE tenant = $1 AND server = $2 ORDER BY name";

        /// Reads and locks the server in a transaction; refuses an unknown one.
        macro_rules! held {
            ($transaction:expr, $tenant:expr, $name:expr) => {{
                let body: Option<String> = query_scalar(SERVER)
                    .bind($tenant.as_str())
                    .bind($name.as_str())
                    .fetch_optional(&mut *$transaction)
                    .await
                    .map_err($failed(WRITE))?;
                let body = body.ok_or_else(|| no_server($name))?;
                row::json::<McpServer>("an MCP server", &body)?
            }};
        }

        /// Stores one row whose key has three parts.
        macro_rules! put {
            ($sql:expr, $transaction:expr, $tenant:expr, ($server:expr, $key:expr), $value:expr, $at:expr) => {
                query($sql)
                    .bind($tenant.as_str())
                    .bind($server.as_str())
                    .bind($key)
                    .bind(row::text($value)?)
                    .bind($at.0)
                    .execute(&mut *$transaction)
                    .await
                    .map_err($failed(WRITE))?
            };
        }

        impl $store {
            async fn bodies<T: serde::de::DeserializeOwned>(
                &self,
                sql: &'static str,
                tenant: &TenantId,
                what: &str,
            ) -> Result<Vec<T>, StoreError> {
                let rows: Vec<String> = query_scalar(sql)
                    .bind(tenant.as_str())
                    .fetch_all(&self.$read)
                    .await
                    .map_err($failed(READ))?;
                rows.iter().map(|body| row::json(what, body)).collect()
            }

            /// Reads a server with its grants of these subjects.
            async fn read_access(
                &self,
                tenant: &TenantId,
                server: &ServerName,
                subjects: &[McpSubject; 2],
            ) -> Result<Option<McpAccess>, StoreError> {
                let rows: Vec<(String, Option<String>)> = query_as(ACCESS)
                    .bind(tenant.as_str())
                    .bind(server.as_str())
                    .bind(subjects[0].to_string())
                    .bind(subjects[1].to_string())
                    .fetch_all(&self.$read)
                    .await
                    .map_err($failed(READ))?;
                let Some((server, _)) = rows.first() else { return Ok(None) };
                let server = row::json("an MCP server", server)?;
                let grants = rows.iter().filter_map(|(_, grant)| grant.as_ref());
                let grants = grants.map(|body| row::json("an MCP grant", body)).collect::<Result<_, _>>()?;
                Ok(Some(McpAccess { server, grants }))
            }
        }

        #[async_trait::async_trait]
        impl McpStore for $store {
            async fn mcp_servers(&self, tenant: &TenantId) -> Result<Vec<McpServer>, StoreError> {
                let sql = "SELECT body FROM mcp_servers WHERE tenant = $1 ORDER BY name";
                self.bodies(sql, tenant, "an MCP server").await
            }

            async fn put_mcp_server(
                &self,
                tenant: &TenantId,
                server: &McpServer,
                at: UnixMillis,
            ) -> Result<(), StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                query(
                    "INSERT INTO mcp_servers (tenant, name, body, at) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body, at = excluded.at",
                )
                .bind(tenant.as_str())
                .bind(server.name.as_str())
                .bind(row::text(server)?)
                .bind(at.0)
                .execute(&mut *transaction)
                .await
                .map_err($failed(WRITE))?;
                transaction.commit().await.map_err($failed(WRITE))?;
                self.mcp_changed()?;
                Ok(())
            }

            async fn remove_mcp_server(
                &self,
                tenant: &TenantId,
                name: &ServerName,
            ) -> Result<bool, StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                let mut removed = 0;
                for sql in [
                    "DELETE FROM mcp_grants WHERE tenant = $1 AND server = $2",
                    "DELETE FROM mcp_tools WHERE tenant = $1 AND server = $2",
                    "DELETE FROM mcp_requests WHERE tenant = $1 AND server = $2",
                    "DELETE FROM mcp_servers WHERE tenant = $1 AND name = $2",
                ] {
                    let deleted = query(sql)
                        .bind(tenant.as_str())
                        .bind(name.as_str())
                        .execute(&mut *transaction)
                        .await
                        .map_err($failed(WRITE))?;
                    removed = deleted.rows_affected();
                }
                transaction.commit().await.map_err($failed(WRITE))?;
                self.mcp_changed()?;
                Ok(removed > 0)
            }

            async fn mcp_grants(&self, tenant: &TenantId) -> Result<Vec<McpGrant>, StoreError> {
                let sql = "SELECT body FROM mcp_grants WHERE tenant = $1 ORDER BY server, subject";
                self.bodies(sql, tenant, "an MCP grant").await
            }

            async fn mcp_access(
                &self,
                tenant: &TenantId,
                server: &ServerName,
                agent: &AgentId,
                user: Option<&UserId>,
            ) -> Result<Option<McpAccess>, StoreError> {
                let agent = McpSubject::Agent(agent.clone());
                let user = user.map_or_else(|| agent.clone(), |user| McpSubject::User(user.clone()));
                self.access(tenant, server, [agent, user]).await
            }

            async fn put_mcp_grant(
                &self,
                tenant: &TenantId,
                grant: &McpGrant,
                at: UnixMillis,
            ) -> Result<(), StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                held!(transaction, tenant, &grant.server);
                put!(PUT_GRANT, transaction, tenant, (grant.server, grant.subject.to_string()), grant, at);
                transaction.commit().await.map_err($failed(WRITE))?;
                self.mcp_changed()?;
                Ok(())
            }

            async fn remove_mcp_grant(
                &self,
                tenant: &TenantId,
                server: &ServerName,
                subject: &McpSubject,
            ) -> Result<bool, StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                let removed = query("DELETE FROM mcp_grants WHERE tenant = $1 AND server = $2 AND subject = $3")
                    .bind(tenant.as_str())
                    .bind(server.as_str())
                    .bind(subject.to_string())
                    .execute(&mut *transaction)
                    .await
                    .map_err($failed(WRITE))?;
                transaction.commit().await.map_err($failed(WRITE))?;
                self.mcp_changed()?;
                Ok(removed.rows_affected() > 0)
            }

            async fn mcp_tools(&self, tenant: &TenantId) -> Result<Vec<McpTool>, StoreError> {
                let sql = "SELECT body FROM mcp_tools WHERE tenant = $1 ORDER BY server, name";
                self.bodies(sql, tenant, "a tool of an MCP server").await
            }

            async fn list_mcp_tools(
                &self,
                tenant: &TenantId,
                server: &ServerName,
                listed: &BTreeMap<String, Value>,
                at: UnixMillis,
            ) -> Result<Vec<McpTool>, StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                let settings = held!(transaction, tenant, server);
                let rows: Vec<String> = query_scalar(TOOLS)
                    .bind(tenant.as_str())
                    .bind(server.as_str())
                    .fetch_all(&mut *transaction)
                    .await
                    .map_err($failed(WRITE))?;
                let known: Vec<McpTool> =
                    rows.iter().map(|body| row::json("a tool of an MCP server", body)).collect::<Result<_, _>>()?;
                let changed = compare_tools(server, &known, listed, settings.accept_new);
                for tool in &changed {
                    put!(PUT_TOOL, transaction, tenant, (server, tool.name.as_str()), tool, at);
                }
                transaction.commit().await.map_err($failed(WRITE))?;
                if !changed.is_empty() {
                    self.mcp_changed()?;
                }
                Ok(changed)
            }

            async fn accept_mcp_tool(
                &self,
                tenant: &TenantId,
                tool: &McpTool,
                at: UnixMillis,
            ) -> Result<bool, StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                held!(transaction, tenant, &tool.server);
                let sql = "SELECT body FROM mcp_tools WHERE tenant = $1 AND server = $2 AND name = $3";
                let body: Option<String> = query_scalar(sql)
                    .bind(tenant.as_str())
                    .bind(tool.server.as_str())
                    .bind(tool.name.as_str())
                    .fetch_optional(&mut *transaction)
                    .await
                    .map_err($failed(WRITE))?;
                let Some(body) = body else { return Ok(false) };
                let mut now: McpTool = row::json("a tool of an MCP server", &body)?;
                if now.proposed != tool.proposed || !now.accept() {
                    return Ok(false);
                }
                put!(PUT_TOOL, transaction, tenant, (tool.server, tool.name.as_str()), &now, at);
                transaction.commit().await.map_err($failed(WRITE))?;
                self.mcp_changed()?;
                Ok(true)
            }

            async fn mcp_requests(&self, tenant: &TenantId) -> Result<Vec<McpRequest>, StoreError> {
                let sql = "SELECT body FROM mcp_requests WHERE tenant = $1 ORDER BY id DESC";
                self.bodies(sql, tenant, "a request for an MCP server").await
            }

            async fn add_mcp_request(
                &self,
                tenant: &TenantId,
                request: &McpRequest,
            ) -> Result<(), StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                held!(transaction, tenant, &request.server);
                query("INSERT INTO mcp_requests (tenant, id, server, body, at) VALUES ($1, $2, $3, $4, $5)")
                    .bind(tenant.as_str())
                    .bind(request.id.to_string())
                    .bind(request.server.as_str())
                    .bind(row::text(request)?)
                    .bind(request.at.0)
                    .execute(&mut *transaction)
                    .await
                    .map_err($failed(WRITE))?;
                transaction.commit().await.map_err($failed(WRITE))?;
                self.mcp_changed()?;
                Ok(())
            }

            async fn review_mcp_request(
                &self,
                tenant: &TenantId,
                id: AccessRequestId,
                review: &McpReview,
            ) -> Result<McpRequest, StoreError> {
                let mut transaction = self.$write(WRITE).await?;
                let sql = concat!("SELECT body FROM mcp_requests WHERE tenant = $1 AND id = $2", $lock);
                let body: Option<String> = query_scalar(sql)
                    .bind(tenant.as_str())
                    .bind(id.to_string())
                    .fetch_optional(&mut *transaction)
                    .await
                    .map_err($failed(WRITE))?;
                let body = body.ok_or_else(|| no_request(id))?;
                let mut request: McpRequest = row::json("a request for an MCP server", &body)?;
                if let Some(before) = &request.review {
                    return Err(reviewed_before(id, before.approved));
                }
                request.review = Some(review.clone());
                query("UPDATE mcp_requests SET body = $3 WHERE tenant = $1 AND id = $2")
                    .bind(tenant.as_str())
                    .bind(id.to_string())
                    .bind(row::text(&request)?)
                    .execute(&mut *transaction)
                    .await
                    .map_err($failed(WRITE))?;
                if review.approved {
                    let sql = "SELECT body FROM mcp_grants WHERE tenant = $1 AND server = $2 AND subject = $3";
                    let over: Option<String> = query_scalar(sql)
                        .bind(tenant.as_str())
                        .bind(request.server.as_str())
                        .bind(request.subject.to_string())
                        .fetch_optional(&mut *transaction)
                        .await
                        .map_err($failed(WRITE))?;
                    let over = over.map(|body| row::json("an MCP grant", &body)).transpose()?;
                    let grant = request.grant(over);
                    let subject = grant.subject.to_string();
                    put!(PUT_GRANT, transaction, tenant, (grant.server, subject), &grant, review.at);
                }
                transaction.commit().await.map_err($failed(WRITE))?;
                self.mcp_changed()?;
                Ok(request)
            }
        }
    };
}

pub(crate) use mcp_store;
