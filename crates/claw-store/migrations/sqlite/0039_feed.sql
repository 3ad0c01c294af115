-- The order of all events of a tenant, for those who follow many sessions. A number is never given twice.
CREATE TABLE feed (
    place   INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL
) STRICT;

CREATE INDEX feed_tenant ON feed (tenant, place);

INSERT INTO feed (tenant, session, seq) SELECT tenant, session, seq FROM events ORDER BY at, tenant, session, seq;

CREATE TRIGGER events_fed AFTER INSERT ON events BEGIN
    INSERT INTO feed (tenant, session, seq) VALUES (NEW.tenant, NEW.session, NEW.seq);
END;
