use std::collections::BTreeSet;

use super::*;

/// The beginning of the row of a permission in the table of docs/gateway.md.
const fn row(permission: Permission) -> &'static str {
    match permission {
        Permission::ActForUsers => "act for other users",
        Permission::ReadTools => "list tools",
        Permission::CallTools => "call tools",
        Permission::ReadSessions => "read your own sessions and runs",
        Permission::WriteSessions => "send messages",
        Permission::ReadApprovals => "see your own approvals",
        Permission::AnswerApprovals => "answer your own approvals",
        Permission::ReadAgents => "list agents",
        Permission::ReadSkills => "see and search skills",
        Permission::ManageSkills => "accept, grant and remove skills",
        Permission::ReadLedger => "read your own ledger entries",
        Permission::ReadMemory => "search and read memory",
        Permission::WriteMemory => "write and remove your own memory documents",
        Permission::WriteSharedMemory => "write and remove those of agents",
        Permission::ReadPolicy => "lint and compare policies",
        Permission::WriteAgents => "add, change and remove agents",
        Permission::ReadSettings => "see tool settings",
        Permission::WriteSettings => "change tool settings",
        Permission::ManageRules => "see and revoke remembered rules",
        Permission::ReadMetrics => "read metrics",
        Permission::ManageAccess => "see and change API keys",
        Permission::DefineTools => "see and define [custom tools]",
        Permission::ReadTenantLedger | Permission::VerifyLedger => "read those of all users",
        Permission::UndoForTenant => "undo those of all users",
        Permission::ReadTenantApprovals => "see the approvals of all users",
        Permission::AnswerForTenant => "answer the approvals of all users",
        Permission::ReadTenantRuns | Permission::FollowTenant => "see the runs of all users",
        Permission::StopTenantRuns => "cancel the runs of all users",
        Permission::RequestMcp => "call tools at `/mcp`",
        Permission::ManageMcp => "see and change MCP servers",
        Permission::DefinePrograms => "define MCP servers",
    }
}

/// Rows that say more of a permission that has another row.
const MORE: [&str; 3] =
    ["define MCP servers with private addresses", "see and change tenants", "undo your own file changes"];

#[test]
fn the_table_of_the_docs_is_this_one() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateway.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let table = docs.lines().skip_while(|line| *line != "| to | scope | role |").skip(2);
    let rows: Vec<Vec<&str>> = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let mut met = BTreeSet::new();
    for permission in Permission::ALL {
        let (scope, role) = permission.needs();
        let begins = |row: &&Vec<&str>| row[0].starts_with(self::row(permission));
        // The shortest: `call tools` begins another row too.
        let found = rows.iter().filter(begins).min_by_key(|row| row[0].len());
        let found = found.unwrap_or_else(|| panic!("no row of {permission:?}"));
        assert_eq!(found[1], format!("`{scope}`"), "{permission:?}");
        let roles: Vec<&str> = found[2].split([' ', ',']).collect();
        assert!(roles.contains(&role.name()), "{permission:?}: {role} {roles:?}");
        met.insert(found[0]);
    }
    let rest = rows.iter().filter(|row| !met.contains(row[0]));
    for row in rest {
        assert!(MORE.iter().any(|more| row[0].starts_with(more)), "no permission is {row:?}");
    }
}

#[test]
fn every_permission_is_in_the_list_once() {
    let listed: BTreeSet<String> =
        Permission::ALL.iter().map(|permission| format!("{permission:?}")).collect();
    assert_eq!(listed.len(), Permission::ALL.len());
}
