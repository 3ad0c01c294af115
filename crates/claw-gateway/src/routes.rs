//! Every path of the gateway.

use axum::http::Method;
use axum::routing::MethodRouter;
use clawsmith::app::access::Permission as May;

use crate::api::Access::{Connect, Key, Needs, Open};
use crate::api::{Api, Mounted};
use crate::{
    Gateway, agents, approvals, completions, custom, events, graph, health, keys_and_users, mcp, memory,
    metrics, openapi, policy, programs, records, reload, responses, sessions, settings, skills, tools, undo,
    ws,
};

/// The routes, with the service that answers at `/mcp`.
pub(crate) fn table(served: MethodRouter<Gateway>) -> Api {
    let mut api = Api::new();
    api.group("tools")
        .on("GET /v1/tools", Needs(May::ReadTools), "List the tools that an agent has", tools::list)
        .on("POST /v1/tools/invoke", Needs(May::CallTools), "Call a tool", tools::invoke)
        .on("GET /v1/tools/custom", Key, "List custom tools", custom::list)
        .on("POST /v1/tools/custom", Key, "Define a custom tool", custom::create)
        .on("GET /v1/tools/custom/{name}", Key, "Show a custom tool", custom::get)
        .on("PATCH /v1/tools/custom/{name}", Key, "Change a custom tool", custom::update)
        .on("DELETE /v1/tools/custom/{name}", Key, "Remove a custom tool", custom::remove);
    api.group("models")
        .on("GET /v1/models", Needs(May::ReadAgents), "List the agents, as models", completions::models)
        .on(
            "POST /v1/chat/completions",
            Needs(May::WriteSessions),
            "Ask an agent, in the format of OpenAI's chat completions",
            completions::create,
        )
        .on(
            "POST /v1/responses",
            Needs(May::WriteSessions),
            "Ask an agent, in the format of OpenAI's responses",
            responses::create,
        )
        .on(
            "GET /v1/responses/{response}",
            Needs(May::ReadSessions),
            "Show an earlier response",
            responses::get,
        );
    api.group("sessions")
        .on("GET /v1/sessions", Needs(May::ReadSessions), "List your own sessions", sessions::list)
        .on("GET /v1/sessions/{session}", Needs(May::ReadSessions), "Show a session", sessions::get)
        .on("PATCH /v1/sessions/{session}", Needs(May::WriteSessions), "Rename a session", sessions::rename)
        .on("DELETE /v1/sessions/{session}", Needs(May::WriteSessions), "Remove a session", sessions::remove)
        .on("POST /v1/sessions/{session}/fork", Needs(May::WriteSessions), "Fork a session", sessions::fork)
        .on(
            "GET /v1/sessions/{session}/messages",
            Needs(May::ReadSessions),
            "Show the messages of a session, the latest page first",
            sessions::messages,
        )
        .on(
            "GET /v1/sessions/{session}/events",
            Needs(May::ReadSessions),
            "Follow a session by server-sent events",
            events::follow,
        )
        .on(
            "GET /v1/events",
            Needs(May::ReadSessions),
            "Follow many sessions by server-sent events",
            events::follow_many,
        )
        .on(
            "GET /v1/runs",
            Needs(May::ReadSessions),
            "List runs: your own, or those of the tenant",
            sessions::runs,
        )
        .on("GET /v1/runs/{run}", Needs(May::ReadSessions), "Show a run", sessions::run)
        .on("POST /v1/runs/{run}/cancel", Needs(May::WriteSessions), "Stop a run", sessions::cancel)
        .on("GET /v1/ws", Connect, "Open a WebSocket: requests, answers and events", ws::open);
    api.group("approvals")
        .on("GET /v1/approvals", Needs(May::ReadApprovals), "List the pending approvals", approvals::list)
        .on("GET /v1/approvals/{approval}", Needs(May::ReadApprovals), "Show an approval", approvals::get)
        .on(
            "POST /v1/approvals/{approval}/answer",
            Needs(May::AnswerApprovals),
            "Approve or deny",
            approvals::answer,
        );
    api.group("approvals")
        .on("GET /v1/rules", Needs(May::ManageRules), "List remembered rules", approvals::rules)
        .on("GET /v1/rules/{rule}", Needs(May::ManageRules), "Show a remembered rule", approvals::rule)
        .on(
            "DELETE /v1/rules/{rule}",
            Needs(May::ManageRules),
            "Revoke a remembered rule",
            approvals::revoke_rule,
        );
    api.group("agents")
        .on("GET /v1/agents", Needs(May::ReadAgents), "List the agents", agents::list)
        .on("POST /v1/agents", Needs(May::WriteAgents), "Add an agent", agents::create)
        .on("GET /v1/agents/{agent}", Needs(May::ReadAgents), "Show an agent", agents::get)
        .on("PATCH /v1/agents/{agent}", Needs(May::WriteAgents), "Change an agent", agents::update)
        .on("DELETE /v1/agents/{agent}", Needs(May::WriteAgents), "Remove an agent", agents::remove)
        .on("GET /v1/agents/{agent}/files", Needs(May::WriteAgents), "List context files", agents::files)
        .on(
            "GET /v1/agents/{agent}/files/{file}",
            Needs(May::WriteAgents),
            "Read a context file",
            agents::file,
        )
        .on(
            "PUT /v1/agents/{agent}/files/{file}",
            Needs(May::WriteAgents),
            "Write a context file",
            agents::write_file,
        )
        .on(
            "DELETE /v1/agents/{agent}/files/{file}",
            Needs(May::WriteAgents),
            "Remove a context file",
            agents::remove_file,
        );
    api.group("access")
        .ids("access")
        .on("GET /v1/api-keys", Needs(May::ManageAccess), "List API keys", keys_and_users::keys)
        .on("POST /v1/api-keys", Needs(May::ManageAccess), "Create an API key", keys_and_users::create_key)
        .on("GET /v1/api-keys/{key}", Needs(May::ManageAccess), "Show an API key", keys_and_users::key)
        .on(
            "DELETE /v1/api-keys/{key}",
            Needs(May::ManageAccess),
            "Revoke an API key",
            keys_and_users::revoke_key,
        )
        .on("GET /v1/users", Needs(May::ManageAccess), "List users", keys_and_users::users)
        .on("POST /v1/users", Needs(May::ManageAccess), "Add a user", keys_and_users::add_user)
        .on("GET /v1/users/{user}", Needs(May::ManageAccess), "Show a user", keys_and_users::user)
        .on(
            "PATCH /v1/users/{user}",
            Needs(May::ManageAccess),
            "Change or disable a user",
            keys_and_users::edit_user,
        )
        .on("GET /v1/tenants", Needs(May::ManageAccess), "List tenants", keys_and_users::tenants)
        .on("POST /v1/tenants", Needs(May::ManageAccess), "Add a tenant", keys_and_users::add_tenant)
        .on("GET /v1/tenants/{tenant}", Needs(May::ManageAccess), "Show a tenant", keys_and_users::tenant)
        .on(
            "PATCH /v1/tenants/{tenant}",
            Needs(May::ManageAccess),
            "Change or disable a tenant",
            keys_and_users::edit_tenant,
        )
        .on(
            "GET /v1/tenant/rules",
            Needs(May::ReadSettings),
            "Show your tenant's tool rules",
            keys_and_users::tenant_rules,
        )
        .on(
            "PUT /v1/tenant/rules",
            Needs(May::WriteSettings),
            "Write your tenant's tool rules",
            keys_and_users::set_tenant_rules,
        );
    api.group("settings")
        .on(
            "GET /v1/settings/tools",
            Needs(May::ReadSettings),
            "List settings of tools",
            settings::tool_settings,
        )
        .on(
            "GET /v1/settings/tools/{tool}",
            Needs(May::ReadSettings),
            "Show settings of a tool",
            settings::settings_of_tool,
        )
        .on(
            "PUT /v1/settings/tools/{tool}",
            Needs(May::WriteSettings),
            "Write settings of a tool",
            settings::put_tool_settings,
        )
        .on(
            "DELETE /v1/settings/tools/{tool}",
            Needs(May::WriteSettings),
            "Remove settings of a tool",
            settings::remove_tool_settings,
        )
        .on("GET /v1/secrets", Needs(May::ReadSettings), "List names of secrets", settings::secrets)
        .on("PUT /v1/secrets/{secret}", Needs(May::WriteSettings), "Seal a secret", settings::put_secret)
        .on(
            "DELETE /v1/secrets/{secret}",
            Needs(May::WriteSettings),
            "Remove a secret",
            settings::remove_secret,
        )
        .on("GET /v1/programs", Needs(May::ReadSettings), "List credentialed programs", programs::list)
        .on("GET /v1/programs/{program}", Needs(May::ReadSettings), "Show a program", programs::get)
        .on(
            "PUT /v1/programs/{program}",
            Needs(May::DefinePrograms),
            "Register or replace a program",
            programs::put,
        )
        .on(
            "POST /v1/programs/{program}/accept",
            Needs(May::DefinePrograms),
            "Accept a program's file as it is now",
            programs::accept,
        )
        .on(
            "POST /v1/programs/{program}/test",
            Needs(May::DefinePrograms),
            "Check a program's arguments, or run it",
            programs::test,
        )
        .on("DELETE /v1/programs/{program}", Needs(May::WriteSettings), "Remove a program", programs::remove)
        .on("GET /v1/providers", Needs(May::ReadSettings), "List providers of models", settings::providers)
        .on(
            "GET /v1/providers/{provider}",
            Needs(May::ReadSettings),
            "Show a provider of models",
            settings::provider,
        );
    api.group("skills")
        .on("GET /v1/skills", Needs(May::ReadSkills), "List the skills of an agent", skills::list)
        .on("GET /v1/skills/search", Needs(May::ReadSkills), "Search the skills of an agent", skills::search)
        .on("GET /v1/skills/{name}", Needs(May::ReadSkills), "Show a skill", skills::show)
        .on("DELETE /v1/skills/{name}", Needs(May::ManageSkills), "Remove a published skill", skills::remove)
        .on("POST /v1/skills/{name}/accept", Needs(May::ManageSkills), "Accept a skill", skills::accept)
        .on("POST /v1/skills/{name}/grants", Needs(May::ManageSkills), "Grant a skill", skills::grant)
        .on("DELETE /v1/skills/{name}/grants", Needs(May::ManageSkills), "Revoke a grant", skills::revoke);
    api.group("memory")
        .on("GET /v1/memory", Needs(May::ReadMemory), "List memory documents", memory::list)
        .on("GET /v1/memory/search", Needs(May::ReadMemory), "Search memory", memory::search)
        .on(
            "GET /v1/memory/status",
            Needs(May::ReadMemory),
            "Show the progress of memory indexing",
            memory::status,
        )
        .on("GET /v1/memory/document", Needs(May::ReadMemory), "Read a document", memory::read)
        .on("PUT /v1/memory/document", Needs(May::WriteMemory), "Write a document", memory::write)
        .on("DELETE /v1/memory/document", Needs(May::WriteMemory), "Remove a document", memory::forget);
    api.group("graph")
        .on("GET /v1/graph/search", Needs(May::ReadMemory), "Search the knowledge graph", graph::search)
        .on("GET /v1/graph/entities/{entity}", Needs(May::ReadMemory), "Show an entity", graph::show)
        .on("DELETE /v1/graph/entities/{entity}", Needs(May::WriteMemory), "Remove an entity", graph::forget)
        .on("POST /v1/graph/facts", Needs(May::WriteMemory), "Add entities and relations", graph::add)
        .on(
            "GET /v1/graph/pairs",
            Needs(May::ReadMemory),
            "List entities that may be duplicates",
            graph::pairs,
        )
        .on(
            "POST /v1/graph/pairs",
            Needs(May::WriteMemory),
            "Merge two entities, or record them as different",
            graph::merge,
        )
        .on("GET /v1/graph/export", Needs(May::ReadMemory), "Export the knowledge graph", graph::export)
        .on("GET /v1/graph/status", Needs(May::ReadMemory), "Show the state of extraction", graph::status);
    api.group("MCP")
        .on("GET /v1/mcp/servers", Needs(May::ManageMcp), "List MCP servers", mcp::list)
        .on("POST /v1/mcp/servers", Needs(May::ManageMcp), "Add or replace an MCP server", mcp::add)
        .on("GET /v1/mcp/servers/{server}", Needs(May::ManageMcp), "Show an MCP server", mcp::get)
        .on("DELETE /v1/mcp/servers/{server}", Needs(May::ManageMcp), "Remove an MCP server", mcp::remove)
        .on("POST /v1/mcp/servers/{server}/test", Needs(May::ManageMcp), "Connect to a server", mcp::test)
        .on("POST /v1/mcp/servers/{server}/pin", Needs(May::ManageMcp), "Accept definitions", mcp::pin)
        .on(
            "POST /v1/mcp/servers/{server}/login",
            Needs(May::RequestMcp),
            "Start an OAuth login at an MCP server",
            mcp::begin_login,
        )
        .on(
            "POST /v1/mcp/servers/{server}/login/finish",
            Needs(May::RequestMcp),
            "Finish a login with the address that the browser was redirected to",
            mcp::finish_login,
        )
        .on(
            "DELETE /v1/mcp/servers/{server}/login",
            Needs(May::RequestMcp),
            "Log out of an MCP server",
            mcp::end_login,
        )
        .on("PUT /v1/mcp/servers/{server}/grants", Needs(May::ManageMcp), "Grant access", mcp::grant)
        .on("DELETE /v1/mcp/servers/{server}/grants", Needs(May::ManageMcp), "Revoke access", mcp::revoke)
        .on("GET /v1/mcp/requests", Needs(May::RequestMcp), "List requests for access", mcp::requests)
        .on("POST /v1/mcp/requests", Needs(May::RequestMcp), "Ask for access", mcp::request)
        .on(
            "GET /v1/mcp/requests/events",
            Needs(May::RequestMcp),
            "Follow requests for access by server-sent events",
            events::follow_requests,
        )
        .on("POST /v1/mcp/requests/{request}/review", Needs(May::ManageMcp), "Answer a request", mcp::review)
        .mount(
            Mounted { path: "/mcp", methods: &[Method::GET, Method::POST, Method::DELETE] },
            Key,
            "Clawsmith's tools, for MCP clients",
            served,
        );
    api.group("policy")
        .on(
            "POST /v1/policy/explain",
            Needs(May::ReadPolicy),
            "Explain why an agent has a tool or not",
            policy::explain,
        )
        .on("GET /v1/configuration", Needs(May::ReadPolicy), "Show the configuration in force", reload::show)
        .on("POST /v1/policy/lint", Needs(May::ReadPolicy), "Find doubtful rules in the policy", policy::lint)
        .on("POST /v1/policy/diff", Needs(May::ReadPolicy), "Compare a configuration", policy::diff)
        .on(
            "POST /v1/policy/replay",
            Needs(May::ReadPolicy),
            "Judge recorded calls again by another policy",
            policy::replay,
        );
    api.group("records")
        .on(
            "GET /v1/ledger",
            Needs(May::ReadLedger),
            "List ledger entries: calls refused, intended and done",
            records::ledger,
        )
        .on("GET /v1/usage", Needs(May::ReadLedger), "Show total tokens and cost", records::usage)
        .on(
            "GET /v1/usage/days",
            Needs(May::ReadLedger),
            "Tokens and cost by day and model",
            records::usage_days,
        )
        .on(
            "GET /v1/ledger/verify",
            Needs(May::VerifyLedger),
            "Check that the ledger is intact",
            records::verify,
        )
        .on("GET /v1/undo", Needs(May::ReadLedger), "List changes that can be undone", undo::list)
        .on("GET /v1/undo/{change}", Needs(May::ReadLedger), "Show a change and its diff", undo::show)
        .on("POST /v1/undo/{change}/apply", Needs(May::CallTools), "Undo a change", undo::apply);
    api.group("operation")
        .on("GET /health", Open, "Check that the gateway is alive", health::alive)
        .on("GET /ready", Open, "Check whether the gateway is ready", health::ready)
        .on("GET /metrics", Needs(May::ReadMetrics), "Metrics for Prometheus", metrics::show)
        .on("GET /openapi.json", Open, "This document", openapi::show)
        .on("GET /docs", Open, "A page that shows this document", openapi::page)
        .on("GET /docs/page.js", Open, "The script of that page", openapi::script)
        .on("GET /docs/page.css", Open, "The style of that page", openapi::style);
    api
}
