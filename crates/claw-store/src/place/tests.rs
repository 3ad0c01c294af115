use std::path::Path;

use super::Place;

#[test]
fn reads_every_form() {
    for (url, expected) in [
        ("sqlite::memory:", Place::Memory),
        ("sqlite:claw.db", Place::File(Path::new("claw.db"))),
        ("sqlite:/var/lib/claw.db", Place::File(Path::new("/var/lib/claw.db"))),
        ("sqlite:///var/lib/claw.db", Place::File(Path::new("/var/lib/claw.db"))),
        ("sqlite://data/claw.db", Place::File(Path::new("data/claw.db"))),
        ("postgres://me@host/claw", Place::Postgres("postgres://me@host/claw")),
        ("postgresql://me@host/claw", Place::Postgres("postgresql://me@host/claw")),
    ] {
        assert_eq!(Place::of(url).unwrap(), expected, "{url}");
    }
}

#[test]
fn says_what_to_write_instead_and_quotes_no_password() {
    for (url, says) in [
        ("", "it is not said what kind of store it is"),
        ("claw.db", "it is not said what kind of store it is"),
        ("mysql://me:hunter2@host/claw", "`mysql` is no kind of store"),
        ("Sqlite:claw.db", "`Sqlite` is no kind of store"),
        ("sqlite:", "its path is empty"),
        ("sqlite://", "its path is empty"),
        ("sqlite:claw.db?mode=ro", "options after `?` are not taken"),
    ] {
        let error = Place::of(url).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("`sqlite:PATH`"), "{url}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
