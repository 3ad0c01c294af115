use super::StoreLocation;

#[track_caller]
fn check(url: &str, shown: &str) {
    let place: StoreLocation = url.parse().unwrap();
    assert_eq!(place.to_string(), shown, "{url}");
    assert_eq!(format!("{place:?}"), format!("StoreLocation({shown})"), "{url}");
}

#[test]
fn reads_every_form_and_shows_no_password() {
    check("sqlite::memory:", "sqlite::memory:");
    check("sqlite:claw.db", "sqlite:claw.db");
    check("sqlite:/var/lib/claw.db", "sqlite:/var/lib/claw.db");
    check("sqlite:///var/lib/claw.db", "sqlite:/var/lib/claw.db");
    check("sqlite://data/claw.db", "sqlite:data/claw.db");
    check("postgres://me@host/claw", "postgres://me@host:5432/claw");
    check("postgresql://me:hunter2@host:99/claw", "postgres://me@host:99/claw");
    check("postgres://me@host/claw?password=hunter2", "postgres://me@host:5432/claw");
    check("postgres://me:hunter2@%2Frun%2Fpg/claw", "postgres://me@/claw?host=/run/pg");
    check("postgres://me:hunter2@[/claw", "postgres://…");
}

#[test]
fn says_what_to_write_instead_and_quotes_no_password() {
    for (url, says) in [
        ("", "the URL does not say what kind of store it is"),
        ("claw.db", "the URL does not say what kind of store it is"),
        ("//me:hunter2@host/claw", "the URL does not say what kind of store it is"),
        ("hunter2-is-long-enough:x", "the URL does not say what kind of store it is"),
        ("mysql://me:hunter2@host/claw", "`mysql` is not a kind of store"),
        ("Sqlite:claw.db", "`Sqlite` is not a kind of store"),
        ("sqlite:", "its path is empty"),
        ("sqlite://", "its path is empty"),
        ("sqlite:claw.db?mode=ro", "options after `?` are not supported"),
    ] {
        let error = url.parse::<StoreLocation>().unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("`sqlite:PATH`"), "{url}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
