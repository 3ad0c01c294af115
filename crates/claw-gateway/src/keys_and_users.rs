//! API keys, users and tenants. Nobody grants more than they have: see `Visitor::may_give`.

use std::time::Duration;

use clawsmith::app::access::KeyRequest;
use clawsmith::app::policy::PolicyFinding;
use clawsmith::app::settings::TenantTools;
use clawsmith::store::{
    AccessRole, Key, KeyLimits, KeyScopes, NewKey, Tenant, TenantChange, User, UserChange,
};
use clawsmith::{KeyId, TenantId, UnixMillis, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Body, Created, Json, Path, Query, Visit};
use crate::error::ApiError;
use crate::listing::ListQuery;

/// The longest that a key can hold, in days.
const LONGEST: u32 = 36_500;

/// Keys, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Keys {
    keys: Vec<Key>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A key to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyWish {
    /// The key's user; a missing user is added.
    user: UserId,
    /// The role of an added user; by default `operator`.
    role: Option<AccessRole>,
    /// The key's scopes.
    scopes: KeyScopes,
    /// The key's purpose, for display.
    #[serde(default)]
    label: String,
    /// The days until it expires; by default never.
    days: Option<u32>,
    /// The key's limits.
    #[serde(default)]
    limits: KeyLimits,
}

/// A created key. It is shown once.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KeyMade {
    /// The key itself.
    key: String,
    id: KeyId,
    user: Option<UserId>,
    scopes: KeyScopes,
    expires: Option<UnixMillis>,
    limits: KeyLimits,
}

/// Users, by id.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Users {
    users: Vec<User>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A user to be added.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserWish {
    id: UserId,
    /// The display name; by default the id.
    name: Option<String>,
    role: AccessRole,
}

/// A change of a user; a field that is left out stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserEdit {
    name: Option<String>,
    role: Option<AccessRole>,
    /// A disabled user is refused with every key.
    disabled: Option<bool>,
}

/// Tenants, by id.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tenants {
    tenants: Vec<Tenant>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A tenant to be added.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantWish {
    id: TenantId,
    /// The display name; by default the id.
    name: Option<String>,
}

/// A change of a tenant; a field that is left out stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantEdit {
    name: Option<String>,
    /// A disabled tenant is refused with every key.
    disabled: Option<bool>,
}

/// The tool rules of your tenant.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TenantRules {
    rules: TenantTools,
    /// Findings about rules that may not do what was meant.
    findings: Vec<PolicyFinding>,
}

pub(crate) async fn keys(visit: Visit, Query(wanted): Query<ListQuery>) -> Result<Json<Keys>, ApiError> {
    let texts = |key: &Key| {
        let user = key.new.user.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{} {} {user}", key.new.id, key.new.label)
    };
    let (keys, next) = wanted.page(visit.app().api_keys().await?, |key| key.new.id.to_string(), texts);
    Ok(Json(Keys { keys, next }))
}

pub(crate) async fn key(visit: Visit, Path(id): Path<KeyId>) -> Result<Json<Key>, ApiError> {
    let found = visit.app().api_keys().await?.into_iter().find(|key| key.new.id == id);
    found.map(Json).ok_or_else(|| ApiError::not_found(format!("there is no API key `{id}`")))
}

pub(crate) async fn user(visit: Visit, Path(id): Path<UserId>) -> Result<Json<User>, ApiError> {
    let found = visit.app().users().await?.into_iter().find(|user| user.id == id);
    found.map(Json).ok_or_else(|| ApiError::not_found(format!("there is no user `{id}`")))
}

pub(crate) async fn tenant(visit: Visit, Path(id): Path<TenantId>) -> Result<Json<Tenant>, ApiError> {
    visit.gateway.app().may_manage_tenants(visit.visitor())?;
    let found = visit.app().tenants().await?.into_iter().find(|tenant| tenant.id == id);
    found.map(Json).ok_or_else(|| ApiError::not_found(format!("there is no tenant `{id}`")))
}

