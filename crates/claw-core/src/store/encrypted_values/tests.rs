use super::{NotSealed, SEALED_HEAD, SEALED_TAG, SealKeyId, Sealed, SealedPlace, SealedTable};
use crate::id::{AgentId, TenantId};

#[track_caller]
fn check(bytes: &[u8], expected: NotSealed) {
    assert_eq!(Sealed::from_bytes(bytes.to_vec()), Err(expected));
}

#[test]
fn refuses_what_has_not_the_form() {
    check(b"", NotSealed::Empty);
    check(b"ghp_0123456789abcdefghijklmnopqrstuvwxyz", NotSealed::Plain);
    check("\u{1f980}".repeat(20).as_bytes(), NotSealed::Plain);
    check(b"\tindented text that is long enough to be a sealed value", NotSealed::Plain);
    check(&[1; SEALED_HEAD + SEALED_TAG - 1], NotSealed::Short);
    check(&[2; 100], NotSealed::Version(2));
    check(&[0; 100], NotSealed::Version(0));
}

#[test]
fn names_its_parts() {
    let bytes: Vec<u8> = (1..=SEALED_HEAD + SEALED_TAG + 3).map(|n| n as u8).collect();
    let sealed = Sealed::from_bytes(bytes.clone()).unwrap();
    assert_eq!(sealed.key(), SealKeyId([2, 3, 4, 5, 6, 7, 8, 9]));
    assert_eq!(sealed.nonce(), &bytes[9..21]);
    assert_eq!(sealed.ciphertext(), &bytes[21..]);
    assert_eq!(sealed.as_bytes(), bytes);
    assert_eq!(format!("{sealed:?}"), "Sealed(key 0203040506070809, 40 bytes)");
}

#[test]
fn no_two_places_have_the_same_bytes() {
    let place = |table, tenant: &str, agent: Option<&str>, name: &str| SealedPlace {
        table,
        tenant: TenantId::new(tenant).unwrap(),
        agent: agent.map(|agent| AgentId::new(agent).unwrap()),
        name: name.into(),
    };
    let places = [
        place(SealedTable::Secrets, "a", None, "b"),
        place(SealedTable::Programs, "a", None, "b"),
        place(SealedTable::Secrets, "a", Some("b"), "b"),
        place(SealedTable::Secrets, "ab", None, "b"),
        place(SealedTable::Secrets, "a", None, "bb"),
        place(SealedTable::Secrets, "a", Some("bb"), "b"),
        place(SealedTable::Secrets, "a", Some("b"), "bb"),
        place(SealedTable::Secrets, "b", None, "a"),
    ];
    for (i, one) in places.iter().enumerate() {
        for other in &places[i + 1..] {
            assert_ne!(one.bytes(), other.bytes(), "{one} and {other}");
        }
    }
}
