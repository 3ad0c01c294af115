use claw_core::{SessionKey, TenantId};

use super::*;

fn owner(session: &str) -> Owner {
    Owner { tenant: TenantId::main(), session: SessionKey::new(session).unwrap() }
}

fn state(version: &str, text: Option<&str>) -> Seen {
    Seen { version: Version(version.into()), redacted: false, text: text.map(Arc::from) }
}

#[test]
fn sessions_see_for_themselves() {
    let table = SeenTable::default();
    assert!(table.put(&owner("a:1"), Path::new("/x"), state("1", None)));
    assert!(!table.put(&owner("a:1"), Path::new("/x"), state("1", Some("text"))));
    assert!(!table.put(&owner("a:1"), Path::new("/x"), state("1", None)));
    assert_eq!(table.get(&owner("a:1"), Path::new("/x")), Some(state("1", Some("text"))));
    assert_eq!(table.get(&owner("a:2"), Path::new("/x")), None);
    assert_eq!(table.get(&owner("a:1"), Path::new("/y")), None);
    assert!(table.put(&owner("a:1"), Path::new("/x"), state("2", None)));
    assert_eq!(table.get(&owner("a:1"), Path::new("/x")), Some(state("2", None)));
}

#[test]
fn it_holds_no_more_than_it_may() {
    let table = SeenTable::default();
    let long = "x".repeat(LONGEST);
    for at in 0..100 {
        table.put(&owner("a:1"), Path::new(&format!("/{at}")), state("1", Some(&long)));
    }
    table.put(&owner("a:1"), Path::new("/longer"), state("1", Some(&format!("{long}x"))));
    let has_text = |path: &str| table.get(&owner("a:1"), Path::new(path)).unwrap().text.is_some();
    assert!(has_text("/99") && !has_text("/0") && !has_text("/longer"));
    assert!(table.0.lock().unwrap().text_bytes <= TEXT_BYTES);
    for at in 0..FILES {
        table.put(&owner("a:2"), Path::new(&format!("/{at}")), state("1", None));
    }
    assert_eq!(table.get(&owner("a:1"), Path::new("/99")), None, "what was seen longest ago is forgotten");
    let inner = table.0.lock().unwrap();
    assert_eq!(
        (inner.files.len(), inner.order.len(), inner.texts.len(), inner.text_bytes),
        (FILES, FILES, 0, 0)
    );
}