pub(crate) async fn create_key(
    visit: Visit,
    Body(wish): Body<KeyWish>,
) -> Result<Created<KeyMade>, ApiError> {
    if wish.days.is_some_and(|days| !(1..=LONGEST).contains(&days)) {
        return Err(ApiError::invalid(format!("a key can be valid for 1 to {LONGEST} days")));
    }
    if wish.limits.per_minute == Some(0) {
        return Err(ApiError::invalid("`per_minute` must be at least 1"));
    }
    let request = KeyRequest {
        user: wish.user,
        role: wish.role.unwrap_or(AccessRole::Operator),
        label: wish.label,
        scopes: wish.scopes,
        lasts: wish.days.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        limits: wish.limits,
    };
    let (key, new) = visit.app().create_key_for(visit.visitor(), request).await?;
    let NewKey { id, user, scopes, expires, limits, .. } = new;
    Ok(Created(KeyMade { key: key.reveal().to_string(), id, user, scopes, expires, limits }))
}

pub(crate) async fn revoke_key(visit: Visit, Path(id): Path<KeyId>) -> Result<Json<Key>, ApiError> {
    let app = visit.app();
    app.may_revoke(visit.visitor(), id).await?;
    Ok(Json(app.revoke_key(&id.to_string()).await?))
}

pub(crate) async fn users(visit: Visit, Query(wanted): Query<ListQuery>) -> Result<Json<Users>, ApiError> {
    let users = visit.app().users().await?;
    let texts = |user: &User| format!("{} {}", user.id, user.name);
    let (users, next) = wanted.page(users, |user| user.id.to_string(), texts);
    Ok(Json(Users { users, next }))
}

pub(crate) async fn add_user(visit: Visit, Body(wish): Body<UserWish>) -> Result<Created<User>, ApiError> {
    visit.visitor().may_give(wish.role)?;
    Ok(Created(visit.app().add_user(wish.id, wish.name, wish.role).await?))
}

pub(crate) async fn edit_user(
    visit: Visit,
    Path(id): Path<UserId>,
    Body(edit): Body<UserEdit>,
) -> Result<Json<User>, ApiError> {
    let change = UserChange { name: edit.name, role: edit.role, disabled: edit.disabled };
    Ok(Json(visit.app().edit_user_for(visit.visitor(), &id, change).await?))
}

pub(crate) async fn tenants(
    visit: Visit,
    Query(wanted): Query<ListQuery>,
) -> Result<Json<Tenants>, ApiError> {
    visit.gateway.app().may_manage_tenants(visit.visitor())?;
    let tenants = visit.app().tenants().await?;
    let texts = |tenant: &Tenant| format!("{} {}", tenant.id, tenant.name);
    let (tenants, next) = wanted.page(tenants, |tenant| tenant.id.to_string(), texts);
    Ok(Json(Tenants { tenants, next }))
}

pub(crate) async fn add_tenant(
    visit: Visit,
    Body(wish): Body<TenantWish>,
) -> Result<Created<Tenant>, ApiError> {
    visit.gateway.app().may_manage_tenants(visit.visitor())?;
    Ok(Created(visit.app().add_tenant(wish.id, wish.name).await?))
}

pub(crate) async fn edit_tenant(
    visit: Visit,
    Path(id): Path<TenantId>,
    Body(edit): Body<TenantEdit>,
) -> Result<Json<Tenant>, ApiError> {
    visit.gateway.app().may_manage_tenants(visit.visitor())?;
    let change = TenantChange { name: edit.name, disabled: edit.disabled, policy: None };
    Ok(Json(visit.app().edit_tenant(&id, change).await?))
}

pub(crate) async fn tenant_rules(visit: Visit) -> Result<Json<TenantRules>, ApiError> {
    Ok(Json(TenantRules { rules: visit.app().tenant_rules().await?, findings: Vec::new() }))
}

pub(crate) async fn set_tenant_rules(
    visit: Visit,
    Body(rules): Body<TenantTools>,
) -> Result<Json<TenantRules>, ApiError> {
    let findings = visit.app().set_tenant_rules(&rules).await?;
    Ok(Json(TenantRules { rules, findings }))
}
