-- The order of all events of a tenant, for those who follow many sessions. A number is never given twice.
CREATE TABLE feed (
    place   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    seq     BIGINT NOT NULL
);

CREATE INDEX feed_tenant ON feed (tenant, place);

INSERT INTO feed (tenant, session, seq) SELECT tenant, session, seq FROM events ORDER BY at, tenant, session, seq;

-- Numbers of a tenant are given one transaction after the other, at its commit: whoever has read one has read all before it.
CREATE FUNCTION clawsmith_feed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('clawsmith feed ' || NEW.tenant, 0));
    INSERT INTO feed (tenant, session, seq) VALUES (NEW.tenant, NEW.session, NEW.seq);
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER events_fed AFTER INSERT ON events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION clawsmith_feed();
