//! The suite of [`SealedValues`]: every value of every tenant is found once, is replaced only if it is still
//! the one that was read, and every change is found by its mark.

use claw_core::store::{
    CustomTools, KeyUse, Programs, Resealed, SealKeyId, SealedMark, SealedPlace, SealedRow, SealedTable,
    SealedValues, Secrets, Topic,
};

use super::custom_tools::custom_tool;
use super::secrets::{program, sealed, secret};
use crate::fixture::{NOW, tenant};

const OLD: SealKeyId = SealKeyId([1; 8]);
const NEW: SealKeyId = SealKeyId([2; 8]);

/// Runs the suite; `make` creates an empty store.
pub async fn sealed_values<S: SealedValues + Secrets + Programs + CustomTools>(make: impl AsyncFn() -> S) {
    finds_every_value_once(make().await).await;
    puts_anew_what_was_seen(make().await).await;
    leaves_what_was_changed(make().await).await;
    counts_by_key(make().await).await;
    marks_every_change(make().await).await;
    hides_no_change_behind_a_later_mark(make().await).await;
}

async fn finds_every_value_once(store: impl SealedValues + Secrets + Programs + CustomTools) {
    let mut expected = [Vec::new(), Vec::new(), Vec::new()];
    for of in ["a", "b-c", "b"] {
        for agent in [None, Some("x"), Some("y")] {
            for name in ["n", "m", "o"] {
                let place = secret(of, agent, name);
                store.put_secret(&place, &sealed(1, name.as_bytes()), NOW).await.unwrap();
                expected[0].push(SealedPlace::from(&place));
                let program = program(of, agent, name, sealed(1, name.as_bytes()));
                store.put_program(&program).await.unwrap();
                expected[1].push(SealedPlace::from(&program.card.place));
                let tool = custom_tool(of, agent, name, sealed(1, name.as_bytes()));
                store.put_custom_tool(&tool, None).await.unwrap();
                expected[2].push(SealedPlace::from(&tool.card.place));
            }
        }
        store.put_secret(&secret(of, None, "current"), &sealed(2, b"x"), NOW).await.unwrap();
    }
    for (table, mut expected) in SealedTable::ALL.into_iter().zip(expected) {
        expected.sort();
        for limit in [1, 4, 27, 1_000] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let rows = store.not_sealed_by(NEW, table, after.as_ref(), limit).await.unwrap();
                let Some(last) = rows.last() else { break };
                assert!(rows.len() <= limit);
                after = Some(last.place.clone());
                found.extend(rows.into_iter().map(|row| {
                    assert_eq!(row.value, Ok(sealed(1, row.place.name.as_bytes())));
                    row.place
                }));
            }
            assert_eq!(found, expected, "by {limit}");
        }
        assert_eq!(store.not_sealed_by(NEW, table, None, 0).await.unwrap(), []);
    }
}

async fn puts_anew_what_was_seen(store: impl SealedValues + Secrets + Programs + CustomTools) {
    let (mine, theirs) = (secret("main", None, "T"), secret("other", None, "T"));
    let gh = program("main", None, "gh", sealed(1, b"env"));
    store.put_secret(&mine, &sealed(1, b"same"), NOW).await.unwrap();
    store.put_secret(&theirs, &sealed(1, b"same"), NOW).await.unwrap();
    store.put_program(&gh).await.unwrap();
    let dns = custom_tool("main", None, "dns", sealed(1, b"tool"));
    store.put_custom_tool(&dns, None).await.unwrap();
    let before = store.secrets(&tenant("main")).await.unwrap();
    let mut changes = store.changes(Topic::Secrets);
    let anew = [
        Resealed { place: (&mine).into(), old: sealed(1, b"same"), new: sealed(2, b"new") },
        Resealed { place: (&gh.card.place).into(), old: sealed(1, b"env"), new: sealed(2, b"new env") },
        Resealed { place: (&dns.card.place).into(), old: sealed(1, b"tool"), new: sealed(2, b"new tool") },
    ];
    assert_eq!(store.reseal(&anew).await.unwrap(), 3);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    assert_eq!(store.secret(&mine).await.unwrap(), Some(sealed(2, b"new")));
    assert_eq!(store.secret(&theirs).await.unwrap(), Some(sealed(1, b"same")), "another tenant's");
    let program = store.program(&gh.card.place).await.unwrap().unwrap();
    assert_eq!((program.env, program.card), (sealed(2, b"new env"), gh.card), "the rest of it is as it was");
    let tool = store.custom_tool(&dns.card.place).await.unwrap().unwrap();
    assert_eq!((tool.env, tool.card), (sealed(2, b"new tool"), dns.card), "the rest of it is as it was");
    assert_eq!(store.secrets(&tenant("main")).await.unwrap(), before, "nobody wrote it");
    let left = store.not_sealed_by(NEW, SealedTable::Secrets, None, 10).await.unwrap();
    assert_eq!(left, [SealedRow { place: (&theirs).into(), value: Ok(sealed(1, b"same")) }]);
    assert_eq!(store.reseal(&[]).await.unwrap(), 0);
}

