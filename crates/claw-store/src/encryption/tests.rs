use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

use claw_core::store::{KeyUse, SEALED_HEAD, SealKeyId, Sealed, SealedPlace, SealedTable};
use claw_core::{AgentId, TenantId};
use proptest::prelude::*;
use tempfile::TempDir;

use super::{Key, KeyRing, KeySource, Ring, Unopened};

fn place(name: &str) -> SealedPlace {
    SealedPlace { table: SealedTable::Secrets, tenant: TenantId::main(), agent: None, name: name.into() }
}

fn ring() -> Ring {
    Ring::new(Key::generate().unwrap())
}

/// Makes a directory for keys, and returns their future path.
fn home() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("keys/ring");
    (directory, path)
}

fn open(path: &Path) -> Result<KeyRing, String> {
    KeyRing::open(&KeySource::File(path.to_owned()), &[]).map_err(|error| error.to_string())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

proptest! {
    #[test]
    fn what_was_sealed_opens(plain in proptest::collection::vec(any::<u8>(), 0..300), name in "[a-z]{1,8}") {
        let ring = ring();
        let sealed = ring.seal(&place(&name), &plain).unwrap();
        prop_assert_eq!(sealed.key(), ring.current());
        prop_assert_eq!(&*ring.open(&place(&name), &sealed).unwrap(), &plain);
    }

    #[test]
    fn any_changed_byte_is_noticed(
        plain in proptest::collection::vec(any::<u8>(), 0..100),
        at in any::<proptest::sample::Index>(),
        by in 1..=255_u8,
    ) {
        let ring = ring();
        let mut bytes = ring.seal(&place("a"), &plain).unwrap().as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        let opened = Sealed::from_bytes(bytes).map(|sealed| ring.open(&place("a"), &sealed).err());
        match at {
            0 => prop_assert!(opened.is_err()),
            1..=8 => prop_assert!(matches!(opened, Ok(Some(Unopened::NoKey(_))))),
            _ => prop_assert_eq!(opened, Ok(Some(Unopened::Changed))),
        }
    }

    #[test]
    fn what_is_cut_off_is_noticed(length in 0..60_usize) {
        let ring = ring();
        let bytes = ring.seal(&place("a"), b"twenty bytes of text").unwrap().as_bytes().to_vec();
        let cut = bytes[..length.min(bytes.len() - 1)].to_vec();
        if let Ok(cut) = Sealed::from_bytes(cut) {
            prop_assert_eq!(ring.open(&place("a"), &cut).unwrap_err(), Unopened::Changed);
        }
    }

    #[test]
    fn any_text_is_read_or_refused_as_keys(text in "\\PC{0,200}") {
        let _ = Ring::parse(&text);
    }
}

#[test]
fn opens_at_no_other_place() {
    let ring = ring();
    let home = SealedPlace { agent: Some(AgentId::new("a").unwrap()), ..place("x") };
    let sealed = ring.seal(&home, b"value").unwrap();
    assert_eq!(&**ring.open(&home, &sealed).unwrap(), b"value");
    for other in [
        SealedPlace { table: SealedTable::Programs, ..home.clone() },
        SealedPlace { tenant: TenantId::new("other").unwrap(), ..home.clone() },
        SealedPlace { agent: None, ..home.clone() },
        SealedPlace { agent: Some(AgentId::new("b").unwrap()), ..home.clone() },
        SealedPlace { name: "y".into(), ..home },
    ] {
        assert_eq!(ring.open(&other, &sealed).unwrap_err(), Unopened::Changed, "{other}");
    }
}

#[test]
fn the_same_value_is_never_sealed_the_same() {
    let ring = ring();
    let (one, other) = (ring.seal(&place("a"), b"x").unwrap(), ring.seal(&place("a"), b"x").unwrap());
    assert_ne!(one.nonce(), other.nonce());
    assert_ne!(one.ciphertext(), other.ciphertext());
}

/// Values stored today must open tomorrow: a key, a place and a value sealed once.
#[test]
fn the_form_is_what_it_was() {
    let ring = Ring::parse(&"07".repeat(32)).unwrap();
    let mut bytes = vec![1];
    bytes.extend_from_slice(&ring.current().0);
    bytes.extend_from_slice(&[9; 12]);
    assert_eq!(bytes.len(), SEALED_HEAD);
    bytes.extend_from_slice(KNOWN);
    let opened = ring.open(&place("token"), &Sealed::from_bytes(bytes).unwrap()).unwrap();
    assert_eq!(&**opened, b"hunter2");
    assert_eq!(ring.current().to_string(), "a2671e74da81ddf2");
}

/// A value sealed by two other implementations of AES-256-GCM.
const KNOWN: &[u8] = &[
    0x4f, 0xf0, 0xea, 0xe0, 0xdb, 0x82, 0xf3, 0x00, 0xb8, 0x81, 0xcb, 0x05, 0x8d, 0x45, 0xde, 0xee, 0x48,
    0xa3, 0xb9, 0xe7, 0x08, 0xd0, 0xc0,
];

#[test]
fn a_wrong_key_opens_nothing() {
    let (one, other) = (ring(), ring());
    let sealed = one.seal(&place("a"), b"x").unwrap();
    assert_eq!(other.open(&place("a"), &sealed).unwrap_err(), Unopened::NoKey(one.current()));
}

#[test]
fn keys_are_written_as_they_are_read() {
    let first = ring();
    let (old, sealed) = (first.current(), first.seal(&place("a"), b"x").unwrap());
    let both = first.with_current(Key::generate().unwrap());
    let read = Ring::parse(&both.write()).unwrap();
    assert_eq!(read.ids(), both.ids());
    assert_eq!(read.ids()[1], old);
    assert_eq!(&**read.open(&place("a"), &sealed).unwrap(), b"x", "an older key still opens");
    assert_eq!(read.seal(&place("a"), b"x").unwrap().key(), both.current(), "the current one seals");
    assert_eq!(read.without(&[old]).ids(), [both.current()]);
    // As a variable has it: without ids, in one line.
    let text = format!("{},{}", "07".repeat(32), "08".repeat(32));
    assert_eq!(Ring::parse(&text).unwrap().ids().len(), 2);
}

#[test]
fn keys_that_do_not_read_are_refused_without_a_word_of_them() {
    let good = "07".repeat(32);
    for (text, why) in [
        (String::new(), "it contains no key"),
        ("# a comment\n".to_owned(), "it contains no key"),
        ("hunter2".to_owned(), "a key is not 64 hexadecimal digits"),
        ("é".repeat(32), "a key is not 64 hexadecimal digits"),
        (format!("{good}0"), "a key is not 64 hexadecimal digits"),
        (format!("0000000000000000:{good}"), "a key does not fit the id before it"),
        (format!("{good} {good}"), "it contains the same key twice"),
    ] {
        assert_eq!(Ring::parse(&text).unwrap_err(), why);
    }
}

#[test]
fn nothing_shows_a_key() {
    let key = Key::generate().unwrap();
    let mut written = String::new();
    key.write(&mut written);
    let secret = written.split_once(':').unwrap().1.to_owned();
    let bytes = format!("{:?}", secret.as_bytes());
    let source = KeySource::Variable(zeroize::Zeroizing::new(written));
    let keys = KeyRing::open(&source, &[]).unwrap();
    for shown in
        [format!("{key:?}"), format!("{source:?}"), format!("{keys:?}"), format!("{:?}", keys.ring())]
    {
        assert!(!shown.contains(&secret) && !shown.contains(&bytes) && shown.len() < 200, "{shown}");
    }
}

#[test]
fn the_file_is_made_for_its_owner_alone() {
    let (_directory, path) = home();
    let keys = open(&path).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(open(&path).unwrap().ring().ids(), keys.ring().ids(), "the second time it is read");
    let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside it");
}

#[test]
fn programs_that_start_together_have_the_same_keys() {
    for _ in 0..20 {
        let (_directory, path) = home();
        let start = Arc::new(Barrier::new(8));
        let starting: Vec<_> = (0..8)
            .map(|_| {
                let (path, start) = (path.clone(), Arc::clone(&start));
                std::thread::spawn(move || {
                    start.wait();
                    open(&path).unwrap().ring().ids()
                })
            })
            .collect();
        let mut ids: Vec<Vec<SealKeyId>> =
            starting.into_iter().map(|started| started.join().unwrap()).collect();
        ids.dedup();
        assert_eq!(ids.len(), 1, "{ids:?}");
    }
}

#[test]
fn refuses_a_file_that_others_can_read() {
    let (_directory, path) = home();
    open(&path).unwrap();
    for bad in [0o640, 0o604, 0o620, 0o602, 0o601] {
        set_mode(&path, bad);
        let error = open(&path).unwrap_err();
        assert!(error.contains(&format!("mode {bad:04o}")), "{error}");
        assert!(error.contains(&format!("chmod 600 {}", path.display())), "{error}");
    }
    set_mode(&path, 0o600);
    open(&path).unwrap();
}

#[test]
fn refuses_a_directory_that_others_can_look_into() {
    let (_directory, path) = home();
    open(&path).unwrap();
    let directory = path.parent().unwrap();
    set_mode(directory, 0o755);
    let error = open(&path).unwrap_err();
    assert!(error.contains(&format!("chmod 700 {}", directory.display())), "{error}");
    fs::remove_file(&path).unwrap();
    open(&path).unwrap_err();
    assert!(!path.exists(), "nothing is made there");
}

#[test]
fn refuses_a_symbolic_link_and_what_is_no_file() {
    let (directory, path) = home();
    open(&path).unwrap();
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(error.contains("symbolic link"), "{error}");
    fs::remove_file(&path).unwrap();
    symlink(directory.path().join("nowhere"), &path).unwrap();
    assert!(open(&path).unwrap_err().contains("symbolic link"), "one that leads nowhere too");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(error.contains("it is not a file"), "{error}");
}

#[test]
fn refuses_a_file_that_does_not_read_and_leaves_it() {
    let (_directory, path) = home();
    open(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    for broken in [&b""[..], b"hunter2", b"\xff\xfe", &whole[..whole.len() - 5], &[b'7'; 200_000]] {
        fs::write(&path, broken).unwrap();
        let error = open(&path).unwrap_err();
        assert!(error.contains("restore the file from a copy"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), broken);
    }
}

#[test]
fn no_new_key_is_made_where_values_are_sealed() {
    let (_directory, path) = home();
    let sealed = [KeyUse { key: Some(SealKeyId([0xab; 8])), values: 3 }];
    let error = KeyRing::open(&KeySource::File(path.clone()), &sealed).unwrap_err().to_string();
    assert!(error.contains("it is missing, and values are encrypted with `abababababababab`"), "{error}");
    assert!(!path.exists());
}

#[tokio::test]
async fn a_key_that_another_program_made_is_used_from_then_on() {
    let (_directory, path) = home();
    let (one, other) = (Arc::new(open(&path).unwrap()), Arc::new(open(&path).unwrap()));
    let first = one.ring().current();
    let second = one.add(one.sealing().await.unwrap()).await.unwrap();
    assert_eq!((mode(&path), one.ring().ids()), (0o600, vec![second, first]));
    assert_eq!(other.ring().current(), first, "it has not looked");
    assert_eq!(other.sealing().await.unwrap().ring.current(), second);
    other.retire(other.sealing().await.unwrap(), vec![first]).await.unwrap();
    assert_eq!(one.refresh().await.unwrap().ids(), [second]);
}

#[tokio::test]
async fn does_not_seal_when_the_file_is_gone() {
    let (_directory, path) = home();
    let keys = Arc::new(open(&path).unwrap());
    fs::remove_file(&path).unwrap();
    let error = keys.sealing().await.unwrap_err().to_string();
    assert!(error.contains("it is missing"), "{error}");
}
