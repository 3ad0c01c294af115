-- Rules given with a yes; `given` is all that was, the other columns are what is looked for.
CREATE TABLE rules (
    tenant    TEXT   NOT NULL,
    id        UUID   NOT NULL,
    scope     TEXT   NOT NULL CHECK (scope IN ('session', 'agent', 'tenant')),
    agent     TEXT            CHECK ((agent IS NULL) = (scope = 'tenant')),
    session   TEXT            CHECK ((session IS NULL) = (scope <> 'session')),
    given     JSON   NOT NULL,
    created   BIGINT NOT NULL,
    expires   BIGINT,
    uses      BIGINT NOT NULL DEFAULT 0,
    last_used BIGINT,
    revoked   BIGINT,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 50);

CREATE INDEX rules_order ON rules (tenant, created, id);

-- That a rule was used changes nothing for anyone else.
CREATE TRIGGER rules_changed AFTER INSERT OR UPDATE OF revoked ON rules
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('approvals');
