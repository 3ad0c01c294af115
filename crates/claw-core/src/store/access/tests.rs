use super::*;

fn key() -> ApiKey {
    let mut bytes = [0xab; 32];
    bytes[0] = 1;
    ApiKey::from_random(bytes)
}

#[test]
fn a_key_is_its_random_bits_as_text() {
    assert_eq!(key().reveal(), format!("claw_01{}", "ab".repeat(31)));
    assert_eq!(key().reveal().parse(), Ok(key()));
    assert_ne!(ApiKey::from_random([0; 32]), ApiKey::from_random([1; 32]));
}

#[test]
fn what_is_stored_is_the_sha_256_of_the_text() {
    let zero = ApiKey::from_random([0; 32]);
    assert_eq!(zero.hash(), Digest::of_bytes(format!("claw_{}", "0".repeat(64)).as_bytes()));
    // By `printf claw_000..0 | sha256sum`.
    assert_eq!(
        zero.hash().to_string(),
        "sha256:993bc3d67cb56b634f84c2dfa07e734fb1a22b248287b16bb97214009ab4e807"
    );
}

#[test]
fn a_key_is_not_shown_by_debug_nor_by_what_is_wrong_with_it() {
    assert_eq!(format!("{:?}", Some(key())), "Some(ApiKey(claw_..))");
    let slip = format!("{}0", key().reveal());
    let error = slip.parse::<ApiKey>().unwrap_err();
    assert!(!format!("{error} {error:?}").contains("abab"), "{error}");
}

#[test]
fn a_key_has_one_spelling() {
    let text = key().reveal().to_owned();
    for bad in [
        "",
        "claw_",
        &text[5..],
        &text[..68],
        &text.to_ascii_uppercase(),
        &text.replace("claw_", "Claw_"),
        &text.replace('b', "B"),
        &text.replace('b', "g"),
        &format!(" {text}"),
        &format!("{text}\n"),
        &format!("{text}0"),
    ] {
        assert_eq!(bad.parse::<ApiKey>(), Err(InvalidKey), "{bad:?}");
    }
}

#[test]
fn roles_are_ordered() {
    assert!(AccessRole::ALL.is_sorted() && AccessRole::Viewer < AccessRole::Owner);
    for role in AccessRole::ALL {
        assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
    }
}

#[test]
fn scopes_are_sorted_by_their_words_and_read_back() {
    assert!(KeyScope::ALL.is_sorted() && KeyScope::ALL.map(KeyScope::name).is_sorted());
    for scope in KeyScope::ALL {
        assert_eq!(scope.name().parse(), Ok(scope));
    }
    let scopes: KeyScopes = "tools:call admin  tools:call approvals:answer".parse().unwrap();
    assert_eq!(scopes.to_string(), "admin approvals:answer tools:call");
    assert_eq!(serde_json::to_string(&scopes).unwrap(), r#"["admin","approvals:answer","tools:call"]"#);
    assert_eq!(
        serde_json::from_str::<KeyScopes>(r#"["tools:call","admin","approvals:answer"]"#).unwrap(),
        scopes
    );
    assert_eq!("".parse(), Ok(KeyScopes::default()));
}

#[test]
fn an_unknown_scope_is_an_error_that_names_the_known_ones() {
    for bad in ["tools", "tools:*", "tools:calls", "Tools:call", "tools:call,admin", "*"] {
        let error = format!("admin {bad}").parse::<KeyScopes>().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("`{bad}` is not a scope; use some of `admin`, `agents:read`")),
            "{error}"
        );
        serde_json::from_str::<KeyScopes>(&format!("[\"{bad}\"]")).unwrap_err();
    }
}

#[test]
fn a_key_allows_what_its_scopes_name_and_admin_everything() {
    let some: KeyScopes = [KeyScope::CallTools, KeyScope::ReadTools].into_iter().collect();
    let admin: KeyScopes = [KeyScope::Admin].into_iter().collect();
    for scope in KeyScope::ALL {
        assert_eq!(some.allow(scope), matches!(scope, KeyScope::CallTools | KeyScope::ReadTools));
        assert!(admin.allow(scope) && !KeyScopes::default().allow(scope));
    }
}