async fn leaves_what_was_changed(store: impl SealedValues + Secrets + Programs + CustomTools) {
    let (written, removed, same) =
        (secret("main", None, "written"), secret("main", None, "removed"), secret("main", None, "same"));
    for place in [&written, &removed, &same] {
        store.put_secret(place, &sealed(1, b"seen"), NOW).await.unwrap();
    }
    store.put_secret(&written, &sealed(1, b"meanwhile"), NOW).await.unwrap();
    store.remove_secret(&removed).await.unwrap();
    let anew = |place| Resealed { place, old: sealed(1, b"seen"), new: sealed(2, b"new") };
    let other_table = SealedPlace { table: SealedTable::Programs, ..(&same).into() };
    let other_tenant = SealedPlace { tenant: tenant("other"), ..(&same).into() };
    let values = [(&written).into(), (&removed).into(), other_table, other_tenant, (&same).into()].map(anew);
    assert_eq!(store.reseal(&values).await.unwrap(), 1);
    assert_eq!(store.secret(&written).await.unwrap(), Some(sealed(1, b"meanwhile")));
    assert_eq!(store.secret(&removed).await.unwrap(), None, "what was removed does not come back");
    assert_eq!(store.secret(&same).await.unwrap(), Some(sealed(2, b"new")));
}

async fn counts_by_key(store: impl SealedValues + Secrets + Programs + CustomTools) {
    assert_eq!(store.key_use().await.unwrap(), []);
    for (n, key) in [1, 2, 1].into_iter().enumerate() {
        store.put_secret(&secret(&format!("t{n}"), None, "T"), &sealed(key, b"x"), NOW).await.unwrap();
    }
    store.put_program(&program("t9", None, "gh", sealed(1, b"x"))).await.unwrap();
    store.put_custom_tool(&custom_tool("t9", None, "dns", sealed(1, b"x")), None).await.unwrap();
    let expected = [KeyUse { key: Some(OLD), values: 4 }, KeyUse { key: Some(NEW), values: 1 }];
    assert_eq!(store.key_use().await.unwrap(), expected);
}

async fn marks_every_change(store: impl SealedValues + Secrets + Programs + CustomTools) {
    let mut seen = SealedMark::default();
    let mut check = async |expected: &[&str], change: &str| {
        let changes = store.changed_since(seen).await.unwrap();
        let expected: Vec<_> = expected.iter().map(|name| tenant(name)).collect();
        assert_eq!(changes.tenants, expected, "{change}");
        assert_eq!(changes.mark > seen, !expected.is_empty(), "{change}");
        seen = changes.mark;
    };
    check(&[], "nothing was ever written").await;
    let token = secret("a", None, "TOKEN");
    for change in ["first", "second in the same millisecond", "third"] {
        store.put_secret(&token, &sealed(1, b"same"), NOW).await.unwrap();
        check(&["a"], change).await;
    }
    check(&[], "nothing since").await;
    let gh = program("b", Some("x"), "gh", sealed(1, b"env"));
    let dns = custom_tool("c", None, "dns", sealed(1, b"tool"));
    store.put_custom_tool(&dns, None).await.unwrap();
    store.put_program(&gh).await.unwrap();
    check(&["c", "b"], "a tool, then a program").await;
    store.put_program(&gh).await.unwrap();
    store.put_secret(&token, &sealed(1, b"same"), NOW).await.unwrap();
    store.put_program(&gh).await.unwrap();
    check(&["a", "b"], "each tenant once, by its last change").await;
    store.enable_program(&gh.card.place, false, NOW).await.unwrap();
    check(&["b"], "a program was disabled").await;
    store.enable_custom_tool(&dns.card.place, false, NOW).await.unwrap();
    check(&["c"], "a tool was disabled").await;
    let anew = Resealed { place: (&token).into(), old: sealed(1, b"same"), new: sealed(2, b"new") };
    assert_eq!(store.reseal(&[anew]).await.unwrap(), 1);
    check(&["a"], "sealed anew").await;
    store.remove_secret(&token).await.unwrap();
    check(&["a"], "a secret was removed").await;
    store.remove_program(&gh.card.place).await.unwrap();
    check(&["b"], "a program was removed").await;
    store.remove_custom_tool(&dns.card.place, None).await.unwrap();
    check(&["c"], "a tool was removed").await;
    store.remove_secret(&token).await.unwrap();
    check(&[], "there was nothing to remove").await;
    let all = store.changed_since(SealedMark::default()).await.unwrap();
    assert_eq!(
        (all.mark, &all.tenants),
        (seen, &["a", "b", "c"].map(tenant).to_vec()),
        "all that ever had some"
    );
    let set_back = store.changed_since(SealedMark(seen.0 + 100)).await.unwrap();
    assert_eq!(set_back, all, "a mark of the future: the store was set back");
}

/// Writers of several tenants commit in any order; a reader that follows the marks misses none of them.
async fn hides_no_change_behind_a_later_mark(store: impl SealedValues + Secrets + Programs + CustomTools) {
    const WRITES: usize = 25;
    let names = ["a", "b", "c", "d"];
    let write = async |of: &str| {
        for n in 0..WRITES {
            store.put_secret(&secret(of, None, &format!("S{n}")), &sealed(1, b"x"), NOW).await.unwrap();
        }
    };
    let follow = async {
        let (mut seen, mut known) = (SealedMark::default(), [0; 4]);
        while known != [WRITES; 4] {
            let changes = store.changed_since(seen).await.unwrap();
            seen = changes.mark;
            for of in changes.tenants {
                let at = names.iter().position(|name| tenant(name) == of).unwrap();
                known[at] = store.secrets(&of).await.unwrap().len();
            }
            tokio::task::yield_now().await;
        }
    };
    let all = async { tokio::join!(write("a"), write("b"), write("c"), write("d"), follow) };
    let followed = tokio::time::timeout(std::time::Duration::from_secs(60), all).await;
    assert!(followed.is_ok(), "a change was committed below a mark that was returned before");
}
