use std::collections::BTreeSet;

use super::*;

fn whole() -> Value {
    serde_json::from_str(&DOCUMENT).unwrap()
}

#[test]
fn every_route_has_its_entry_and_no_entry_is_without_a_route() {
    let routes: BTreeSet<(String, String)> = routes::table(MethodRouter::new())
        .routes
        .iter()
        .map(|route| (route.path.to_owned(), route.method.as_str().to_lowercase()))
        .collect();
    let document = whole();
    let entries = document["paths"].as_object().unwrap().iter();
    let entries: BTreeSet<(String, String)> = entries
        .flat_map(|(path, of)| of.as_object().unwrap().keys().map(|method| (path.clone(), method.clone())))
        .collect();
    assert_eq!(routes, entries);
    assert!(routes.len() > 40, "{}", routes.len());
}

/// A route that is added to a router by hand would have no entry.
#[test]
fn routes_are_added_by_the_table_alone() {
    const ADDING: [&str; 6] =
        [".route(", ".route_service(", ".nest(", ".nest_service(", ".merge(", ".fallback_service("];
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut directories, mut found, mut read) = (vec![source], BTreeSet::new(), 0);
    while let Some(directory) = directories.pop() {
        for file in std::fs::read_dir(directory).unwrap() {
            let file = file.unwrap().path();
            if file.is_dir() {
                directories.push(file);
                continue;
            }
            // This list is not a route.
            if file.extension().is_none_or(|kind| kind != "rs") || file.ends_with("openapi/tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let adds = ADDING.iter().filter(|adding| text.contains(*adding));
            found.extend(adds.map(|adding| format!("{name} {adding}")));
            read += 1;
        }
    }
    assert!(read > 50, "subdirectories are read, too: {read}");
    assert_eq!(found, BTreeSet::from(["api.rs .route(".to_owned()]));
}

#[test]
fn the_document_is_sound() {
    let document = whole();
    let (mut ids, mut names) = (BTreeSet::new(), Vec::new());
    for (path, of) in document["paths"].as_object().unwrap() {
        for (method, entry) in of.as_object().unwrap() {
            let what = format!("{method} {path}");
            assert!(ids.insert(entry["operationId"].as_str().unwrap().to_owned()), "{what}");
            assert!(!entry["responses"].as_object().unwrap().is_empty(), "{what}");
            let in_path = path.matches('{').count();
            let given = entry["parameters"].as_array().into_iter().flatten();
            let given: Vec<&Value> = given.filter(|one| one["in"] == "path").collect();
            assert_eq!(in_path, given.len(), "{what}");
            for one in given {
                assert!(path.contains(&format!("{{{}}}", one["name"].as_str().unwrap())), "{what}");
            }
        }
    }
    references(&document, &mut names);
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let at = name.strip_prefix('#').unwrap();
        assert!(document.pointer(at).is_some(), "{name} leads nowhere");
    }
}

/// Clients name their methods after these ids.
#[test]
fn ids_of_access_do_not_follow_the_name_of_a_file() {
    let document = whole();
    let id = |path: &str, method: &str| document["paths"][path][method]["operationId"].clone();
    assert_eq!(id("/v1/api-keys", "get"), "access.keys");
    assert_eq!(id("/v1/users/{user}", "patch"), "access.edit_user");
    assert_eq!(id("/v1/tenant/rules", "put"), "access.set_tenant_rules");
    assert_eq!(id("/v1/tools", "get"), "tools.list");
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(name)) = fields.get("$ref") {
                found.push(name.clone());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
