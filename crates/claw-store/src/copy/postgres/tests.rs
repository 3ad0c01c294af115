use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;

use super::{WORDS, label};
use crate::copy::sql::{insert, select};
use crate::copy::tables::{Column, Kind, Part};

fn notes() -> Part {
    let column = |(name, kind): (&str, Kind)| Column { name: name.to_owned(), kind };
    let columns = [("id", Kind::Uuid), ("tenant", Kind::Text), ("body", Kind::Json), ("seq", Kind::Integer)];
    Part { name: "no\"tes".to_owned(), columns: columns.map(column).to_vec(), key: vec![1, 3] }
}

/// The server of the tests knows no order but that of bytes, so that rows cannot show this.
#[test]
fn reads_in_the_order_of_bytes_whatever_the_language_of_the_database() {
    assert_eq!(
        select(&notes(), &WORDS, false),
        r#"SELECT "id", "tenant", "body"::text, "seq"::int8 FROM "no""tes" WHERE ("tenant" COLLATE "C", "seq") > ($1, $2) ORDER BY "tenant" COLLATE "C", "seq""#
    );
    assert!(!select(&notes(), &WORDS, true).contains("WHERE"));
}

#[test]
fn writes_places_that_the_database_would_give_itself() {
    assert_eq!(
        insert(&notes(), &WORDS, 2),
        r#"INSERT INTO "no""tes" ("id", "tenant", "body", "seq") OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3::json, $4), ($5, $6, $7::json, $8)"#
    );
}

#[test]
fn a_label_has_no_password() {
    let options = PgConnectOptions::from_str("postgres://me:hunter2@db.example:6000/claw").unwrap();
    assert_eq!(label(&options), "postgres://db.example:6000/claw");
}
