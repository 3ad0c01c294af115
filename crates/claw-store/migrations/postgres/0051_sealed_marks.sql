-- The tenants whose secrets, programs or custom tools ever changed, and the mark of the last change. Each change gets a mark above
-- all others, so a process that knows one reads the tenants that changed since, and no other.
CREATE TABLE sealed_marks (
    tenant TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    mark   BIGINT NOT NULL
);

CREATE INDEX sealed_marks_in_order ON sealed_marks (mark);

INSERT INTO sealed_marks (tenant, mark)
    SELECT tenant, row_number() OVER (ORDER BY tenant)
    FROM (SELECT tenant FROM secrets UNION SELECT tenant FROM programs UNION SELECT tenant FROM custom_tools) AS sealed;

-- Marks are given one transaction after the other, at its commit: whoever has read one has read all below it. Nothing is locked
-- after that, so writers cannot deadlock.
CREATE FUNCTION clawsmith_sealed_mark() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('clawsmith sealed marks', 0));
    INSERT INTO sealed_marks (tenant, mark) SELECT coalesce(NEW.tenant, OLD.tenant), coalesce(max(mark), 0) + 1 FROM sealed_marks
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER secrets_marked AFTER INSERT OR UPDATE OR DELETE ON secrets
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION clawsmith_sealed_mark();
CREATE CONSTRAINT TRIGGER programs_marked AFTER INSERT OR UPDATE OR DELETE ON programs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION clawsmith_sealed_mark();
CREATE CONSTRAINT TRIGGER custom_tools_marked AFTER INSERT OR UPDATE OR DELETE ON custom_tools
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION clawsmith_sealed_mark();
