use std::collections::HashSet;

use super::*;

fn path(tenant: &str, agent: &str, user: Option<&str>) -> PathBuf {
    let user = user.map(|user| UserId::new(user).unwrap());
    let (tenant, agent) = (TenantId::new(tenant).unwrap(), AgentId::new(agent).unwrap());
    workspace_path(Path::new("/base"), &tenant, &agent, user.as_ref())
}

#[test]
fn names_a_directory_for_each_tenant_agent_and_user() {
    assert_eq!(path("main", "coder", None), Path::new("/base/main/coder/shared"));
    assert_eq!(path("main", "coder", Some("ann")), Path::new("/base/main/coder/user-ann"));
    assert_eq!(path("main", "coder", Some("a.b@c+D")), Path::new("/base/main/coder/user-a%2eb%40c%2b%44"));
}

#[test]
fn no_two_ids_share_a_directory() {
    let long = |end: &str| format!("{}{end}", "X".repeat(120));
    let ids = ["a", "A", "a.", "a@", "a+", "a-2e", "a_", "shared", "user-a"];
    let mut users: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    users.extend([long("a"), long("b"), long("A")]);
    let mut paths: HashSet<String> = users
        .iter()
        .map(|user| path("main", "coder", Some(user)).display().to_string().to_lowercase())
        .collect();
    paths.insert(path("main", "coder", None).display().to_string());
    paths.insert(path("main", "Coder", None).display().to_string().to_lowercase());
    paths.insert(path("Main", "coder", None).display().to_string().to_lowercase());
    assert_eq!(paths.len(), users.len() + 3);
    for path in paths {
        assert_eq!(Path::new(&path).components().count(), 5, "{path}");
        assert!(Path::new(&path).iter().all(|name| name.len() <= 255 && name != ".."), "{path}");
    }
}
